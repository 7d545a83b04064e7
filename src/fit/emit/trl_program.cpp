// The Python program of --emit trl: the same settings as sft.yaml, spelled out with peft and bitsandbytes so that they
// can be edited. Values enter as Python literals only.
#include <fmt/format.h>

#include "base/quote.h"
#include "fit/emit/trainer.h"

namespace gpuwright::fit {
namespace {

// name=value, one a line, as the arguments of a call.
std::string arguments_of(const Json& object) {
  std::string text;
  for (const auto& [name, value] : object.members()) text += fmt::format("    {}={},\n", name, python_from(value));
  return text;
}

std::string imports(const TrainingJob& job) {
  std::string text = "import sys\n\n";
  if (job.method == TrainingMethod::qlora) text += "import torch\n";
  text += "from datasets import load_dataset\n";
  if (job.method != TrainingMethod::full)
    text += job.lora.adapter_dtype == model::Dtype::f32 ? "from peft import LoraConfig\n"
                                                        : "from peft import LoraConfig, get_peft_model\n";
  text += job.method == TrainingMethod::qlora ? "from transformers import AutoModelForCausalLM, BitsAndBytesConfig\n"
                                              : "from transformers import AutoModelForCausalLM\n";
  return text + "from trl import SFTConfig, SFTTrainer\n\n";
}

std::string quantization(const TrainingJob& job) {
  return fmt::format(
      "quantization = BitsAndBytesConfig(\n"
      "    load_in_4bit=True,\n"
      "    bnb_4bit_quant_type=\"nf4\",\n"
      "    bnb_4bit_use_double_quant=True,\n"
      "    bnb_4bit_compute_dtype=torch.{0},\n"
      "    bnb_4bit_quant_storage=torch.{0},\n)\n",
      weights_dtype(job));
}

std::string adapters(const TrainingJob& job, const Json& model_arguments) {
  Json lora = Json::object();
  lora.set("task_type", "CAUSAL_LM").set("r", job.lora.rank).set("lora_alpha", lora_alpha(job));
  lora.set("lora_dropout", job.lora.dropout ? 0.05 : 0.0).set("bias", "none");
  lora.set("use_dora", job.method == TrainingMethod::dora);
  if (job.lora.targets == std::vector<std::string>{"all-linear"})
    lora.set("target_modules", "all-linear");
  else if (!job.lora.targets.empty())
    lora.set("target_modules", Json(Json::Array(job.lora.targets.begin(), job.lora.targets.end())));
  if (const Json* whole = model_arguments.find("lora_modules_to_save")) lora.set("modules_to_save", *whole);
  return fmt::format("adapters = LoraConfig(\n{})\n", arguments_of(lora));
}

}  // namespace

std::string trl_program(const std::string& model, const TrainingJob& job) {
  const Json settings = model_arguments(model, job);
  const bool lora = job.method != TrainingMethod::full;
  const bool adapters_in_16_bit = lora && job.lora.adapter_dtype != model::Dtype::f32;
  std::string text = imports(job);
  text += fmt::format("MODEL = {}\nDATASET = sys.argv[1]  # of the hub, or a .json or .jsonl file\n\n",
                      python_from(Json(model)));
  // First: it tells transformers of DeepSpeed, which decides how the weights are loaded.
  text += fmt::format("arguments = SFTConfig(\n{})\n", arguments_of(trainer_arguments(job)));
  if (job.method == TrainingMethod::qlora) text += quantization(job);
  text += fmt::format(
      "model = AutoModelForCausalLM.from_pretrained(\n    MODEL,\n    dtype={},\n"
      "    attn_implementation={},\n    use_cache=False,\n{})\n",
      python_from(Json(weights_dtype(job))), python_from(Json(job.attention)),
      job.method == TrainingMethod::qlora ? "    quantization_config=quantization,\n" : "");
  if (lora) text += adapters(job, settings);
  if (adapters_in_16_bit) text += "model = get_peft_model(model, adapters, autocast_adapter_dtype=False)\n";
  text +=
      "if DATASET.endswith((\".json\", \".jsonl\")):\n"
      "    dataset = load_dataset(\"json\", data_files=DATASET, split=\"train\")\n"
      "else:\n"
      "    dataset = load_dataset(DATASET, split=\"train\")\n\n";
  text += fmt::format("trainer = SFTTrainer(model=model, args=arguments, train_dataset=dataset{})\n",
                      lora && !adapters_in_16_bit ? ", peft_config=adapters" : "");
  return text + "trainer.train()\ntrainer.save_model()\n";
}

}  // namespace gpuwright::fit

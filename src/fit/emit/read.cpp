#include "fit/emit/read.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "fit/emit/command_reader.h"
#include "fit/emit/told.h"

namespace gpuwright::fit {
namespace {

constexpr std::size_t kMostFiles = 16;

bool has_any(const ConfigNode& root, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return root.find(key) != nullptr; });
}

Result<ConfigFormat> format_of(const ConfigNode& root, const std::string& name) {
  const ConfigNode* bf16 = root.find("bf16");
  const ConfigNode* fp16 = root.find("fp16");
  const bool sections = (bf16 != nullptr && bf16->is_map()) || (fp16 != nullptr && fp16->is_map());
  if (sections || has_any(root, {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"}))
    return ConfigFormat::deepspeed;
  if (has_any(root, {"compute_environment", "distributed_type", "deepspeed_config", "num_processes"}))
    return ConfigFormat::accelerate;
  if (has_any(root, {"finetuning_type", "cutoff_len"})) return ConfigFormat::llama_factory;
  if (has_any(root, {"per_device_train_batch_size", "output_dir", "model_name_or_path", "learning_rate",
                     "gradient_checkpointing", "lora_r"}))
    return ConfigFormat::trainer;
  return fail_at(ErrorCode::unsupported, {name, std::nullopt, std::nullopt},
                 "this is none of the configurations that are read",
                 "DeepSpeed JSON, accelerate YAML, arguments of Trainer, TRL or LLaMA-Factory, or a command line "
                 "of vllm serve or llama-server");
}

Status read_into(ConfigFormat format, const ConfigNode& root, const std::string& name, TrainingTold& told) {
  switch (format) {
    case ConfigFormat::deepspeed:
      return read_deepspeed(root, name, told);
    case ConfigFormat::accelerate:
      return read_accelerate(root, name, told);
    default:
      return read_trainer(root, name, told);
  }
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string path_beside(const std::string& path, const std::string& named) {
  if (!named.empty() && named.front() == '/') return named;
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? named : path.substr(0, slash + 1) + named;
}

struct TrainingReading {
  ReadConfig made;
  TrainingTold told;
};

Result<TrainingReading> read_training(std::span<const ConfigText> texts) {
  TrainingReading reading;
  for (const ConfigText& text : texts) {
    const ConfigNode root = GW_TRY(parse_config(text.text, text.name));
    const ConfigFormat format = GW_TRY(format_of(root, text.name));
    reading.made.formats.push_back(format);
    GW_TRY(read_into(format, root, text.name, reading.told));
  }
  return reading;
}

Result<ReadConfig> joined(TrainingReading reading, std::span<const ConfigText> texts, const TrainingJob& base,
                          const SaidBeside& beside) {
  TrainingTold& told = reading.told;
  if (told.deepspeed_file) {
    const std::string_view wanted = base_name(*told.deepspeed_file);
    const bool given =
        std::any_of(texts.begin(), texts.end(), [&](const ConfigText& text) { return base_name(text.name) == wanted; });
    if (!given)
      return fault_at(told.deepspeed_file.place(), fmt::format("names {}, which was not given", *told.deepspeed_file),
                      "name that file too");
  }
  reading.made.training = GW_TRY(job_from(told, base, beside));
  reading.made.model = told.model.value_or("");
  reading.made.notes = std::move(told.notes);
  return std::move(reading.made);
}

}  // namespace

std::string_view name_of(ConfigFormat format) {
  switch (format) {
    case ConfigFormat::deepspeed:
      return "DeepSpeed";
    case ConfigFormat::accelerate:
      return "accelerate";
    case ConfigFormat::trainer:
      return "Trainer arguments";
    case ConfigFormat::llama_factory:
      return "LLaMA-Factory";
    case ConfigFormat::vllm:
      return "vllm serve";
    case ConfigFormat::llama_cpp:
      return "llama-server";
  }
  return "?";
}

Result<ReadConfig> read_config(std::span<const ConfigText> texts, const TrainingJob& training, const Job& serving,
                               const SaidBeside& beside) {
  if (texts.empty() || texts.size() > kMostFiles)
    return fail(ErrorCode::bad_input, fmt::format("1 to {} configurations are read at once", kMostFiles));
  for (const ConfigText& text : texts) {
    auto command = GW_TRY(read_command(text, serving));
    if (!command) continue;
    if (texts.size() > 1) return fail(ErrorCode::bad_input, "a command line is read alone, not beside other files");
    return std::move(*command);
  }
  return joined(GW_TRY(read_training(texts)), texts, training, beside);
}

Result<ReadConfig> read_config_files(std::span<const std::string> paths, const TrainingJob& training,
                                     const Job& serving, const SaidBeside& beside) {
  std::vector<ConfigText> texts;
  for (const std::string& path : paths) texts.push_back({path, GW_TRY(read_file(path, kLargestConfig))});
  if (texts.empty()) return fail(ErrorCode::bad_input, "no configuration is named");
  if (!GW_TRY(read_command(texts.front(), serving))) {
    const TrainingReading first = GW_TRY(read_training(texts));
    if (first.told.deepspeed_file) {
      const std::string path = path_beside(first.told.deepspeed_file.place().file, *first.told.deepspeed_file);
      const bool given = std::any_of(texts.begin(), texts.end(),
                                     [&](const ConfigText& text) { return base_name(text.name) == base_name(path); });
      if (!given) texts.push_back({path, GW_TRY(read_file(path, kLargestConfig))});
    }
  }
  return read_config(texts, training, serving, beside);
}

}  // namespace gpuwright::fit

// Files as their own documentation shows them, contradictions, and what emit wrote read back.
#include "fit/emit/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fit/emit/emit.h"
#include "fit/testing/decoder.h"
#include "fit/training/training.h"

namespace gpuwright::fit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ReadConfig> read(std::vector<ConfigText> texts) {
  return read_config(texts, TrainingJob{}, Job{});
}
Result<ReadConfig> read(std::string text, std::string name = "config") {
  return read({{std::move(name), std::move(text)}});
}

std::string error_of(const Result<ReadConfig>& result) {
  return result ? "no error" : result.error().message();
}

// The example of Hugging Face's DeepSpeed guide (transformers docs/source/en/deepspeed.md, ZeRO-3 with CPU offload).
constexpr std::string_view kGuide = R"({
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16,
             "hysteresis": 2, "min_loss_scale": 1},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto"}},
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu", "pin_memory": true},
        "offload_param": {"device": "cpu", "pin_memory": true},
        "overlap_comm": true,
        "contiguous_gradients": true,
        "sub_group_size": 1e9,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
        "stage3_gather_16bit_weights_on_model_save": true
    },
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "steps_per_print": 2000,
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "wall_clock_breakdown": false
})";

TEST(ReadDeepspeed, AutoNeedsASource) {
  EXPECT_THAT(error_of(read(std::string(kGuide), "ds_config.json")),
              ::testing::AllOf(HasSubstr("ds_config.json:22:"), HasSubstr("train_micro_batch_size_per_gpu"),
                               HasSubstr("is auto")));
}

TEST(ReadDeepspeed, AutoIsAnsweredByTheArguments) {
  const auto made = read(
      {{"ds_config.json", std::string(kGuide)}, {"args.json", R"({"output_dir": "out", "per_device_train_batch_size": 4,
                            "gradient_accumulation_steps": 8, "fp16": true, "deepspeed": "ds_config.json",
                            "gradient_checkpointing": true, "optim": "adamw_torch"})"}});
  ASSERT_TRUE(made) << error_of(made);
  const TrainingJob& job = *made->training;
  EXPECT_EQ(job.micro_batch, 4);
  EXPECT_EQ(job.gradient_accumulation, 8);
  EXPECT_EQ(job.sharding.kind, Sharding::zero3);
  EXPECT_TRUE(job.sharding.offload_optimizer && job.sharding.offload_parameters);
  EXPECT_EQ(job.precision, Precision::mixed_deepspeed);
  EXPECT_EQ(job.checkpointing, Checkpointing::full);
  EXPECT_EQ(job.optimizer, Optimizer::adamw);
  EXPECT_THAT(made->formats, ElementsAre(ConfigFormat::deepspeed, ConfigFormat::trainer));
}

TEST(ReadDeepspeed, AutoIsAnsweredByWhatIsSaidBeside) {
  SaidBeside beside;
  beside.micro_batch = 2;
  const std::vector<ConfigText> guide = {{"ds_config.json", std::string(kGuide)}};
  EXPECT_THAT(error_of(read_config(guide, TrainingJob{}, Job{}, beside)),
              ::testing::AllOf(HasSubstr("gradient_accumulation_steps is auto"), HasSubstr("--accumulate")));
  beside.accumulation = 3;
  EXPECT_THAT(error_of(read_config(guide, TrainingJob{}, Job{}, beside)), HasSubstr("--precision"));
  beside.precision = true;
  const auto made = read_config(guide, TrainingJob{}, Job{}, beside);
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->training->micro_batch * made->training->gradient_accumulation, 6);
}

// train_batch_size = micro-batch x accumulation x GPUs, solved for what is missing: deepspeed runtime/config.py,
// _set_batch_related_parameters.
TEST(ReadDeepspeed, TheGpusThatAreNamedShareTheTrainBatch) {
  SaidBeside beside;
  beside.gpus = 2;
  const std::vector<ConfigText> guide = {
      {"ds.json", R"({"train_batch_size": 64, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}})"}};
  const auto made = read_config(guide, TrainingJob{}, Job{}, beside);
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->training->micro_batch, 8);
  EXPECT_EQ(made->training->data_parallel, 2);
  beside.gpus = 3;
  EXPECT_THAT(error_of(read_config(guide, TrainingJob{}, Job{}, beside)), HasSubstr("is not a multiple of"));
}

TEST(ReadConfig, OtherGpusThanTheFilesAreRefused) {
  SaidBeside beside;
  beside.gpus = 4;
  const std::vector<ConfigText> two = {{"accelerate.yaml", "distributed_type: MULTI_GPU\nnum_processes: 2\n"}};
  EXPECT_THAT(error_of(read_config(two, TrainingJob{}, Job{}, beside)),
              ::testing::AllOf(HasSubstr("accelerate.yaml:2: num_processes is for 2 GPUs, and 4 are named"),
                               HasSubstr("--gpu NAMEx2")));
  const std::vector<ConfigText> six = {
      {"ds.json",
       R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2})"}};
  EXPECT_THAT(error_of(read_config(six, TrainingJob{}, Job{}, beside)), HasSubstr("is for 6 GPUs, and 4 are named"));
}

TEST(ReadConfig, WhatIsSaidBesideGoesBeforeTheFiles) {
  SaidBeside beside;
  beside.micro_batch = 5;
  const auto made =
      read_config(std::vector<ConfigText>{{"ds.json",
                                           R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 1,
                                   "gradient_accumulation_steps": 2})"}},
                  TrainingJob{}, Job{}, beside);
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->training->micro_batch, 5);
  EXPECT_EQ(made->training->gradient_accumulation, 2);
}

TEST(ReadDeepspeed, BatchSizesMustMultiply) {
  const std::string text =
      "{\"train_batch_size\": 100,\n \"train_micro_batch_size_per_gpu\": 4,\n"
      " \"gradient_accumulation_steps\": 3}";
  EXPECT_THAT(error_of(read(text, "ds.json")),
              ::testing::AllOf(HasSubstr("ds.json:1:"), HasSubstr("train_batch_size 100 is not a multiple of"),
                               HasSubstr("12")));
  EXPECT_THAT(
      error_of(read({{"ds.json", R"({"train_batch_size": 96, "train_micro_batch_size_per_gpu": 4,
                              "gradient_accumulation_steps": 3, "bf16": {"enabled": true}})"},
                     {"accelerate.yaml",
                      "distributed_type: DEEPSPEED\nnum_processes: 4\n"
                      "deepspeed_config:\n  deepspeed_config_file: ds.json\n"}})),
      HasSubstr("train_batch_size 96 is not micro-batch 4 x accumulation 3 x 4 GPUs (accelerate.yaml, line 2)"));
}

// deepspeed/runtime/config.py, _set_batch_related_parameters: whatever is missing follows.
TEST(ReadDeepspeed, TheThirdNumberFollows) {
  TrainingJob base;
  base.data_parallel = 8;
  const std::vector<ConfigText> micro{{"ds.json", R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4})"}};
  const auto by_micro = read_config(micro, base, Job{});
  ASSERT_TRUE(by_micro);
  EXPECT_EQ(by_micro->training->gradient_accumulation, 2);
  const std::vector<ConfigText> steps{{"ds.json", R"({"train_batch_size": 64, "gradient_accumulation_steps": 4})"}};
  const auto by_steps = read_config(steps, base, Job{});
  ASSERT_TRUE(by_steps);
  EXPECT_EQ(by_steps->training->micro_batch, 2);
  const auto world = read(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
                              "gradient_accumulation_steps": 2})");
  ASSERT_TRUE(world);
  EXPECT_EQ(world->training->data_parallel, 8);
}

TEST(ReadDeepspeed, UnknownKeysAreNoted) {
  const auto made = read(
      "{\n\"train_micro_batch_size_per_gpu\": 1,\n\"zero_optimization\": {\"stage\": 2,\n"
      "\"zero_magic\": 7}\n}",
      "ds.json");
  ASSERT_TRUE(made);
  ASSERT_EQ(made->notes.size(), 1u);
  EXPECT_EQ(made->notes.front().sentence(),
            "ds.json:4: zero_optimization.zero_magic is not known here; it was not used");
}

TEST(ReadDeepspeed, WrongKindsNameTheLine) {
  EXPECT_THAT(error_of(read("{\"train_batch_size\": 8,\n\"zero_optimization\": {\n\"stage\": \"three\"}}", "ds.json")),
              ::testing::AllOf(HasSubstr("ds.json:3:"), HasSubstr("zero_optimization.stage is not a whole number")));
  EXPECT_THAT(error_of(read(R"({"train_batch_size": -8})")), HasSubstr("not between 1 and"));
  EXPECT_THAT(error_of(read(R"({"train_batch_size": 8, "zero_optimization": {"stage": 2,
                               "offload_param": {"device": "cpu"}}})")),
              HasSubstr("works under ZeRO-3 only"));
}

// As `accelerate config` writes it (accelerate docs, usage guide FSDP).
TEST(ReadAccelerate, Fsdp) {
  const auto made = read(R"(compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch_policy: BACKWARD_PRE
  fsdp_cpu_ram_efficient_loading: true
  fsdp_forward_prefetch: false
  fsdp_offload_params: true
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_sync_module_states: true
  fsdp_transformer_layer_cls_to_wrap: BertLayer
  fsdp_use_orig_params: true
machine_rank: 0
main_training_function: main
mixed_precision: bf16
num_machines: 2
num_processes: 8
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
)");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->training->sharding.kind, Sharding::fsdp_grad_only);
  EXPECT_TRUE(made->training->sharding.offload_parameters);
  EXPECT_EQ(made->training->precision, Precision::amp_bf16);
  EXPECT_EQ(made->training->data_parallel, 8);
  EXPECT_EQ(made->training->gpus_per_node, 4);
  EXPECT_TRUE(made->notes.empty()) << made->notes.front().sentence();
}

TEST(ReadAccelerate, TypeAndSectionMustAgree) {
  EXPECT_THAT(error_of(read("distributed_type: FSDP\nnum_processes: 2\n")), HasSubstr("there is no fsdp_config"));
  EXPECT_THAT(error_of(read("distributed_type: MULTI_GPU\nfsdp_config:\n  fsdp_offload_params: true\n")),
              HasSubstr("is not FSDP"));
  EXPECT_THAT(error_of(read("distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n")),
              HasSubstr("names ds.json, which was not given"));
}

// examples/train_qlora/llama3_lora_sft_bnb_npu.yaml and examples/train_lora of LLaMA-Factory, shortened.
TEST(ReadLlamaFactory, Qlora) {
  const auto made = read(R"(### model
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
quantization_bit: 4
quantization_method: bnb
double_quantization: false

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all

### dataset
dataset: identity,alpaca_en_demo
template: llama3
cutoff_len: 2048   # tokens
overwrite_cache: true

### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
bf16: true
)");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->model, "meta-llama/Meta-Llama-3-8B-Instruct");
  EXPECT_EQ(made->training->method, TrainingMethod::qlora);
  EXPECT_EQ(made->training->precision, Precision::pure_bf16);
  EXPECT_THAT(made->training->lora.targets, ElementsAre("all-linear"));
  EXPECT_EQ(made->training->sequence, 2048);
  ASSERT_EQ(made->notes.size(), 1u);
  EXPECT_EQ(made->notes.front().key, "double_quantization");
}

TEST(ReadCommand, VllmServe) {
  const auto made = read(
      "# what we run\nCUDA_VISIBLE_DEVICES=0,1 vllm serve Qwen/Qwen3-32B \\\n  -tp 2 --max_model_len=32k \\\n"
      "  --gpu-memory-utilization 0.85 --kv-cache-dtype fp8 --enforce-eager \\\n"
      "  --quantization fp8 --dtype bfloat16 --served-model-name 'my model' --shiny-option on\n");
  ASSERT_TRUE(made) << error_of(made);
  const Job& job = *made->serving;
  EXPECT_EQ(job.engine, Engine::vllm);
  EXPECT_EQ(made->model, "Qwen/Qwen3-32B");
  EXPECT_EQ(made->weight_format, "fp8");
  EXPECT_EQ(job.tensor_parallel, 2);
  EXPECT_EQ(job.context_tokens, 32'000);
  EXPECT_EQ(job.vllm.gpu_memory_utilization, 0.85);
  EXPECT_EQ(job.key_type, model::Dtype::f8_e4m3);
  EXPECT_EQ(job.vllm.enforce_eager, true);
  ASSERT_EQ(made->notes.size(), 2u);
  EXPECT_EQ(made->notes.back().sentence(), "config:5: --shiny-option is not known here; it was not used");
}

TEST(ReadCommand, LlamaServer) {
  const auto made = read(
      "llama-server -m 'my model.gguf' -c 16384 -np 4 -ngl 99 -fa -ctk q8_0 -ctv q8_0 -ts 3,1 --jinja --port 8080");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->model, "my model.gguf");
  EXPECT_EQ(made->serving->context_tokens, 16'384);
  EXPECT_EQ(made->serving->sequences, 4);
  EXPECT_EQ(made->serving->llama.gpu_layers, 99);
  EXPECT_EQ(made->serving->llama.flash_attention, true);
  EXPECT_EQ(made->serving->key_type, model::Dtype::q8_0);
  EXPECT_THAT(made->serving->llama.tensor_split, ElementsAre(3.0, 1.0));
  EXPECT_TRUE(made->notes.empty());
}

TEST(ReadCommand, StandsInAScript) {
  const auto made = read(
      "#!/bin/bash\nexport HF_HOME=$HOME/models\ncd $(dirname $0)\n\n# the server\n"
      "nohup vllm serve org/m \\\n  --dtype half -tp 2 > serve.log 2>&1 &\ntail -f serve.log\n",
      "serve.sh");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->model, "org/m");
  EXPECT_EQ(made->weight_format, "fp16");
  EXPECT_EQ(made->serving->tensor_parallel, 2);
  EXPECT_THAT(made->notes, ::testing::IsEmpty());
  EXPECT_THAT(error_of(read("export A=1\nvllm serve x \\\n  --max-model-len two\n", "serve.sh")),
              HasSubstr("serve.sh:3: --max-model-len"));
}

// vLLM's documentation, deployment/docker.md.
TEST(ReadCommand, StandsBehindAnImage) {
  const auto made = read(
      "docker run --runtime nvidia --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai:latest "
      "--model mistralai/Mistral-7B-v0.1 --max-model-len 8k");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->model, "mistralai/Mistral-7B-v0.1");
  EXPECT_EQ(made->serving->context_tokens, 8000);
}

TEST(ReadCommand, RepositoriesOfLlamaServer) {
  const auto made = read("llama-server -hf org/m-GGUF:Q4_K_M -c 4096");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->model, "hf://org/m-GGUF");
  EXPECT_EQ(made->variant, "Q4_K_M");
}

// LLaMA-Factory's examples/train_lora/llama3_lora_sft.yaml, shortened. It checkpoints unless
// disable_gradient_checkpointing says otherwise (hparams/model_args.py).
TEST(ReadTrainer, LlamaFactoryChecks) {
  const auto made = read(
      "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\ndo_train: true\n"
      "finetuning_type: lora\nlora_rank: 8\ntemplate: llama3\ncutoff_len: 2048\n"
      "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\n");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->training->checkpointing, Checkpointing::full);
  EXPECT_THAT(made->training->lora.targets, ElementsAre("all-linear"));
}

TEST(ReadTrainer, PagesOfEightBitStates) {
  const auto made = read("output_dir: out\noptim: paged_adamw_8bit\n");
  ASSERT_TRUE(made) << error_of(made);
  EXPECT_EQ(made->training->optimizer, Optimizer::adamw_8bit);
}

TEST(ReadCommand, NothingIsRun) {
  EXPECT_THAT(error_of(read("vllm serve $MODEL")), HasSubstr("'$' is for a shell"));
  EXPECT_THAT(error_of(read("vllm serve x; rm -rf /")), HasSubstr("';' is for a shell"));
  EXPECT_THAT(error_of(read("vllm serve \"`id`\"")), HasSubstr("'`' is for a shell"));
  EXPECT_THAT(error_of(read("vllm serve x --max-model-len")), HasSubstr("--max-model-len has no value"));
  EXPECT_THAT(error_of(read("vllm serve x -tp two")), HasSubstr("'two' is not a whole number from 1"));
}

TEST(ReadConfig, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(error_of(read("a: 1\n")), HasSubstr("none of the configurations"));
  EXPECT_THAT(error_of(read("")), HasSubstr("no settings"));
  EXPECT_THAT(error_of(read(std::string(2 << 20, 'x'))), HasSubstr("larger than"));
}

// ---------------------------------------------------------------- emitted, read back

void expect_same(const TrainingJob& read, const TrainingJob& wanted) {
  EXPECT_EQ(read.method, wanted.method);
  EXPECT_EQ(read.micro_batch, wanted.micro_batch);
  EXPECT_EQ(read.gradient_accumulation, wanted.gradient_accumulation);
  EXPECT_EQ(read.sequence, wanted.sequence);
  EXPECT_EQ(read.varying_lengths, wanted.varying_lengths);
  EXPECT_EQ(read.precision, wanted.precision);
  EXPECT_EQ(read.optimizer, wanted.optimizer);
  EXPECT_EQ(read.checkpointing, wanted.checkpointing);
  EXPECT_EQ(read.activation_offload, wanted.activation_offload);
  EXPECT_EQ(read.attention, wanted.attention);
  EXPECT_EQ(read.fused_kernels, wanted.fused_kernels);
  EXPECT_EQ(read.chunked_cross_entropy, wanted.chunked_cross_entropy);
  EXPECT_EQ(read.compiled, wanted.compiled);
  EXPECT_EQ(read.data_parallel, wanted.data_parallel);
  EXPECT_EQ(read.sharding.kind, wanted.sharding.kind);
  EXPECT_EQ(read.sharding.offload_optimizer, wanted.sharding.offload_optimizer);
  EXPECT_EQ(read.sharding.offload_parameters, wanted.sharding.offload_parameters);
  EXPECT_EQ(read.sharding.overlap_comm, wanted.sharding.overlap_comm);
  if (wanted.method == TrainingMethod::full) return;
  EXPECT_EQ(read.lora.rank, wanted.lora.rank);
  EXPECT_EQ(read.lora.targets, wanted.lora.targets);
  EXPECT_EQ(read.lora.trainable_embeddings, wanted.lora.trainable_embeddings);
  EXPECT_EQ(read.lora.dropout, wanted.lora.dropout);
}

// Peaks of each instant of every GPU, in bytes.
std::vector<std::int64_t> peaks(const TrainingJob& job) {
  static const model::Model kModel = testing::decoder(testing::llama31_8b());
  const auto estimate = estimate_training(kModel, job, {testing::card("H100", 80, "Hopper")});
  std::vector<std::int64_t> bytes;
  if (!estimate) return bytes;
  for (const GpuEstimate& gpu : estimate->per_gpu)
    for (const Instant& instant : gpu.instants) bytes.push_back(instant.total().expected.count);
  return bytes;
}

void round_trip(EmitTarget target, const TrainingJob& job) {
  SCOPED_TRACE(name_of(target));
  const auto emission = emit(target, "org/a \"model\": #1", job, job.data_parallel);
  ASSERT_TRUE(emission) << emission.error().message();
  std::vector<ConfigText> texts;
  for (const EmittedFile& file : emission->files) texts.push_back({file.name, file.contents});
  TrainingJob base;  // how many processes is on the command line of some targets, and in no file
  base.data_parallel = job.data_parallel;
  const auto back = read_config(texts, base, Job{});
  ASSERT_TRUE(back) << error_of(back);
  for (const ConfigNote& note : back->notes) ADD_FAILURE() << note.sentence();
  EXPECT_EQ(back->model, "org/a \"model\": #1");
  expect_same(*back->training, job);
  EXPECT_FALSE(peaks(job).empty());
  EXPECT_EQ(peaks(*back->training), peaks(job));
}

TrainingJob basis(Sharding sharding, Precision precision) {
  TrainingJob job;
  job.micro_batch = 3;
  job.gradient_accumulation = 5;
  job.sequence = 3000;
  job.data_parallel = 4;
  job.sharding.kind = sharding;
  job.precision = precision;
  if (precision == Precision::mixed_deepspeed || sharding == Sharding::zero2) job.engine = TrainingEngine::deepspeed;
  return job;
}

TEST(RoundTrip, Zero) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2, Sharding::zero3}) {
    TrainingJob job = basis(sharding, Precision::mixed_deepspeed);
    job.checkpointing = Checkpointing::full;
    for (const EmitTarget target :
         {EmitTarget::deepspeed, EmitTarget::accelerate, EmitTarget::torchrun, EmitTarget::llama_factory})
      round_trip(target, job);
    job.sharding.offload_optimizer = true;
    job.sharding.offload_parameters = sharding == Sharding::zero3;
    job.sharding.overlap_comm = false;
    job.sharding.bucket_elements = 123'456;
    job.checkpointing = Checkpointing::offloaded;
    round_trip(EmitTarget::deepspeed, job);
    round_trip(EmitTarget::accelerate, job);
  }
  round_trip(EmitTarget::deepspeed, basis(Sharding::zero2, Precision::pure_bf16));
  round_trip(EmitTarget::deepspeed, basis(Sharding::none, Precision::mixed_deepspeed));
}

TEST(RoundTrip, Fsdp) {
  for (const Sharding sharding : {Sharding::fsdp, Sharding::fsdp_grad_only})
    for (const bool offload : {false, true})
      for (const char* version : {"1", "2"}) {
        TrainingJob job = basis(sharding, Precision::amp_bf16);
        job.engine = TrainingEngine::fsdp;
        job.engine_version = version;
        job.sharding.offload_optimizer = job.sharding.offload_parameters = offload;
        for (const EmitTarget target :
             {EmitTarget::fsdp, EmitTarget::accelerate, EmitTarget::torchrun, EmitTarget::llama_factory})
          if (target != EmitTarget::torchrun || sharding == Sharding::fsdp || job.engine_version == "2")
            round_trip(target, job);
      }
}

TEST(RoundTrip, AdaptersAndOptimizers) {
  TrainingJob job = basis(Sharding::none, Precision::pure_bf16);
  job.method = TrainingMethod::qlora;
  job.lora.rank = 64;
  job.lora.targets = {"q_proj", "v_proj"};
  job.lora.trainable_embeddings = true;
  job.lora.dropout = true;
  job.fused_kernels = job.chunked_cross_entropy = true;
  for (const Optimizer optimizer :
       {Optimizer::adamw, Optimizer::adamw_fused, Optimizer::adamw_8bit, Optimizer::adamw_4bit, Optimizer::adamw_paged,
        Optimizer::adafactor, Optimizer::sgd, Optimizer::sgd_momentum}) {
    job.optimizer = optimizer;
    for (const EmitTarget target : {EmitTarget::accelerate, EmitTarget::torchrun, EmitTarget::llama_factory})
      round_trip(target, job);
  }
  job.method = TrainingMethod::dora;
  job.compiled = true;
  job.attention = "sdpa";
  job.chunked_cross_entropy = false;
  round_trip(EmitTarget::accelerate, job);
  job.precision = Precision::fp32;
  job.attention = "eager";
  job.varying_lengths = true;
  round_trip(EmitTarget::torchrun, job);
}

TEST(RoundTrip, Serving) {
  Job vllm;
  vllm.engine = Engine::vllm;
  vllm.context_tokens = 32'768;
  vllm.tensor_parallel = 2;
  vllm.key_type = vllm.value_type = model::Dtype::f8_e4m3;
  vllm.vllm.gpu_memory_utilization = 0.875;
  vllm.vllm.max_sequences = 64;
  vllm.vllm.enforce_eager = false;
  vllm.vllm.hybrid_kv_manager = false;
  const auto emission = emit(EmitTarget::vllm, "hf://org/it's", vllm, 2);
  ASSERT_TRUE(emission);
  const auto back = read(emission->command);
  ASSERT_TRUE(back) << error_of(back);
  EXPECT_EQ(back->model, "org/it's");
  EXPECT_EQ(back->serving->context_tokens, vllm.context_tokens);
  EXPECT_EQ(back->serving->key_type, vllm.key_type);
  EXPECT_EQ(back->serving->vllm.gpu_memory_utilization, 0.875);
  EXPECT_EQ(back->serving->vllm.max_sequences, 64);
  EXPECT_EQ(back->serving->vllm.enforce_eager, false);
  EXPECT_FALSE(back->serving->vllm.hybrid_kv_manager);

  Job llama;
  llama.context_tokens = 8192;
  llama.sequences = 2;
  llama.llama.tensor_split = {3, 1.5};
  llama.llama.flash_attention = true;
  llama.llama.cpu_moe_layers = 12;
  llama.key_type = llama.value_type = model::Dtype::q8_0;
  llama.llama.swa_full = true;
  const auto server = emit(EmitTarget::llama_cpp, "./a b.gguf", llama, 2);
  ASSERT_TRUE(server) << server.error().message();
  const auto read_server = read(server->command);
  ASSERT_TRUE(read_server) << error_of(read_server);
  EXPECT_EQ(read_server->model, "./a b.gguf");
  EXPECT_EQ(read_server->serving->llama.tensor_split, llama.llama.tensor_split);
  EXPECT_EQ(read_server->serving->llama.flash_attention, true);
  EXPECT_EQ(read_server->serving->llama.gpu_layers, std::nullopt);
  EXPECT_EQ(read_server->serving->llama.cpu_moe_layers, 12);
  EXPECT_EQ(read_server->serving->key_type, model::Dtype::q8_0);
  EXPECT_TRUE(read_server->serving->llama.swa_full);
}

}  // namespace
}  // namespace gpuwright::fit

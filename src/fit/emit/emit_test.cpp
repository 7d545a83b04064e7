// Whole texts of each target; what other people's parsers make of them: tests/oracle/emit_oracle.py.
#include "fit/emit/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuwright::fit {
namespace {

using testing::HasSubstr;

std::string file(const Emission& emission, std::string_view name) {
  for (const EmittedFile& one : emission.files)
    if (one.name == name) return one.contents;
  return "no such file";
}

template <class AnyJob>
std::string error_of(EmitTarget target, const AnyJob& job, int gpus = 0, std::string_view model = "org/m") {
  const auto emission = emit(target, model, job, gpus);
  return emission ? "no error" : emission.error().message();
}

// The guides' ZeRO-3 with CPU offload, with numbers for their "auto": 2 x 4 x 8 = 64.
TEST(Emit, DeepspeedZero3WithOffload) {
  TrainingJob job;
  job.micro_batch = 2;
  job.gradient_accumulation = 4;
  job.data_parallel = 8;
  job.precision = Precision::mixed_deepspeed;
  job.sharding.kind = Sharding::zero3;
  job.sharding.offload_optimizer = job.sharding.offload_parameters = true;
  const auto emission = emit(EmitTarget::deepspeed, "hf://Qwen/Qwen3-8B", job, 8);
  ASSERT_TRUE(emission) << emission.error().message();
  EXPECT_EQ(file(*emission, "ds_config.json"), R"({
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "gradient_clipping": 1,
  "bf16": {
    "enabled": true
  },
  "optimizer": {
    "type": "AdamW",
    "params": {
      "lr": 2e-05,
      "betas": [
        0.9,
        0.999
      ],
      "eps": 1e-08,
      "weight_decay": 0,
      "torch_adam": false
    }
  },
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": true,
    "contiguous_gradients": true,
    "reduce_scatter": true,
    "reduce_bucket_size": 500000000,
    "allgather_bucket_size": 500000000,
    "offload_optimizer": {
      "device": "cpu",
      "pin_memory": true
    },
    "offload_param": {
      "device": "cpu",
      "pin_memory": true
    },
    "stage3_gather_16bit_weights_on_model_save": true
  },
  "wall_clock_breakdown": false
}
)");
  EXPECT_EQ(file(*emission, "sft.yaml"), R"(model_name_or_path: "Qwen/Qwen3-8B"
dtype: "bfloat16"
attn_implementation: "flash_attention_2"
output_dir: "out"
num_train_epochs: 1
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_length: 2048
packing: true
bf16: true
fp16: false
optim: "adamw_torch"
learning_rate: 2.0e-05
lr_scheduler_type: "cosine"
warmup_steps: 20
max_grad_norm: 1
gradient_checkpointing: false
activation_offloading: false
use_liger_kernel: false
logging_steps: 10
save_strategy: "epoch"
report_to: "none"
deepspeed: "ds_config.json"
)");
  EXPECT_EQ(emission->command,
            "deepspeed --num_gpus 8 --no_local_rank \\\n  --module trl.scripts.sft \\\n"
            "  --config sft.yaml \\\n  --dataset_name \"$DATASET\"\n");
}

TEST(Emit, AccelerateFsdpByVersion) {
  TrainingJob job;
  job.engine = TrainingEngine::fsdp;
  job.data_parallel = 16;
  job.precision = Precision::amp_bf16;
  job.sharding.kind = Sharding::fsdp;
  const auto two = emit(EmitTarget::fsdp, "org/m", job, 16);
  ASSERT_TRUE(two) << two.error().message();
  EXPECT_EQ(file(*two, "accelerate.yaml"), R"(compute_environment: "LOCAL_MACHINE"
distributed_type: "FSDP"
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: "TRANSFORMER_BASED_WRAP"
  fsdp_reshard_after_forward: true
  fsdp_offload_params: false
  fsdp_cpu_ram_efficient_loading: true
  fsdp_state_dict_type: "SHARDED_STATE_DICT"
  fsdp_activation_checkpointing: false
mixed_precision: "bf16"
num_machines: 2
num_processes: 16
machine_rank: 0
main_training_function: "main"
use_cpu: false
same_network: true
rdzv_backend: "static"
main_process_port: 29500
)");
  EXPECT_EQ(two->command,
            "accelerate launch --config_file accelerate.yaml \\\n"
            "  --machine_rank \"$NODE_RANK\" --main_process_ip \"$MASTER_ADDR\" \\\n"
            "  -m trl.scripts.sft \\\n  --config sft.yaml \\\n  --dataset_name \"$DATASET\"\n");
  job.engine_version = "1";
  job.sharding.kind = Sharding::fsdp_grad_only;
  const auto one = emit(EmitTarget::fsdp, "org/m", job, 16);
  ASSERT_TRUE(one);
  EXPECT_THAT(file(*one, "accelerate.yaml"),
              testing::AllOf(HasSubstr("fsdp_version: 1\n"), HasSubstr("fsdp_sharding_strategy: \"SHARD_GRAD_OP\""),
                             HasSubstr("fsdp_use_orig_params: true")));
}

TEST(Emit, TrlProgramForQlora) {
  TrainingJob job;
  job.method = TrainingMethod::qlora;
  job.lora.targets = {"q_proj", "v_proj"};
  job.optimizer = Optimizer::adamw_paged;
  const auto emission = emit(EmitTarget::trl, "./it's \"mine\"", job, 1);
  ASSERT_TRUE(emission) << emission.error().message();
  const std::string program = file(*emission, "train.py");
  EXPECT_THAT(program, HasSubstr("MODEL = \"./it's \\\"mine\\\"\"\n"));
  EXPECT_THAT(program, HasSubstr("quantization = BitsAndBytesConfig(\n    load_in_4bit=True,\n"
                                 "    bnb_4bit_quant_type=\"nf4\",\n    bnb_4bit_use_double_quant=True,\n"
                                 "    bnb_4bit_compute_dtype=torch.bfloat16,\n"));
  EXPECT_THAT(program,
              HasSubstr("adapters = LoraConfig(\n    task_type=\"CAUSAL_LM\",\n    r=8,\n    lora_alpha=16,\n"));
  EXPECT_THAT(program, HasSubstr("    target_modules=[\"q_proj\", \"v_proj\"],\n"));
  EXPECT_THAT(program, HasSubstr("peft_config=adapters)\n"));
  EXPECT_EQ(emission->command, "python train.py \"$DATASET\"\n");
  job.lora.adapter_dtype = model::Dtype::bf16;
  EXPECT_THAT(file(*emit(EmitTarget::trl, "m", job, 1), "train.py"),
              HasSubstr("get_peft_model(model, adapters, autocast_adapter_dtype=False)"));
}

TEST(Emit, LlamaFactory) {
  TrainingJob job;
  job.method = TrainingMethod::lora;
  job.data_parallel = 2;
  const auto emission = emit(EmitTarget::llama_factory, "org/m", job, 2);
  ASSERT_TRUE(emission) << emission.error().message();
  EXPECT_THAT(file(*emission, "llamafactory.yaml"),
              testing::AllOf(HasSubstr("finetuning_type: \"lora\"\n"), HasSubstr("lora_target: \"all\"\n"),
                             HasSubstr("cutoff_len: 2048\n"), HasSubstr("bf16: true\npure_bf16: false\n")));
  EXPECT_EQ(emission->command, "FORCE_TORCHRUN=1 NPROC_PER_NODE=2 llamafactory-cli train llamafactory.yaml\n");
}

TEST(Emit, Serving) {
  Job job;
  job.engine = Engine::vllm;
  job.context_tokens = 8192;
  job.tensor_parallel = 2;
  const auto vllm = emit(EmitTarget::vllm, "hf://org/m", job, 2);
  ASSERT_TRUE(vllm) << vllm.error().message();
  EXPECT_EQ(vllm->command, "vllm serve org/m \\\n  --tensor-parallel-size 2 \\\n  --max-model-len 8192\n");

  Job llama;
  llama.context_tokens = 8192;
  llama.sequences = 2;
  llama.llama.flash_attention = true;
  llama.key_type = llama.value_type = model::Dtype::q8_0;
  const auto server = emit(EmitTarget::llama_cpp, "hf://org/m-GGUF:Q4_K_M", llama, 1);
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_EQ(server->command,
            "llama-server \\\n  -hf org/m-GGUF:Q4_K_M \\\n  -c 8192 \\\n  -np 2 \\\n  -ngl 999 \\\n"
            "  -fa on \\\n  -ctk q8_0 \\\n  -ctv q8_0\n");
  llama.engine_version = "b4477";
  EXPECT_THAT(emit(EmitTarget::llama_cpp, "m.gguf", llama, 1)->command, HasSubstr("-fa \\\n"));

  const auto ollama = emit(EmitTarget::ollama, "hf://org/My-Model_GGUF", llama, 1);
  ASSERT_TRUE(ollama) << ollama.error().message();
  EXPECT_EQ(file(*ollama, "Modelfile"),
            "FROM hf.co/org/My-Model_GGUF\nPARAMETER num_ctx 4096\nPARAMETER num_gpu 999\n");
  EXPECT_EQ(ollama->command,
            "OLLAMA_NUM_PARALLEL=2 OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve\n"
            "ollama create gpuwright-my-model_gguf -f Modelfile\nollama run gpuwright-my-model_gguf\n");
}

// PEFT matches a string whole, as a pattern (tuners_utils.py, check_target_module_exists), and TRL's ModelConfig makes
// a list of one name a string.
TEST(Emit, OneAdaptedModuleIsAPatternForTrl) {
  TrainingJob job;
  job.method = TrainingMethod::lora;
  job.lora.targets = {"q_proj"};
  EXPECT_THAT(file(*emit(EmitTarget::torchrun, "org/m", job, 1), "sft.yaml"),
              HasSubstr("lora_target_modules:\n  - \".*\\\\.q_proj\"\n"));
  EXPECT_THAT(file(*emit(EmitTarget::trl, "org/m", job, 1), "train.py"), HasSubstr("target_modules=[\"q_proj\"],\n"));
  job.lora.targets = {"all-linear"};
  EXPECT_THAT(file(*emit(EmitTarget::trl, "org/m", job, 1), "train.py"), HasSubstr("target_modules=\"all-linear\",\n"));
}

// vLLM: docs/features/quantization (fp8 and bitsandbytes are made while loading, AWQ is not); llama.cpp and ollama read
// GGUF only.
TEST(Emit, ServesTheWeightsThatTheAnswerIsAbout) {
  Job job;
  job.engine = Engine::vllm;
  const auto fp8 = emit(EmitTarget::vllm, "hf://org/m", job, 1, {"fp8", false});
  EXPECT_THAT(fp8->command, HasSubstr("vllm serve org/m \\\n  --quantization fp8 \\\n"));
  EXPECT_THAT(fp8->notes, testing::IsEmpty());
  const auto awq = emit(EmitTarget::vllm, "hf://org/m", job, 1, {"awq-int4", false});
  EXPECT_THAT(awq->command, HasSubstr("vllm serve m-awq-int4 \\\n"));
  EXPECT_THAT(awq->notes, testing::ElementsAre(HasSubstr("holds org/m as awq-int4")));

  Job llama;
  const auto server = emit(EmitTarget::llama_cpp, "hf://org/m", llama, 1, {"Q4_K_M", false});
  EXPECT_THAT(server->command, HasSubstr("  -m m-Q4_K_M.gguf \\\n"));
  EXPECT_THAT(server->notes, testing::ElementsAre(HasSubstr("org/m in Q4_K_M as GGUF")));
  const auto ollama = emit(EmitTarget::ollama, "hf://org/m", llama, 1, {"Q4_K_M", false});
  EXPECT_THAT(file(*ollama, "Modelfile"), HasSubstr("FROM ./m-Q4_K_M.gguf\n"));
}

TEST(Emit, SaysWhatATargetCannot) {
  TrainingJob job;
  job.precision = Precision::amp_bf16;
  EXPECT_THAT(error_of(EmitTarget::trl, job, 8), HasSubstr("data_parallel 1 is 1 GPUs, not 8"));
  EXPECT_THAT(error_of(EmitTarget::fsdp, job), HasSubstr("does not shard by FSDP"));
  EXPECT_THAT(error_of(EmitTarget::deepspeed, job), HasSubstr("--precision mixed-deepspeed"));
  EXPECT_THAT(error_of(EmitTarget::vllm, job), HasSubstr("serves models"));
  EXPECT_THAT(error_of(EmitTarget::trl, job, 0, "--config"), HasSubstr("taken for an option"));
  EXPECT_THAT(error_of(EmitTarget::trl, job, 0, "a\nb"), HasSubstr("control characters"));
  TrainingJob tensor = job;
  tensor.tensor_parallel = 2;
  EXPECT_THAT(error_of(EmitTarget::accelerate, tensor), HasSubstr("tensor"));
  TrainingJob selective = job;
  selective.checkpointing = Checkpointing::selective;
  EXPECT_THAT(error_of(EmitTarget::accelerate, selective), HasSubstr("every block or none"));
  TrainingJob unsloth = job;
  unsloth.engine = TrainingEngine::unsloth;
  EXPECT_THAT(error_of(EmitTarget::trl, unsloth), HasSubstr("the answer is for unsloth"));
  EXPECT_THAT(error_of(EmitTarget::trl, Job{}), HasSubstr("trains models"));
  EXPECT_THAT(error_of(EmitTarget::vllm, Job{}), HasSubstr("not for vLLM"));
  EXPECT_THAT(emit_target_named("deepsped").error().message(), HasSubstr("deepspeed"));
}

}  // namespace
}  // namespace gpuwright::fit

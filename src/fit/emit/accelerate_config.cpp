// accelerate.yaml as accelerate.commands.config.config_args.ClusterConfig (1.15) reads it: a key that it does not know
// is an error there, and with a DeepSpeed file the numbers of that file must not be repeated here.
#include <algorithm>

#include "fit/emit/names.h"
#include "fit/emit/trainer.h"

namespace gpuwright::fit {
namespace {

std::string_view distributed_type(const TrainingJob& job) {
  if (is_fsdp(job.sharding.kind)) return "FSDP";
  if (job.sharding.kind != Sharding::none) return "DEEPSPEED";
  return job.data_parallel > 1 ? "MULTI_GPU" : "NO";
}

std::string_view mixed_precision(const TrainingJob& job) {
  if (!uses_autocast(job)) return "no";
  return job.precision == Precision::amp_fp16 || job.precision == Precision::pure_fp16 ? "fp16" : "bf16";
}

Json deepspeed_section(const TrainingJob& job) {
  Json section = Json::object();
  section.set("deepspeed_config_file", kDeepspeedFile);
  const bool partitioned = job.sharding.kind == Sharding::zero3 && job.sharding.partitioned_at_load;
  section.set("zero3_init_flag", partitioned);
  if (job.data_parallel > job.gpus_per_node) section.set("deepspeed_multinode_launcher", "standard");
  return section;
}

Json fsdp_section(const TrainingJob& job) {
  const bool grad_only = job.sharding.kind == Sharding::fsdp_grad_only;
  Json section = Json::object();
  section.set("fsdp_version", fsdp_version(job)).set("fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
  if (fsdp_version(job) == 1) {
    // Not fsdp_reshard_after_forward: accelerate 1.15 lets the default of this one overrule it.
    section.set("fsdp_sharding_strategy", grad_only ? "SHARD_GRAD_OP" : "FULL_SHARD");
    section.set("fsdp_backward_prefetch", "BACKWARD_PRE").set("fsdp_forward_prefetch", false);
    // Frozen and trained parameters share a unit under LoRA, which only original parameters allow.
    section.set("fsdp_use_orig_params", true).set("fsdp_sync_module_states", true);
  } else {
    section.set("fsdp_reshard_after_forward", !grad_only);
  }
  section.set("fsdp_offload_params", job.sharding.offload_parameters);
  section.set("fsdp_cpu_ram_efficient_loading", true);
  section.set("fsdp_state_dict_type", fsdp_version(job) == 1 ? "FULL_STATE_DICT" : "SHARDED_STATE_DICT");
  section.set("fsdp_activation_checkpointing", false);  // Trainer's gradient_checkpointing does it
  return section;
}

}  // namespace

Json accelerate_config(const TrainingJob& job) {
  const int machines = std::max(1, (job.data_parallel + job.gpus_per_node - 1) / job.gpus_per_node);
  Json config = Json::object();
  config.set("compute_environment", "LOCAL_MACHINE").set("distributed_type", distributed_type(job));
  if (is_fsdp(job.sharding.kind))
    config.set("fsdp_config", fsdp_section(job));
  else if (job.sharding.kind != Sharding::none)
    config.set("deepspeed_config", deepspeed_section(job));
  if (job.sharding.kind == Sharding::none || is_fsdp(job.sharding.kind))
    config.set("mixed_precision", mixed_precision(job));
  config.set("num_machines", machines).set("num_processes", job.data_parallel).set("machine_rank", 0);
  config.set("main_training_function", "main").set("use_cpu", false);
  if (machines > 1) config.set("same_network", true).set("rdzv_backend", "static").set("main_process_port", 29500);
  return config;
}

Json trainer_fsdp_config(const TrainingJob& job) {
  const Json section = fsdp_section(job);
  Json config = Json::object();
  for (const auto& [key, value] : section.members()) {
    const std::string name = key.substr(key.find('_') + 1);
    config.set(name == "offload_params"      ? "cpu_offload"
               : name == "sharding_strategy" ? "reshard_after_forward"
                                             : name,
               value);
  }
  return config;
}

}  // namespace gpuwright::fit

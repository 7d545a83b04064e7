// accelerate.yaml. Keys: accelerate 1.15, commands/config/config_args.py (ClusterConfig); values of fsdp_config:
// utils/dataclasses.py (FullyShardedDataParallelPlugin), of deepspeed_config: commands/launch.py.
#include "base/text.h"
#include "fit/emit/told.h"

namespace gpuwright::fit {
namespace {

Status read_mixed_precision(KeyReader& root, TrainingTold& told) {
  const auto word = GW_TRY(root.word("mixed_precision"));
  if (!word) return {};
  const std::string name = lower(*word);
  const Place place = root.place("mixed_precision");
  if (name == "bf16") return told.bf16.tell(true, place);
  if (name == "fp16") return told.fp16.tell(true, place);
  if (name == "fp8") return fault_at(place, "fp8 is not modelled");
  if (name != "no" && name != "false") return fault_at(place, "is none of no, bf16, fp16 and fp8");
  // "no" only leaves the choice to the arguments: Trainer sets ACCELERATE_MIXED_PRECISION by bf16 and fp16.
  return {};
}

Status read_deepspeed_section(KeyReader& root, const std::string& file, TrainingTold& told) {
  const ConfigNode* node = root.take("deepspeed_config");
  if (node == nullptr || (node->is_map() && node->members.empty())) return {};
  if (!node->is_map()) return fault_at(root.place("deepspeed_config"), "is not a section");
  KeyReader section(*node, file, "deepspeed_config.");
  GW_TRY(section.tell(told.deepspeed_file, "deepspeed_config_file"));
  GW_TRY(section.tell(told.zero_stage, "zero_stage", 0));
  GW_TRY(section.tell(told.accumulation, "gradient_accumulation_steps"));
  GW_TRY(section.tell(told.partitioned_at_load, "zero3_init_flag"));
  for (const auto& [key, told_offload] : {std::pair{"offload_optimizer_device", &told.offload_optimizer},
                                          {"offload_param_device", &told.offload_parameters}}) {
    const auto device = GW_TRY(section.word(key));
    if (device) GW_TRY(told_offload->tell(lower(*device) != "none", section.place(key)));
  }
  section.pass({"gradient_clipping", "zero3_save_16bit_model", "deepspeed_multinode_launcher", "deepspeed_hostfile",
                "deepspeed_exclusion_filter", "deepspeed_inclusion_filter", "deepspeed_moe_layer_cls_names",
                "offload_optimizer_nvme_path", "offload_param_nvme_path"});
  section.note_rest(told.notes);
  return told.deepspeed.tell(true, root.place("deepspeed_config"));
}

// FSDP1 says it in words, FSDP2 as a truth; 1 and 2 are the words' places in torch's ShardingStrategy.
Result<std::optional<bool>> grad_only(KeyReader& section, std::string_view key) {
  const auto word = GW_TRY(section.word(key));
  if (!word) return std::nullopt;
  const std::string name = lower(*word);
  if (name == "full_shard" || name == "1" || name == "true") return std::optional<bool>(false);
  if (name == "shard_grad_op" || name == "2" || name == "false") return std::optional<bool>(true);
  return fault_at(section.place(key), fmt::format("'{}' is not modelled", *word), "FULL_SHARD or SHARD_GRAD_OP");
}

Status read_fsdp_section(KeyReader& root, const std::string& file, TrainingTold& told) {
  const ConfigNode* node = root.take("fsdp_config");
  if (node == nullptr || (node->is_map() && node->members.empty())) return {};
  if (!node->is_map()) return fault_at(root.place("fsdp_config"), "is not a section");
  KeyReader section(*node, file, "fsdp_config.");
  GW_TRY(told.fsdp.tell(true, root.place("fsdp_config")));
  GW_TRY(section.tell(told.fsdp_version, "fsdp_version"));
  for (const std::string_view key : {"fsdp_reshard_after_forward", "fsdp_sharding_strategy"}) {
    const auto only = GW_TRY(grad_only(section, key));
    if (only) GW_TRY(told.fsdp_grad_only.tell(*only, section.place(key)));
  }
  GW_TRY(section.tell(told.fsdp_offload, "fsdp_offload_params"));
  GW_TRY(section.tell(told.fsdp_checkpointing, "fsdp_activation_checkpointing"));
  section.pass({"fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap", "fsdp_min_num_params",
                "fsdp_backward_prefetch", "fsdp_backward_prefetch_policy", "fsdp_forward_prefetch",
                "fsdp_use_orig_params", "fsdp_sync_module_states", "fsdp_cpu_ram_efficient_loading",
                "fsdp_state_dict_type"});
  section.note_rest(told.notes);
  return {};
}

Status check_type(KeyReader& root, TrainingTold& told) {
  const std::string type = lower(GW_TRY(root.word("distributed_type")).value_or("no"));
  const Place place = root.place("distributed_type");
  if (type == "deepspeed" && !told.deepspeed) return fault_at(place, "is DEEPSPEED, but there is no deepspeed_config");
  if (type == "fsdp" && !told.fsdp) return fault_at(place, "is FSDP, but there is no fsdp_config");
  if (type != "deepspeed" && told.deepspeed && told.deepspeed.place().file == place.file)
    return fault_at(place, "is not DEEPSPEED, but there is a deepspeed_config");
  if (type != "fsdp" && told.fsdp && told.fsdp.place().file == place.file)
    return fault_at(place, "is not FSDP, but there is an fsdp_config");
  if (type != "deepspeed" && type != "fsdp" && type != "no" && type != "multi_gpu")
    return fault_at(place, fmt::format("'{}' is not modelled", type), "DEEPSPEED, FSDP, MULTI_GPU or NO");
  return {};
}

}  // namespace

Status read_accelerate(const ConfigNode& map, const std::string& file, TrainingTold& told) {
  KeyReader root(map, file);
  GW_TRY(root.tell(told.gpus, "num_processes"));
  GW_TRY(root.tell(told.machines, "num_machines"));
  GW_TRY(root.tell(told.accumulation, "gradient_accumulation_steps"));
  GW_TRY(read_mixed_precision(root, told));
  GW_TRY(read_deepspeed_section(root, file, told));
  GW_TRY(read_fsdp_section(root, file, told));
  GW_TRY(check_type(root, told));
  root.pass({"compute_environment", "debug", "machine_rank", "main_process_ip", "main_process_port",
             "main_training_function", "rdzv_backend", "same_network", "tpu_env", "tpu_use_cluster", "tpu_use_sudo",
             "tpu_name", "tpu_zone", "use_cpu", "gpu_ids", "downcast_bf16", "enable_cpu_affinity", "commands",
             "command_file"});
  root.note_rest(told.notes);
  return {};
}

}  // namespace gpuwright::fit

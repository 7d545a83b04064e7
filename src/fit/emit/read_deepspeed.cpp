// ds_config.json. Keys and defaults: deepspeed 0.19.8, runtime/config.py, runtime/zero/config.py and
// runtime/precision_config.py. "auto" is Hugging Face's word for "take it from the arguments"
// (transformers/integrations/deepspeed.py); DeepSpeed itself refuses it.
#include "base/text.h"
#include "fit/emit/names.h"
#include "fit/emit/told.h"

namespace gpuwright::fit {
namespace {

Status read_precision(KeyReader& root, const std::string& file, std::string_view key, Told<bool>& enabled,
                      TrainingTold& told) {
  const ConfigNode* node = root.take(key);
  if (node == nullptr) return {};
  if (!node->is_map()) return fault_at(root.place(key), "is not a section");
  KeyReader section(*node, file, std::string(key) + ".");
  if (section.is_auto("enabled")) told.autos.push_back({file, section.place("enabled").line, std::string(key)});
  GW_TRY(section.tell(enabled, "enabled"));
  GW_TRY(section.tell(told.bf16_states, "bf16_optimizer_states"));
  section.pass({"bf16_master_weights_and_grads", "immediate_grad_update", "check_grad_overflow", "auto_cast",
                "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis", "consecutive_hysteresis",
                "min_loss_scale"});
  section.note_rest(told.notes);
  return {};
}

Status read_offload(KeyReader& zero, const std::string& file, std::string_view key, Told<bool>& offloaded,
                    TrainingTold& told) {
  const ConfigNode* node = zero.take(key);
  if (node == nullptr) return {};
  if (!node->is_map()) return fault_at(zero.place(key), "is not a section");
  KeyReader section(*node, file, fmt::format("zero_optimization.{}.", key));
  const auto device = GW_TRY(section.word("device"));
  if (device && *device != "cpu" && *device != "nvme" && *device != "none")
    return fault_at(section.place("device"), "is none of cpu, nvme and none");
  if (device && *device == "nvme")
    section.note("device", "is nvme: counted as host memory, which then holds buffers only", told.notes);
  section.pass({"pin_memory", "nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "pipeline_read",
                "pipeline_write", "fast_init", "ratio", "pipeline"});
  section.note_rest(told.notes);
  return offloaded.tell(device.value_or("none") != "none", section.place("device"));
}

Status read_zero(KeyReader& root, const std::string& file, TrainingTold& told) {
  const ConfigNode* node = root.take("zero_optimization");
  if (node == nullptr) return {};
  if (!node->is_map()) return fault_at(root.place("zero_optimization"), "is not a section");
  KeyReader zero(*node, file, "zero_optimization.");
  if (zero.is_auto("stage")) return fault_at(zero.place("stage"), "is auto, which nothing answers", "0, 1, 2 or 3");
  GW_TRY(zero.tell(told.zero_stage, "stage", 0));
  if (told.zero_stage && *told.zero_stage > 3) return fault_at(zero.place("stage"), "is none of 0, 1, 2 and 3");
  GW_TRY(zero.tell(told.overlap_comm, "overlap_comm"));
  GW_TRY(read_offload(zero, file, "offload_optimizer", told.offload_optimizer, told));
  GW_TRY(read_offload(zero, file, "offload_param", told.offload_parameters, told));
  GW_TRY(zero.tell(told.offload_optimizer, "cpu_offload"));
  GW_TRY(zero.tell(told.offload_parameters, "cpu_offload_params"));
  if (zero.is_auto("reduce_bucket_size"))
    zero.note("reduce_bucket_size",
              "is auto: transformers takes hidden size squared, counted here as DeepSpeed's "
              "default",
              told.notes);
  GW_TRY(zero.tell(told.bucket, "reduce_bucket_size"));
  zero.pass({"allgather_bucket_size", "contiguous_gradients", "reduce_scatter", "allgather_partitions",
             "stage3_gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save",
             "round_robin_gradients", "ignore_unused_parameters", "load_from_fp32_weights", "elastic_checkpoint",
             "sub_group_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
             "stage3_max_live_parameters", "stage3_max_reuse_distance", "legacy_stage1"});
  zero.note_rest(told.notes);
  return {};
}

Status read_optimizer(KeyReader& root, const std::string& file, TrainingTold& told) {
  const ConfigNode* node = root.take("optimizer");
  if (node == nullptr) return {};
  if (!node->is_map()) return fault_at(root.place("optimizer"), "is not a section");
  KeyReader section(*node, file, "optimizer.");
  const auto type = GW_TRY(section.word("type"));
  const ConfigNode* parameters = section.take("params");
  const ConfigNode nothing;
  KeyReader settings(parameters == nullptr ? nothing : *parameters, file, "optimizer.params.");
  const std::string name = lower(type.value_or("adamw"));
  if (name == "adam" || name == "adamw") {
    const bool torch_adam = GW_TRY(settings.truth("torch_adam")).value_or(false);
    return told.deepspeed_optimizer.tell(torch_adam ? Optimizer::adamw : Optimizer::adamw_fused, section.place("type"));
  }
  if (name == "sgd") {
    const double momentum = GW_TRY(settings.number("momentum")).value_or(0);
    return told.deepspeed_optimizer.tell(momentum == 0 ? Optimizer::sgd : Optimizer::sgd_momentum,
                                         section.place("type"));
  }
  section.note("type", fmt::format("'{}' is not modelled; counted as the job's own optimizer", *type), told.notes);
  return {};
}

void note_autos(const KeyReader& root, const std::string& file, TrainingTold& told) {
  for (const std::string_view key : {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
    if (root.is_auto(key)) told.autos.push_back({file, root.place(key).line, std::string(key)});
}

}  // namespace

Status read_deepspeed(const ConfigNode& map, const std::string& file, TrainingTold& told) {
  KeyReader root(map, file);
  GW_TRY(told.deepspeed.tell(true, {file, map.line, "DeepSpeed"}));
  note_autos(root, file, told);
  GW_TRY(root.tell(told.train_batch, "train_batch_size"));
  GW_TRY(root.tell(told.micro_batch, "train_micro_batch_size_per_gpu"));
  GW_TRY(root.tell(told.accumulation, "gradient_accumulation_steps"));
  GW_TRY(read_precision(root, file, "bf16", told.bf16, told));
  GW_TRY(read_precision(root, file, "bfloat16", told.bf16, told));
  GW_TRY(read_precision(root, file, "fp16", told.fp16, told));
  GW_TRY(read_zero(root, file, told));
  GW_TRY(read_optimizer(root, file, told));
  root.pass({"gradient_clipping", "scheduler", "steps_per_print", "wall_clock_breakdown",
             "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "prescale_gradients",
             "communication_data_type", "dump_state", "tensorboard", "wandb", "csv_monitor", "flops_profiler", "aio",
             "checkpoint", "comms_logger", "activation_checkpointing", "gradient_predivide_factor", "seed"});
  root.note_rest(told.notes);
  return {};
}

}  // namespace gpuwright::fit

// Arguments of transformers' Trainer and TRL's sft script (JSON or YAML), and LLaMA-Factory's YAML, which adds its own.
// Keys: transformers 5.24 training_args.py, TRL 1.16 SFTConfig and ModelConfig, LLaMA-Factory 0.9.5 hparams; older
// names beside the new ones.
#include <algorithm>

#include "base/text.h"
#include "fit/emit/names.h"
#include "fit/emit/told.h"

namespace gpuwright::fit {
namespace {

Status read_numbers(KeyReader& root, TrainingTold& told) {
  GW_TRY(root.tell(told.micro_batch, "per_device_train_batch_size"));
  GW_TRY(root.tell(told.accumulation, "gradient_accumulation_steps"));
  for (const std::string_view key : {"max_length", "max_seq_length", "cutoff_len", "model_max_length"})
    GW_TRY(root.tell(told.sequence, key));
  GW_TRY(root.tell(told.packing, "packing"));
  return {};
}

Status read_precision(KeyReader& root, TrainingTold& told) {
  for (const std::string_view key : {"dtype", "torch_dtype"}) GW_TRY(root.tell(told.weights_dtype, key));
  GW_TRY(root.tell(told.pure_bf16, "pure_bf16"));
  // False here only means that this file does not ask for it: DeepSpeed's or accelerate's file may.
  for (const auto& [key, slot] : {std::pair{"bf16", &told.bf16}, {"fp16", &told.fp16}})
    if (GW_TRY(root.truth(key)).value_or(false)) GW_TRY(slot->tell(true, root.place(key)));
  return {};
}

Status read_optimizer(KeyReader& root, TrainingTold& told) {
  const auto name = GW_TRY(root.word("optim"));
  const std::string arguments = GW_TRY(root.word("optim_args")).value_or("");
  if (!name) return {};
  auto optimizer = trainer_optimizer_named(*name);
  if (!optimizer) {
    root.note("optim", fmt::format("'{}' is not modelled; the job's own optimizer is counted", *name), told.notes);
    return {};
  }
  if (*optimizer == Optimizer::sgd && arguments.find("momentum") != arguments.npos) optimizer = Optimizer::sgd_momentum;
  return told.trainer_optimizer.tell(*optimizer, root.place("optim"));
}

Status read_liger(KeyReader& root, const std::string& file, TrainingTold& told) {
  bool on = false;
  for (const std::string_view key : {"use_liger_kernel", "use_liger", "enable_liger_kernel"})
    on = GW_TRY(root.truth(key)).value_or(on);
  const Place place = root.place("use_liger_kernel");
  const ConfigNode* kernels = root.take("liger_kernel_config");
  bool fused = on, chunked = on;  // without a choice Liger takes both
  if (kernels != nullptr && on) {
    if (!kernels->is_map()) return fault_at(root.place("liger_kernel_config"), "is not a section");
    KeyReader section(*kernels, file, "liger_kernel_config.");
    fused = GW_TRY(section.truth("rms_norm")).value_or(true);
    GW_TRY(section.truth("swiglu"));
    chunked = GW_TRY(section.truth("fused_linear_cross_entropy")).value_or(true);
    section.pass({"rope", "cross_entropy", "geglu", "layer_norm"});
    section.note_rest(told.notes);
  }
  GW_TRY(told.fused_kernels.tell(fused, place));
  return told.chunked_cross_entropy.tell(chunked, place);
}

Status read_activations(KeyReader& root, TrainingTold& told) {
  GW_TRY(root.tell(told.checkpointing, "gradient_checkpointing"));
  const auto disabled = GW_TRY(root.truth("disable_gradient_checkpointing"));
  if (disabled) GW_TRY(told.checkpointing.tell(!*disabled, root.place("disable_gradient_checkpointing")));
  GW_TRY(root.tell(told.activation_offload, "activation_offloading"));
  GW_TRY(root.tell(told.compiled, "torch_compile"));
  GW_TRY(root.tell(told.attention, "attn_implementation"));
  const auto flash = GW_TRY(root.word("flash_attn"));
  if (flash) {
    const std::string name = *flash == "fa2" ? "flash_attention_2" : *flash == "disabled" ? "eager" : *flash;
    if (name != "auto") GW_TRY(told.attention.tell(name, root.place("flash_attn")));
  }
  return {};
}

// A list, or one string with commas.
Result<std::vector<std::string>> words_of(const ConfigNode& node, const Place& place) {
  std::vector<std::string> words;
  if (node.as_string())
    for (const std::string_view part : split(*node.as_string(), ',')) words.emplace_back(trim(part));
  for (const ConfigNode& item : node.items) {
    if (!item.as_string()) return fault_at(place, "is not a list of names");
    words.emplace_back(*item.as_string());
  }
  if (words.empty() || node.is_map()) return fault_at(place, "is not a list of names");
  return words;
}

Status read_targets(KeyReader& root, std::string_view key, TrainingTold& told) {
  const ConfigNode* node = root.take(key);
  if (node == nullptr) return {};
  auto targets = GW_TRY(words_of(*node, root.place(key)));
  if (targets.size() == 1 && targets.front() == "all") targets.front() = "all-linear";
  return told.lora_targets.tell(std::move(targets), root.place(key));
}

Status read_adapters(KeyReader& root, TrainingTold& told) {
  GW_TRY(root.tell(told.lora, "use_peft"));
  const auto type = GW_TRY(root.word("finetuning_type"));
  if (type && *type != "full" && *type != "lora")
    return fault_at(root.place("finetuning_type"), fmt::format("'{}' is not modelled", *type), "full or lora");
  if (type) GW_TRY(told.lora.tell(*type == "lora", root.place("finetuning_type")));
  for (const std::string_view key : {"lora_r", "lora_rank"}) GW_TRY(root.tell(told.lora_rank, key));
  GW_TRY(root.tell(told.dora, "use_dora"));
  const auto dropout = GW_TRY(root.number("lora_dropout"));
  if (dropout) GW_TRY(told.lora_dropout.tell(*dropout, root.place("lora_dropout")));
  GW_TRY(read_targets(root, "lora_target_modules", told));
  GW_TRY(read_targets(root, "lora_target", told));
  for (const std::string_view key : {"lora_modules_to_save", "additional_target"}) {
    const ConfigNode* node = root.take(key);
    if (node == nullptr) continue;
    const auto modules = GW_TRY(words_of(*node, root.place(key)));
    const bool embeddings = std::find(modules.begin(), modules.end(), "embed_tokens") != modules.end();
    if (!embeddings) root.note(key, "names modules whose training whole is not modelled", told.notes);
    GW_TRY(told.trainable_embeddings.tell(embeddings, root.place(key)));
  }
  return {};
}

Status read_quantization(KeyReader& root, TrainingTold& told) {
  GW_TRY(root.tell(told.four_bit, "load_in_4bit"));
  const auto bits = GW_TRY(root.integer("quantization_bit"));
  if (bits && *bits != 4)
    return fault_at(root.place("quantization_bit"), fmt::format("{} is not modelled", *bits), "4");
  if (bits) GW_TRY(told.four_bit.tell(true, root.place("quantization_bit")));
  if (GW_TRY(root.truth("load_in_8bit")).value_or(false))
    return fault_at(root.place("load_in_8bit"), "is not modelled", "load_in_4bit, or a base that is not quantised");
  for (const std::string_view key : {"use_bnb_nested_quant", "double_quantization"})
    if (!GW_TRY(root.truth(key)).value_or(true))
      root.note(key, "is false: the scales of the 4-bit base take 0.4 bits a weight more than counted", told.notes);
  root.pass({"bnb_4bit_quant_type", "bnb_4bit_quant_storage", "bnb_4bit_compute_dtype", "quantization_method",
             "quantization_type"});
  return {};
}

Status read_trainer_fsdp(KeyReader& root, const std::string& file, TrainingTold& told) {
  const ConfigNode* switched = root.take("fsdp");
  const ConfigNode* config = root.take("fsdp_config");
  const std::string words = switched != nullptr && switched->as_string() ? lower(*switched->as_string()) : "";
  if (words.empty() || words == "false") return {};
  GW_TRY(told.fsdp.tell(true, root.place("fsdp")));
  if (words.find("shard_grad_op") != words.npos) GW_TRY(told.fsdp_grad_only.tell(true, root.place("fsdp")));
  if (words.find("full_shard") != words.npos) GW_TRY(told.fsdp_grad_only.tell(false, root.place("fsdp")));
  if (words.find("offload") != words.npos) GW_TRY(told.fsdp_offload.tell(true, root.place("fsdp")));
  if (config == nullptr || !config->is_map()) return {};
  KeyReader section(*config, file, "fsdp_config.");
  GW_TRY(section.tell(told.fsdp_version, "version"));
  const auto reshard = GW_TRY(section.word("reshard_after_forward"));
  if (reshard) {
    const std::string name = lower(*reshard);
    GW_TRY(
        told.fsdp_grad_only.tell(name == "false" || name == "shard_grad_op", section.place("reshard_after_forward")));
  }
  GW_TRY(section.tell(told.fsdp_offload, "cpu_offload"));
  GW_TRY(section.tell(told.fsdp_checkpointing, "activation_checkpointing"));
  section.pass({"auto_wrap_policy", "transformer_layer_cls_to_wrap", "fsdp_transformer_layer_cls_to_wrap",
                "min_num_params", "cpu_ram_efficient_loading", "state_dict_type", "backward_prefetch",
                "forward_prefetch", "use_orig_params", "sync_module_states", "limit_all_gathers", "xla", "xla_fsdp_v2",
                "xla_fsdp_grad_ckpt"});
  section.note_rest(told.notes);
  return {};
}

Status read_trainer_deepspeed(KeyReader& root, const std::string& file, TrainingTold& told) {
  const ConfigNode* node = root.take("deepspeed");
  if (node == nullptr) return {};
  if (node->is_map()) return read_deepspeed(*node, file, told);
  return root.tell(told.deepspeed_file, "deepspeed");
}

// What is meant where the arguments do not say it. LLaMA-Factory checkpoints unless it is told not to and adapts every
// linear (hparams/model_args.py, finetuning_args.py).
Status take_defaults(const KeyReader& root, TrainingTold& told) {
  if (!told.llama_factory) return {};
  if (!told.checkpointing) GW_TRY(told.checkpointing.tell(true, root.place("disable_gradient_checkpointing")));
  if (told.lora.value_or(true) && !told.lora_targets)
    GW_TRY(told.lora_targets.tell({"all-linear"}, root.place("lora_target")));
  return {};
}

// What names data, schedules, logs and checkpoints.
void pass_harmless(KeyReader& root) {
  root.pass({"output_dir",        "num_train_epochs",
             "max_steps",         "learning_rate",
             "lr_scheduler_type", "lr_scheduler_kwargs",
             "warmup_steps",      "warmup_ratio",
             "max_grad_norm",     "weight_decay",
             "adam_beta1",        "adam_beta2",
             "adam_epsilon",      "seed",
             "data_seed",         "gradient_checkpointing_kwargs",
             "lora_alpha",        "use_rslora",
             "lora_task_type",    "model_revision",
             "trust_remote_code"});
  root.pass({"logging_steps", "logging_dir", "logging_strategy", "logging_first_step", "save_strategy", "save_steps",
             "save_total_limit", "save_only_model", "report_to", "run_name", "overwrite_output_dir", "plot_loss",
             "resume_from_checkpoint", "push_to_hub", "hub_model_id", "disable_tqdm", "log_level"});
  root.pass({"dataset",
             "dataset_name",
             "dataset_dir",
             "dataset_config",
             "dataset_text_field",
             "dataset_num_proc",
             "dataset_kwargs",
             "dataset_train_split",
             "eval_dataset",
             "template",
             "max_samples",
             "overwrite_cache",
             "preprocessing_num_workers",
             "dataloader_num_workers",
             "dataloader_pin_memory",
             "dataloader_drop_last",
             "remove_unused_columns",
             "group_by_length",
             "packing_strategy",
             "val_size",
             "eos_token",
             "pad_token"});
  root.pass({"stage", "do_train", "do_eval", "do_predict", "eval_strategy", "evaluation_strategy", "eval_steps",
             "ddp_timeout", "ddp_find_unused_parameters", "local_rank", "tf32", "model_init_kwargs", "loss_type"});
}

}  // namespace

Status read_trainer(const ConfigNode& map, const std::string& file, TrainingTold& told) {
  KeyReader root(map, file);
  told.llama_factory = told.llama_factory || map.find("finetuning_type") != nullptr;
  GW_TRY(root.tell(told.model, "model_name_or_path"));
  GW_TRY(read_numbers(root, told));
  GW_TRY(read_precision(root, told));
  GW_TRY(read_optimizer(root, told));
  GW_TRY(read_liger(root, file, told));
  GW_TRY(read_activations(root, told));
  GW_TRY(read_adapters(root, told));
  GW_TRY(read_quantization(root, told));
  GW_TRY(read_trainer_fsdp(root, file, told));
  GW_TRY(read_trainer_deepspeed(root, file, told));
  GW_TRY(take_defaults(root, told));
  pass_harmless(root);
  root.note_rest(told.notes);
  return {};
}

}  // namespace gpuwright::fit

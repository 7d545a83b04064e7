// What the files of one training job say, each value with the place that said it, so that contradictions between files
// can name both. Filled by the readers of each format, joined by job_from (told.cpp).
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "fit/emit/config_node.h"
#include "fit/emit/read.h"

namespace gpuwright::fit {

struct Place {
  std::string file;
  std::int64_t line = 0;
  std::string key;
};
tl::unexpected<Error> fault_at(const Place& place, std::string_view what, std::string hint = {});

template <class T>
class Told {
 public:
  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T& value_or(const T& other) const { return value_ ? *value_ : other; }
  const Place& place() const { return place_; }

  // An error when another place said something else.
  Status tell(T value, const Place& place) {
    if (value_ && !(*value_ == value))
      return fault_at(place, fmt::format("contradicts {} in {}, line {}", place_.key, place_.file, place_.line));
    if (!value_) {
      value_ = std::move(value);
      place_ = place;
    }
    return {};
  }
  // Whatever was told before.
  void say(T value, const Place& place) {
    value_ = std::move(value);
    place_ = place;
  }

 private:
  std::optional<T> value_;
  Place place_;
};

struct TrainingTold {
  Told<std::int64_t> micro_batch, accumulation, train_batch, gpus, machines, sequence;
  Told<std::int64_t> lora_rank, zero_stage, bucket, fsdp_version;
  Told<bool> lora, dora, four_bit, trainable_embeddings;
  Told<std::vector<std::string>> lora_targets;
  Told<double> lora_dropout;
  Told<std::string> weights_dtype, attention, model, deepspeed_file;
  Told<bool> bf16, fp16, pure_bf16, bf16_states;
  Told<Optimizer> trainer_optimizer, deepspeed_optimizer;
  Told<bool> checkpointing, fsdp_checkpointing, activation_offload;
  Told<bool> fused_kernels, chunked_cross_entropy, compiled, packing;
  Told<bool> offload_optimizer, offload_parameters, overlap_comm, partitioned_at_load;
  Told<bool> fsdp, fsdp_grad_only, fsdp_offload, deepspeed;
  bool llama_factory = false;
  std::vector<Place> autos;  // "auto" that another file has to answer: key names the number
  std::vector<ConfigNote> notes;

  // Quantities that DeepSpeed lets be "auto", by their DeepSpeed keys.
  bool answers(std::string_view deepspeed_key) const;
};

// Precedence and arithmetic of the frameworks; what is not told comes from `base`.
Result<TrainingJob> job_from(TrainingTold told, const TrainingJob& base, const SaidBeside& beside);

// ---------------------------------------------------------------- the readers, one file each
Status read_deepspeed(const ConfigNode& root, const std::string& file, TrainingTold& told);
Status read_accelerate(const ConfigNode& root, const std::string& file, TrainingTold& told);
Status read_trainer(const ConfigNode& root, const std::string& file, TrainingTold& told);  // and LLaMA-Factory

// ---------------------------------------------------------------- their tools

// One map's keys, read one after the other; a value of the wrong kind is an error that names key and line.
class KeyReader {
 public:
  KeyReader(const ConfigNode& map, std::string file, std::string prefix = {})
      : map_(map), file_(std::move(file)), prefix_(std::move(prefix)) {}

  // The member, and marks the key as known. Null counts as absent.
  const ConfigNode* take(std::string_view key);
  Place place(std::string_view key) const;
  bool is_auto(std::string_view key) const;

  // Each gives nothing when the key is absent or "auto".
  Result<std::optional<std::int64_t>> integer(std::string_view key, std::int64_t least = 1);
  Result<std::optional<double>> number(std::string_view key);
  Result<std::optional<bool>> truth(std::string_view key);
  Result<std::optional<std::string>> word(std::string_view key);

  Status tell(Told<std::int64_t>& told, std::string_view key, std::int64_t least = 1);
  Status tell(Told<bool>& told, std::string_view key);
  Status tell(Told<std::string>& told, std::string_view key);

  // Known to say nothing about memory.
  void pass(std::initializer_list<std::string_view> keys);
  // Notes for all keys that were not taken.
  void note_rest(std::vector<ConfigNote>& notes) const;
  void note(std::string_view key, std::string text, std::vector<ConfigNote>& notes) const;

 private:
  const ConfigNode& map_;
  std::string file_;
  std::string prefix_;  // "zero_optimization."
  std::vector<std::string_view> known_;
};

}  // namespace gpuwright::fit

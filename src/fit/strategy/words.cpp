#include "fit/strategy/words.h"

#include <fmt/format.h>

#include <array>

#include "fit/strategy/strategy.h"

namespace gpuwright::fit {
namespace {

constexpr std::array<std::string_view, 4> kMethods = {"full", "lora", "dora", "qlora"};
constexpr std::array<std::string_view, 7> kPrecisions = {"fp32",     "pure-bf16",       "pure-fp16",     "amp-bf16",
                                                         "amp-fp16", "mixed-deepspeed", "mixed-megatron"};
constexpr std::array<std::string_view, 10> kOptimizers = {"adamw",      "adamw-loop",  "adamw-fused", "adamw-8bit",
                                                          "adamw-4bit", "adamw-fp8",   "adamw-paged", "adafactor",
                                                          "sgd",        "sgd-momentum"};
constexpr std::array<std::string_view, 4> kCheckpointing = {"none", "selective", "full", "offloaded"};
constexpr std::array<std::string_view, 6> kSharding = {"none", "zero1", "zero2", "zero3", "fsdp", "fsdp-grad-only"};

template <class Enum, std::size_t count>
std::optional<Enum> named(const std::array<std::string_view, count>& names, std::string_view name) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

template <std::size_t count>
std::vector<std::string> list(const std::array<std::string_view, count>& names) {
  return {names.begin(), names.end()};
}

std::string_view title_of(Sharding sharding) {
  constexpr std::array<std::string_view, 6> kTitles = {"",       "ZeRO-1",        "ZeRO-2",
                                                       "ZeRO-3", "fully sharded", "gradients sharded"};
  return kTitles[static_cast<std::size_t>(sharding)];
}

}  // namespace

std::string_view name_of(Precision precision) {
  return kPrecisions[static_cast<std::size_t>(precision)];
}
std::string_view name_of(Optimizer optimizer) {
  return kOptimizers[static_cast<std::size_t>(optimizer)];
}
std::string_view name_of(Checkpointing checkpointing) {
  return kCheckpointing[static_cast<std::size_t>(checkpointing)];
}
std::string_view name_of(Sharding sharding) {
  return kSharding[static_cast<std::size_t>(sharding)];
}

std::optional<TrainingMethod> training_method_named(std::string_view name) {
  return named<TrainingMethod>(kMethods, name);
}
std::optional<Precision> precision_named(std::string_view name) {
  return named<Precision>(kPrecisions, name);
}
std::optional<Optimizer> optimizer_named(std::string_view name) {
  return named<Optimizer>(kOptimizers, name);
}
std::optional<Checkpointing> checkpointing_named(std::string_view name) {
  return named<Checkpointing>(kCheckpointing, name);
}
std::vector<std::string> precision_names() {
  return list(kPrecisions);
}
std::vector<std::string> optimizer_names() {
  return list(kOptimizers);
}

std::string describe_layout(const TrainingJob& job) {
  std::string text(name_of(job.engine));
  if (job.tensor_parallel > 1) text += fmt::format(", tensor parallel {}", job.tensor_parallel);
  if (job.pipeline_parallel > 1) text += fmt::format(", pipeline parallel {}", job.pipeline_parallel);
  if (job.context_parallel > 1) text += fmt::format(", context parallel {}", job.context_parallel);
  if (job.data_parallel > 1) text += fmt::format(", data parallel {}", job.data_parallel);
  // Megatron's distributed optimizer shards as ZeRO-1 does, but nobody there calls it so.
  if (job.sharding.kind == Sharding::zero1 && job.engine == TrainingEngine::megatron)
    text += ", distributed optimizer";
  else if (job.sharding.kind != Sharding::none)
    text += fmt::format(", {}", title_of(job.sharding.kind));
  if (job.sharding.offload_optimizer && job.sharding.offload_parameters)
    text += ", optimizer and weights on the CPU";
  else if (job.sharding.offload_optimizer)
    text += ", optimizer on the CPU";
  else if (job.sharding.offload_parameters)
    text += ", weights on the CPU";
  return text;
}

std::string describe_checkpointing(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::none:
      return "no checkpointing";
    case Checkpointing::selective:
      return "attention recomputed (selective checkpointing)";
    case Checkpointing::full:
      return "full checkpointing";
    case Checkpointing::offloaded:
      break;
  }
  return "full checkpointing, checkpoints on the CPU";
}

std::string describe(const TrainingJob& job) {
  std::string text =
      fmt::format("{}, {}, micro-batch {} x {} accumulated, {}, {}", name_of(job.method), describe_layout(job),
                  job.micro_batch, job.gradient_accumulation, name_of(job.precision), name_of(job.optimizer));
  if (job.checkpointing != Checkpointing::none) text += ", " + describe_checkpointing(job.checkpointing);
  if (job.chunked_cross_entropy) text += ", chunked cross-entropy";
  return text;
}

}  // namespace gpuwright::fit

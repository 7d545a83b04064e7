// One GPU of a transformers job: what lives there at each instant, component by component. See transformers.cpp for
// the model of generate() behind it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fit/engine.h"
#include "fit/engines/transformers_plan.h"

namespace gpuwright::fit {

class TransformersRank {
 public:
  TransformersRank(const model::Model& model, const Job& job, const Target& target, const TransformersStage& stage);

  Result<GpuEstimate> build() const;

 private:
  bool since(std::string_view version) const { return version_at_least(job_.engine_version, version); }
  bool holds(std::size_t layer) const { return stage_.holds(static_cast<std::int32_t>(layer)); }

  Result<Instant> load() const;
  Instant encode() const;
  Instant prefill() const;
  Result<Instant> first_logits() const;
  Result<Instant> decode_end() const;

  // `running` adds what the first forward pass allocates for good.
  std::vector<Component> persistent(bool running = true) const;
  std::optional<Component> rotary_tables() const;
  Bytes untied_fp8_head() const;
  Bytes head_while_loading() const;
  Bytes cache_of(const model::Layer& layer, std::int64_t tokens) const;
  Bytes cache_at(std::int64_t tokens, bool decoding) const;
  Component cache(std::int64_t tokens, bool decoding) const;
  std::optional<Component> recurrent_state() const;
  void cross_attention(Instant& instant) const;
  Component activations(std::int64_t tokens) const;
  void attention_scores(Instant& instant, std::int64_t tokens) const;
  void dequantized(Instant& instant, std::int64_t tokens) const;
  Result<Component> logits(std::int64_t positions) const;
  bool tuple_cache() const;
  Component growing_cache() const;
  Status finish(Instant& instant) const;

  const model::Model& model_;
  const Job& job_;
  const Target& target_;
  const TransformersStage& stage_;
  TransformersTokens tokens_;
  model::Dtype key_ = model::Dtype::bf16, value_ = model::Dtype::bf16;
  double element_ = 2;
  bool litgpt_ = false;
  bool own_code_ = false;  // trust_remote_code models of 2023: tuple caches, logits of every position
  std::string attention_;
};

// litgpt quantises the output head too, which with_weight_format leaves in 16 bits: what that saves.
Bytes quantized_head_saving(const model::Model& model);

}  // namespace gpuwright::fit

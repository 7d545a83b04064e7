#include "model/gguf/names.h"

#include <charconv>

namespace gpuwright::model::gguf {
namespace {

// Most names differ from most words in the first or last letter; a call to compare the rest costs more than that.
bool begins(std::string_view text, std::string_view prefix) {
  return !text.empty() && text.front() == prefix.front() && text.starts_with(prefix);
}
bool ends(std::string_view text, std::string_view suffix) {
  return !text.empty() && text.back() == suffix.back() && text.ends_with(suffix);
}
bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

struct Prefix {
  std::string_view text;
  Stack stack;
};
constexpr Prefix kBlocks[] = {
    {"blk.", Stack::decoder},  {"dec.blk.", Stack::decoder}, {"enc.blk.", Stack::encoder},
    {"v.blk.", Stack::vision}, {"a.blk.", Stack::vision},
};
constexpr std::string_view kTowers[] = {"v.", "a.", "mm.", "resampler.", "model.image_newline"};

TensorRole role_outside_blocks(std::string_view part) {
  if (part == "output") return TensorRole::output_head;
  if (begins(part, "token_embd") || part == "per_layer_token_embd" || part == "token_types")
    return ends(part, "_norm") ? TensorRole::norm : TensorRole::token_embedding;
  if (part == "position_embd") return TensorRole::position_embedding;
  if (has(part, "norm")) return TensorRole::norm;
  return TensorRole::other;
}

TensorRole role_of_feed_forward(std::string_view part) {
  if (ends(part, "_shexp")) return TensorRole::shared_expert;  // with its gate, ffn_gate_inp_shexp
  if (begins(part, "ffn_gate_inp")) return TensorRole::router;
  if (ends(part, "exps")) return TensorRole::expert;
  // Before experts were stacked: blk.0.ffn_up.7.weight.
  const char last = part.empty() ? '\0' : part.back();
  if (last >= '0' && last <= '9' && has(part, ".")) return TensorRole::expert;
  return TensorRole::feed_forward;
}

TensorRole role_in_block(std::string_view part) {
  if (begins(part, "nextn.")) return TensorRole::multi_token_prediction;
  if (begins(part, "ssm_") || begins(part, "time_mix") || begins(part, "shortconv.")) return TensorRole::recurrent;
  if (has(part, "norm")) return TensorRole::norm;
  if (begins(part, "channel_mix")) return TensorRole::feed_forward;
  if (part == "attn_kv_a_mqa" || part == "attn_q_a") return TensorRole::attention_kv_a;
  if (begins(part, "attn_") || begins(part, "cross_attn_") || begins(part, "indexer.") || begins(part, "vis_attn"))
    return TensorRole::attention;
  if (part == "exp_probs_b") return TensorRole::router;
  if (begins(part, "ffn")) return role_of_feed_forward(part);
  if (begins(part, "vis_")) return TensorRole::feed_forward;
  return TensorRole::other;
}

}  // namespace

TensorName parse_name(std::string_view name) {
  TensorName result;
  std::string_view rest = name;
  for (const Prefix& prefix : kBlocks) {
    if (!begins(name, prefix.text)) continue;
    const std::string_view digits = name.substr(prefix.text.size());
    std::int32_t block = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), block);
    if (error != std::errc() || block < 0 || end == digits.data() + digits.size() || *end != '.') break;
    result.stack = prefix.stack;
    result.block = block;
    rest = digits.substr(static_cast<std::size_t>(end - digits.data()) + 1);
    break;
  }
  if (result.stack == Stack::none) {
    for (const std::string_view tower : kTowers)
      if (begins(name, tower)) result.stack = Stack::vision;
    if (begins(name, "enc.")) result.stack = Stack::encoder;
  }
  const std::size_t dot = rest.rfind('.');
  const std::string_view tail = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  const bool is_suffix = tail == "weight" || tail == "bias" || tail == "scale" || tail == "input_scale";
  result.part = is_suffix ? rest.substr(0, dot) : rest;
  result.suffix = is_suffix ? tail : std::string_view();
  return result;
}

TensorRole role_of(const TensorName& name) {
  if (name.stack == Stack::vision) return TensorRole::vision;
  if (name.stack == Stack::encoder) return TensorRole::encoder;
  // Scales of block-quantised weights, except Gemma 4's learned router scale.
  if (ends(name.suffix, "scale") && name.part != "ffn_gate_inp") return TensorRole::quantization;
  return name.block >= 0 ? role_in_block(name.part) : role_outside_blocks(name.part);
}

}  // namespace gpuwright::model::gguf

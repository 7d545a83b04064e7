#include "model/gguf/blocks.h"

#include <algorithm>
#include <string_view>

#include "model/gguf/names.h"

namespace gpuwright::model::gguf {
namespace {

bool is_attention_input(std::string_view part) {
  for (const std::string_view name : {"attn_q", "attn_k", "attn_qkv", "attn_kv_a_mqa", "attn_q_b"})
    if (part == name) return true;
  return false;
}

// One of the matrices of a feed-forward block; `up_rows` are kept aside to tell fused gates.
void note_feed_forward(FeedForward& block, std::int64_t& up_rows, std::string_view part, const TensorInfo& tensor) {
  const auto& [columns, rows, stacked, outer] = tensor.dimensions;
  if (part == "ffn_down" || part == "channel_mix_value") {
    block.width = columns;
  } else if (part == "ffn_down_exps") {
    block.expert_width = columns;
    block.experts = stacked;
  } else if (part == "ffn_down_shexp") {
    block.shared_width = columns;
  } else if (part.substr(0, 9) == "ffn_down.") {  // one tensor an expert
    block.expert_width = columns;
    ++block.experts;
  } else if (part == "ffn_up") {
    up_rows = rows;
  } else if (part.substr(0, 8) == "ffn_gate" && part.substr(0, 12) != "ffn_gate_inp") {
    block.gated = true;
  }
}

}  // namespace

std::vector<Block> blocks_of(const std::vector<TensorInfo>& tensors, std::int64_t count) {
  std::vector<Block> blocks(static_cast<std::size_t>(count));
  std::vector<std::int64_t> up_rows(blocks.size());
  for (Block& block : blocks) block.feed_forward.gated = false;
  for (const TensorInfo& tensor : tensors) {
    const TensorName name = parse_name(tensor.name);
    if (name.stack != Stack::decoder || name.block >= count || name.suffix != "weight") continue;
    Block& block = blocks[static_cast<std::size_t>(name.block)];
    block.seen = true;
    if (is_attention_input(name.part)) block.attention = true;
    if (name.part == "attn_k") block.key_rows = tensor.dimensions[1];
    if (role_of(name) == TensorRole::recurrent) block.recurrent = true;
    note_feed_forward(block.feed_forward, up_rows[static_cast<std::size_t>(name.block)], name.part, tensor);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    FeedForward& block = blocks[i].feed_forward;
    if (!block.gated && block.width > 0 && up_rows[i] == 2 * block.width) block.gated = true;  // gate and up in one
  }
  return blocks;
}

}  // namespace gpuwright::model::gguf

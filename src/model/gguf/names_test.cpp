#include "model/gguf/names.h"

#include <gtest/gtest.h>

namespace gpuwright::model::gguf {
namespace {

TEST(GgufNames, AreTakenApart) {
  const TensorName name = parse_name("blk.12.attn_q.weight");
  EXPECT_EQ(name.stack, Stack::decoder);
  EXPECT_EQ(name.block, 12);
  EXPECT_EQ(name.part, "attn_q");
  EXPECT_EQ(name.suffix, "weight");
  EXPECT_EQ(parse_name("blk.99999999999.attn_q.weight").block, -1);
  EXPECT_EQ(parse_name("blk.-3.attn_q.weight").block, -1);
  EXPECT_EQ(parse_name("blk.3").block, -1);
  EXPECT_EQ(parse_name("").part, "");
  EXPECT_EQ(parse_name("blk.3.ssm_a").part, "ssm_a");
}

// Names: TENSOR_NAMES in gguf-py/gguf/constants.py.
TEST(GgufNames, TellRoles) {
  const std::pair<const char*, TensorRole> rows[] = {
      {"token_embd.weight", TensorRole::token_embedding},
      {"per_layer_token_embd.weight", TensorRole::token_embedding},
      {"token_embd_norm.weight", TensorRole::norm},
      {"position_embd.weight", TensorRole::position_embedding},
      {"output.weight", TensorRole::output_head},
      {"output_norm.weight", TensorRole::norm},
      {"rope_freqs.weight", TensorRole::other},
      {"blk.0.attn_qkv.bias", TensorRole::attention},
      {"blk.0.attn_q_norm.weight", TensorRole::norm},
      {"blk.0.attn_kv_a_mqa.weight", TensorRole::attention_kv_a},
      {"blk.0.attn_q_a.weight", TensorRole::attention_kv_a},
      {"blk.0.attn_kv_b.weight", TensorRole::attention},
      {"blk.0.attn_sinks.weight", TensorRole::attention},
      {"blk.0.ffn_down.weight", TensorRole::feed_forward},
      {"blk.0.ffn_down_exps.weight", TensorRole::expert},
      {"blk.0.ffn_gate_up_exps.weight", TensorRole::expert},
      {"blk.0.ffn_up.7.weight", TensorRole::expert},
      {"blk.0.ffn_gate_shexp.weight", TensorRole::shared_expert},
      {"blk.0.ffn_gate_inp.weight", TensorRole::router},
      {"blk.0.ffn_gate_inp.scale", TensorRole::router},
      {"blk.0.exp_probs_b.bias", TensorRole::router},
      {"blk.0.attn_q.scale", TensorRole::quantization},
      {"blk.0.ssm_in.weight", TensorRole::recurrent},
      {"blk.0.time_mix_key.weight", TensorRole::recurrent},
      {"blk.0.channel_mix_key.weight", TensorRole::feed_forward},
      {"blk.0.shortconv.in_proj.weight", TensorRole::recurrent},
      {"blk.0.nextn.eh_proj.weight", TensorRole::multi_token_prediction},
      {"dec.blk.3.cross_attn_q.weight", TensorRole::attention},
      {"enc.blk.3.attn_q.weight", TensorRole::encoder},
      {"enc.output_norm.weight", TensorRole::encoder},
      {"v.blk.3.attn_q.weight", TensorRole::vision},
      {"mm.0.weight", TensorRole::vision},
      {"a.conv1d.0.weight", TensorRole::vision},
  };
  for (const auto& [name, role] : rows) EXPECT_EQ(role_of(parse_name(name)), role) << name;
}

}  // namespace
}  // namespace gpuwright::model::gguf

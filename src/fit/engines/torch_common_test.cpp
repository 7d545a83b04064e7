#include "fit/engines/torch_common.h"

#include <gtest/gtest.h>

#include "fit/testing/decoder.h"

namespace gpuwright::fit {
namespace {

// CUDACachingAllocator.cpp: requests of 10 MiB and more get a segment of whole 2 MiB; a rest of at most 1 MiB stays.
TEST(TorchCommon, AllocatorKeepsRestsOfUpToOneMib) {
  EXPECT_EQ(allocated_block(Bytes{1}), Bytes{512});
  EXPECT_EQ(allocated_block(Bytes::from_mib(8.3125)), Bytes::from_mib(8.3125));
  EXPECT_EQ(allocated_block(Bytes::from_mib(129.5)), Bytes::from_mib(130));
  EXPECT_EQ(allocated_block(Bytes::from_mib(135)), Bytes::from_mib(136));
  EXPECT_EQ(allocated_block(Bytes::from_mib(24.5)), Bytes::from_mib(24.5));
}

model::Layer layer_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim, std::int64_t width,
                      bool gated) {
  model::Layer layer;
  layer.attention.kind = model::AttentionKind::full;
  layer.attention.heads = heads;
  layer.attention.kv_heads = kv_heads;
  layer.attention.key_dim = layer.attention.value_dim = head_dim;
  layer.feed_forward.width = width;
  layer.feed_forward.gated = gated;
  return layer;
}

double width_of(const model::Layer& layer, std::int64_t hidden, const std::string& family) {
  model::Model model;
  model.hidden = hidden;
  model.family = family;
  return live_width(layer, block_context(model)).expected;
}

// Peaks of torch.distributed._tools.mem_tracker.MemTracker (PyTorch 2.15) over one forward pass of three blocks of
// transformers 5.24 under FakeTensorMode, less parameters and cache, in 16-bit elements a token. They include rotary
// tables and masks (up to 300 elements), which live_width leaves to its caller.
TEST(TorchCommon, LiveWidthMatchesMemTracker) {
  EXPECT_NEAR(width_of(layer_of(28, 4, 128, 18944, true), 3584, "qwen2") / 71428, 1, 0.005);
  EXPECT_NEAR(width_of(layer_of(32, 8, 128, 14336, true), 4096, "llama") / 59652, 1, 0.006);
  EXPECT_NEAR(width_of(layer_of(32, 8, 128, 12288, true), 4096, "qwen3") / 53508, 1, 0.006);
  EXPECT_NEAR(width_of(layer_of(32, 32, 96, 8192, true), 3072, "phi3") / 45252, 1, 0.006);
  EXPECT_NEAR(width_of(layer_of(32, 2, 128, 13696, true), 4096, "glm4") / 71300, 1, 0.006);
  EXPECT_NEAR(width_of(layer_of(32, 32, 64, 8192, false), 2048, "phi2") / 41028, 1, 0.006);
  EXPECT_NEAR(width_of(layer_of(32, 32, 80, 10240, false), 2560, "gptneox") / 30764, 1, 0.006);
  EXPECT_NEAR(width_of(layer_of(32, 32, 64, 8192, false), 2048, "opt") / 24585, 1, 0.006);
  EXPECT_NEAR(width_of(layer_of(24, 2, 128, 12288, false), 3072, "starcoder2") / 37124, 1, 0.01);
}

TEST(TorchCommon, LiveWidthOfExpertsMatchesMemTracker) {
  model::Layer mixtral = layer_of(32, 8, 128, 0, true);
  mixtral.feed_forward.experts = 8;
  mixtral.feed_forward.experts_per_token = 2;
  mixtral.feed_forward.expert_width = 14336;
  EXPECT_NEAR(width_of(mixtral, 4096, "mixtral") / 139568, 1, 0.01);
  model::Layer qwen = layer_of(32, 4, 128, 0, true);
  qwen.feed_forward.experts = 128;
  qwen.feed_forward.experts_per_token = 8;
  qwen.feed_forward.expert_width = 768;
  EXPECT_NEAR(width_of(qwen, 2048, "qwen3moe") / 74276, 1, 0.015);
}

// A rank keeps at least one key-value head: with 8 heads on 16 ranks a half, not a sixteenth, of keys and values.
TEST(TorchCommon, KeysAndValuesAreReplicatedBeyondTheirHeads) {
  const auto model = testing::decoder(testing::llama31_8b());
  for (const model::Tensor& tensor : model.tensors) {
    const bool keys =
        tensor.name.find("k_proj") != std::string::npos || tensor.name.find("v_proj") != std::string::npos;
    const std::int64_t parts = tensor.role == model::TensorRole::norm ? 1 : keys ? 8 : 16;
    EXPECT_EQ(tensor_parallel_share(model, tensor, 16), tensor.bytes / parts) << tensor.name;
  }
}

}  // namespace
}  // namespace gpuwright::fit

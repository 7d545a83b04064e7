#include "model/fold_experts.h"

#include <gtest/gtest.h>

namespace gpuwright::model {
namespace {

Tensor tensor(std::string name, std::int32_t layer, std::int64_t rows) {
  Tensor result;
  result.name = std::move(name);
  result.role = TensorRole::expert;
  result.dtype = Dtype::bf16;
  result.layer = layer;
  result.rows = rows;
  result.columns = 8;
  result.bytes = Bytes{rows * 16};
  return result;
}

TEST(FoldExperts, OneTensorOfEveryKindAndLayer) {
  std::vector<Tensor> tensors = {tensor("layers.0.attn", 0, 4)};
  for (int layer = 0; layer < 2; ++layer)
    for (int expert = 0; expert < 16; ++expert)
      for (const char* part : {"up", "down"})
        tensors.push_back(
            tensor("layers." + std::to_string(layer) + ".experts." + std::to_string(expert) + "." + part, layer, 4));
  tensors.push_back(tensor("norm", -1, 1));
  fold_experts(tensors);
  ASSERT_EQ(tensors.size(), 6u);
  EXPECT_EQ(tensors[0].name, "layers.0.attn");
  EXPECT_EQ(tensors[1].name, "layers.0.experts.*.up");
  EXPECT_EQ(tensors[1].copies, 16);
  EXPECT_EQ(tensors[1].weights(), 16 * 32);
  EXPECT_EQ(tensors[1].bytes, Bytes{16 * 64});
  EXPECT_EQ(tensors[4].name, "layers.1.experts.*.down");
  EXPECT_EQ(tensors[5].name, "norm");
}

TEST(FoldExperts, KeepsWhatDiffers) {
  std::vector<Tensor> tensors = {tensor("experts.0.up", 0, 4), tensor("experts.1.up", 0, 5),
                                 tensor("experts.2.up", 1, 4), tensor("experts.up", 0, 4), tensor("experts.7", 0, 4)};
  fold_experts(tensors);
  EXPECT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors[0].name, "experts.0.up");
}

}  // namespace
}  // namespace gpuwright::model

#include "model/placed_tensors.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace gpuwright::model {
namespace {

StoredTensor stored(std::string_view name, std::int64_t rows = 4) {
  return {name, Dtype::bf16, "BF16", rows, 8, Bytes{rows * 16}};
}

TEST(PlacedTensors, PutsEqualExpertsTogether) {
  std::deque<std::string> names;  // whose elements stay where they are
  std::vector<StoredTensor> all;
  for (const int layer : {0, 1})
    for (int expert = 0; expert < 20; ++expert)
      for (const char* matrix : {"down_proj", "up_proj"})
        all.push_back(stored(names.emplace_back("model.layers." + std::to_string(layer) + ".mlp.experts." +
                                                std::to_string(expert) + "." + matrix + ".weight")));
  all.push_back(stored("model.layers.0.mlp.shared_experts.up_proj.weight"));
  const std::vector<Tensor> tensors = placed_tensors(all);
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors[0].name, "model.layers.0.mlp.experts.*.down_proj.weight");
  EXPECT_EQ(tensors[0].role, TensorRole::expert);
  EXPECT_EQ(tensors[3].layer, 1);
  std::int64_t weights = 0;
  for (const Tensor& tensor : tensors) {
    weights += tensor.weights();
    EXPECT_EQ(tensor.bytes.count, 2 * tensor.weights());
  }
  EXPECT_EQ(weights, 81 * 32);
}

TEST(PlacedTensors, LeavesUnequalOnesApart) {
  const std::vector<Tensor> tensors =
      placed_tensors({stored("e.experts.0.w1"), stored("e.experts.1.w1", 5), stored("e.experts.2.w1"),
                      stored("experts.7"), stored("experts.x.w1"), stored("e.experts.3.w1")});
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].copies, 3);
  EXPECT_EQ(tensors[1].name, "e.experts.1.w1");
  EXPECT_EQ(tensors[1].copies, 1);
}

}  // namespace
}  // namespace gpuwright::model

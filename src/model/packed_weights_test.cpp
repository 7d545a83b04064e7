#include <gtest/gtest.h>

#include "model/packed_weights.h"

namespace gpuwright::model {
namespace {

Tensor tensor(std::string name, Dtype dtype, std::int64_t rows, std::int64_t columns,
              TensorRole role = TensorRole::attention) {
  Tensor made;
  made.name = std::move(name);
  made.role = role;
  made.dtype = dtype;
  made.rows = rows;
  made.columns = columns;
  return made;
}

std::int64_t weights(std::vector<Tensor> tensors, const char* config = nullptr) {
  const Json json = config != nullptr ? *parse_json(config, "config.json") : Json();
  count_packed_weights(tensors, config != nullptr ? &json : nullptr);
  return tensors[0].weights();
}

constexpr TensorRole kSide = TensorRole::quantization;

// Shapes of a 4096 x 4096 linear as the tools named in packed_weights.cpp write it; the answer is always 4096 * 4096.
constexpr std::int64_t kLinear = 4096 * 4096;

TEST(PackedWeights, Gptq) {
  for (const std::int64_t bits : {2, 3, 4, 8}) {
    const std::int64_t words = 4096 * bits / 32;
    EXPECT_EQ(weights({tensor("q.qweight", Dtype::i32, words, 4096), tensor("q.scales", Dtype::f16, 32, 4096, kSide),
                       tensor("q.qzeros", Dtype::i32, 32, words, kSide)}),
              kLinear)
        << bits;
  }
}

TEST(PackedWeights, Awq) {
  EXPECT_EQ(weights({tensor("q.qweight", Dtype::i32, 4096, 512), tensor("q.scales", Dtype::f16, 32, 4096, kSide),
                     tensor("q.qzeros", Dtype::i32, 32, 512, kSide)}),
            kLinear);
}

TEST(PackedWeights, BitsandbytesInAnyStorage) {
  const Tensor absmax = tensor("q.weight.absmax", Dtype::f32, 1, kLinear / 64, kSide);
  EXPECT_EQ(weights({tensor("q.weight", Dtype::u8, kLinear / 2, 1), absmax}), kLinear);
  EXPECT_EQ(weights({tensor("q.weight", Dtype::bf16, kLinear / 4, 1), absmax}), kLinear);
  EXPECT_EQ(weights({tensor("q.weight", Dtype::i8, 4096, 4096), tensor("q.SCB", Dtype::f32, 1, 4096, kSide)}), kLinear);
}

TEST(PackedWeights, CompressedTensors) {
  const char* config = R"({"quantization_config": {"quant_method": "compressed-tensors",
      "config_groups": {"group_0": {"weights": {"num_bits": 8}}}}})";
  EXPECT_EQ(weights({tensor("q.weight_packed", Dtype::i32, 4096, 1024)}, config), kLinear);
  EXPECT_EQ(weights({tensor("q.weight_packed", Dtype::i32, 4096, 512)}), kLinear);
  EXPECT_EQ(weights({tensor("q.weight_packed", Dtype::u8, 4096, 2048)}), kLinear);
}

TEST(PackedWeights, FourBitFloats) {
  EXPECT_EQ(weights({tensor("e.gate_up_proj_blocks", Dtype::u8, 4096 * 128, 16, TensorRole::expert),
                     tensor("e.gate_up_proj_scales", Dtype::u8, 4096, 128, kSide)}),
            kLinear);
  EXPECT_EQ(
      weights({tensor("q.weight", Dtype::u8, 4096, 2048), tensor("q.weight_scale", Dtype::f8_e4m3, 4096, 256, kSide),
               tensor("q.weight_scale_2", Dtype::f32, 1, 1, kSide)}),
      kLinear);
  EXPECT_EQ(weights({tensor("q.weight", Dtype::i8, 4096, 2048), tensor("q.scale", Dtype::f8_e8m0, 4096, 128, kSide)}),
            kLinear);
}

TEST(PackedWeights, Mlx) {
  const std::vector<Tensor> tensors = {tensor("q.weight", Dtype::u32, 4096, 384),
                                       tensor("q.scales", Dtype::bf16, 4096, 64, kSide)};
  EXPECT_EQ(weights(tensors, R"({"quantization": {"group_size": 64, "bits": 3}})"), kLinear);
}

TEST(PackedWeights, LeavesPlainTensorsAlone) {
  EXPECT_EQ(weights({tensor("q.weight", Dtype::bf16, 4096, 4096)}), kLinear);
  EXPECT_EQ(weights({tensor("q.weight", Dtype::bf16, 4096, 1)}), 4096);
  EXPECT_EQ(weights({tensor("position_ids", Dtype::i64, 1, 512)}), 512);
}

}  // namespace
}  // namespace gpuwright::model

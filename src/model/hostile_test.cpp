// A thousand damaged headers a format: each gets an answer, soon and in little memory, whatever it says.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/testing/gguf_builder.h"
#include "model/testing/mutate.h"
#include "model/testing/onnx_builder.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

constexpr int kHeaders = 1000;
constexpr double kMostSeconds = 10 * testing::kSlowdown;
// Address sanitizer keeps freed memory in quarantine (256 MB), thread sanitizer shadows every byte.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kMostMemory = 1 << 30;
#else
constexpr std::int64_t kMostMemory = 64 << 20;
#endif

using Reader = Result<Model> (*)(const ByteSource&, const ModelFiles*, const LoadOptions&);

void survive(Reader read, const std::vector<std::string>& originals) {
  std::mt19937_64 random(20260101);
  LoadOptions options;
  const double begin = testing::processor_seconds();
  const std::int64_t memory = testing::resident_bytes();
  int refused = 0;
  for (int i = 0; i < kHeaders; ++i) {
    const auto file = bytes_in_memory(testing::mutated(originals[random() % originals.size()], random), "damaged");
    options.upper_bound = i % 2 == 0;
    const auto model = read(*file, nullptr, options);
    if (model) {
      EXPECT_GE(model->weight_bytes().count, 0);
      EXPECT_LE(model->weight_bytes().count, model->graph ? INT64_MAX : file->size());
      EXPECT_GE(model->parameters(), 0);
      EXPECT_LE(model->active_parameters(), model->parameters());
      for (const Layer& layer : model->layers) EXPECT_GE(layer.attention.cached_elements_per_token(), 0);
    } else {
      ++refused;
      EXPECT_FALSE(model.error().message().empty());
    }
  }
  EXPECT_LT(testing::processor_seconds() - begin, kMostSeconds);
  EXPECT_LT(testing::resident_bytes() - memory, kMostMemory);
  EXPECT_GT(refused, kHeaders / 4);  // the damage is real
}

TEST(Hostile, GgufHeaders) {
  using testing::GgufBuilder;
  using testing::small_llama;
  GgufBuilder mixture = small_llama();
  mixture.u32_array("x.array", {1, 2, 3}).f16_tensor("blk.0.ffn_down_exps.weight", {48, 64, 4});
  GgufBuilder hybrid;
  hybrid.text("general.architecture", "qwen35").u32("qwen35.block_count", 4).u32("qwen35.embedding_length", 64);
  hybrid.u32("qwen35.attention.head_count", 4).u32("qwen35.ssm.inner_size", 64).u32("qwen35.ssm.state_size", 16);
  hybrid.u32("qwen35.ssm.time_step_rank", 4).u32("qwen35.ssm.group_count", 2).u32("qwen35.ssm.conv_kernel", 4);
  hybrid.f32_tensor("blk.0.ssm_conv1d.weight", {4, 4}).f32_tensor("blk.3.attn_q.weight", {4, 4});
  survive(read_gguf,
          {small_llama().header(), small_llama().file(), small_llama(3, true).header(), mixture.file(), hybrid.file()});
}

TEST(Hostile, OnnxFiles) {
  survive(read_onnx, {testing::onnx::small_model()});
}

// A header may promise what the file is large enough to hold: memory then follows what is there, not what is said.
TEST(Hostile, PromisesCostNothing) {
  class Zeros : public ByteSource {
   public:
    explicit Zeros(std::string head) : head_(std::move(head)) {}
    std::int64_t size() const override { return std::int64_t{1} << 50; }
    const std::string& name() const override { return name_; }
    Result<std::size_t> read_at(std::int64_t offset, std::span<std::byte> into) const override {
      std::fill(into.begin(), into.end(), std::byte{0});
      const auto begin = static_cast<std::size_t>(offset);
      for (std::size_t i = 0; i < into.size() && begin + i < head_.size(); ++i)
        into[i] = static_cast<std::byte>(head_[begin + i]);
      return into.size();
    }

   private:
    std::string head_, name_ = "huge.gguf";
  };
  const std::int64_t memory = testing::resident_bytes();
  const double begin = testing::processor_seconds();
  const std::string huge("\0\0\0\0\0\0\0\20", 8);  // 2^60
  for (const std::uint32_t type : {4u, 8u, 9u}) {
    std::string array(4, '\0');
    array[0] = static_cast<char>(type);
    const Zeros file(testing::small_llama().raw("endless", 9, array + huge).header());
    EXPECT_FALSE(read_gguf(file, nullptr, {}));
  }
  EXPECT_FALSE(read_gguf(Zeros(testing::small_llama().claim_tensors(1 << 18).header()), nullptr, {}));
  EXPECT_FALSE(read_onnx(Zeros("\x08\x08\x3a"), nullptr, {}));
  EXPECT_LT(testing::processor_seconds() - begin, kMostSeconds);
  EXPECT_LT(testing::resident_bytes() - memory, kMostMemory);
}

}  // namespace
}  // namespace gpuwright::model

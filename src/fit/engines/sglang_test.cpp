#include <gtest/gtest.h>

#include "fit/fit.h"
#include "fit/testing/decoder.h"
#include "model/config.h"

namespace gpuwright::fit {
namespace {

using testing::card;

Job serve(std::int64_t context, int ranks, std::string version) {
  Job job;
  job.engine = Engine::sglang;
  job.engine_version = std::move(version);
  job.context_tokens = context;
  job.tensor_parallel = ranks;
  return job;
}

// vllm#21348: Qwen3-235B-A22B-FP8, tp 4: 367,404 tokens, K 8.23 GB and V 8.23 GB.
TEST(Sglang, TokenPoolOfQwen3OnFourRanks) {
  const auto answer = estimate(*model::preset("qwen3-235b-a22b"), serve(367404, 4, "0.4.6"),
                               std::vector<Target>(4, card("H100", 79.1, "Hopper")));
  ASSERT_TRUE(answer);
  EXPECT_NEAR(answer->per_gpu[0].instants.back().total_of(ComponentKind::kv_cache).expected.gib(), 16.46, 0.01);
}

// server_args.py of 0.4: an 80 GB card keeps back 9.5 GiB and half a GiB a rank. Of 0.5: 512 + 1.5 x 8,192 + 2 x 256 +
// 128 MiB on one H100 (81,559 MiB): 0.835.
TEST(Sglang, StaticFractionFollowsTheVersion) {
  const auto formula = [](std::string version) {
    const auto answer = estimate(testing::decoder(testing::llama31_8b()), serve(8192, 1, std::move(version)),
                                 {card("H100", 81559.0 / 1024, "Hopper")});
    return answer ? answer->per_gpu[0].usable_formula : answer.error().message();
  };
  EXPECT_TRUE(formula("0.4.8").starts_with("0.874 ")) << formula("0.4.8");
  EXPECT_TRUE(formula("0.5.3").starts_with("0.835 ")) << formula("0.5.3");
}

}  // namespace
}  // namespace gpuwright::fit

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
  Job job = serve(367404 / 12, 4, "0.4.6");  // the pool in twelve sequences: one is at most 40,960 tokens long
  job.sequences = 12;
  const auto answer =
      estimate(*model::preset("qwen3-235b-a22b"), job, std::vector<Target>(4, card("H100", 79.1, "Hopper")));
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

// configs/model_config.py raises a ValueError for a context beyond the derived one.
TEST(Sglang, RefusesAContextBeyondTheModels) {
  const std::vector<Target> targets = {card("H100", 79.1, "Hopper")};
  const auto answer = estimate(*model::preset("qwen3-8b"), serve(40961, 1, ""), targets);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unsupported);
}

TEST(Sglang, APoolSmallerThanTheJobIsNo) {
  Job job = serve(8192, 1, "");
  const std::vector<Target> targets = {card("H100", 79.1, "Hopper")};
  const model::Model model = testing::decoder(testing::llama31_8b());
  job.vllm.kv_budget = Bytes::from_gib(1);  // 8,192 tokens x 128 KiB
  EXPECT_EQ(estimate(model, job, targets)->verdict(), Verdict::fits);
  job.vllm.kv_budget = *job.vllm.kv_budget - Bytes{1};
  EXPECT_EQ(estimate(model, job, targets)->verdict(), Verdict::no);
}

}  // namespace
}  // namespace gpuwright::fit

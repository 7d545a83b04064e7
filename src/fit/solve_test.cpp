#include "fit/solve.h"

#include <gtest/gtest.h>

#include "fit/together.h"
#include "model/config.h"
#include "model/quantize.h"

namespace gpuwright::fit {
namespace {

Target gpu(double gib) {
  return {"test GPU", Bytes::from_gib(gib), Bytes::from_gib(gib), "Ada", false};
}

model::Model q4_llama() {
  return *model::with_weight_format(*model::preset("llama-3.1-8b"), "Q4_K_M");
}

Job llama_job(std::int64_t context) {
  Job job;
  job.engine = Engine::llama_cpp;
  job.context_tokens = context;
  return job;
}

TEST(Largest, IsTheLastValueThatFits) {
  const model::Model model = q4_llama();
  for (const Quantity quantity : {Quantity::context, Quantity::batch, Quantity::layers}) {
    const std::vector<Target> targets = {gpu(quantity == Quantity::layers ? 4 : 8)};
    const auto solution = largest(quantity, model, llama_job(4096), targets, true);
    ASSERT_TRUE(solution) << solution.error().message();
    ASSERT_GT(solution->value, 0);
    EXPECT_EQ(solution->estimate.verdict(), Verdict::fits);
    Job more = solution->job;
    if (quantity == Quantity::context) more.context_tokens = *more.context_tokens + 256;
    if (quantity == Quantity::batch) {
      more.context_tokens = *more.context_tokens / more.sequences * (more.sequences + 1);
      ++more.sequences;
    }
    if (quantity == Quantity::layers) more.llama.gpu_layers = *more.llama.gpu_layers + 1;
    EXPECT_NE(estimate(model, more, targets)->verdict(), Verdict::fits);
  }
}

TEST(Largest, ItsJobAskedAgainGivesTheSameAnswer) {
  const model::Model model = q4_llama();
  Job prompt = llama_job(4096);
  prompt.context_tokens.reset();
  prompt.prompt_tokens = 1000;
  prompt.new_tokens = 24;
  Job ollama = llama_job(4096);
  ollama.engine = Engine::ollama;
  for (const Job& job : {llama_job(4096), prompt, ollama})
    for (const Quantity quantity : {Quantity::context, Quantity::batch}) {
      const auto solution = largest(quantity, model, job, {gpu(12)}, true);
      ASSERT_TRUE(solution) << solution.error().message();
      const auto again = estimate(model, solution->job, {gpu(12)});
      ASSERT_TRUE(again) << again.error().message();
      EXPECT_EQ(again->per_gpu[0].peak().total().expected, solution->estimate.per_gpu[0].peak().total().expected);
    }
  const auto solution = largest(Quantity::batch, model, llama_job(4096), {gpu(12)}, true);
  EXPECT_EQ(solution->job.context_tokens, 4096 * solution->value) << "each sequence keeps its share";
}

TEST(Largest, ContextStopsAtTheModelsOwn) {
  const auto solution = largest(Quantity::context, q4_llama(), llama_job(4096), {gpu(80)}, true);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->value, 131072);  // max_position_embeddings of meta-llama/Llama-3.1-8B
}

TEST(Largest, NothingFitsIsAnAnswerNotAnError) {
  const auto solution = largest(Quantity::context, q4_llama(), llama_job(4096), {gpu(1)}, true);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->value, 0);
  EXPECT_EQ(solution->estimate.verdict(), Verdict::no);
}

TEST(Largest, LayersAreOnlyForEnginesThatOffload) {
  Job job;
  job.engine = Engine::vllm;
  const auto solution = largest(Quantity::layers, *model::preset("llama-3.1-8b"), job, {gpu(24)}, true);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().code, ErrorCode::unsupported);
}

TEST(SmallestGpus, HoldTheJobAndGrow) {
  const auto catalog = catalog::Catalog::load();
  ASSERT_TRUE(catalog) << catalog.error().message();
  const auto choices = smallest_gpus(q4_llama(), llama_job(8192), *catalog, 1, true, 4);
  ASSERT_TRUE(choices) << choices.error().message();
  ASSERT_EQ(choices->size(), 4u);
  for (std::size_t i = 0; i < choices->size(); ++i) {
    EXPECT_EQ((*choices)[i].estimate.verdict(), Verdict::fits);
    if (i == 0) continue;
    EXPECT_GE((*choices)[i].accelerator->usable(), (*choices)[i - 1].accelerator->usable());
  }
  // 4.58 GiB of weights and 1 GiB of cache: a card of 6 GB would be tight at best, one of 8 GB holds it.
  EXPECT_LE(choices->front().accelerator->nominal_memory, Bytes::from_gib(8));
}

TEST(Advice, EveryPieceLowersThePeakAndTellsItsVerdict) {
  const model::Model model = *model::preset("llama-3.1-8b");
  Job job;
  job.engine = Engine::vllm;
  const std::vector<Target> targets = {gpu(23.6)};
  ASSERT_EQ(estimate(model, job, targets)->verdict(), Verdict::no);
  const auto advice = advise(model, job, targets);
  ASSERT_FALSE(advice.empty());
  bool solved = false;
  for (const Advice& piece : advice) {
    EXPECT_GT(piece.saves, Bytes{}) << piece.change;
    solved = solved || piece.verdict_after == Verdict::fits;
  }
  EXPECT_TRUE(solved);
}

TEST(Advice, PilesChangesUpWhenOneIsNotEnough) {
  const model::Model model = *model::preset("llama-3.1-70b");
  const auto advice = advise(model, llama_job(131072), {gpu(44)});
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice.back().change.rfind("together: ", 0), 0u) << advice.back().change;
  EXPECT_EQ(advice.back().verdict_after, Verdict::fits) << advice.back().change;
}

TEST(Together, AddsUpPeaksAgainstTheCardLessTheReserve) {
  const model::Model model = q4_llama();
  const std::vector<Target> targets = {gpu(14)};
  const auto alone = estimate(model, llama_job(4096), targets);
  ASSERT_TRUE(alone);
  const Estimate both = together({{"a", *alone}, {"b", *alone}}, targets, Bytes::from_gib(1));
  EXPECT_EQ(both.per_gpu[0].peak().total().expected, alone->per_gpu[0].peak().total().expected * 2);
  EXPECT_EQ(both.per_gpu[0].usable, Bytes::from_gib(13));
  EXPECT_EQ(both.verdict(), Verdict::fits);
  EXPECT_EQ(together({{"a", *alone}, {"b", *alone}}, {gpu(10)}, Bytes{}).verdict(), Verdict::no);
}

TEST(Together, RefusesBudgetsThatExceedTheCardAndSaysTheShares) {
  const model::Model model = *model::preset("qwen3-4b");
  Job job;
  job.engine = Engine::vllm;
  job.context_tokens = 8192;
  const std::vector<Target> targets = {gpu(79)};
  const auto alone = estimate(model, job, targets);
  ASSERT_TRUE(alone) << alone.error().message();
  const Estimate both = together({{"a", *alone, true}, {"b", *alone, true}}, targets, Bytes{});
  EXPECT_EQ(both.verdict(), Verdict::no) << "two servers that take 0.92 of the card each cannot both start";
  ASSERT_EQ(both.advice.size(), 1u);
  EXPECT_EQ(both.advice[0].verdict_after, Verdict::fits);

  job.vllm.gpu_memory_utilization = 0.45;
  const auto half = estimate(model, job, targets);
  ASSERT_TRUE(half);
  EXPECT_EQ(together({{"a", *half, true}, {"b", *half, true}}, targets, Bytes{}).verdict(), Verdict::fits);
}

TEST(Estimate, RefusesJobsThatContradictThemselves) {
  const model::Model model = q4_llama();
  EXPECT_FALSE(estimate(model, llama_job(4096), {}));
  EXPECT_FALSE(estimate(model, llama_job(-1), {gpu(24)}));
  Job job = llama_job(4096);
  job.tensor_parallel = 4;
  EXPECT_FALSE(estimate(model, job, {gpu(24)}));
  job.tensor_parallel = 1;
  job.reserve = Bytes{-1};
  EXPECT_FALSE(estimate(model, job, {gpu(24)}));
  job = llama_job(4096);
  job.sequences = 4;
  job.prompt_tokens = 1000;
  job.new_tokens = 24;
  EXPECT_TRUE(estimate(model, job, {gpu(24)}));
  job.new_tokens = 25;
  EXPECT_EQ(estimate(model, job, {gpu(24)}).error().code, ErrorCode::bad_input) << "4,096 tokens, a quarter each";
  job.engine = Engine::transformers;
  job.prompt_tokens = 5000;
  EXPECT_EQ(estimate(*model::preset("llama-3.1-8b"), job, {gpu(24)}).error().code, ErrorCode::bad_input);
}

// Weights whose place is not known were left out: 1.96 of 14.96 GiB and "fits".
TEST(Estimate, RefusesModelsWithoutLayers) {
  model::Model bare = *model::preset("llama-3.1-8b");
  bare.layers.clear();
  model::Model graph = *model::preset("llama-3.1-8b");
  graph.source = model::Source::onnx;
  for (const Engine engine : {Engine::llama_cpp, Engine::ollama, Engine::vllm, Engine::sglang, Engine::transformers}) {
    Job job;
    job.engine = engine;
    for (const model::ModelKind kind : {model::ModelKind::decoder, model::ModelKind::other}) {
      bare.kind = graph.kind = kind;
      ASSERT_FALSE(estimate(bare, job, {gpu(80)})) << name_of(engine);
      EXPECT_EQ(estimate(bare, job, {gpu(80)}).error().code, ErrorCode::unsupported);
      EXPECT_EQ(estimate(graph, job, {gpu(80)}).error().code, ErrorCode::unsupported);
    }
  }
}

}  // namespace
}  // namespace gpuwright::fit

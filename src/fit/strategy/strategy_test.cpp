#include "fit/strategy/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "catalog/catalog.h"
#include "fit/strategy/training_answers.h"
#include "fit/testing/decoder.h"
#include "model/config.h"

namespace gpuwright::fit {
namespace {

Target card(double gib) {
  return testing::card("a card", gib, "Ampere");
}

// Every plan of the space, estimated with all GPUs: what find_strategy must equal without looking at them all.
struct Found {
  bool any = false;
  std::size_t method = 0;
  double cost = 0;
};
struct Exhaustive {
  Found surely, barely;  // the best that fits, or is at least tight
};
Exhaustive exhaustive(const model::Model& model, const StrategyRequest& request, const Space& space,
                      const std::vector<Target>& targets, const SlowdownModel& slowdown) {
  Exhaustive best;
  const auto improve = [](Found& found, std::size_t method, double cost) {
    if (!found.any || std::pair(method, cost) < std::pair(found.method, found.cost)) found = {true, method, cost};
  };
  for (std::size_t m = 0; m < space.methods.size(); ++m) {
    const model::Model held = *model_for(model, space.methods[m]);
    for (const Numerics numerics : space.numerics)
      for (const Optimizer optimizer : space.optimizers)
        for (const Checkpointing checkpointing : space.checkpointing)
          for (const bool loss : space.chunked_loss)
            for (const Layout& layout : space.layouts)
              for (const std::int64_t micro : space.micro_batches) {
                const auto job =
                    job_at(request.job, space.methods[m], numerics, optimizer, checkpointing, loss, layout, micro,
                           request.global_batch, static_cast<int>(targets.size()), !request.freedom.numerics);
                if (!job) continue;
                const auto estimate = estimate_training(held, *job, targets);
                if (!estimate || estimate->verdict() == Verdict::no) continue;
                const double cost = *cost_of(*job, slowdown);
                improve(best.barely, m, cost);
                if (estimate->verdict() == Verdict::fits) improve(best.surely, m, cost);
              }
  }
  return best;
}

template <class T>
std::vector<T> some_of(const std::vector<T>& all, std::mt19937& random, std::size_t most) {
  std::vector<T> chosen;
  for (const T& each : all)
    if (chosen.size() < most && random() % 2 == 0) chosen.push_back(each);
  if (chosen.empty()) chosen.push_back(all[random() % all.size()]);
  return chosen;
}

// 300 random small spaces: never a plan that does not fit, never one that exhaustive search beats.
TEST(FindStrategy, IsNeverBeatenByExhaustiveSearch) {
  std::mt19937 random(20261130);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same spaces in every run
  const std::vector<model::Model> models = {testing::decoder(testing::qwen25_1_5b()),
                                            testing::decoder(testing::llama31_8b()),
                                            testing::decoder(testing::qwen25_32b())};
  const Machine machine = *unknown_machine();
  int answered = 0, refused = 0, tight = 0;
  for (int round = 0; round < 300; ++round) {
    const model::Model& model = models[random() % models.size()];
    constexpr int kGpus[] = {1, 2, 4, 8};
    constexpr double kGib[] = {8, 12, 16, 24, 40, 48, 80};
    const std::vector<Target> targets(static_cast<std::size_t>(kGpus[random() % 4]), card(kGib[random() % 7]));
    StrategyRequest request;
    request.job.sequence = 256 << (random() % 5);
    request.job.attention = random() % 4 == 0 ? "eager" : "sdpa";
    request.job.optimizer = Optimizer::adamw_fused;
    request.job.method = random() % 3 == 0 ? TrainingMethod::lora : TrainingMethod::full;
    if (random() % 3 == 0) request.freedom.also = {TrainingMethod::qlora};
    request.global_batch = static_cast<std::int64_t>(targets.size()) << (random() % 3);
    request.strict = random() % 2 == 0;
    Space space = space_around(request.job, request.freedom, request.global_batch, static_cast<int>(targets.size()));
    space.checkpointing = some_of(space.checkpointing, random, 3);
    space.chunked_loss = some_of(space.chunked_loss, random, 2);
    space.layouts = some_of(space.layouts, random, 4);
    space.micro_batches = some_of(space.micro_batches, random, 3);
    space.numerics = some_of(space.numerics, random, 2);
    space.optimizers = some_of(space.optimizers, random, 1);
    const auto found = find_strategy(model, request, space, targets, machine);
    if (!found) continue;  // no plan of the space divides the batch
    const auto slowdown = *SlowdownModel::create(model, request.job.method, request.job, machine);
    const Exhaustive best = exhaustive(model, request, space, targets, slowdown);
    const Found wanted = best.surely.any || request.strict ? best.surely : best.barely;
    ASSERT_EQ(found->best.has_value(), wanted.any) << "round " << round;
    if (!wanted.any) {
      ++refused;
      continue;
    }
    const auto judged = estimate_training(*model_for(model, found->best->job.method), found->best->job, targets);
    ASSERT_TRUE(judged) << judged.error().message();
    EXPECT_EQ(judged->verdict(), best.surely.any ? Verdict::fits : Verdict::tight) << "round " << round;
    EXPECT_EQ(space.methods[wanted.method], found->best->job.method) << "round " << round;
    EXPECT_NEAR(*cost_of(found->best->job, slowdown), wanted.cost, 1e-9) << "round " << round;
    ++answered;
    tight += !best.surely.any;
  }
  // The spaces are of use only if they show every kind of answer.
  EXPECT_GT(answered, 100);
  EXPECT_GT(refused, 20);
  EXPECT_GT(tight, 2);
}

StrategyRequest request_for(TrainingMethod method, std::int64_t global_batch = 16) {
  StrategyRequest request;
  request.job.method = method;
  request.job.optimizer = Optimizer::adamw_fused;
  request.job.attention = "sdpa";
  request.global_batch = global_batch;
  return request;
}

TEST(FindStrategy, TakesNoOtherMethodUnlessAllowed) {
  const model::Model model = testing::decoder(testing::llama31_8b());
  const Machine machine = *unknown_machine();
  StrategyRequest request = request_for(TrainingMethod::full);
  request.freedom.engine = false;  // transformers alone: no offload
  const auto refused = find_strategy(model, request, {card(24)}, machine);
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->best);
  EXPECT_EQ(refused->leanest.job.micro_batch, 1);
  request.freedom.also = {TrainingMethod::lora, TrainingMethod::qlora};
  const auto allowed = find_strategy(model, request, {card(24)}, machine);
  ASSERT_TRUE(allowed && allowed->best);
  EXPECT_EQ(allowed->best->job.method, TrainingMethod::lora);
  EXPECT_EQ(allowed->best->estimate.verdict(), Verdict::fits);
}

TEST(FindStrategy, ChangesNothingWhereEverythingFits) {
  const auto found = find_strategy(testing::decoder(testing::qwen25_1_5b()), request_for(TrainingMethod::lora, 2),
                                   {card(80)}, *unknown_machine());
  ASSERT_TRUE(found && found->best);
  EXPECT_TRUE(found->steps.empty());
  EXPECT_EQ(found->best->job.checkpointing, Checkpointing::none);
  EXPECT_EQ(found->best->job.sharding.kind, Sharding::none);
}

TEST(FindStrategy, StepsAddUpToTheAnswer) {
  const std::vector<Target> targets(8, card(80));
  const auto found = find_strategy(testing::decoder(testing::qwen25_32b()), request_for(TrainingMethod::full), targets,
                                   *unknown_machine());
  ASSERT_TRUE(found && found->best);
  ASSERT_FALSE(found->steps.empty());
  const auto peak = [](const Plan& plan) { return plan.estimate.per_gpu.front().peak().total().expected; };
  Bytes saved;
  for (const StrategyStep& step : found->steps) saved += step.saves;
  EXPECT_EQ(peak(found->plain) - saved, peak(*found->best));
  EXPECT_DOUBLE_EQ(found->steps.back().slowdown_after, found->best->slowdown.factor);
}

TEST(FindStrategy, RefusesABatchThatCannotBeShared) {
  StrategyRequest request = request_for(TrainingMethod::lora, 3);
  request.freedom.parallelism = false;
  const auto found = find_strategy(testing::decoder(testing::qwen25_1_5b()), request, std::vector<Target>(2, card(80)),
                                   *unknown_machine());
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(), ::testing::HasSubstr("multiple of 2"));
}

// A full recomputation is one forward pass more: a third of full training, half of LoRA's, whose backward has no weight
// gradients (arXiv 1604.06174; arXiv 2106.09685).
TEST(Slowdown, CheckpointingCostsAForwardPass) {
  const model::Model model = testing::decoder(testing::llama31_8b());
  for (const auto& [method, share] : {std::pair(TrainingMethod::full, 1.0 / 3), std::pair(TrainingMethod::lora, 0.5)}) {
    TrainingJob job = request_for(method).job;
    job.checkpointing = Checkpointing::full;
    const auto slowdown = *SlowdownModel::create(model, method, job, *unknown_machine());
    const Slowdown told = slowdown.explain(job);
    ASSERT_FALSE(told.parts.empty());
    EXPECT_EQ(told.parts.front().name, "recomputing forward");
    EXPECT_NEAR(told.parts.front().share, share, 1e-9);
    double sum = 1;
    for (const Slowdown::Part& part : told.parts) sum += part.share;
    EXPECT_NEAR(told.factor, sum, 1e-9);
  }
}

// ZeRO-3 moves 3 x the parameters a step where plain data parallelism moves 2 x (arXiv 1910.02054, section 7.2.2).
TEST(Slowdown, Zero3MovesHalfAsMuchAgain) {
  const model::Model model = testing::decoder(testing::llama31_8b());
  TrainingJob job = request_for(TrainingMethod::full).job;
  job.engine = TrainingEngine::deepspeed;
  job.precision = Precision::mixed_deepspeed;
  job.data_parallel = 8;
  Machine machine = *unknown_machine();
  machine.link_bytes_per_second = 1e12;  // fast enough to be hidden but for the fixed share
  const auto communicated = [&](Sharding kind) {
    job.sharding.kind = kind;
    const auto slowdown = *SlowdownModel::create(model, TrainingMethod::full, job, machine);
    double share = 0;
    for (const Slowdown::Part& part : slowdown.explain(job).parts)
      if (part.name == "reducing gradients" || part.name == "gathering sharded weights") share += part.share;
    return share;
  };
  EXPECT_NEAR(communicated(Sharding::zero3) / communicated(Sharding::none), 1.5, 1e-6);
  EXPECT_NEAR(communicated(Sharding::zero1) / communicated(Sharding::none), 1.0, 1e-6);
}

// (p - 1) / m (arXiv 2104.04473, section 2.2).
TEST(Slowdown, PipelineBubble) {
  const model::Model model = testing::decoder(testing::llama31_8b());
  TrainingJob job = request_for(TrainingMethod::full).job;
  job.engine = TrainingEngine::megatron;
  job.pipeline_parallel = 4;
  job.gradient_accumulation = 12;
  const auto slowdown = *SlowdownModel::create(model, TrainingMethod::full, job, *unknown_machine());
  const Slowdown told = slowdown.explain(job);
  double bubble = 0, others = 1;
  for (const Slowdown::Part& part : told.parts) (part.name == "the pipeline's bubble" ? bubble : others) += part.share;
  EXPECT_NEAR(bubble / others, 3.0 / 12, 1e-9);
}

TEST(Machine, ReadsTheCatalogue) {
  const catalog::Catalog catalog = *catalog::Catalog::load();
  const Machine machine = *machine_from(**catalog.find("a100-sxm4-80gb"));
  EXPECT_DOUBLE_EQ(machine.flops, 312e12);                 // NVIDIA A100 data sheet: 312 TFLOPS of dense BF16
  EXPECT_DOUBLE_EQ(machine.link_bytes_per_second, 300e9);  // and 600 GB/s of NVLink, both directions
  EXPECT_TRUE(machine.assumed.empty());
}

TEST(AdviseTraining, EachChangeIsEstimatedAndHelps) {
  const model::Model model = testing::decoder(testing::llama31_8b());
  TrainingJob job = request_for(TrainingMethod::full).job;
  job.micro_batch = 4;
  const auto advice = advise_training(model, job, {card(24)}, *unknown_machine());
  ASSERT_GT(advice.size(), 4U);
  for (const Advice& each : advice) EXPECT_GT(each.saves, Bytes{}) << each.change;
  EXPECT_THAT(advice, ::testing::Contains(::testing::Field(&Advice::change, ::testing::HasSubstr("--train qlora"))));
}

TEST(SmallestTrainingGpus, AreSortedAndHoldTheJob) {
  const catalog::Catalog catalog = *catalog::Catalog::load();
  const model::Model model = testing::decoder(testing::llama31_8b());
  TrainingJob job = request_for(TrainingMethod::lora).job;
  job.precision = Precision::pure_bf16;
  const auto choices = smallest_training_gpus(model, job, catalog, 1, true, 5);
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 5U);
  for (std::size_t i = 0; i < choices->size(); ++i) {
    EXPECT_EQ((*choices)[i].estimate.verdict(), Verdict::fits);
    EXPECT_LE((*choices)[i > 0 ? i - 1 : 0].accelerator->usable(), (*choices)[i].accelerator->usable());
  }
}

}  // namespace
}  // namespace gpuwright::fit

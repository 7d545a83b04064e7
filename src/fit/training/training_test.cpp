#include "fit/training/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fit/testing/decoder.h"
#include "fit/training/adapters.h"
#include "fit/training/solve.h"
#include "model/config.h"
#include "model/quantize.h"

namespace gpuwright::fit {
namespace {

using ::testing::HasSubstr;

const Target kA100 = testing::card("A100", 80, "Ampere");

TrainingJob lora(std::int64_t rank, std::vector<std::string> targets) {
  TrainingJob job;
  job.method = TrainingMethod::lora;
  job.lora.rank = rank;
  job.lora.targets = std::move(targets);
  return job;
}

double adapters(std::string_view preset, const TrainingJob& job) {
  const auto model = model::preset(preset);
  EXPECT_TRUE(model) << model.error().message();
  const auto modules = training::adapted_modules(*model, job);
  EXPECT_TRUE(modules) << modules.error().message();
  return modules ? training::adapter_parameters(*modules, job) : 0;
}

// litgpt tutorials/resource-tables.md prints the trainable parameters: 4,194,304 and 6,553,600.
TEST(Adapters, CountsOfLitgpt) {
  EXPECT_EQ(adapters("Llama-2-7b-hf", lora(8, {"query", "value"})), 4194304);
  EXPECT_EQ(adapters("Llama-2-13b-hf", lora(8, {"query", "value"})), 6553600);
}

// PEFT's print_trainable_parameters: rank 8 on every linear of a Llama-2-7B is 19,988,480.
TEST(Adapters, AllLinearsOfLlama) {
  EXPECT_EQ(adapters("Llama-2-7b-hf", lora(8, {"all-linear"})), 19988480);
}

// QwenLM/Qwen finetune.py, rank 64: c_proj names the outputs of attention and of the feed-forward part alike, so that
// Qwen-7B trains 32 x 64 x ((4,096 + 12,288) + (4,096 + 4,096) + 3 x (4,096 + 11,008)) = 143,130,624 parameters.
TEST(Adapters, FusedNamesOfQwen) {
  EXPECT_EQ(adapters("Qwen-7B", lora(64, {"c_attn", "c_proj", "w1", "w2"})), 143130624);
}

// Part of a fused projection: ChatGLM3's query_key_value makes 4,608 of 4,096 (PEFT prints trainable params:
// 1,949,696 for rank 8 in 28 layers).
TEST(Adapters, FusedNamesOfChatGlm) {
  EXPECT_EQ(adapters("chatglm3-6b", lora(8, {"query_key_value"})), 1949696);
}

TEST(Adapters, HeadsAreAdaptedWhereTheyAreNamed) {
  // 8 x (4,096 + 32,000) more than q_proj alone, 8 x (4,096 + 4,096) x 32.
  EXPECT_EQ(adapters("Llama-2-7b-hf", lora(8, {"q_proj", "lm_head"})), 2097152 + 288768);
}

TEST(Adapters, UnknownNamesAreRefusedWithTheNearest) {
  const auto answer = estimate_training(testing::decoder(testing::llama2_7b()), lora(8, {"q_porj"}), {kA100});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("did you mean q_proj?"));
}

// peft/utils/constants.py of PEFT 0.21, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.
TEST(Adapters, DefaultsAreThoseOfPeft) {
  const auto names = [](std::string_view preset) {
    return training::default_targets(model::preset(preset).value(), lora(8, {})).names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("llama-3.1-8b"), (Names{"q_proj", "v_proj"}));
  EXPECT_EQ(names("gpt2"), Names{"c_attn"});
  EXPECT_EQ(names("falcon-7b"), Names{"query_key_value"});
  EXPECT_EQ(names("phi-2"), (Names{"q_proj", "v_proj", "fc1", "fc2"}));
  EXPECT_EQ(names("bert-base"), (Names{"query", "value"}));
  EXPECT_EQ(names("t5-base"), (Names{"q", "v"}));
}

// PEFT knows no latent attention. Shapes: DeepSeek-V3's config.json (61 layers, hidden 7,168, query rank 1,536, latent
// 512 + 64, 128 heads of 128 + 64 and 128).
TEST(Adapters, LatentAttentionIsAdaptedWhole) {
  const model::Model model = model::preset("deepseek-v3").value();
  const TrainingJob job = lora(8, {});
  EXPECT_FALSE(training::default_targets(model, job).known);
  const auto modules = training::adapted_modules(model, job);
  ASSERT_TRUE(modules) << modules.error().message();
  constexpr double kEach = (7168 + 1536) + (1536 + 128 * 192) + (7168 + 576) + (512 + 128 * 256) + (128 * 128 + 7168);
  EXPECT_EQ(training::adapter_parameters(*modules, job), 61 * 8 * kEach);
}

TEST(Training, JobsThatContradictThemselvesAreRefused) {
  const model::Model model = testing::decoder(testing::llama2_7b());
  const auto reason = [&](const TrainingJob& job, const std::vector<Target>& targets) {
    const auto answer = estimate_training(model, job, targets);
    return answer ? std::string() : answer.error().message();
  };
  TrainingJob job;
  EXPECT_THAT(reason(job, {}), HasSubstr("no GPU"));
  job.micro_batch = 0;
  EXPECT_THAT(reason(job, {kA100}), HasSubstr("micro-batch"));
  job = {};
  job.micro_batch = 1 << 20;
  job.sequence = 1 << 26;
  EXPECT_THAT(reason(job, {kA100}), HasSubstr("more than a GPU can hold"));
  job = {};
  job.data_parallel = 4;
  EXPECT_THAT(reason(job, {kA100, kA100}), HasSubstr("needs 4 GPUs, 2 given"));
  job = {};
  job.pipeline_parallel = 2;
  job.pipeline_stage = 2;
  EXPECT_THAT(reason(job, {kA100}), HasSubstr("pipeline stage 2"));
}

TEST(Training, QuantisedWeightsAreNotTrainedWhole) {
  const auto base = model::with_weight_format(testing::decoder(testing::llama2_7b()), "bnb-nf4");
  ASSERT_TRUE(base);
  const auto answer = estimate_training(*base, TrainingJob{}, {kA100});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("cannot be trained"));
}

TEST(Training, InstantsAreNamedAndThePeakIsTheirMaximum) {
  TrainingJob job;
  job.sharding.kind = Sharding::zero2;
  job.data_parallel = 2;
  job.precision = Precision::mixed_deepspeed;
  const auto answer = estimate_training(testing::decoder(testing::llama2_7b()), job, {kA100, kA100});
  ASSERT_TRUE(answer) << answer.error().message();
  ASSERT_EQ(answer->per_gpu.size(), 2u);
  std::vector<std::string> names;
  Bytes most;
  for (const Instant& instant : answer->per_gpu[0].instants) {
    names.push_back(instant.name);
    most = std::max(most, instant.total().expected);
    const Range total = instant.total();
    EXPECT_LE(total.low, total.expected) << instant.name;
    EXPECT_LE(total.expected, total.high) << instant.name;
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("load", "forward end", "backward", "optimizer step", "all-gather", "evaluation"));
  EXPECT_EQ(answer->per_gpu[0].peak().total().expected, most);
}

// deepspeedai/DeepSpeed#2899: without zero.Init every rank first holds Galactica-30B whole, 55.83 GB by its counter.
TEST(Training, ZeroThreeWithoutPartitionedLoad) {
  const auto model = model::preset("facebook/galactica-30b");
  ASSERT_TRUE(model) << model.error().message();
  TrainingJob job;
  job.precision = Precision::mixed_deepspeed;
  job.sharding.kind = Sharding::zero3;
  job.sharding.partitioned_at_load = false;
  job.data_parallel = 4;
  const auto answer = estimate_training(*model, job, {kA100});
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_NEAR(answer->per_gpu[0].instants[0].total_of(ComponentKind::weights).expected.gib(), 55.83, 0.05);
}

// PEFT's guide (docs/source/accelerate/deepspeed.md) tunes a 70B by QLoRA under ZeRO-3 on 2 x 80 GB, not on 2 x 24 GB:
// transformers has no zero.Init for a base that bitsandbytes packs while it loads.
TEST(Training, ZeroThreeLoadsAPackedBaseWhole) {
  const auto model = model::with_weight_format(*model::preset("llama-2-70b"), "bnb-nf4-dq");
  ASSERT_TRUE(model) << model.error().message();
  TrainingJob job;
  job.method = TrainingMethod::qlora;
  job.precision = Precision::mixed_deepspeed;
  job.sharding.kind = Sharding::zero3;
  job.data_parallel = 2;
  for (const bool offload : {false, true}) {
    job.sharding.offload_parameters = job.sharding.offload_optimizer = offload;
    const auto answer = estimate_training(*model, job, {kA100});
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_GT(answer->per_gpu[0].instants[0].total_of(ComponentKind::weights).expected.gib(), 34);
  }
}

TEST(Training, OffloadMovesStatesToTheHost) {
  TrainingJob job;
  job.precision = Precision::mixed_deepspeed;
  job.sharding.kind = Sharding::zero3;
  job.data_parallel = 8;
  const model::Model model = testing::decoder(testing::llama2_7b());
  const auto on_gpu = estimate_training(model, job, {kA100});
  job.sharding.offload_optimizer = job.sharding.offload_parameters = true;
  const auto on_host = estimate_training(model, job, {kA100});
  ASSERT_TRUE(on_gpu && on_host);
  EXPECT_TRUE(on_gpu->host.empty());
  // 16 B a parameter of 6.74 B over 8 ranks.
  EXPECT_NEAR(on_host->host_bytes().gb(), 16 * 6.738 / 8, 0.1);
  EXPECT_LT(on_host->per_gpu[0].peak().total().expected, on_gpu->per_gpu[0].peak().total().expected);
}

TEST(Solve, LargestSequenceAndMicroBatchFit) {
  const auto base = model::with_weight_format(testing::decoder(testing::llama31_8b()), "bnb-nf4-dq");
  ASSERT_TRUE(base);
  TrainingJob job = lora(32, {"all-linear"});
  job.method = TrainingMethod::qlora;
  job.engine = TrainingEngine::unsloth;
  job.optimizer = Optimizer::adamw_8bit;
  job.checkpointing = Checkpointing::offloaded;
  job.fused_kernels = true;
  const std::vector<Target> card = {testing::card("RTX 4090", 24, "Ada Lovelace")};
  const auto sequence = largest_sequence(*base, job, card, false);
  ASSERT_TRUE(sequence) << sequence.error().message();
  // docs.unsloth.ai, Llama-3.1-8B on 24 GB: 78,475 tokens.
  EXPECT_NEAR(static_cast<double>(sequence->value), 78475, 0.1 * 78475);
  EXPECT_NE(sequence->estimate.verdict(), Verdict::no);
  job.sequence = 4096;
  const auto batch = largest_micro_batch(*base, job, card, true);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->estimate.verdict(), Verdict::fits);
  job.micro_batch = batch->value + 1;
  EXPECT_NE(estimate_training(*base, job, card)->verdict(), Verdict::fits);
}

TEST(Solve, NothingFitsOnATinyCard) {
  const auto solution = largest_sequence(testing::decoder(testing::llama31_8b()), TrainingJob{},
                                         {testing::card("T4", 15, "Turing")}, false);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->value, 0);
}

TEST(TrainingEngines, NamesAndVersions) {
  EXPECT_EQ(training_engine_named("TRL@0.12")->engine, TrainingEngine::transformers);
  EXPECT_EQ(training_engine_named("trl@0.12")->version, "0.12");
  EXPECT_EQ(training_engine_named("lit-gpt")->engine, TrainingEngine::litgpt);
  EXPECT_THAT(training_engine_named("deepspede").error().message(), HasSubstr("did you mean deepspeed?"));
}

}  // namespace
}  // namespace gpuwright::fit

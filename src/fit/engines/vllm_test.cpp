// Figures of public vLLM logs, and shapes worked out by hand from its sources.
#include <gtest/gtest.h>

#include "fit/engines/vllm_cache.h"
#include "fit/fit.h"
#include "fit/testing/decoder.h"
#include "model/config.h"

namespace gpuwright::fit {
namespace {

using testing::card;
using testing::decoder;

Job serve(std::int64_t context, int tensor_parallel, std::string version) {
  Job job;
  job.engine = Engine::vllm;
  job.engine_version = std::move(version);
  job.context_tokens = context;
  job.tensor_parallel = tensor_parallel;
  return job;
}

Estimate estimated(const model::Model& model, const Job& job, const std::vector<Target>& targets) {
  auto answer = estimate(model, job, targets);
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message());
  return answer ? *answer : Estimate{};
}

Range weights_of(const Estimate& answer) {
  return answer.per_gpu[0].instants[0].total_of(ComponentKind::weights);
}

const Capacity& capacity(const Estimate& answer, std::string_view name) {
  for (const Capacity& found : answer.capacities)
    if (found.name == name) return found;
  ADD_FAILURE() << "no capacity " << name;
  static const Capacity none;
  return none;
}

// vllm#15815: L40S, tp 2, "model weights take 30.7100 GiB". Parameters / 2 are 30.51: the rest is rounding and the
// rotary table.
TEST(Vllm, WeightsOfQwen25OnTwoRanks) {
  const Estimate answer =
      estimated(decoder(testing::qwen25_32b()), serve(4096, 2, "0.8"), {2, card("L40S", 44.42, "Ada")});
  EXPECT_NEAR(weights_of(answer).expected.gib(), 30.7100, 0.001);
}

// Llama-3.1-8B in BF16 on A10G and H100: "model weights take 14.99GiB".
TEST(Vllm, WeightsOfLlamaIncludeItsRotaryTable) {
  const Estimate answer =
      estimated(decoder(testing::llama31_8b()), serve(4096, 1, "0.8"), {card("A10G", 22.07, "Ampere")});
  EXPECT_NEAR(weights_of(answer).expected.gib(), 14.99, 0.005);
}

// Blocks from the budget that the same log printed: vllm#15815 (7.71 GiB, 3,947 blocks, tp 2), Llama-3.1-8B on A10G
// (4.60 GiB, 2,356), Qwen2.5-1.5B on T4 (2.36 GiB, 5,519). Two printed decimals are 0.1 to 0.2 %.
TEST(Vllm, BlocksFromThePrintedBudget) {
  const auto blocks = [](const testing::DecoderShape& shape, int ranks, double gib) {
    Job job = serve(4096, ranks, "0.8");
    job.vllm.kv_budget = Bytes::from_gib(gib);
    const Estimate answer = estimated(decoder(shape), job,
                                      std::vector<Target>(static_cast<std::size_t>(ranks), card("L40S", 44.42, "Ada")));
    return static_cast<double>(capacity(answer, "kv_cache_blocks").expected);
  };
  EXPECT_NEAR(blocks(testing::qwen25_32b(), 2, 7.71) / 3947, 1, 0.001);
  EXPECT_NEAR(blocks(testing::llama31_8b(), 1, 4.60) / 2356, 1, 0.001);
  EXPECT_NEAR(blocks(testing::qwen25_1_5b(), 1, 2.36) / 5519, 1, 0.0025);
}

// Profiling runs. V0 (0.7.2) on a T4 ran 32,768 tokens of Qwen2.5-1.5B: 2.02 GiB. V1 samples 256 rows of
// DeepSeek-R1-0528-Qwen3-8B (tp 4, 8,192 tokens): 1.45 GiB; 1,024 rows of gemma-3-4b on a B200: 9.96 GiB (vllm#21489).
TEST(Vllm, ActivationPeakOfTheProfilingRun) {
  const auto activations = [](const model::Model& model, const Job& job, const std::vector<Target>& targets) {
    return estimated(model, job, targets)
        .per_gpu[0]
        .instants.back()
        .total_of(ComponentKind::activations)
        .expected.gib();
  };
  EXPECT_NEAR(
      activations(decoder(testing::qwen25_1_5b()), serve(32768, 1, "0.7.2"), {card("T4", 14.56, "Turing")}) / 2.02, 1,
      0.01);
  Job four = serve(8192, 4, "0.9");
  four.vllm.max_batched_tokens = 8192;
  EXPECT_NEAR(activations(decoder(testing::qwen3_8b()), four, {4, card("A10", 21.48, "Ampere")}) / 1.45, 1, 0.01);
  Job large = serve(8192, 1, "0.10");
  large.vllm.max_batched_tokens = 16384;
  EXPECT_NEAR(activations(*model::preset("gemma-3-4b"), large, {card("B200", 178.36, "Blackwell")}) / 9.96, 1, 0.05);
}

// DeepSeek-V3: 61 layers x 576 x 2 B = 70,272 B a token, the same on every rank. hf-mem priced 61 x 128 x 56 x 2 x 2
// (1.75 MB, 25 times as much); llama.cpp logs 2,196 MiB at 32,768 tokens (ggml-org/llama.cpp#11446).
TEST(Vllm, LatentCacheIsNotDividedByRanks) {
  const model::Model model = *model::preset("deepseek-v3");
  for (const std::int64_t ranks : {1, 8}) {
    Bytes token;
    for (const model::Layer& layer : model.layers)
      token += vllm_token_bytes(layer.attention, ranks, model::Dtype::bf16, model::Dtype::bf16);
    EXPECT_EQ(token, Bytes{70272});
    EXPECT_EQ(token * 32768, Bytes::from_mib(2196));
  }
}

// vllm/v1/attention/backends/mla, fp8_ds_mla: 656 B a token and layer for sparse models, and an indexer beside it;
// dense latent attention stores 576 fp8 values.
TEST(Vllm, LatentCacheInEightBits) {
  model::Attention latent;
  latent.kind = model::AttentionKind::latent;
  latent.heads = 128;
  latent.kv_lora_rank = 512;
  latent.rope_dim = 64;
  EXPECT_EQ(vllm_token_bytes(latent, 8, model::Dtype::f8_e4m3, model::Dtype::f8_e4m3), Bytes{576});
  latent.indexer_key_dim = 128;
  EXPECT_EQ(vllm_token_bytes(latent, 8, model::Dtype::f8_e4m3, model::Dtype::f8_e4m3), Bytes{656 + 128 + 4});
}

// Four key-value heads on eight ranks: each rank keeps one, so eight ranks hold twice what one would.
TEST(Vllm, KeyValueHeadsAreReplicatedBeyondTheirNumber) {
  const model::Attention attention = decoder(testing::qwen25_7b()).layers[0].attention;
  const auto bytes = [&](std::int64_t ranks) {
    return vllm_token_bytes(attention, ranks, model::Dtype::bf16, model::Dtype::bf16);
  };
  EXPECT_EQ(bytes(1), Bytes{4 * 256 * 2});
  EXPECT_EQ(bytes(4), Bytes{256 * 2});
  EXPECT_EQ(bytes(7), Bytes{256 * 2});
}

// Log of a 48-layer gated-delta-net model: "attention block size to 1568 tokens", padded by 0.13 %: a state of
// 3,207,168 B over 2,048 B a token.
TEST(Vllm, AttentionBlockGrowsToHoldARecurrentState) {
  model::Recurrent recurrent;
  recurrent.kind = model::RecurrentKind::gated_delta_net;
  recurrent.key_heads = 16;
  recurrent.value_heads = 48;
  recurrent.key_dim = recurrent.value_dim = 128;
  recurrent.d_conv = 4;
  EXPECT_EQ(vllm_state_bytes(recurrent, 1, 2, 4), Bytes{3207168});

  model::Model model;
  for (int i = 0; i < 64; ++i) {
    model::Layer layer;
    if (i % 4 == 3) {
      layer.attention = decoder(testing::qwen25_7b()).layers[0].attention;
      layer.attention.kv_heads = 4;  // 4 x (128 + 128) x 2 B = 2,048 B
    } else {
      layer.recurrent = recurrent;
    }
    model.layers.push_back(layer);
  }
  const VllmCache cache = vllm_cache(model, {.tokens = 32768, .max_batched_tokens = 2048, .layers = {0, 64}});
  EXPECT_EQ(cache.block_tokens, 1568);
  EXPECT_EQ(cache.layers_per_group, 16);
  EXPECT_EQ(cache.page, Bytes{1568 * 2048});
  // 16 attention layers x 21 blocks; three groups of 16 recurrent layers with one block each.
  EXPECT_EQ(cache.blocks_per_sequence(), 21 + 3);
}

// Jamba: 4 of 32 layers attend (ai21labs/Jamba-v0.1); charging all of them prices eight times the cache.
TEST(Vllm, OnlyAttentionLayersOfJambaHaveCache) {
  const model::Model jamba = *model::preset("jamba-v0.1");
  Bytes token;
  for (const model::Layer& layer : jamba.layers)
    token += vllm_token_bytes(layer.attention, 1, model::Dtype::bf16, model::Dtype::bf16);
  EXPECT_EQ(token, Bytes{4 * 8 * 256 * 2});
}

// SlidingWindowSpec.max_memory_usage_bytes: ceil(min(window - 1 + batched, len) / block) + 1 blocks a sequence.
TEST(Vllm, SlidingLayersHoldTheirWindow) {
  const model::Model gemma = *model::preset("gemma-3-27b");
  const VllmCacheRequest request{.tokens = 32768, .max_batched_tokens = 2048, .layers = {0, gemma.layers.size()}};
  const VllmCache cache = vllm_cache(gemma, request);
  ASSERT_EQ(cache.groups.size(), 2u);
  EXPECT_EQ(cache.groups[0].layers, 10);
  EXPECT_EQ(cache.groups[0].blocks_per_sequence, 2048);
  EXPECT_EQ(cache.groups[1].layers, 52);
  EXPECT_EQ(cache.groups[1].blocks_per_sequence, 6 * ((1023 + 2048 + 15) / 16 + 1));
  VllmCacheRequest flat = request;
  flat.hybrid_manager = false;
  EXPECT_EQ(vllm_cache(gemma, flat).attention_bytes(1), Bytes{62 * 8192} * 32768);
}

// vllm/distributed/utils.py get_pp_indices: 62 layers on 4 stages are 15, 16, 16, 15.
TEST(Vllm, PipelineStagesTakeTheirOwnLayers) {
  const auto count = [](std::size_t stage) {
    const LayerRange range = pipeline_layers(62, 4, stage);
    return range.last - range.first;
  };
  EXPECT_EQ(count(0), 15u);
  EXPECT_EQ(count(1), 16u);
  EXPECT_EQ(count(2), 16u);
  EXPECT_EQ(count(3), 15u);
  EXPECT_EQ(pipeline_layers(62, 4, 3).last, 62u);
}

// The budget decides, not the card: 80 GB at 0.9 hold Llama-3.1-8B with 131,072 tokens, not with twenty times of it.
TEST(Vllm, VerdictIsAboutTheCacheTheJobNeeds) {
  const auto model = decoder(testing::llama31_8b());
  Job job = serve(131072, 1, "0.9");
  EXPECT_EQ(estimated(model, job, {card("H100", 79.1, "Hopper")}).verdict(), Verdict::fits);
  job.sequences = 20;
  EXPECT_EQ(estimated(model, job, {card("H100", 79.1, "Hopper")}).verdict(), Verdict::no);
}

// 0.21 raised the default share to 0.92 and takes CUDA graphs out of it; before, they come on top.
TEST(Vllm, DefaultsFollowTheVersion) {
  const auto model = decoder(testing::llama31_8b());
  const auto usable = [&](std::string version) {
    const Estimate answer = estimated(model, serve(8192, 1, std::move(version)), {card("A100", 80, "Ampere")});
    const GpuEstimate& gpu = answer.per_gpu[0];
    return std::pair(gpu.usable, gpu.instants.back().total_of(ComponentKind::graphs).expected);
  };
  const auto [new_budget, new_graphs] = usable("0.21.0");
  EXPECT_EQ(new_budget, Bytes::from_gib(80).scaled(0.92));
  const auto [old_budget, old_graphs] = usable("0.10.0");
  EXPECT_EQ(old_budget - old_graphs, Bytes::from_gib(80).scaled(0.9));
}

TEST(Vllm, RefusesWhatItCannotRun) {
  const auto model = decoder(testing::qwen25_7b());
  EXPECT_FALSE(estimate(model, serve(4096, 8, "0.9"), std::vector<Target>(8, card("A100", 80, "Ampere"))));
  Job job = serve(4096, 1, "0.9");
  job.vllm.gpu_memory_utilization = 1.5;
  EXPECT_FALSE(estimate(model, job, {card("A100", 80, "Ampere")}));
  job = serve(4096, 1, "0.9");
  EXPECT_FALSE(estimate(model, job, std::vector<Target>(2, card("A100", 80, "Ampere"))));
  job = serve(std::int64_t{1} << 32, 1, "0.9");
  job.sequences = 1 << 20;
  EXPECT_FALSE(estimate(model, job, {card("A100", 80, "Ampere")}));
}

// Llama-3.1-8B caches 128 KiB a token: 8,192 tokens are 1 GiB.
TEST(Vllm, ABudgetSmallerThanTheJobIsNo) {
  const model::Model model = decoder(testing::llama31_8b());
  const std::vector<Target> targets = {card("H100", 79.1, "Hopper")};
  Job job = serve(8192, 1, "0.11");
  const auto verdict = [&](Bytes budget) {
    job.vllm.kv_budget = budget;
    return estimated(model, job, targets).verdict();
  };
  EXPECT_EQ(verdict(Bytes::from_gib(1)), Verdict::fits);
  EXPECT_EQ(verdict(Bytes::from_gib(1) - Bytes{1}), Verdict::no);
  EXPECT_EQ(verdict(Bytes{}), Verdict::no);
}

// vllm/v1/worker/gpu_worker.py: "Free memory on device on startup is less than desired GPU memory utilization".
TEST(Vllm, ABudgetThatIsNotFreeNeverFits) {
  const model::Model model = decoder(testing::qwen25_1_5b());
  const std::vector<Target> targets = {card("L40S", 44.42, "Ada")};
  Job job = serve(4096, 1, "0.11");
  EXPECT_EQ(estimated(model, job, targets).verdict(), Verdict::fits);
  job.reserve = Bytes::from_gib(20);
  const Estimate answer = estimated(model, job, targets);
  EXPECT_EQ(answer.verdict(), Verdict::tight);
  EXPECT_EQ(answer.per_gpu[0].usable, targets[0].total - job.reserve);
  EXPECT_NE(answer.notes.back().find("--gpu-memory-utilization 0.54"), std::string::npos) << answer.notes.back();
  job.vllm.gpu_memory_utilization = 0.54;
  EXPECT_EQ(estimated(model, job, targets).verdict(), Verdict::fits);
  job.vllm.gpu_memory_utilization = 0.9;
  EXPECT_EQ(estimated(model, job, targets).verdict(), Verdict::no);
}

TEST(Vllm, RefusesWhatItHasNot) {
  const model::Model model = decoder(testing::llama2_7b());
  const std::vector<Target> targets = {card("L40S", 44.42, "Ada")};
  Job job = serve(4097, 1, "");  // Llama 2 was trained on 4,096
  EXPECT_EQ(estimate(model, job, targets).error().code, ErrorCode::unsupported);
  job = serve(4096, 1, "");
  job.vllm.block_size = 24;
  EXPECT_EQ(estimate(model, job, targets).error().code, ErrorCode::bad_input);
}

TEST(Vllm, CountsTensorsOfBlocksBeyondTheKnown) {
  model::Model model = decoder(testing::qwen25_7b());
  const std::vector<Target> targets = {card("L40S", 44.42, "Ada")};
  const Bytes before = weights_of(estimated(model, serve(4096, 1, ""), targets)).expected;
  model.tensors.push_back({"model.layers.28.extra", model::TensorRole::attention, model::Dtype::bf16, 28, 1024, 1024, 1,
                           1, Bytes::from_mib(2)});
  EXPECT_GE(weights_of(estimated(model, serve(4096, 1, ""), targets)).expected - before, Bytes::from_mib(2));
}

}  // namespace
}  // namespace gpuwright::fit

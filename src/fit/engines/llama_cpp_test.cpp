// Caches, states and placement as llama.cpp printed them, and what other tools get wrong.
#include <gtest/gtest.h>

#include "fit/engines/engines.h"
#include "fit/fit.h"

namespace gpuwright::fit {
namespace {

using model::AttentionKind;

model::Model decoder(std::string family, std::size_t layers, std::int64_t kv_heads, std::int64_t head_dim) {
  model::Model model;
  model.family = std::move(family);
  model.hidden = 1024;
  model.vocabulary = 1000;
  model.context_length = 131072;
  model::Layer layer;
  layer.attention.kind = AttentionKind::full;
  layer.attention.heads = layer.attention.kv_heads = kv_heads;
  layer.attention.key_dim = layer.attention.value_dim = head_dim;
  layer.feed_forward.width = 4096;
  model.layers.assign(layers, layer);
  return model;
}

void slide(model::Model& model, std::int64_t window, std::size_t pattern) {
  for (std::size_t il = 0; il < model.layers.size(); ++il)
    if (il % pattern != pattern - 1) {
      model.layers[il].attention.kind = AttentionKind::sliding;
      model.layers[il].attention.window = window;
    }
}

Job job_of(std::int64_t context, std::int64_t sequences = 1) {
  Job job;
  job.context_tokens = context;
  job.sequences = sequences;
  return job;
}

const Target kCard{"card", Bytes::from_gib(640), Bytes::from_gib(640), "Ada", false};

Estimate estimate_of(const model::Model& model, const Job& job, const std::vector<Target>& targets = {kCard}) {
  return llama_cpp_engine().estimate(model, job, targets).value();
}

double mib(const model::Model& model, const Job& job, ComponentKind kind = ComponentKind::kv_cache) {
  return estimate_of(model, job).per_gpu.front().instants.back().total_of(kind).expected.mib();
}

// The tests of caches below: the figure printed by the log, in MiB.
TEST(LlamaCache, GroupedQueries) {
  EXPECT_NEAR(mib(decoder("qwen2", 36, 2, 128), job_of(4096)), 144.0, 0.01);      // SciSharp/LLamaSharp#1099
  EXPECT_NEAR(mib(decoder("mistral", 32, 8, 128), job_of(32768)), 4096.0, 0.01);  // fedora-copr/logdetective#106
}

// unslothai/unsloth#7530, gemma-3-270m at 1,024 tokens: 27.00 MiB with three slots (512 cells each in all layers),
// 18.00 with four.
TEST(LlamaCache, SlotsArePaddedEach) {
  model::Model gemma = decoder("gemma3", 18, 1, 256);
  slide(gemma, 512, 6);
  EXPECT_NEAR(mib(gemma, job_of(1024, 3)), 27.0, 0.05);
  EXPECT_NEAR(mib(gemma, job_of(1024, 4)), 18.0, 0.05);
}

// Gemma-3-4B: 34 layers, every sixth full, the other 29 with 1,024 + 512 cells: 174 MiB (llama.cpp and ollama logs),
// and at 8,192 tokens 160 MiB for the five full ones. A tool that takes i % 6 != 0 counts one full layer too many; one
// that pads by n_batch gets 3,072 cells.
TEST(LlamaCache, WindowsKeepOnlyTheirCells) {
  model::Model gemma = decoder("gemma3", 34, 4, 256);
  slide(gemma, 1024, 6);
  EXPECT_NEAR(mib(gemma, job_of(8192)), 160.0 + 174.0, 0.01);
  Job full = job_of(8192);
  full.llama.swa_full = true;
  EXPECT_NEAR(mib(gemma, full), 34 * 8192 * 4.0 / 1024, 0.01);
}

// Mistral 7B v0.1 declares a window of 4,096 that llama.cpp does not use.
TEST(LlamaCache, DeclaredWindowIsNotAlwaysUsed) {
  model::Model mistral = decoder("mistral", 32, 8, 128);
  slide(mistral, 4096, 1000);
  EXPECT_NEAR(mib(mistral, job_of(32768)), 4096.0, 0.01);
}

// gpt-oss-20b at 32,768 tokens: 768 MiB in full layers and 18 in sliding ones (a public log, 786 MiB).
TEST(LlamaCache, AlternatingWindows) {
  model::Model oss = decoder("gpt-oss", 24, 8, 64);
  slide(oss, 128, 2);
  EXPECT_NEAR(mib(oss, job_of(32768)), 786.0, 0.01);
}

model::Model deepseek() {
  model::Model model = decoder("deepseek2", 61, 128, 192);
  for (model::Layer& layer : model.layers) {
    layer.attention = {};
    layer.attention.kind = AttentionKind::latent;
    layer.attention.heads = layer.attention.kv_heads = 128;
    layer.attention.key_dim = 192;
    layer.attention.value_dim = 128;
    layer.attention.kv_lora_rank = 512;
    layer.attention.rope_dim = 64;
    layer.attention.q_lora_rank = 1536;
  }
  return model;
}

// DeepSeek-R1: 2,196 MiB at 32,768 tokens in f16 (ggml-org/llama.cpp#11446), 1,166.62 in q8_0
// (ikawrakow/ik_llama.cpp#259); before MLA was understood, 24,576 keys and 16,384 values a layer (#11397).
TEST(LlamaCache, LatentAttentionByVersion) {
  EXPECT_NEAR(mib(deepseek(), job_of(32768)), 2196.0, 0.01);
  Job q8 = job_of(32768);
  q8.key_type = model::Dtype::q8_0;
  EXPECT_NEAR(mib(deepseek(), q8), 1166.62, 0.01);
  Job both = job_of(32768);
  both.engine_version = "b6000";
  EXPECT_NEAR(mib(deepseek(), both), 2196.0 * (576 + 512) / 576, 0.01);
  Job old = job_of(4096);
  old.engine_version = "b4600";
  EXPECT_NEAR(mib(deepseek(), old), 61.0 * (24576 + 16384) * 2 * 4096 / 1048576, 0.01);
}

model::Model qwen36() {
  model::Model model = decoder("qwen35", 64, 4, 256);
  for (std::size_t il = 0; il < 64; ++il) {
    if (il % 4 == 3) continue;
    model.layers[il].attention = {};
    model.layers[il].recurrent.kind = model::RecurrentKind::gated_delta_net;
    model.layers[il].recurrent.d_conv = 4;
    model.layers[il].recurrent.key_heads = 16;
    model.layers[il].recurrent.value_heads = 48;
    model.layers[il].recurrent.key_dim = model.layers[il].recurrent.value_dim = 128;
  }
  return model;
}

// Qwen3.6-27B, 262,144 tokens: 16,384 MiB in the 16 attention layers, 598.50 MiB of state for four sequences
// (lmstudio-ai/lmstudio-bug-tracker#1862); 149.62 for one. A tool that charges all 64 layers says four times as much.
TEST(LlamaCache, HybridKeepsStateBesideTheCache) {
  EXPECT_NEAR(mib(qwen36(), job_of(262144, 4)), 16384.0, 0.01);
  EXPECT_NEAR(mib(qwen36(), job_of(262144, 4), ComponentKind::recurrent_state), 598.50, 0.01);
  EXPECT_NEAR(mib(qwen36(), job_of(32768), ComponentKind::recurrent_state), 149.62, 0.01);
  Job rollback = job_of(32768);
  rollback.llama.speculative_tokens = 3;
  EXPECT_NEAR(mib(qwen36(), rollback, ComponentKind::recurrent_state), 4 * 149.625, 0.01);
}

// The same model with MTP and a q8_0 cache of 131,072 tokens: 272 MiB for the drafting layer.
TEST(LlamaCache, MultiTokenPredictionHasItsOwnContext) {
  model::Model qwen = qwen36();
  Job job = job_of(131072);
  job.key_type = job.value_type = model::Dtype::q8_0;
  job.llama.speculative_tokens = 1;
  const double without = mib(qwen, job);
  qwen.multi_token_prediction_layers = 1;
  EXPECT_NEAR(mib(qwen, job) - without, 272.0, 0.01);
}

// bge-small, build 4477: 9 MiB of cache; encoders of newer builds keep none. A tool says 13.8 GiB for such models.
TEST(LlamaCache, EncodersKeptOneOnlyInOldBuilds) {
  model::Model bge = decoder("bert", 12, 12, 32);
  bge.kind = model::ModelKind::encoder;
  for (model::Layer& layer : bge.layers) layer.attention.causal = false;
  EXPECT_EQ(mib(bge, job_of(512)), 0.0);
  Job old = job_of(512);
  old.engine_version = "b4477";
  EXPECT_NEAR(mib(bge, old), 9.0, 0.01);
}

TEST(LlamaCache, SharedLayersStoreNothing) {
  model::Model gemma = decoder("gemma3n", 35, 2, 256);
  for (std::size_t il = 20; il < 35; ++il) gemma.layers[il].attention.shares_cache_of = 19;
  EXPECT_NEAR(mib(gemma, job_of(4096)), 20.0 * 2 * 512 * 2 * 4096 / 1048576, 0.01);
}

TEST(LlamaCache, QuantizedValuesNeedFlashAttention) {
  Job job = job_of(4096);
  job.key_type = job.value_type = model::Dtype::q8_0;
  job.llama.flash_attention = false;
  const model::Model qwen = decoder("qwen2", 24, 2, 64);
  EXPECT_EQ(llama_cpp_engine().estimate(qwen, job, {kCard}).error().code, ErrorCode::bad_input);
  // ollama goes on with f16: 12,288 B a token for Qwen2.5-0.5B.
  job.engine = Engine::ollama;
  EXPECT_NEAR(mib(qwen, job), 4096.0 * 12288 / 1048576, 0.01);
}

// ---------------------------------------------------------------- placement

void add_weights(model::Model& model, model::TensorRole role, int layer, std::int64_t mebibytes) {
  model::Tensor tensor;
  tensor.role = role;
  tensor.layer = layer;
  tensor.rows = tensor.columns = 1024;
  tensor.bytes = Bytes{mebibytes << 20};
  model.tensors.push_back(tensor);
}

// Embedding 50, ten layers of 10 MiB (8 of them experts), head 70 (absent when tied).
model::Model weighted(bool tied) {
  model::Model model = decoder("llama", 10, 2, 64);
  add_weights(model, model::TensorRole::token_embedding, -1, 50);
  for (int il = 0; il < 10; ++il) {
    add_weights(model, model::TensorRole::attention, il, 2);
    add_weights(model, model::TensorRole::expert, il, 8);
  }
  if (!tied) add_weights(model, model::TensorRole::output_head, -1, 70);
  return model;
}

double weights_mib(const Estimate& estimate, std::size_t gpu) {
  return estimate.per_gpu[gpu].instants.front().total_of(ComponentKind::weights).expected.mib();
}

TEST(LlamaPlacement, EmbeddingStaysOnTheHost) {
  const Estimate all = estimate_of(weighted(false), job_of(512));
  EXPECT_EQ(weights_mib(all, 0), 170);
  EXPECT_EQ(all.host.front().expected, Bytes::from_mib(50));
}

TEST(LlamaPlacement, TiedHeadIsThereTwice) {
  model::Model tied = weighted(true);
  tied.hidden = 1024;
  EXPECT_EQ(weights_mib(estimate_of(tied, job_of(512)), 0), 150);
}

TEST(LlamaPlacement, LayersAreCountedFromTheEnd) {
  Job job = job_of(512);
  job.llama.gpu_layers = 4;
  const Estimate some = estimate_of(weighted(false), job);
  EXPECT_EQ(weights_mib(some, 0), 40);
  EXPECT_EQ(some.host.front().expected, Bytes::from_mib(50 + 60 + 70));
}

// The compute buffer does not shrink when layers stay on the host (ggml-org/llama.cpp#27953): the head is copied to the
// GPU for its product. Here 70 MiB, and 512 tokens x (1,024 + 1,024) x 4 B.
TEST(LlamaPlacement, MatricesOnTheHostAreCopiedForLargeBatches) {
  Job job = job_of(512);
  job.llama.gpu_layers = 4;
  EXPECT_EQ(mib(weighted(false), job, ComponentKind::compute_buffer), 74);
  job.llama.ubatch = 16;
  EXPECT_LT(mib(weighted(false), job, ComponentKind::compute_buffer), 4);
}

TEST(LlamaPlacement, ExpertsOfTheFirstLayersCanStay) {
  Job job = job_of(512);
  job.llama.cpu_moe_layers = 5;
  EXPECT_EQ(weights_mib(estimate_of(weighted(false), job), 0), 130);
}

TEST(LlamaPlacement, SharesFollowFreeMemoryOrTensorSplit) {
  const Target half{"half", Bytes::from_gib(320), Bytes::from_gib(320), "Ada", false};
  const Estimate by_memory = estimate_of(weighted(false), job_of(512), {kCard, half});
  EXPECT_EQ(weights_mib(by_memory, 0), 80);       // 11 slots: positions below 2/3 are 0..7
  EXPECT_EQ(weights_mib(by_memory, 1), 20 + 70);  // 8, 9 and the output
  Job job = job_of(512);
  job.llama.tensor_split = {1, 1};
  EXPECT_EQ(weights_mib(estimate_of(weighted(false), job, {kCard, half}), 0), 60);
  job.llama.tensor_split = {1, 1, 1};
  EXPECT_EQ(llama_cpp_engine().estimate(weighted(false), job, {kCard, half}).error().code, ErrorCode::bad_input);
}

TEST(LlamaPlacement, RowsAreSharedAndTheCacheIsNot) {
  Job job = job_of(512);
  job.llama.split_by_rows = true;
  job.llama.tensor_split = {3, 1};
  const Estimate rows = estimate_of(weighted(false), job, {kCard, kCard});
  EXPECT_NEAR(weights_mib(rows, 0), 0.75 * 170, 0.01);
  EXPECT_NEAR(weights_mib(rows, 1), 0.25 * 170, 0.01);
  EXPECT_EQ(rows.per_gpu[1].instants.back().total_of(ComponentKind::kv_cache).expected, Bytes{});
}

TEST(LlamaPlacement, AbsurdSizesAreRefused) {
  model::Model hostile = decoder("llama", 4, std::int64_t{1} << 40, std::int64_t{1} << 40);
  EXPECT_EQ(llama_cpp_engine().estimate(hostile, job_of(4096), {kCard}).error().code, ErrorCode::bad_input);
  hostile = decoder("llama", 4, 8, 128);
  hostile.vocabulary = std::int64_t{1} << 60;
  EXPECT_EQ(llama_cpp_engine().estimate(hostile, job_of(4096), {kCard}).error().code, ErrorCode::bad_input);
}

TEST(LlamaPlacement, CacheFollowsItsLayerOrStaysOnTheHost) {
  Job job = job_of(512);
  job.llama.kv_on_host = true;
  const Estimate answer = estimate_of(weighted(false), job);
  EXPECT_EQ(answer.per_gpu[0].instants.back().total_of(ComponentKind::kv_cache).expected, Bytes{});
  EXPECT_GT(answer.host_bytes(), Bytes::from_mib(50));
}

// ollama llm/server.go: KvSize = num_ctx x numParallel. docs/faq.md: a 2K context with 4 parallel requests is an 8K
// one.
TEST(Ollama, ContextIsThatOfOneSequence) {
  const model::Model model = decoder("qwen2", 36, 2, 128);
  Job one = job_of(2048), four = job_of(2048, 4);
  one.engine = four.engine = Engine::ollama;
  EXPECT_NEAR(mib(model, one), 72.0, 0.01);  // 36 layers x 2 heads x 256 x 2 B x 2,048
  EXPECT_NEAR(mib(model, four), 4 * 72.0, 0.01);
  EXPECT_NEAR(mib(model, job_of(8192)), 4 * 72.0, 0.01) << "llama.cpp's -c counts all sequences";
}

// docs/context-length.mdx: below 24 GiB of VRAM 4k, 24-48 GiB 32k, from 48 GiB on 256k; 4,096 since v0.6.7, 2,048
// before.
TEST(Ollama, DefaultContextFollowsVersionAndMemory) {
  model::Model model = decoder("qwen2", 36, 2, 128);
  model.context_length = 262144;
  const auto tokens = [&](std::string version, double gib) {
    Job job;
    job.engine = Engine::ollama;
    job.engine_version = std::move(version);
    const Target target{"card", Bytes::from_gib(gib), Bytes::from_gib(gib), "Ada", false};
    const Estimate answer = estimate_of(model, job, {target});
    return answer.per_gpu[0].instants.back().total_of(ComponentKind::kv_cache).expected.count / (36 * 2 * 256 * 2);
  };
  EXPECT_EQ(tokens("0.6.0", 24), 2048);
  EXPECT_EQ(tokens("0.9", 24), 4096);
  EXPECT_EQ(tokens("", 16), 4096);
  EXPECT_EQ(tokens("", 23.6), 32768);
  EXPECT_EQ(tokens("", 80), 262144);
  model.context_length = 8192;
  EXPECT_EQ(tokens("", 80), 8192) << "cut to what the model was trained on";
}

}  // namespace
}  // namespace gpuwright::fit

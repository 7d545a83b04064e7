// What read_gguf makes of each kind of model: sizes per token and per sequence against what llama.cpp allocated in
// public logs (KV f16, recurrent state f32), and shapes against published configurations. Tensors are stand-ins of one
// element: here only their names count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <numeric>

#include "model/testing/gguf_builder.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

using testing::GgufBuilder;
using ::testing::HasSubstr;

class Described : public ::testing::Test {
 public:
  void architecture(const std::string& name, std::uint32_t blocks, std::uint32_t hidden) {
    prefix_ = name + ".";
    file_.text("general.architecture", name);
    set("block_count", blocks).set("embedding_length", hidden).set("context_length", 4096);
    file_.f32_tensor("token_embd.weight", {1, 1});
  }
  Described& set(const std::string& key, std::uint32_t value) {
    file_.u32(prefix_ + key, value);
    return *this;
  }
  Described& set(const std::string& key, const std::vector<std::uint32_t>& values) {
    file_.u32_array(prefix_ + key, values);
    return *this;
  }
  Described& heads(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim) {
    return set("attention.head_count", heads)
        .set("attention.head_count_kv", kv_heads)
        .set("attention.key_length", head_dim)
        .set("attention.value_length", head_dim);
  }
  // A stand-in for `part` in block i.
  void part(std::uint32_t i, const std::string& part) {
    file_.f32_tensor("blk." + std::to_string(i) + "." + part + ".weight", {1, 1});
  }
  void parts(std::uint32_t from, std::uint32_t to, const std::string& name) {
    for (std::uint32_t i = from; i < to; ++i) part(i, name);
  }

  Model read() {
    const auto model = read_gguf(*bytes_in_memory(file_.file(), "m.gguf"), nullptr, {});
    EXPECT_TRUE(model) << model.error().message();
    return model.value_or(Model{});
  }

  static std::int64_t per_token(const Model& model, std::optional<bool> windowed = std::nullopt) {
    std::int64_t total = 0;
    for (const Layer& layer : model.layers)
      if (!windowed || *windowed == (layer.attention.window > 0)) total += layer.attention.cached_elements_per_token();
    return total;
  }
  static std::int64_t per_sequence(const Model& model) {
    std::int64_t total = 0;
    for (const Layer& layer : model.layers)
      total += layer.recurrent.convolution_elements() + layer.recurrent.state_elements();
    return total;
  }
  static std::int64_t count(const Model& model, AttentionKind kind) {
    return std::count_if(model.layers.begin(), model.layers.end(),
                         [&](const Layer& layer) { return layer.attention.kind == kind; });
  }

  GgufBuilder file_;
  std::string prefix_;
};

using GgufLayers = Described;
constexpr double kMib = 1048576.0;

// huggingface.co/google/gemma-3-4b-pt config; unslothai/unsloth#5225: 174 MiB of windowed cache at 1536 cells.
TEST_F(GgufLayers, Gemma3SlidesFiveOfSix) {
  architecture("gemma3", 34, 2560);
  heads(8, 4, 256).set("attention.sliding_window", 1024);
  const Model model = read();
  EXPECT_EQ(count(model, AttentionKind::sliding), 29);
  EXPECT_EQ(count(model, AttentionKind::full), 5);
  EXPECT_EQ(model.layers[4].attention.window, 1024);
  EXPECT_EQ(model.layers[5].attention.kind, AttentionKind::full);
  EXPECT_EQ(2 * per_token(model, true) * 1536, std::int64_t{174} << 20);
}

// ollama/ollama#16480 (gpt-oss-120b, two sequences): 9216 MiB of full and 90 MiB of windowed cache.
TEST_F(GgufLayers, GptOssSlidesEveryOtherLayer) {
  architecture("gpt-oss", 36, 2880);
  heads(64, 8, 64).set("attention.sliding_window", 128).set("expert_used_count", 4);
  const Model model = read();
  EXPECT_EQ(model.layers[0].attention.kind, AttentionKind::sliding);
  EXPECT_NEAR(static_cast<double>(2 * 2 * per_token(model, false) * 131072) / kMib, 9216, 0.01);
  EXPECT_NEAR(static_cast<double>(2 * 2 * per_token(model, true) * 1280) / kMib, 90, 0.01);
}

TEST_F(GgufLayers, ThePatternInTheFileWins) {
  architecture("gemma2", 6, 64);
  heads(4, 2, 16).set("attention.sliding_window", 32).set("attention.sliding_window_pattern", 3);
  EXPECT_EQ(count(read(), AttentionKind::full), 2);
}

// llama_model_loader reads Phi-3's window and switches it off (ggml-org/llama.cpp#13676).
TEST_F(GgufLayers, Phi3KeepsEverythingThoughItNamesAWindow) {
  architecture("phi3", 4, 64);
  heads(4, 4, 16).set("attention.sliding_window", 2047);
  EXPECT_EQ(count(read(), AttentionKind::full), 4);
}

// Scout: three chunked layers of 8192, one full (src/models/llama4.cpp).
TEST_F(GgufLayers, Llama4AttendsInChunks) {
  architecture("llama4", 48, 5120);
  heads(40, 8, 128);
  const Model model = read();
  EXPECT_EQ(count(model, AttentionKind::chunked), 36);
  EXPECT_EQ(model.layers[0].attention.window, 8192);
  EXPECT_EQ(model.layers[3].attention.kind, AttentionKind::full);
}

// E2B: 30 layers of which 20 keep a cache; the others read layer 18 (windowed) or 19 (full).
TEST_F(GgufLayers, Gemma3nSharesCaches) {
  architecture("gemma3n", 30, 2048);
  heads(8, 2, 256).set("attention.sliding_window", 512);
  const Model model = read();
  EXPECT_FALSE(model.layers[19].attention.shares_cache_of);
  EXPECT_EQ(model.layers[20].attention.shares_cache_of, 18);
  EXPECT_EQ(model.layers[24].attention.shares_cache_of, 19);
  EXPECT_EQ(per_token(model), 20 * 2 * (256 + 256));
}

// Windowed and full layers differ in head size and count; flags come one a layer.
TEST_F(GgufLayers, Gemma4HasTwoHeadSizes) {
  architecture("gemma4", 6, 1536);
  set("attention.head_count", 8).set("attention.head_count_kv", {1, 1, 1, 1, 2, 2});
  set("attention.key_length", 512).set("attention.value_length", 512);
  set("attention.key_length_swa", 256).set("attention.value_length_swa", 256);
  set("attention.sliding_window", 512).set("attention.shared_kv_layers", 1);
  file_.boolean_array("gemma4.attention.sliding_window_pattern", {true, true, true, true, false, false});
  const Model model = read();
  EXPECT_EQ(model.layers[3].attention.key_dim, 256);
  EXPECT_EQ(model.layers[4].attention.key_dim, 512);
  EXPECT_EQ(model.layers[4].attention.kv_heads, 2);
  EXPECT_EQ(per_token(model), 4 * 512 + 2 * 1024);
}

GgufBuilder& deepseek(GgufBuilder& file, bool converted_for_latent) {
  file.u32("deepseek2.attention.kv_lora_rank", 512).u32("deepseek2.attention.q_lora_rank", 1536);
  file.u32("deepseek2.rope.dimension_count", 64);
  if (converted_for_latent)
    file.u32("deepseek2.attention.key_length_mla", 192).u32("deepseek2.attention.value_length_mla", 128);
  return file;
}

// DeepSeek-V3: 61 layers of 576 elements, 70,272 bytes a token in 16 bit (ggml-org/llama.cpp#11446).
TEST_F(GgufLayers, DeepSeekKeepsOneLatentVector) {
  architecture("deepseek2", 61, 7168);
  set("attention.head_count", 128).set("attention.head_count_kv", 1);
  set("attention.key_length", 576).set("attention.value_length", 512);
  deepseek(file_, true);
  const Model model = read();
  EXPECT_EQ(2 * per_token(model), 70272);
  EXPECT_EQ(model.layers[0].attention.heads, 128);
  EXPECT_EQ(model.layers[0].attention.key_dim, 192);
}

// Converted before April 2025: full keys of 24,576 and values of 16,384 a layer (ggml-org/llama.cpp#11397).
TEST_F(GgufLayers, OldDeepSeekFilesKeepEveryHead) {
  architecture("deepseek2", 61, 7168);
  set("attention.head_count", 128).set("attention.head_count_kv", 128);
  set("attention.key_length", 192).set("attention.value_length", 128);
  deepseek(file_, false);
  const Model model = read();
  EXPECT_EQ(model.layers[7].attention.kind, AttentionKind::full);
  EXPECT_EQ(per_token(model), 61 * (24576 + 16384));
}

// Qwen3.6-27B with its prediction block (lmstudio-bug-tracker#1862): 16 GiB of cache at 262,144 tokens, 598.50 MiB of
// state for four sequences; the 65th block is not among the layers.
TEST_F(GgufLayers, Qwen35AlternatesDeltaNetAndAttention) {
  architecture("qwen35", 65, 5120);
  heads(24, 4, 256).set("nextn_predict_layers", 1).set("full_attention_interval", 4);
  set("ssm.conv_kernel", 4).set("ssm.inner_size", 6144).set("ssm.state_size", 128);
  set("ssm.time_step_rank", 48).set("ssm.group_count", 16);
  for (std::uint32_t i = 0; i < 64; ++i) {
    part(i, i % 4 == 3 ? "attn_q" : "attn_qkv");
    if (i % 4 != 3) part(i, "ssm_conv1d");
  }
  part(64, "nextn.eh_proj");
  part(64, "attn_q");
  const Model model = read();
  ASSERT_EQ(model.layers.size(), 64u);
  EXPECT_EQ(model.multi_token_prediction_layers, 1);
  EXPECT_EQ(model.tensors.back().role, TensorRole::multi_token_prediction);
  EXPECT_EQ(2 * per_token(model) * 262144, std::int64_t{16} << 30);
  EXPECT_NEAR(static_cast<double>(4 * 4 * per_sequence(model)) / kMib, 598.5, 0.005);
}

// Falcon-H1-1.5B (GeniePod/genie-claw#410): 768 MiB of cache at 32,768 tokens and 72.98 MiB of state, in every layer.
TEST_F(GgufLayers, FalconH1HasBothInOneLayer) {
  architecture("falcon-h1", 24, 2048);
  heads(8, 2, 128).set("ssm.conv_kernel", 4).set("ssm.inner_size", 3072).set("ssm.state_size", 256);
  set("ssm.time_step_rank", 48).set("ssm.group_count", 1);
  parts(0, 24, "attn_q");
  parts(0, 24, "ssm_in");
  const Model model = read();
  EXPECT_EQ(model.layers[0].recurrent.head_dim, 64);
  EXPECT_EQ(2 * per_token(model) * 32768, std::int64_t{768} << 20);
  EXPECT_NEAR(static_cast<double>(4 * per_sequence(model)) / kMib, 72.98, 0.005);
}

// mamba-1.4b (GeniePod/genie-claw#410): 14.25 MiB of state a sequence.
TEST_F(GgufLayers, MambaKeepsStateOnly) {
  architecture("mamba", 48, 2048);
  set("attention.head_count", 0).set("ssm.conv_kernel", 4).set("ssm.inner_size", 4096).set("ssm.state_size", 16);
  set("ssm.time_step_rank", 128);
  parts(0, 48, "ssm_in");
  const Model model = read();
  EXPECT_EQ(per_token(model), 0);
  EXPECT_NEAR(static_cast<double>(4 * per_sequence(model)) / kMib, 14.25, 0.005);
}

// Jamba-v0.1: attention in layers 4, 12, 20, 28 of 32 (arXiv 2403.19887), 8 kv heads of 128.
TEST_F(GgufLayers, JambaAttendsInOneLayerOfEight) {
  architecture("jamba", 32, 4096);
  std::vector<std::uint32_t> kv_heads(32, 0);
  for (const std::size_t i : {4u, 12u, 20u, 28u}) kv_heads[i] = 8;
  set("attention.head_count", 32).set("attention.head_count_kv", kv_heads);
  set("ssm.conv_kernel", 4).set("ssm.inner_size", 8192).set("ssm.state_size", 16).set("ssm.time_step_rank", 256);
  for (std::uint32_t i = 0; i < 32; ++i) part(i, kv_heads[i] > 0 ? "attn_q" : "ssm_in");
  const Model model = read();
  EXPECT_EQ(count(model, AttentionKind::full), 4);
  EXPECT_EQ(2 * per_token(model), 16384);
  EXPECT_EQ(model.layers[5].recurrent.kind, RecurrentKind::mamba1);
}

// Nemotron-H: a block is attention, state or feed-forward, never two of them (arXiv 2504.03624).
TEST_F(GgufLayers, NemotronHTakesTurns) {
  architecture("nemotron_h", 3, 4096);
  set("attention.head_count", 32).set("attention.head_count_kv", {0, 0, 8}).set("feed_forward_length", {0, 21504, 0});
  set("attention.key_length", 128).set("attention.value_length", 128);
  set("ssm.conv_kernel", 4).set("ssm.inner_size", 8192).set("ssm.state_size", 128);
  set("ssm.time_step_rank", 128).set("ssm.group_count", 8);
  part(0, "ssm_in");
  part(1, "ffn_up");
  part(2, "attn_q");
  const Model model = read();
  EXPECT_EQ(model.family, "nemotron-h");
  EXPECT_EQ(model.layers[0].recurrent.kind, RecurrentKind::mamba2);
  EXPECT_EQ(model.layers[1].recurrent.kind, RecurrentKind::none);
  EXPECT_EQ(per_token(model), 8 * 256);
}

// LFM2-1.2B: hidden 2048, convolutions that look back two steps; RWKV: two shifts and a matrix a head.
TEST_F(GgufLayers, Lfm2LooksBackTwoSteps) {
  architecture("lfm2", 2, 2048);
  set("attention.head_count", 32).set("attention.head_count_kv", {0, 8}).set("shortconv.l_cache", 3);
  part(0, "shortconv.conv");
  part(1, "attn_q");
  const Model model = read();
  EXPECT_EQ(per_sequence(model), 2 * 2048);
  EXPECT_EQ(per_token(model), 2 * 8 * 64);
}
TEST_F(GgufLayers, RwkvKeepsShiftsAndMatrices) {
  architecture("rwkv6", 1, 2048);
  set("attention.head_count", 0).set("wkv.head_size", 64);
  part(0, "time_mix_key");
  EXPECT_EQ(per_sequence(read()), 2 * 2048 + 2048 * 64);
}
TEST_F(GgufLayers, OneShiftWhenTheFileSaysSo) {
  architecture("arwkv7", 1, 2048);
  set("attention.head_count", 0).set("wkv.head_size", 64).set("token_shift_count", 1);
  part(0, "time_mix_key");
  EXPECT_EQ(per_sequence(read()), 2048 + 2048 * 64);
}

// Kimi-Linear-48B-A3B: three delta-attention layers to one latent (arXiv 2510.26692).
TEST_F(GgufLayers, KimiLinearMixesDeltaAndLatent) {
  architecture("kimi-linear", 4, 2304);
  set("attention.head_count", 32).set("attention.head_count_kv", {0, 0, 0, 1});
  set("attention.key_length", 576).set("attention.value_length", 512).set("attention.kv_lora_rank", 512);
  set("attention.key_length_mla", 192).set("attention.value_length_mla", 128).set("rope.dimension_count", 64);
  set("ssm.conv_kernel", 4).set("kda.head_dim", 128);
  parts(0, 3, "ssm_conv1d_q");
  parts(0, 4, "attn_q");
  const Model model = read();
  EXPECT_EQ(model.layers[3].attention.kind, AttentionKind::latent);
  EXPECT_EQ(per_token(model), 576);
  EXPECT_EQ(model.layers[0].recurrent.convolution_elements(), 3 * 3 * 32 * 128);
  EXPECT_EQ(model.layers[0].recurrent.state_elements(), 32 * 128 * 128);
}

TEST_F(GgufLayers, ExpertsAreReadOffTheTensors) {
  architecture("qwen3moe", 2, 64);
  heads(4, 2, 16).set("expert_count", 8).set("expert_used_count", 2).set("feed_forward_length", 999);
  file_.f16_tensor("blk.0.ffn_down.weight", {96, 64}).f16_tensor("blk.0.ffn_gate.weight", {64, 96});
  file_.f16_tensor("blk.1.ffn_gate_exps.weight", {64, 48, 8}).f16_tensor("blk.1.ffn_up_exps.weight", {64, 48, 8});
  file_.f16_tensor("blk.1.ffn_down_exps.weight", {48, 64, 8}).f16_tensor("blk.1.ffn_down_shexp.weight", {32, 64});
  const Model model = read();
  const FeedForward& dense = model.layers[0].feed_forward;
  const FeedForward& mixture = model.layers[1].feed_forward;
  EXPECT_EQ(dense.width, 96);
  EXPECT_EQ(dense.experts, 0);
  EXPECT_EQ(mixture.experts, 8);
  EXPECT_EQ(mixture.experts_per_token, 2);
  EXPECT_EQ(mixture.expert_width, 48);
  EXPECT_EQ(mixture.shared_width, 32);
  EXPECT_EQ(model.parameters() - model.active_parameters(), 3 * 48 * 64 * 6);
}

TEST_F(GgufLayers, EncodersKeepNoCache) {
  architecture("bert", 12, 384);
  set("attention.head_count", 12).set("feed_forward_length", 1536);
  file_.boolean("bert.attention.causal", false);
  part(0, "attn_q");
  const Model model = read();
  EXPECT_EQ(model.kind, ModelKind::encoder);
  EXPECT_EQ(per_token(model), 0);
  EXPECT_EQ(model.encoder->layers, 12);
  EXPECT_EQ(model.tensors.back().role, TensorRole::encoder);
  EXPECT_FALSE(model.tied_embeddings);
}

TEST_F(GgufLayers, T5HasAnEncoderADecoderAndCrossings) {
  architecture("t5", 24, 1024);
  set("decoder_block_count", 12).set("attention.head_count", 16).set("feed_forward_length", 4096);
  file_.f32_tensor("enc.blk.0.attn_q.weight", {1, 1}).f32_tensor("dec.blk.0.attn_q.weight", {1, 1});
  const Model model = read();
  EXPECT_EQ(model.kind, ModelKind::encoder_decoder);
  EXPECT_EQ(model.encoder->layers, 24);
  EXPECT_EQ(model.layers.size(), 12u);
  EXPECT_EQ(model.cross_attention_layers.size(), 12u);
  EXPECT_EQ(model.tensors[1].role, TensorRole::encoder);
  EXPECT_EQ(model.tensors[2].role, TensorRole::attention);
}

TEST_F(GgufLayers, ProjectorsAreTowers) {
  file_.text("general.architecture", "clip").u32("clip.vision.block_count", 27);
  file_.u32("clip.vision.embedding_length", 1152).u32("clip.vision.attention.head_count", 16);
  file_.u32("clip.vision.image_size", 896).u32("clip.vision.patch_size", 14);
  file_.f16_tensor("v.blk.0.attn_q.weight", {8, 8}).f16_tensor("mm.input_projection.weight", {8, 8});
  const Model model = read();
  EXPECT_EQ(model.kind, ModelKind::other);
  ASSERT_TRUE(model.vision);
  EXPECT_EQ(model.vision->layers, 27);
  EXPECT_EQ(model.vision->positions, 64 * 64);
  for (const Tensor& tensor : model.tensors) EXPECT_EQ(tensor.role, TensorRole::vision);
}

TEST_F(GgufLayers, ContradictionsAreTold) {
  architecture("llama", 1, 64);
  heads(4, 2, 16);
  file_.f16_tensor("blk.0.attn_k.weight", {64, 64});
  EXPECT_EQ(read().assumptions.size(), 1u);
}

class GgufNonsense : public Described, public ::testing::WithParamInterface<std::pair<const char*, std::uint32_t>> {};

TEST_P(GgufNonsense, IsRefused) {
  const auto& [key, value] = GetParam();
  file_.text("general.architecture", "gemma3").f32_tensor("a", {1});
  for (const auto& [name, usual] : {std::pair("block_count", 6u), std::pair("embedding_length", 64u),
                                    std::pair("attention.head_count", 4u), std::pair("attention.sliding_window", 8u)})
    file_.u32(std::string("gemma3.") + name, std::string(name) == key ? value : usual);
  if (std::string(key) == "nextn_predict_layers") file_.u32("gemma3.nextn_predict_layers", value);
  const auto model = read_gguf(*bytes_in_memory(file_.file(), "m.gguf"), nullptr, {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::bad_input);
  EXPECT_NE(model.error().message().find(key), std::string::npos) << model.error().message();
}

INSTANTIATE_TEST_SUITE_P(Values, GgufNonsense,
                         ::testing::Values(std::pair("block_count", 0u), std::pair("block_count", 1000000u),
                                           std::pair("attention.head_count", 4000000000u),
                                           std::pair("attention.sliding_window", 0u),
                                           std::pair("nextn_predict_layers", 6u),
                                           std::pair("embedding_length", 4294967295u)));

TEST_F(GgufLayers, HeadsThatAttentionWeightsNeedMustBeThere) {
  const auto complaint = [&](const std::function<void()>& describe) {
    file_ = GgufBuilder();
    architecture("llama", 2, 64);
    describe();
    parts(0, 2, "attn_q");
    parts(0, 2, "attn_k");
    const auto model = read_gguf(*bytes_in_memory(file_.file(), "m.gguf"), nullptr, {});
    return model ? "it was read" : model.error().message();
  };
  const std::string have = ", but blk.0 has attention weights";
  EXPECT_THAT(complaint([&] { heads(0, 2, 16); }), HasSubstr("llama.attention.head_count is missing or 0" + have));
  EXPECT_THAT(complaint([&] { heads(4, 0, 16); }), HasSubstr("llama.attention.head_count_kv is missing or 0" + have));
  EXPECT_THAT(complaint([&] { heads(4, 2, 0); }), HasSubstr("llama.attention.key_length is missing or 0" + have));
  EXPECT_THAT(complaint([] {}), HasSubstr("llama.attention.head_count is missing or 0" + have));
  EXPECT_THAT(complaint([&] { file_.f32("llama.attention.head_count", std::nanf("")); }),
              HasSubstr("llama.attention.head_count is no whole number"));
  EXPECT_THAT(complaint([&] {
                heads(4, 2, 16);
                file_.f32("llama.context_length", std::nanf(""));
              }),
              HasSubstr("llama.context_length"));
}

TEST_F(GgufLayers, WidthMustBeThere) {
  architecture("llama", 2, 0);
  const auto model = read_gguf(*bytes_in_memory(file_.file(), "m.gguf"), nullptr, {});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message(), HasSubstr("llama.embedding_length is 0"));
}

}  // namespace
}  // namespace gpuwright::model

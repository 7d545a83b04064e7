#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "model/config.h"

namespace gpuwright::model {
namespace {

using testing::HasSubstr;

Model model_named(std::string_view name) {
  auto model = preset(name);
  EXPECT_TRUE(model) << model.error().message();
  return model ? std::move(*model) : Model{};
}

std::int64_t cached_elements(const Model& model) {
  std::int64_t elements = 0;
  for (const Layer& layer : model.layers) elements += layer.attention.cached_elements_per_token();
  return elements;
}

std::int64_t layers_of(const Model& model, AttentionKind kind) {
  std::int64_t count = 0;
  for (const Layer& layer : model.layers) count += layer.attention.kind == kind ? 1 : 0;
  return count;
}

std::int64_t recurrent_layers(const Model& model) {
  std::int64_t count = 0;
  for (const Layer& layer : model.layers) count += layer.recurrent.kind != RecurrentKind::none ? 1 : 0;
  return count;
}

std::int64_t weights_of(const Model& model, TensorRole role) {
  std::int64_t count = 0;
  for (const Tensor& tensor : model.tensors) count += tensor.role == role ? tensor.weights() : 0;
  return count;
}

Result<Model> from(std::string_view text, const LoadOptions& options = {}) {
  const auto config = parse_json(text, "config.json");
  EXPECT_TRUE(config) << text;
  return model_from_config(*config, "config.json", options);
}

std::string llama_with(std::string_view extra) {
  return R"({"model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 4096, "intermediate_size": 14336,
             "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
             "tie_word_embeddings": false)" +
         std::string(extra) + "}";
}

// ---------------------------------------------------------------- what estimators get wrong

// DeepSeek-V2 (arXiv 2405.04434): the latent and the rotary key are cached, 512 + 64 a layer; 61 layers of V3 in BF16
// are 70,272 bytes a token (ggml-org/llama.cpp#11446: 2,196 MiB at 32k tokens).
TEST(Config, DeepSeekCachesTheLatentOnly) {
  const Model model = model_named("deepseek-v3");
  EXPECT_EQ(cached_elements(model) * 2, 70'272);
  EXPECT_EQ(layers_of(model, AttentionKind::latent), 61);
  EXPECT_EQ(model.multi_token_prediction_layers, 1);
  EXPECT_EQ(cached_elements(model_named("deepseek-v2-lite")), 27 * 576);
}

// arXiv 2403.19887: one attention layer in eight; ai21labs/Jamba-v0.1 has four of 32.
TEST(Config, JambaHasFourAttentionLayersOfThirtyTwo) {
  const Model model = model_named("jamba-v0.1");
  EXPECT_EQ(model.layers.size(), 32u);
  EXPECT_EQ(layers_of(model, AttentionKind::full), 4);
  EXPECT_EQ(recurrent_layers(model), 28);
}

// arXiv 2504.03624, section 2.1: four attention layers of 52 in Nemotron-H-8B.
TEST(Config, NemotronHHasFourAttentionLayersOfFiftyTwo) {
  const Model model = model_named("nemotron-h-8b");
  EXPECT_EQ(model.layers.size(), 52u);
  EXPECT_EQ(layers_of(model, AttentionKind::full), 4);
}

// arXiv 2503.19786, section 2: five local layers to a global one; 4, 5 and 10 global ones in 1B, 4B and 27B.
TEST(Config, GemmaThreeSlidesFiveOfSixLayers) {
  for (const auto& [name, full, window] :
       {std::tuple{"gemma-3-1b", 4, 512}, {"gemma-3-4b", 5, 1024}, {"gemma-3-27b", 10, 1024}}) {
    const Model model = model_named(name);
    EXPECT_EQ(layers_of(model, AttentionKind::full), full) << name;
    EXPECT_EQ(model.layers.front().attention.window, window) << name;
  }
}

// hf-mem#60: google/gemma-4-31B keeps 983,040 bytes a token within the window: 50 sliding layers of 16 heads of 256 and
// ten global ones of 4 heads of 512, keys and values in BF16.
TEST(Config, GemmaFourCachesBothKindsOfLayers) {
  const Model model = model_named("gemma-4-31b");
  EXPECT_EQ(layers_of(model, AttentionKind::sliding), 50);
  EXPECT_EQ(cached_elements(model) * 2, 50 * 2 * 16 * 256 * 2 + 10 * 2 * 4 * 512 * 2);
}

// config.json of google/gemma-3n-E4B-it: the last 15 of 35 layers read the caches of layers 18 (sliding) and 19 (full).
TEST(Config, GemmaNanoSharesCaches) {
  const Model model = model_named("gemma-3n-e4b");
  std::int64_t storing = 0;
  for (const Layer& layer : model.layers) storing += layer.attention.shares_cache_of ? 0 : 1;
  EXPECT_EQ(storing, 20);
  EXPECT_EQ(model.layers[20].attention.shares_cache_of, 18);
  EXPECT_EQ(model.layers[34].attention.shares_cache_of, 19);
  EXPECT_EQ(cached_elements(model), 20 * 2 * 2 * 256);
}

// config.json of Qwen/Qwen3.6-27B: 16 of 64 layers are attention of 4 key/value heads of 256; the rest gated delta
// nets. A llama.cpp log of it prints R 22.5 MiB and S 576 MiB for four sequences in fp32.
TEST(Config, QwenHybridKeepsStateInThreeOfFourLayers) {
  const Model model = model_named("qwen3.6-27b");
  EXPECT_EQ(layers_of(model, AttentionKind::full), 16);
  EXPECT_EQ(cached_elements(model), 16 * 2 * 4 * 256);
  std::int64_t convolution = 0, state = 0;
  for (const Layer& layer : model.layers) {
    convolution += layer.recurrent.convolution_elements();
    state += layer.recurrent.state_elements();
  }
  EXPECT_EQ(convolution * 4 * 4, 22.5 * 1048576);
  EXPECT_EQ(state * 4 * 4, 576 * 1048576);
}

TEST(Config, GptOssAlternatesItsWindow) {
  const Model model = model_named("gpt-oss-20b");
  EXPECT_EQ(layers_of(model, AttentionKind::sliding), 12);
  EXPECT_EQ(model.layers[0].attention.kind, AttentionKind::sliding);
  EXPECT_EQ(model.layers[1].attention.kind, AttentionKind::full);
  EXPECT_EQ(model.layers[0].attention.window, 128);
}

TEST(Config, LlamaFourChunksThreeOfFourLayers) {
  const Model model = model_named("llama-4-scout");
  EXPECT_EQ(layers_of(model, AttentionKind::chunked), 36);
  EXPECT_EQ(model.layers[3].attention.kind, AttentionKind::full);
  EXPECT_EQ(model.layers[0].attention.window, 8192);
}

// hidden / heads would be 192 and 80.
TEST(Config, HeadDimensionIsReadAndNotDerived) {
  EXPECT_EQ(model_named("gemma-7b").layers[0].attention.key_dim, 256);
  EXPECT_EQ(model_named("qwen3-4b").layers[0].attention.key_dim, 128);
}

// 8,030,261,248: the model card. A count by 2Vh + 4Lh^2 + 3Lh*ffn gives 8.84 B.
TEST(Config, GroupedQueriesShrinkTheProjections) {
  EXPECT_EQ(model_named("llama-3-8b").parameters(), 8'030'261'248);
}

TEST(Config, TiedHeadsCountOnce) {
  const Model tied = model_named("llama-3.2-1b");
  EXPECT_TRUE(tied.tied_embeddings);
  EXPECT_EQ(weights_of(tied, TensorRole::output_head), 0);
  EXPECT_EQ(tied.parameters(), 1'235'814'400);  // model card
}

// arXiv 2401.04088: 47B in all, 13B active. DeepSeek-V3 (arXiv 2412.19437): 671B, 37B.
TEST(Config, ActiveParametersCountTheChosenExperts) {
  EXPECT_NEAR(static_cast<double>(model_named("mixtral-8x7b").active_parameters()), 12.9e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(model_named("deepseek-v3-bf16").active_parameters()), 37.5e9, 1e9);
}

// ---------------------------------------------------------------- quantisation

// 4 bit + 16-bit scale and 4-bit zero point a group of 128; embeddings, norms and head stay 16 bit.
TEST(Quantization, GptqCountsScalesZerosAndIndices) {
  const auto model = from(llama_with(R"(, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128,
                                        "desc_act": false})"));
  ASSERT_TRUE(model) << model.error().message();
  const std::int64_t linear = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * std::int64_t{14336} * 4096);
  const std::int64_t plain = 2 * std::int64_t{128256} * 4096 + 65 * 4096;
  const std::int64_t indices = 32 * 4 * (6 * 4096 + 14336);
  EXPECT_EQ(model->weight_bytes().count, linear / 2 + linear / 128 * 2 + linear / 256 + plain * 2 + indices);
  EXPECT_EQ(model->parameters(), 8'030'261'248);
  EXPECT_EQ(model->weight_format, "gptq-int4-g128");
}

// QLoRA (arXiv 2305.14314), section 3: double quantisation takes 0.127 bits a parameter instead of 0.5.
TEST(Quantization, DoubleQuantisationSavesThreeEighthsOfABit) {
  const auto bits = [](std::string_view doubled) {
    const auto model = from(llama_with(R"(, "quantization_config": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4",
                                          "bnb_4bit_use_double_quant": )" +
                                       std::string(doubled) + "}"));
    EXPECT_TRUE(model) << model.error().message();
    std::int64_t bytes = 0, weights = 0;
    for (const Tensor& tensor : model->tensors)
      if (tensor.role == TensorRole::feed_forward) bytes += tensor.bytes.count, weights += tensor.weights();
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  };
  EXPECT_NEAR(bits("false"), 4.5, 1e-6);
  EXPECT_NEAR(bits("true"), 4.127, 1e-3);
}

// Model card of openai/gpt-oss-20b: the checkpoint is 12.8 GiB (arXiv 2508.10925, table 1); 60.8 GiB for 120b.
TEST(Quantization, GptOssKeepsOnlyExpertsInFourBits) {
  EXPECT_NEAR(model_named("gpt-oss-20b").weight_bytes().gib(), 12.8, 0.05);
  EXPECT_NEAR(model_named("gpt-oss-120b").weight_bytes().gib(), 60.8, 0.05);
}

TEST(Quantization, Fp8BlocksHaveOneScaleEach) {
  const auto model =
      from(llama_with(R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
                                        "modules_to_not_convert": ["model.layers.0.mlp", "lm_head"]})"));
  ASSERT_TRUE(model) << model.error().message();
  for (const Tensor& tensor : model->tensors) {
    if (tensor.name == "model.layers.0.mlp.up_proj.weight") {
      EXPECT_EQ(tensor.dtype, Dtype::bf16);
    }
    if (tensor.name == "model.layers.10.mlp.up_proj.weight") {
      EXPECT_EQ(tensor.dtype, Dtype::f8_e4m3);
    }
    if (tensor.name == "model.layers.1.mlp.up_proj.weight_scale_inv") {
      EXPECT_EQ(tensor.rows * tensor.columns, 112 * 32);
    }
  }
}

TEST(Quantization, CompressedTensorsIgnoreByExpression) {
  const auto model = from(llama_with(R"(, "quantization_config": {"quant_method": "compressed-tensors",
      "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group",
      "group_size": 128, "symmetric": true}}}, "ignore": ["lm_head", "re:.*self_attn\\.(q|k)_proj$"]})"));
  ASSERT_TRUE(model) << model.error().message();
  for (const Tensor& tensor : model->tensors) {
    if (tensor.name.ends_with("q_proj.weight")) {
      EXPECT_EQ(tensor.dtype, Dtype::bf16) << tensor.name;
    }
    if (tensor.name.ends_with("v_proj.weight")) {
      EXPECT_EQ(tensor.dtype, Dtype::i4) << tensor.name;
    }
  }
}

TEST(Quantization, UnknownSchemesAreRefused) {
  for (const std::string_view method : {"aqlm", "hqq", "quark", "\\u0000"}) {
    const auto model = from(llama_with(R"(, "quantization_config": {"quant_method": ")" + std::string(method) + "\"}"));
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, ErrorCode::unsupported);
  }
}

// ---------------------------------------------------------------- refusals

TEST(Config, UnknownArchitecturesAreRefusedUnlessAnUpperBoundWillDo) {
  const std::string text = R"({"model_type": "qwen9", "architectures": ["Qwen9ForCausalLM"], "hidden_size": 1024,
      "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 1000, "intermediate_size": 4096})";
  const auto refused = from(text);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("qwen"));
  LoadOptions options;
  options.upper_bound = true;
  const auto bound = from(text, options);
  ASSERT_TRUE(bound) << bound.error().message();
  EXPECT_TRUE(bound->upper_bound);
  EXPECT_EQ(layers_of(*bound, AttentionKind::full), 4);
}

TEST(Config, ArchitecturesStandInForModelType) {
  const auto model = from(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 4,
      "num_attention_heads": 16, "vocab_size": 1000, "intermediate_size": 4096})");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->family, "llama");
}

TEST(Config, AbsurdValuesNameTheirKey) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"("hidden_size": -1)", "hidden_size"},
      {R"("hidden_size": 1e300)", "hidden_size"},
      {R"("hidden_size": "big")", "hidden_size"},
      {R"("hidden_size": 4096.5)", "hidden_size"},
      {R"("num_hidden_layers": 1000000000000000000)", "num_hidden_layers"},
      {R"("num_hidden_layers": 0)", "num_hidden_layers"},
      {R"("num_attention_heads": 31)", "num_attention_heads"},
      {R"("num_key_value_heads": 7)", "num_key_value_heads"},
      {R"("vocab_size": [1])", "vocab_size"},
      {R"("torch_dtype": "float7")", "torch_dtype"},
      {R"("attention_bias": "maybe")", "attention_bias"},
  };
  for (const auto& [member, key] : cases) {
    std::string text = R"({"model_type": "llama")";
    for (const std::string_view usual :
         {R"("hidden_size": 4096)", R"("intermediate_size": 14336)", R"("num_hidden_layers": 32)",
          R"("num_attention_heads": 32)", R"("num_key_value_heads": 8)", R"("vocab_size": 128256)",
          R"("torch_dtype": "bfloat16")", R"("attention_bias": false)"}) {
      const bool replaced = usual.substr(0, usual.find(':')) == member.substr(0, member.find(':'));
      text += ", " + std::string(replaced ? member : usual);
    }
    const auto model = from(text + "}");
    ASSERT_FALSE(model) << member;
    EXPECT_EQ(model.error().code, ErrorCode::bad_input) << member;
    EXPECT_THAT(model.error().message(), HasSubstr(key)) << member;
  }
}

TEST(Config, ProductsThatOverflowAreRefused) {
  const auto model = from(R"({"model_type": "mixtral", "hidden_size": 67108864, "intermediate_size": 67108864,
      "num_hidden_layers": 10000, "num_attention_heads": 64, "vocab_size": 268435456, "num_local_experts": 100000,
      "num_experts_per_tok": 2})");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::bad_input);
}

TEST(Config, EmptyAndForeignDocumentsAreRefused) {
  for (const std::string_view text : {"{}", "[]", "3", "null", R"({"model_type": 3})", R"({"text_config": []})"})
    EXPECT_FALSE(from(text)) << text;
}

}  // namespace
}  // namespace gpuwright::model

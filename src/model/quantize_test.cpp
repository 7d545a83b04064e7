#include "model/quantize.h"

#include <gtest/gtest.h>

#include "model/config.h"

namespace gpuwright::model {
namespace {

struct Shape {
  std::int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
};

void add(Model& model, std::string name, TensorRole role, int layer, std::int64_t rows, std::int64_t columns,
         std::int64_t copies = 1) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.role = role;
  tensor.dtype = Dtype::bf16;
  tensor.layer = layer;
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.copies = copies;
  tensor.bytes = Bytes{2 * rows * columns * copies};
  model.tensors.push_back(std::move(tensor));
}

void add_attention(Model& model, const Shape& shape, int layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  add(model, prefix + "input_layernorm.weight", TensorRole::norm, layer, 1, shape.hidden);
  add(model, prefix + "post_attention_layernorm.weight", TensorRole::norm, layer, 1, shape.hidden);
  const auto projection = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    add(model, prefix + "self_attn." + name + ".weight", TensorRole::attention, layer, rows, columns);
  };
  projection("q_proj", shape.heads * shape.head_dim, shape.hidden);
  projection("k_proj", shape.kv_heads * shape.head_dim, shape.hidden);
  projection("v_proj", shape.kv_heads * shape.head_dim, shape.hidden);
  projection("o_proj", shape.hidden, shape.heads * shape.head_dim);
}

Model decoder(const Shape& shape, bool tied) {
  Model model;
  model.family = "llama";
  model.weight_format = "BF16";
  model.hidden = shape.hidden;
  model.vocabulary = shape.vocabulary;
  model.tied_embeddings = tied;
  add(model, "model.embed_tokens.weight", TensorRole::token_embedding, -1, shape.vocabulary, shape.hidden);
  add(model, "model.norm.weight", TensorRole::norm, -1, 1, shape.hidden);
  if (!tied) add(model, "lm_head.weight", TensorRole::output_head, -1, shape.vocabulary, shape.hidden);
  for (int il = 0; il < shape.layers; ++il) {
    Layer layer;
    layer.attention.kind = AttentionKind::full;
    layer.attention.heads = shape.heads;
    layer.attention.kv_heads = shape.kv_heads;
    layer.attention.key_dim = layer.attention.value_dim = shape.head_dim;
    layer.feed_forward.width = shape.ffn;
    model.layers.push_back(layer);
    add_attention(model, shape, il);
  }
  return model;
}

Model dense(const Shape& shape, bool tied = false) {
  Model model = decoder(shape, tied);
  for (int il = 0; il < shape.layers; ++il) {
    const std::string prefix = "model.layers." + std::to_string(il) + ".mlp.";
    add(model, prefix + "gate_proj.weight", TensorRole::feed_forward, il, shape.ffn, shape.hidden);
    add(model, prefix + "up_proj.weight", TensorRole::feed_forward, il, shape.ffn, shape.hidden);
    add(model, prefix + "down_proj.weight", TensorRole::feed_forward, il, shape.hidden, shape.ffn);
  }
  return model;
}

Model mixture(const Shape& shape, std::int64_t experts) {
  Model model = decoder(shape, false);
  for (int il = 0; il < shape.layers; ++il) {
    model.layers[static_cast<std::size_t>(il)].feed_forward.experts = experts;
    const std::string prefix = "model.layers." + std::to_string(il) + ".mlp.";
    add(model, prefix + "gate.weight", TensorRole::router, il, experts, shape.hidden);
    add(model, prefix + "experts.gate_proj.weight", TensorRole::expert, il, shape.ffn, shape.hidden, experts);
    add(model, prefix + "experts.up_proj.weight", TensorRole::expert, il, shape.ffn, shape.hidden, experts);
    add(model, prefix + "experts.down_proj.weight", TensorRole::expert, il, shape.hidden, shape.ffn, experts);
  }
  return model;
}

const Shape kLlama31{32, 4096, 32, 8, 128, 14336, 128256};

double bits_per_weight(const Model& model, const char* format, double parameters) {
  return 8.0 * static_cast<double>(with_weight_format(model, format).value().weight_bytes().count) / parameters;
}

Bytes without_embedding(const Model& model) {
  Bytes total;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role != TensorRole::token_embedding) total += tensor.bytes;
  return total;
}

// tools/quantize/README.md of ggml-org/llama.cpp at 311c2c9f: bits per weight of Llama-3.1-8B, to four places.
TEST(Quantize, Llama31OfEveryFileType) {
  struct Row {
    const char* format;
    double bits;
  };
  constexpr Row kRows[] = {
      {"IQ1_S", 2.0042},  {"IQ1_M", 2.1460},  {"IQ2_XXS", 2.3824}, {"IQ2_XS", 2.5882},
      {"IQ2_S", 2.7403},  {"IQ2_M", 2.9294},  {"IQ3_XS", 3.4977},  {"IQ3_S", 3.6606},
      {"Q2_K", 3.1593},   {"Q3_K_S", 3.6429}, {"Q3_K_L", 4.2979},  {"IQ4_XS", 4.4597},
      {"Q4_K_M", 4.8944}, {"Q5_K_M", 5.7036}, {"Q6_K", 6.5633},    {"Q8_0", 8.5008},
  };
  const Model llama = dense(kLlama31);
  for (const Row& row : kRows)
    EXPECT_NEAR(bits_per_weight(llama, row.format, 8030261312.0), row.bits, 5.1e-5) << row.format;
}

// llama.cpp log of December 2023 (abetlen/llama-cpp-python#1014): "VRAM used: 25145.55 MiB", output included.
TEST(Quantize, MixtralBeforeAndAfterExpertsWereStacked) {
  const Model mixtral = mixture({32, 4096, 32, 8, 128, 14336, 32000}, 8);
  EXPECT_NEAR(without_embedding(with_weight_format(mixtral, "Q4_K_M@2023").value()).mib(), 25145.55, 0.01);
  EXPECT_EQ(without_embedding(with_weight_format(mixtral, "Q4_K_M@b1500").value()),
            without_embedding(with_weight_format(mixtral, "Q4_K_M@2023").value()));
  EXPECT_GT(without_embedding(with_weight_format(mixtral, "Q4_K_M").value()).mib(), 27000);
}

// print_meta of two published files: 17.28 GiB, 4.86 bits (ggml-org/llama.cpp#14235); 18.81 GiB, 4.93 bits, made by
// ollama (ollama/ollama#14774).
TEST(Quantize, PublishedQwen3Files) {
  const Model moe = mixture({48, 2048, 32, 4, 128, 768, 151936}, 128);
  EXPECT_NEAR(with_weight_format(moe, "Q4_K_M").value().weight_bytes().gib(), 17.28, 0.0051);
  Model qwen = dense({64, 5120, 64, 8, 128, 25600, 151936});
  qwen.family = "qwen3";
  EXPECT_NEAR(with_weight_format(qwen, "Q4_K_M@ollama").value().weight_bytes().gib(), 18.81, 0.0051);
}

// The embedding of Yi-34B in IQ4_XS: CUDA_Host buffer 232.42 MiB (ggml-org/llama.cpp#7217).
TEST(Quantize, EmbeddingKeepsTheBaseType) {
  const Model yi = with_weight_format(dense({60, 7168, 56, 8, 128, 20480, 64000}), "IQ4_XS").value();
  EXPECT_NEAR((yi.weight_bytes() - without_embedding(yi)).mib(), 232.42, 0.01);
}

TEST(Quantize, TiedEmbeddingGetsTheHeadsType) {
  const Model tied = with_weight_format(dense({16, 2048, 32, 8, 64, 8192, 128256}, true), "Q4_K_M").value();
  ASSERT_EQ(tied.tensors.front().role, TensorRole::token_embedding);
  EXPECT_EQ(tied.tensors.front().dtype, Dtype::q6_k);
}

TEST(Quantize, RowsThatAreNoWholeBlocksFallBack) {
  const Model narrow = with_weight_format(dense({4, 896, 14, 2, 64, 4864, 151936}), "Q4_K_M").value();
  for (const Tensor& tensor : narrow.tensors)
    if (tensor.name.find("q_proj") != std::string::npos) {
      EXPECT_EQ(tensor.dtype, Dtype::q5_0);  // 896 = 3.5 x 256
    }
}

// NF4 4.5 bits, double quantisation 4.127 (QLoRA, arXiv 2305.14314, section 3); GPTQ and AWQ int4 with groups of 128:
// 4 + (16 + 4)/128 = 4.156 bits. Of a linear layer; embeddings, head and norms stay 16-bit.
TEST(Quantize, LinearLayersOfCheckpointFormats) {
  struct Row {
    const char* format;
    double bits;
  };
  constexpr Row kRows[] = {{"bnb-nf4", 4.5},          {"bnb-nf4-dq", 4.127}, {"awq-int4", 4.156}, {"gptq-int4", 4.1641},
                           {"gptq-int4-g32", 4.6328}, {"fp8", 8.0},          {"nvfp4", 4.5},      {"bnb-int8", 8.0078}};
  const Model llama = dense(kLlama31);
  for (const Row& row : kRows) {
    const Model converted = with_weight_format(llama, row.format).value();
    for (const Tensor& tensor : converted.tensors) {
      if (tensor.name.find("q_proj") != std::string::npos) {
        EXPECT_NEAR(8.0 * static_cast<double>(tensor.bytes.count) / static_cast<double>(tensor.weights()), row.bits,
                    5e-4)
            << row.format;
      }
      if (tensor.role == TensorRole::token_embedding) {
        EXPECT_EQ(tensor.dtype, Dtype::bf16);
      }
    }
  }
}

// llama-quant.cpp, LLAMA_FTYPE_MOSTLY_MXFP4_MOE: tensors that are no experts become Q8_0.
TEST(Quantize, RefusesMxfp4WithoutExperts) {
  const auto dense = with_weight_format(preset("llama-3.1-8b").value(), "MXFP4");
  ASSERT_FALSE(dense);
  EXPECT_EQ(dense.error().code, ErrorCode::unsupported);
}

// gpt-oss in MXFP4: experts in MXFP4, all else Q8_0. A public memory breakdown of the 20B file shows 6,095 MiB on the
// device and 5,440 MiB on the host, in whole MiB; llama-bench prints 59.02 GiB and 116.83 B parameters for the 120B
// file (ggml-org/llama.cpp discussion #15396).
TEST(Quantize, GptOssKeepsItsExperts) {
  EXPECT_NEAR(with_weight_format(preset("gpt-oss-120b").value(), "MXFP4").value().weight_bytes().gib(), 59.02, 0.005);
  const Model oss = with_weight_format(preset("gpt-oss-20b").value(), "MXFP4").value();
  EXPECT_NEAR(oss.weight_bytes().mib(), 6095 + 5440, 2.0);
}

// DeepSeek-V3's FP8 checkpoint as Q4_K_M by llama.cpp b4944, without layer 61: 404.43 GB
// (bartowski/deepseek-ai_DeepSeek-V3-0324-GGUF, the same shapes as V3).
TEST(Quantize, Fp8CheckpointsAreConverted) {
  EXPECT_NEAR(with_weight_format(preset("deepseek-v3").value(), "Q4_K_M").value().weight_bytes().gb(), 404.43, 0.1);
  EXPECT_FALSE(with_weight_format(preset("deepseek-v3").value(), "bnb-nf4"));
}

TEST(Quantize, VisionTowersAreFilesOfTheirOwn) {
  const Model gemma = with_weight_format(preset("gemma-3-4b").value(), "Q4_K_M").value();
  for (const Tensor& tensor : gemma.tensors) EXPECT_NE(tensor.role, TensorRole::vision);
  EXPECT_FALSE(gemma.assumptions.empty());
}

TEST(Quantize, RefusesWhatItCannotConvert) {
  const Model llama = dense(kLlama31);
  EXPECT_EQ(with_weight_format(llama, "Q4_K_X").error().code, ErrorCode::not_found);
  EXPECT_NE(with_weight_format(llama, "Q4_K_X").error().hint.find("Q4_K"), std::string::npos);
  Model absurd = llama;
  absurd.tensors[0].rows = std::int64_t{1} << 60;
  EXPECT_EQ(with_weight_format(absurd, "Q4_K_M").error().code, ErrorCode::bad_input);
  const Model quantized = with_weight_format(llama, "Q4_K_M").value();
  EXPECT_EQ(with_weight_format(quantized, "Q8_0").error().code, ErrorCode::unsupported);
  EXPECT_EQ(with_weight_format(quantized, "q4_k_m").value().weight_bytes(), quantized.weight_bytes());
}

}  // namespace
}  // namespace gpuwright::model

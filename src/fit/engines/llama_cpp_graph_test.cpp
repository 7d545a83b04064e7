// Compute buffers as llama.cpp itself printed them. Each expectation is a figure of a public log, in MiB.
#include "fit/engines/llama_cpp_graph.h"

#include <gtest/gtest.h>

namespace gpuwright::fit {
namespace {

using model::AttentionKind;

// A log prints two decimals; inputs of a few KiB each (positions, indices) ride along.
constexpr double kPrinted = 0.011;
constexpr int kDevice = 1;

struct Shape {
  std::size_t layers;
  std::int64_t hidden, heads, kv_heads, head_dim, ffn, vocabulary;
};

model::Model model_of(const Shape& shape) {
  model::Model model;
  model.family = "llama";
  model.hidden = shape.hidden;
  model.vocabulary = shape.vocabulary;
  model::Layer layer;
  layer.attention.kind = AttentionKind::full;
  layer.attention.heads = shape.heads;
  layer.attention.kv_heads = shape.kv_heads;
  layer.attention.key_dim = layer.attention.value_dim = shape.head_dim;
  layer.feed_forward.width = shape.ffn;
  model.layers.assign(shape.layers, layer);
  return model;
}

// Three of four layers are gated delta nets, as in Qwen3-Next and Qwen3.5.
void make_hybrid(model::Model& model, std::int64_t value_heads) {
  for (std::size_t il = 0; il < model.layers.size(); ++il) {
    if (il % 4 == 3) continue;
    model.layers[il].attention = {};
    model::Recurrent& recurrent = model.layers[il].recurrent;
    recurrent.kind = model::RecurrentKind::gated_delta_net;
    recurrent.d_conv = 4;
    recurrent.key_heads = 16;
    recurrent.value_heads = value_heads;
    recurrent.key_dim = recurrent.value_dim = 128;
  }
}

void add_tensor(model::Model& model, model::TensorRole role, std::string name, int layer, std::int64_t bytes) {
  model::Tensor tensor;
  tensor.role = role;
  tensor.name = std::move(name);
  tensor.layer = layer;
  tensor.rows = tensor.columns = 256;
  tensor.bytes = Bytes{bytes};
  model.tensors.push_back(std::move(tensor));
}

double mib(const model::Model& model, GraphPlan plan, int buffer) {
  plan.layer_buffer.assign(model.layers.size(), kDevice);
  return Bytes{reserve_graph(model, plan)[static_cast<std::size_t>(buffer)].bytes}.mib();
}

GraphPlan old_plan(std::int64_t cells) {
  GraphPlan plan;
  plan.flash_attention = plan.both_embeddings = plan.fused_glu = false;
  plan.old_qkv_copies = true;
  plan.full_cells = cells;
  return plan;
}

// Pythia 2.8B, build 4477 on a V100, -c 2048 without flash attention (ggml-org/ci, ggml-4-x86-cuda-v100).
TEST(LlamaGraph, PythiaWithParallelResidual) {
  model::Model pythia = model_of({32, 2560, 32, 32, 80, 10240, 50304});
  pythia.family = "gpt_neox";
  pythia.parallel_block = true;
  for (model::Layer& layer : pythia.layers) layer.feed_forward.gated = false;
  add_tensor(pythia, model::TensorRole::attention, "attention.query_key_value.weight", 0, 0);
  EXPECT_NEAR(mib(pythia, old_plan(2048), kDevice), 162.00, kPrinted);
  EXPECT_NEAR(mib(pythia, old_plan(2048), ComputeGraph::kHost), 9.01, kPrinted);
}

// Mistral 7B at 2,048 and 32,768 tokens without flash attention (fedora-copr/logdetective#106).
TEST(LlamaGraph, MistralWithoutFlashAttention) {
  const model::Model mistral = model_of({32, 4096, 32, 8, 128, 14336, 32000});
  EXPECT_NEAR(mib(mistral, old_plan(2048), kDevice), 164.00, kPrinted);
  EXPECT_NEAR(mib(mistral, old_plan(2048), ComputeGraph::kHost), 12.01, kPrinted);
  EXPECT_NEAR(mib(mistral, old_plan(32768), kDevice), 2144.00, kPrinted);
  EXPECT_NEAR(mib(mistral, old_plan(32768), ComputeGraph::kHost), 72.01, kPrinted);
}

// Qwen2.5-3B at 4,096 tokens: the logits bind (SciSharp/LLamaSharp#1099).
TEST(LlamaGraph, LogitsOfALargeVocabularyBind) {
  const model::Model qwen = model_of({36, 2048, 16, 2, 128, 11008, 151936});
  EXPECT_NEAR(mib(qwen, old_plan(4096), kDevice), 300.75, kPrinted);
  EXPECT_NEAR(mib(qwen, old_plan(4096), ComputeGraph::kHost), 12.01, kPrinted);
}

// bge-small-en-v1.5, build 4477, 512 tokens in one batch (ggml-org/ci): no logits.
TEST(LlamaGraph, EncoderGivesNoLogits) {
  model::Model bge = model_of({12, 384, 12, 12, 32, 1536, 30522});
  bge.kind = model::ModelKind::encoder;
  for (model::Layer& layer : bge.layers) layer.feed_forward.gated = false;
  EXPECT_NEAR(mib(bge, old_plan(512), kDevice), 16.00, kPrinted);
}

// Qwen3.6-27B with MTP, q8_0 cache of 131,072 cells shared by four sequences: main graph 495.00, host 276.29, draft
// graph 495.00 (public llama-server log of the model).
TEST(LlamaGraph, HybridWithQuantizedCache) {
  model::Model qwen = model_of({64, 5120, 24, 4, 256, 17408, 248320});
  make_hybrid(qwen, 48);
  GraphPlan plan;
  plan.sequences = 4;
  plan.full_cells = 131072;
  plan.quantized_cache = true;
  EXPECT_NEAR(mib(qwen, plan, kDevice), 495.00, kPrinted);
  EXPECT_NEAR(mib(qwen, plan, ComputeGraph::kHost), 276.29, kPrinted);
  qwen.layers.assign(1, qwen.layers.back());
  EXPECT_NEAR(mib(qwen, plan, kDevice), 495.00, kPrinted);
}

// gpt-oss-20b, MXFP4, 32,768 tokens, --n-cpu-moe 12: 398 MiB on the device (memory breakdown of a public log, whole
// MiB).
TEST(LlamaGraph, ExpertsOnTheHostWithBiases) {
  model::Model oss = model_of({24, 2880, 64, 8, 64, 0, 201088});
  for (std::size_t il = 0; il < oss.layers.size(); ++il) {
    if (il % 2 == 0) oss.layers[il].attention.kind = AttentionKind::sliding;
    oss.layers[il].feed_forward = {0, true, 32, 4, 2880, 0};
    add_tensor(oss, model::TensorRole::expert, "ffn_gate_up_exps", static_cast<int>(il),
               2LL * 32 * 2880 * 2880 * 17 / 32);
    add_tensor(oss, model::TensorRole::expert, "ffn_down_exps", static_cast<int>(il), 32LL * 2880 * 2880 * 17 / 32);
    add_tensor(oss, model::TensorRole::expert, "ffn_down_exps.bias", static_cast<int>(il), 0);
  }
  GraphPlan plan;
  plan.full_cells = 32768;
  plan.swa_cells = 768;
  plan.both_embeddings = false;
  plan.host_experts = expert_weights(oss);
  plan.host_experts.resize(12);
  EXPECT_NEAR(mib(oss, plan, kDevice), 398.0, 0.99);
}

// Qwen3-Coder-Next, UD-IQ3_XXS (ffn_down_exps in IQ4_XS), 100,096 tokens on an RTX 5090, experts moved to the host by
// --fit: 601 MiB (memory breakdown of a public log). A copy of one expert matrix, 272 MiB, is part of the buffer.
TEST(LlamaGraph, ExpertsOnTheHostAreCopiedForTheirOperation) {
  model::Model coder = model_of({48, 2048, 16, 2, 256, 0, 151936});
  make_hybrid(coder, 32);
  for (std::size_t il = 0; il < coder.layers.size(); ++il) {
    coder.layers[il].feed_forward = {0, true, 512, 10, 512, 512};
    const std::int64_t weights = 512LL * 512 * 2048;
    add_tensor(coder, model::TensorRole::expert, "ffn_gate_up_exps", static_cast<int>(il), 2 * weights / 256 * 98);
    add_tensor(coder, model::TensorRole::expert, "ffn_down_exps", static_cast<int>(il), weights / 256 * 136);
  }
  GraphPlan plan;
  plan.sequences = 4;
  plan.full_cells = 100096;
  plan.host_experts = expert_weights(coder);
  EXPECT_NEAR(mib(coder, plan, kDevice), 601.0, 0.99);
}

TEST(LlamaGraph, PipelineKeepsFourCopiesOfItsInputs) {
  const model::Model mistral = model_of({32, 4096, 32, 8, 128, 14336, 32000});
  GraphPlan plan;
  plan.full_cells = 65536;
  plan.half_mask = true;
  const double one = mib(mistral, plan, kDevice);
  plan.copies = 4;
  // Three more copies of the mask (65,536 x 512 x 2 B) and of the embeddings (512 x 4,096 x 4 B), none ever freed.
  EXPECT_GT(mib(mistral, plan, kDevice), one + 3 * (64 + 8));
}

TEST(LlamaGraph, SaysWhatIsLiveAtThePeak) {
  const model::Model qwen = model_of({36, 2048, 16, 2, 128, 11008, 151936});
  GraphPlan plan = old_plan(4096);
  plan.layer_buffer.assign(qwen.layers.size(), kDevice);
  EXPECT_EQ(reserve_graph(qwen, plan)[kDevice].live, "result_output 297 MiB + result_norm 4.00 MiB");
}

}  // namespace
}  // namespace gpuwright::fit

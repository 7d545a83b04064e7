// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv 2205.05198: bytes that a
// GPT layer keeps, with s tokens, b sequences, h hidden, a heads and t tensor-parallel ranks.
#include "fit/training/activations.h"

#include <gtest/gtest.h>

#include "fit/testing/decoder.h"

namespace gpuwright::fit::training {
namespace {

// GPT-3 175B of the paper's table 3: h 12,288, a 96, s 2,048; feed-forward 4h, not gated, with dropout.
model::Model gpt3() {
  fit::testing::DecoderShape shape{"GPT-3", "gpt2", 12288, 1, 96, 96, 128, 4 * 12288, 51200};
  model::Model model = fit::testing::decoder(shape);
  model.layers[0].feed_forward.gated = false;
  return model;
}

TrainingJob megatron() {
  TrainingJob job;
  job.engine = TrainingEngine::megatron;
  job.precision = Precision::mixed_megatron;
  job.fused_kernels = true;
  job.micro_batch = 1;
  job.sequence = 2048;
  job.attention = "eager";
  return job;
}

constexpr double s = 2048, h = 12288, a = 96;

void expect_bytes(const TrainingJob& job, double bytes) {
  // Up to the log-sum-exp of each head, 4 bytes, which the paper leaves out.
  EXPECT_NEAR(layer_bytes(gpt3(), 0, {}, job).saved, bytes, s * a * 4 + 1);
}

TEST(Activations, EquationOne) {
  expect_bytes(megatron(), s * h * (34 + 5 * a * s / h));
}

TEST(Activations, EquationTwoTensorParallel) {
  TrainingJob job = megatron();
  job.tensor_parallel = 8;
  expect_bytes(job, s * h * (10 + 24 / 8.0 + 5 * a * s / (h * 8)));
}

TEST(Activations, EquationFourSequenceParallel) {
  TrainingJob job = megatron();
  job.tensor_parallel = 8;
  job.sequence_parallel = true;
  expect_bytes(job, s * h / 8 * (34 + 5 * a * s / h));
}

TEST(Activations, EquationSixSelectiveRecomputation) {
  TrainingJob job = megatron();
  job.tensor_parallel = 8;
  job.sequence_parallel = true;
  EXPECT_NEAR(layer_bytes(gpt3(), 0, {}, job).selective, 34 * s * h / 8, s * a * 4 + 1);
  EXPECT_NEAR(layer_bytes(gpt3(), 0, {}, job).input, 2 * s * h / 8, 1);
}

// modelscope/swift benchmark page: Qwen-7B without checkpointing takes 19.97 GiB more without flash attention than
// with it (2,048 tokens, 32 layers of 32 heads).
TEST(Activations, ProbabilitiesOfPlainAttention) {
  fit::testing::DecoderShape shape{"Qwen-7B", "qwen", 4096, 32, 32, 32, 128, 11008, 151936};
  const model::Model model = fit::testing::decoder(shape);
  TrainingJob job;
  job.method = TrainingMethod::lora;
  job.sequence = 2048;
  const double flash = layer_bytes(model, 0, {}, job).saved;
  job.attention = "eager";
  EXPECT_NEAR(32 * (layer_bytes(model, 0, {}, job).saved - flash) / 1073741824, 19.97, 0.1);
}

// A plain RMSNorm in bf16 keeps an fp32 copy: 20h + 4kv + 8f bytes a token with every weight trained; torch.compile
// fuses SiLU into the product and the norm into its neighbours: 12h + 4kv + 6f.
TEST(Activations, LlamaLayer) {
  const model::Model model = fit::testing::decoder(fit::testing::llama31_8b());
  TrainingJob job;
  job.engine = TrainingEngine::torchtune;
  job.sequence = 1;
  EXPECT_EQ(layer_bytes(model, 0, {}, job).saved, 20 * 4096 + 4 * 1024 + 8 * 14336 + 4 * 32);
  job.compiled = true;
  EXPECT_EQ(layer_bytes(model, 0, {}, job).saved, 12 * 4096 + 4 * 1024 + 6 * 14336 + 4 * 32);
}

}  // namespace
}  // namespace gpuwright::fit::training

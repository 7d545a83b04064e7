// Our own trainer against exact allocator bytes: a Llama-style model of 31.6 M parameters (V 8,192, d 512, 8 layers,
// 8 heads on 4, f 1,376), batch 8 x 256 tokens, AdamW, libtorch 1.13.1, counted by an allocator that wraps
// c10::alloc_cpu. "Static" is weights, states and buffers; the peak is where the loss's backward starts.
#include <gtest/gtest.h>

#include "fit/testing/decoder.h"
#include "fit/training/training.h"
#include "model/quantize.h"

namespace gpuwright::fit {
namespace {

model::Model small_llama() {
  testing::DecoderShape shape{"small", "llama", 512, 8, 8, 4, 64, 1376, 8192};
  return testing::decoder(shape);
}

TrainingJob full_fp32() {
  TrainingJob job;
  job.engine = TrainingEngine::gpuwright;
  job.engine_version = "1.13.1";
  job.precision = Precision::fp32;
  job.micro_batch = 8;
  job.sequence = 256;
  job.attention = "eager";
  return job;
}

const std::vector<Target> kCard = {testing::card("A100", 80, "Ampere")};

Estimate estimate_of(const model::Model& model, const TrainingJob& job) {
  auto answer = estimate_training(model, job, kCard);
  EXPECT_TRUE(answer) << answer.error().message();
  return answer ? *answer : Estimate{};
}

// Bytes of tensors alone: the CPU has no cuBLAS workspace.
double megabytes(const Instant& instant) {
  Bytes bytes = instant.total(Meter::allocated).expected - instant.total_of(ComponentKind::runtime).expected;
  for (const Component& part : instant.components)
    if (part.kind == ComponentKind::runtime && part.first_seen_by == Meter::device) bytes += part.expected;
  return static_cast<double>(bytes.count) / 1e6;
}

double peak(const Estimate& answer) {
  double most = 0;
  for (const Instant& instant : answer.per_gpu.at(0).instants) most = std::max(most, megabytes(instant));
  return most;
}

void expect_within(double expected, double measured, double share) {
  EXPECT_NEAR(expected, measured, share * measured);
}

TEST(OwnTrainer, FullFp32) {
  expect_within(peak(estimate_of(small_llama(), full_fp32())), 1461.9, 0.02);
}

TEST(OwnTrainer, ForwardEndWithoutTheLossesOwnGradient) {
  const Estimate answer = estimate_of(small_llama(), full_fp32());
  // After forward one of the three logits-sized buffers exists: 1,327.7 MB.
  const double logits = 8.0 * 256 * 8192 * 4 / 1e6;
  expect_within(megabytes(answer.per_gpu[0].instants[1]) - 2 * logits, 1327.7, 0.02);
}

TEST(OwnTrainer, FullWithCheckpointing) {
  TrainingJob job = full_fp32();
  job.checkpointing = Checkpointing::full;
  expect_within(peak(estimate_of(small_llama(), job)), 631.3, 0.02);
}

TEST(OwnTrainer, NewerLibtorchKeepsNoSquares) {
  TrainingJob job = full_fp32();
  job.engine_version = "2.6.0";
  expect_within(peak(estimate_of(small_llama(), job)), 1390.6, 0.02);
}

TEST(OwnTrainer, FusedKernelsAndChunkedLoss) {
  TrainingJob job = full_fp32();
  job.fused_kernels = true;
  job.chunked_cross_entropy = true;
  job.cross_entropy_chunks = 4;  // 512 of 2,048 tokens each
  expect_within(peak(estimate_of(small_llama(), job)), 1110.8, 0.02);
}

TrainingJob lora() {
  TrainingJob job = full_fp32();
  job.method = TrainingMethod::lora;
  job.lora.rank = 8;
  job.lora.targets = {"all-linear"};
  return job;
}

TEST(OwnTrainer, Lora) {
  expect_within(peak(estimate_of(small_llama(), lora())), 1136.0, 0.02);
}

TEST(OwnTrainer, LoraWithCheckpointing) {
  TrainingJob job = lora();
  job.checkpointing = Checkpointing::full;
  expect_within(peak(estimate_of(small_llama(), job)), 377.3, 0.02);
}

TEST(OwnTrainer, QloraWithAllSavings) {
  TrainingJob job = lora();
  job.method = TrainingMethod::qlora;
  job.precision = Precision::amp_bf16;
  job.checkpointing = Checkpointing::full;
  job.fused_kernels = true;
  job.chunked_cross_entropy = true;
  job.cross_entropy_chunks = 4;
  const auto base = model::with_weight_format(small_llama(), "bnb-nf4-dq");
  ASSERT_TRUE(base) << base.error().message();
  expect_within(peak(estimate_of(*base, job)), 158.9, 0.02);
}

TEST(OwnTrainer, QloraOfAnFp32Base) {
  TrainingJob job = lora();
  job.method = TrainingMethod::qlora;
  const auto base = model::with_weight_format(small_llama(), "bnb-nf4-dq");
  ASSERT_TRUE(base) << base.error().message();
  expect_within(peak(estimate_of(*base, job)), 1055.2, 0.02);
  job.checkpointing = Checkpointing::full;
  expect_within(peak(estimate_of(*base, job)), 296.4, 0.02);
}

TEST(OwnTrainer, Autocast) {
  TrainingJob job = full_fp32();
  job.precision = Precision::amp_bf16;
  expect_within(peak(estimate_of(small_llama(), job)), 1234.1, 0.03);
  job.fused_kernels = true;
  job.chunked_cross_entropy = true;
  job.cross_entropy_chunks = 4;
  expect_within(peak(estimate_of(small_llama(), job)), 919.0, 0.03);
}

}  // namespace
}  // namespace gpuwright::fit

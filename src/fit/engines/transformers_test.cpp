// Peaks of public tables, in MiB or GiB as printed there.
#include <gtest/gtest.h>

#include "fit/fit.h"
#include "fit/testing/decoder.h"

namespace gpuwright::fit {
namespace {

using testing::card;
using testing::decoder;
using testing::with_linear_bits;

Job generate(std::int64_t prompt, std::int64_t fresh, std::string version) {
  Job job;
  job.engine = Engine::transformers;
  job.engine_version = std::move(version);
  job.prompt_tokens = prompt;
  job.new_tokens = fresh;
  return job;
}

std::vector<Target> a100s(std::size_t count) {
  return std::vector<Target>(count, card("A100 80GB", 79.15, "Ampere"));
}

// The sum over GPUs of the largest instant, in GiB: what the benchmark scripts print.
Range peak_allocated(const model::Model& model, const Job& job, std::size_t gpus) {
  const auto answer = estimate(model, job, a100s(gpus));
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message());
  Range total;
  for (std::size_t i = 0; answer && i < answer->per_gpu.size(); ++i) {
    Range most;
    for (const Instant& instant : answer->per_gpu[i].instants)
      if (instant.total(Meter::allocated).expected > most.expected) most = instant.total(Meter::allocated);
    total.low += most.low;
    total.expected += most.expected;
    total.high += most.high;
  }
  return total;
}

void expect_peak(const model::Model& model, const Job& job, std::size_t gpus, double measured_gib, double tolerance) {
  const Range peak = peak_allocated(model, job, gpus);
  EXPECT_NEAR(peak.expected.gib() / measured_gib, 1, tolerance)
      << model.name << " prompt " << *job.prompt_tokens << ": " << peak.expected.gib() << " for " << measured_gib;
  EXPECT_LE(peak.low.gib(), measured_gib * 1.001);
  EXPECT_GE(peak.high.gib(), measured_gib * 0.999);
}

// Qwen2.5 documentation, speed benchmark, transformers 4.46.0, torch 2.3.1, flash attention 2, A100 80GB, batch 1,
// 2,048 new tokens: torch.cuda.max_memory_allocated in GiB.
TEST(Transformers, PrefillOfQwen25) {
  const auto seven = decoder(testing::qwen25_7b());
  expect_peak(seven, generate(1, 2048, "4.46.0"), 1, 14.38, 0.004);
  expect_peak(seven, generate(6144, 2048, "4.46.0"), 1, 15.38, 0.004);
  expect_peak(seven, generate(14336, 2048, "4.46.0"), 1, 16.91, 0.004);
  expect_peak(seven, generate(30720, 2048, "4.46.0"), 1, 19.97, 0.004);
  const auto fourteen = decoder(testing::qwen25_14b());
  expect_peak(fourteen, generate(1, 2048, "4.46.0"), 1, 28.08, 0.004);
  expect_peak(fourteen, generate(30720, 2048, "4.46.0"), 1, 36.85, 0.004);
}

}  // namespace
}  // namespace gpuwright::fit

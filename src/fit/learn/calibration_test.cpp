// Comparison with published logs, and what is kept of it.
#include "fit/learn/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "fit/learn/compare.h"
#include "model/config.h"
#include "model/quantize.h"

namespace gpuwright::fit {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Bytes kGib = Bytes{1 << 30};
const Target kV100{"Tesla V100 PCIe 16GB", kGib * 16, kGib * 16, "Volta", false};

LogRun read(std::string text) {
  return read_memory_log(*bytes_in_memory(std::move(text), "run.log")).value().run;
}

// What llama.cpp b4477 printed for Pythia 2.8B on a V100 (ggml-org/ci, ggml-4-x86-cuda-v100, README.md).
LogRun pythia_run(const std::string& compute = "162.00") {
  return read(
      "load_tensors:        CUDA0 model buffer size =  1632.95 MiB\n"
      "load_tensors:   CPU_Mapped model buffer size =    69.08 MiB\n"
      "llama_kv_cache_init:      CUDA0 KV buffer size =   640.00 MiB\n"
      "llama_init_from_model:  CUDA_Host  output buffer size =     0.19 MiB\n"
      "llama_init_from_model:      CUDA0 compute buffer size =   " +
      compute +
      " MiB\n"
      "llama_init_from_model:  CUDA_Host compute buffer size =     9.01 MiB\n");
}

struct Pythia {
  model::Model model = model::with_weight_format(model::preset("pythia-2.8b").value(), "Q4_K_M@b4477").value();
  Job job;
  Pythia() {
    job.engine_version = "b4477";
    job.context_tokens = 2048;
    job.llama.flash_attention = false;
  }
  Estimate estimate() const { return fit::estimate(model, job, {kV100}).value(); }
};

TEST(Compare, EveryBufferOfAPublishedLogAgrees) {
  const Comparison comparison = compare(pythia_run(), Pythia().estimate(), Engine::llama_cpp);
  ASSERT_THAT(comparison.rows, SizeIs(6));
  EXPECT_THAT(comparison.rows, Each(Field(&Compared::agreement, Agreement::inside)));
  EXPECT_FALSE(comparison.differs());
  EXPECT_EQ(comparison.rows.front().where, "GPU 0");
  EXPECT_EQ(comparison.rows.back().where, "host");
}

TEST(Compare, MoreThanATenthOutsideDiffers) {
  const Estimate estimate = Pythia().estimate();
  EXPECT_FALSE(compare(pythia_run("175.00"), estimate, Engine::llama_cpp).differs());  // + 8 %
  EXPECT_FALSE(compare(pythia_run("150.00"), estimate, Engine::llama_cpp).differs());
  const Comparison off = compare(pythia_run("200.00"), estimate, Engine::llama_cpp);
  EXPECT_TRUE(off.differs());
  EXPECT_THAT(off.rows, Contains(Field(&Compared::agreement, Agreement::differs)).Times(1));
}

// An OOM message tells less than the peak: only too much of it speaks against a prediction.
TEST(Compare, AnOutOfMemoryMessageIsALowerBound) {
  Estimate estimate;
  GpuEstimate gpu;
  gpu.instants = {{"decode", {Component::exact(ComponentKind::weights, Meter::tensor, kGib * 20, "", "")}, ""}};
  estimate.per_gpu = {gpu};
  const auto message = [](std::string allocated) {
    return read("CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 24.00 GiB total capacity; " + allocated +
                " GiB already allocated; 0 bytes free; " + allocated + " GiB reserved in total by PyTorch)");
  };
  EXPECT_THAT(compare(message("15.00"), estimate, Engine::transformers).rows,
              Each(Field(&Compared::agreement, Agreement::possible)));
  EXPECT_TRUE(compare(message("23.00"), estimate, Engine::transformers).differs());
}

// GPU 3 of the machine is the only one of the job.
TEST(Compare, GpusAreMatchedInOrder) {
  Estimate estimate;
  GpuEstimate gpu;
  gpu.instants = {{"decode", {Component::exact(ComponentKind::weights, Meter::tensor, kGib, "", "")}, ""}};
  estimate.per_gpu = {gpu};
  const LogRun run = read("load_tensors: CUDA3 model buffer size = 1024.00 MiB\n");
  EXPECT_THAT(compare(run, estimate, Engine::llama_cpp).rows, ElementsAre(Field(&Compared::expected, 1073741824.0)));
  const LogRun two = read(
      "load_tensors: CUDA3 model buffer size = 1024.00 MiB\nload_tensors: CUDA5 model buffer size = 1024.00 MiB\n");
  EXPECT_THAT(compare(two, estimate, Engine::llama_cpp).rows, IsEmpty());
  EXPECT_THAT(compare(two, estimate, Engine::llama_cpp).notes, SizeIs(2));
}

// ---------------------------------------------------------------- corrections

TEST(Calibration, LearnsRatiosAndOffsetsAndAppliesThem) {
  Pythia pythia;
  const Estimate before = pythia.estimate();
  LogRun run = pythia_run("178.20");  // 1.1 times the prediction
  const Bytes runtime = before.per_gpu[0].peak().total_of(ComponentKind::runtime).expected;
  Measurement driver;
  driver.kind = ComponentKind::runtime;
  driver.gpu = 0;
  driver.bytes = runtime + Bytes{100 << 20};
  driver.line = 9;
  driver.text = "unaccounted";
  run.measurements.push_back(driver);
  const auto learnt =
      corrections_from(compare(run, before, Engine::llama_cpp), Engine::llama_cpp, kV100.name, "2026-11-30", "run.log");
  ASSERT_THAT(learnt, SizeIs(2));
  pythia.job.corrections = learnt;
  const Estimate after = pythia.estimate();
  const Instant &was = before.per_gpu[0].peak(), &is = after.per_gpu[0].peak();
  EXPECT_NEAR(is.total_of(ComponentKind::compute_buffer).expected.mib(), 178.2, 0.2);
  EXPECT_EQ(is.total_of(ComponentKind::runtime).expected, runtime + Bytes{100 << 20});
  EXPECT_EQ(is.total_of(ComponentKind::weights).expected, was.total_of(ComponentKind::weights).expected);
  EXPECT_LE(is.total().low, was.total().low);  // the range covers both
  EXPECT_GE(is.total().high, was.total().high);
  EXPECT_THAT(after.notes, Contains(HasSubstr("2026-11-30")).Times(2));
  EXPECT_FALSE(compare(run, after, Engine::llama_cpp).differs());
}

TEST(Calibration, ConcernsItsEngineAndGpuOnly) {
  Pythia pythia;
  const Bytes plain = pythia.estimate().per_gpu[0].peak().total().expected;
  pythia.job.corrections = {{Engine::ollama, kV100.name, ComponentKind::runtime, 1, kGib, "", ""},
                            {Engine::llama_cpp, "GeForce RTX 4090", ComponentKind::runtime, 1, kGib, "", ""}};
  EXPECT_EQ(pythia.estimate().per_gpu[0].peak().total().expected, plain);
  EXPECT_THAT(pythia.estimate().notes, testing::Not(Contains(HasSubstr("--calibration"))));
}

// What vLLM's other parts take more is missing in its cache.
TEST(Calibration, MovesTheCacheOfAnEngineThatFillsItsShare) {
  const model::Model model = model::preset("llama-3.1-8b").value();
  Job job;
  job.engine = Engine::vllm;
  job.context_tokens = 8192;
  const Target card{"H100 SXM", kGib * 80, kGib * 80, "Hopper", false};
  const Estimate before = estimate(model, job, {card}).value();
  job.corrections = {{Engine::vllm, card.name, ComponentKind::activations, 2, Bytes{}, "2026-11-30", ""}};
  const Estimate after = estimate(model, job, {card}).value();
  const Bytes more = after.per_gpu[0].peak().total().expected - before.per_gpu[0].peak().total().expected;
  const double block = 16 * 131072.0;  // 32 layers x 8 heads x 256 x 2 B a token (vllm-project/vllm logs)
  EXPECT_NEAR(static_cast<double>(before.capacities[0].expected - after.capacities[0].expected),
              static_cast<double>(more.count) / block, 2);
}

TEST(Calibration, OnlyWhatIsMeasuredRatherThanDerivedIsCorrected) {
  const Comparison off =
      compare(read("load_tensors: CUDA0 model buffer size = 9000.00 MiB\n"), Pythia().estimate(), Engine::llama_cpp);
  EXPECT_TRUE(off.differs());
  EXPECT_THAT(corrections_from(off, Engine::llama_cpp, "x", "", ""), IsEmpty());
  // A hundredfold is another run, not a correction.
  const Comparison wild = compare(pythia_run("16200.00"), Pythia().estimate(), Engine::llama_cpp);
  EXPECT_THAT(corrections_from(wild, Engine::llama_cpp, "x", "", ""), IsEmpty());
}

TEST(Calibration, FileIsWrittenAndReadBack) {
  const std::string folder = testing::TempDir() + "calibration-test";
  std::filesystem::remove_all(folder);
  const std::string path = folder + "/gpuwright/calibration.toml";
  EXPECT_THAT(load_corrections(path).value(), IsEmpty());
  std::vector<Correction> known = {
      {Engine::vllm, "L40S \"x\\", ComponentKind::activations, 1.25, Bytes{}, "2026-11-30", "a\nb\x1b[31m"}};
  merge(known, {{Engine::vllm, "l40s \"X\\", ComponentKind::activations, 1.5, Bytes{}, "2026-12-01", "newer"},
                {Engine::vllm, "L40S", ComponentKind::runtime, 1, Bytes{-4096}, "2026-12-01", "other"}});
  ASSERT_TRUE(save_corrections(known, path));
  const auto read_back = load_corrections(path).value();
  ASSERT_THAT(read_back, SizeIs(2));
  EXPECT_DOUBLE_EQ(read_back[0].ratio, 1.5);
  EXPECT_EQ(read_back[0].gpu, "l40s \"X\\");
  EXPECT_EQ(read_back[1].offset, Bytes{-4096});
  std::filesystem::remove_all(folder);
}

TEST(Calibration, MistakesInTheFileAreNamedWithTheirLine) {
  const auto error = [](std::string text) { return corrections_from_toml(text, "c.toml").error().message(); };
  const std::string row = "[[correction]]\nengine = \"vllm\"\ngpu = \"L40S\"\n";
  EXPECT_THAT(error("[[correction\n"), HasSubstr("c.toml:1"));
  EXPECT_THAT(error(row + "component = \"weights\"\nratio = 1\n"), HasSubstr("\"weights\" is no component"));
  EXPECT_THAT(error(row + "component = \"runtime\"\nratio = 99\n"), HasSubstr("out of bounds"));
  EXPECT_THAT(error(row + "component = \"runtime\"\n"), HasSubstr("either ratio or offset_bytes"));
  EXPECT_THAT(error(row + "component = \"runtime\"\nratio = nan\n"), HasSubstr("out of bounds"));
  EXPECT_THAT(error("\n[[correction]]\nengine = \"vlm\"\n"), HasSubstr("c.toml:2"));
}

}  // namespace
}  // namespace gpuwright::fit

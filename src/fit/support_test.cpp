// What engines run; right answers come from the sources that data/engine_support.toml names.
#include "fit/support.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "fit/solve.h"
#include "model/config.h"
#include "model/quantize.h"

namespace gpuwright::fit {
namespace {

Target named(std::string_view name) {
  static const auto catalog = catalog::Catalog::load().value();
  return target_from(**catalog.find(name));
}

Job job_of(std::string_view engine) {
  const EngineChoice choice = engine_named(engine).value();
  Job job;
  job.engine = choice.engine;
  job.engine_version = choice.version;
  job.context_tokens = 512;
  return job;
}

model::Model llama(std::string_view format = "bf16") {
  return model::with_weight_format(*model::preset("llama-3.1-8b"), format).value();
}

ErrorCode refusal(const model::Model& model, const Job& job, const Target& target) {
  const auto answer = estimate(model, job, {target});
  return answer ? ErrorCode::internal : answer.error().code;
}

bool runs(std::string_view engine, std::string_view gpu, std::string_view format = "bf16") {
  const Status status = check_hardware(llama(format), job_of(engine), named(gpu));
  EXPECT_TRUE(status || status.error().code == ErrorCode::unsupported);
  return status.has_value();
}

TEST(Support, HardwareOfEachEngine) {
  EXPECT_TRUE(runs("vllm", "rtx-4090-24gb"));
  EXPECT_TRUE(runs("vllm@0.14", "v100-sxm2-16gb"));
  EXPECT_FALSE(runs("vllm@0.31", "v100-sxm2-16gb"));
  EXPECT_FALSE(runs("vllm", "p100-sxm2-16gb"));
  EXPECT_TRUE(runs("llama.cpp", "p100-sxm2-16gb"));
  EXPECT_FALSE(runs("sglang", "v100-sxm2-16gb"));
  EXPECT_TRUE(runs("vllm", "MI300X"));
  EXPECT_FALSE(runs("vllm", "MI100"));
  EXPECT_TRUE(runs("llama.cpp", "M4 Max (40-core)"));
  for (const char* gpu : {"M4 Max (40-core)", "TPU v5e", "Gaudi 3", "Ascend 910B", "Trainium2"})
    for (const char* engine : {"vllm", "sglang"}) EXPECT_FALSE(runs(engine, gpu)) << engine << " on " << gpu;
  EXPECT_FALSE(runs("llama.cpp", "TPU v5e"));
  EXPECT_FALSE(runs("llama.cpp", "Gaudi 3"));
  EXPECT_FALSE(runs("vllm", "MI300X", "bnb-nf4"));
}

TEST(Support, APlainSizeRunsEverything) {
  const Target size{"a GPU with 80 GiB", Bytes::from_gib(80), Bytes::from_gib(80), "", false};
  for (const char* engine : {"llama.cpp", "ollama", "vllm", "sglang", "transformers"})
    EXPECT_TRUE(estimate(llama(), job_of(engine), {size})) << engine;
}

TEST(Support, SmallestGpusAreThoseTheEngineRunsOn) {
  const auto catalog = catalog::Catalog::load();
  Job job = job_of("vllm");
  job.reserve = Bytes::from_gib(4);
  const auto choices = smallest_gpus(llama(), job, *catalog, 1, true, 1000);
  ASSERT_TRUE(choices) << choices.error().message();
  ASSERT_FALSE(choices->empty());
  for (const GpuChoice& choice : *choices) {
    EXPECT_TRUE(choice.accelerator->vendor == "NVIDIA" || choice.accelerator->vendor == "AMD" ||
                choice.accelerator->vendor == "Intel");
    EXPECT_NE(choice.accelerator->architecture, "Gaudi");
  }
}

TEST(Support, ModelsThatEnginesDoNotServe) {
  const Target gpu = named("h100-sxm5-80gb");
  Job job = job_of("vllm");
  job.context_tokens.reset();
  EXPECT_EQ(refusal(*model::preset("vit-base-patch16-224"), job, gpu), ErrorCode::unsupported);
  job.engine = Engine::sglang;
  EXPECT_EQ(refusal(*model::preset("whisper-small"), job, gpu), ErrorCode::unsupported);
}

TEST(Support, FormatsThatEnginesLack) {
  const Target gpu = named("rtx-4090-24gb");
  for (const char* format : {"gptq-int4", "awq-int4", "bnb-nf4", "fp8", "nvfp4"})
    EXPECT_EQ(refusal(llama(format), job_of("llama.cpp"), gpu), ErrorCode::unsupported) << format;
  EXPECT_EQ(refusal(llama("Q4_K_M"), job_of("transformers"), gpu), ErrorCode::unsupported);
  Job job = job_of("vllm");
  job.key_type = job.value_type = model::Dtype::q8_0;
  EXPECT_EQ(refusal(llama(), job, gpu), ErrorCode::unsupported);
  job.key_type = job.value_type = model::Dtype::f8_e4m3;
  EXPECT_TRUE(estimate(llama(), job, {gpu}));
  job.engine = Engine::llama_cpp;
  EXPECT_EQ(refusal(llama("Q4_K_M"), job, gpu), ErrorCode::unsupported);
  job.key_type = job.value_type = model::Dtype::iq4_nl;
  EXPECT_TRUE(estimate(llama("Q4_K_M"), job, {gpu}));
}

bool is_noted(std::string_view engine, std::string_view gpu, std::string_view format, std::string_view words) {
  const auto notes = support_notes(llama(format), job_of(engine), {named(gpu)}).value();
  for (const std::string& note : notes)
    if (note.find(words) != std::string::npos) return true;
  return false;
}

TEST(Support, NotesTellWhatIsEmulatedAndUnknown) {
  EXPECT_TRUE(is_noted("vllm", "a100-sxm4-80gb", "fp8", "Marlin"));
  EXPECT_FALSE(is_noted("vllm", "rtx-4090-24gb", "fp8", "Marlin"));
  EXPECT_TRUE(is_noted("vllm", "h100-sxm5-80gb", "nvfp4", "Marlin"));
  EXPECT_TRUE(is_noted("vllm", "rtx-4090-24gb", "Q4_K_M", "experimental"));
  EXPECT_TRUE(is_noted("vllm@9.9", "rtx-4090-24gb", "bf16", "newer than the newest"));
  EXPECT_TRUE(is_noted("llama.cpp@b1", "rtx-4090-24gb", "Q4_K_M", "older than the oldest"));
  EXPECT_FALSE(is_noted("vllm@0.11", "rtx-4090-24gb", "bf16", "known"));
}

TEST(Support, UsualEnginesServeTheModel) {
  const auto usual = [](std::string_view preset) { return usual_engine(model::preset(preset).value()); };
  EXPECT_EQ(usual("llama-3.1-8b"), Engine::vllm);
  EXPECT_EQ(usual("vit-base-patch16-224"), Engine::transformers);
  EXPECT_EQ(usual("t5-large"), Engine::transformers);
  EXPECT_EQ(usual("whisper-large-v3"), Engine::vllm);
  EXPECT_EQ(usual_engine(model::with_weight_format(model::preset("llama-3.1-8b").value(), "Q4_K_M").value()),
            Engine::llama_cpp);
}

TEST(SmallestGpus, AreThoseThatAreAskedAbout) {
  const auto catalog = catalog::Catalog::load();
  ASSERT_TRUE(catalog) << catalog.error().message();
  Job job;
  job.engine = Engine::vllm;
  job.context_tokens = 4096;
  const auto boards = smallest_gpus(llama(), job, *catalog, 1, true, 1000, catalog::is_board);
  ASSERT_TRUE(boards) << boards.error().message();
  ASSERT_FALSE(boards->empty());
  for (const GpuChoice& choice : *boards) {
    EXPECT_NE(choice.accelerator->form_factor, "laptop") << choice.accelerator->name;
    EXPECT_NE(choice.accelerator->vendor, "Apple") << choice.accelerator->name;
  }
  // The M3 Ultra has the most memory of all; vLLM does not run on it.
  const catalog::Accelerator* largest = largest_gpu(llama(), job, *catalog);
  ASSERT_NE(largest, nullptr);
  EXPECT_NE(largest->vendor, "Apple");
  EXPECT_EQ(largest_gpu(llama(), job, *catalog, [](const auto& gpu) { return gpu.vendor == "Apple"; }), nullptr);
}

}  // namespace
}  // namespace gpuwright::fit

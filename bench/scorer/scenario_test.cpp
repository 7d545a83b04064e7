#include "scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict.h"
#include "subject.h"

namespace gpuwright::scorer {
namespace {

using testing::HasSubstr;

const catalog::Catalog& facts() {
  static const catalog::Catalog catalog = catalog::Catalog::load().value();
  return catalog;
}

Row row_of(std::string engine, const std::vector<std::pair<std::string, std::string>>& settings) {
  Row row;
  row.id = "t-1";
  row.engine = std::move(engine);
  row.mode = "inference";
  row.component = "kv";
  row.where = "gpu";
  row.meter = "tensor";
  row.usable = "yes";
  for (const auto& [key, value] : settings) row.settings.add(key, value);
  return row;
}

// The names of cards in published tables, and the memory that those cards have by their data sheets.
TEST(FindGpu, KnowsTheNamesThatTablesUse) {
  const auto gib = [](std::string_view name) {
    const catalog::Accelerator* found = find_gpu(facts(), name);
    return found == nullptr ? 0.0 : found->nominal_memory.gib();
  };
  EXPECT_EQ(gib("A100-40GB"), 40);
  EXPECT_EQ(gib("A100-80GB"), 80);
  EXPECT_EQ(gib("V100-16GB"), 16);
  EXPECT_EQ(gib("V100-32GB"), 32);
  EXPECT_EQ(gib("RTX3090-24GB"), 24);
  EXPECT_EQ(gib("RTX4090"), 24);
  EXPECT_EQ(gib("RTX4060"), 8);
  EXPECT_EQ(gib("RTX5090-32GB"), 32);
  EXPECT_EQ(gib("RTXA6000"), 48);
  EXPECT_EQ(gib("H100"), 80);
  EXPECT_EQ(gib("H200"), 141);
  EXPECT_EQ(gib("H20"), 96);
  EXPECT_EQ(gib("L40S"), 48);
  EXPECT_EQ(gib("A10G"), 24);
  EXPECT_EQ(gib("T4"), 16);
  EXPECT_EQ(find_gpu(facts(), "RTX-8GB"), nullptr);
  EXPECT_EQ(find_gpu(facts(), "pre-Hopper"), nullptr);
}

TEST(Scenario, PrintedMemoryBeatsTheCataloguesAndRangesHaveEnds) {
  Row row =
      row_of("vllm", {{"gpu", "T4"}, {"gpu_mem", "100-200"}, {"kv_budget", "10-30"}, {"util", "0.5"}, {"tp", "2"}});
  EXPECT_EQ(scenario_of(row, facts(), End::low)->targets.at(1).total.count, 100);
  EXPECT_EQ(scenario_of(row, facts(), End::high)->targets.at(0).free.count, 200);
  EXPECT_EQ(scenario_of(row, facts(), End::middle)->job.vllm.kv_budget->count, 20);
  EXPECT_EQ(*scenario_of(row, facts(), End::low)->job.vllm.gpu_memory_utilization, 0.5);
}

TEST(Scenario, WhatIsNotToldStaysTheEnginesOwn) {
  const Scenario scenario = scenario_of(row_of("llama.cpp", {}), facts(), End::middle).value();
  EXPECT_FALSE(scenario.job.context_tokens);
  EXPECT_FALSE(scenario.job.llama.ubatch);
  EXPECT_FALSE(scenario.job.llama.flash_attention);
  EXPECT_FALSE(scenario.job.key_type);
  EXPECT_FALSE(scenario.memory_known);
}

TEST(Scenario, OllamaIsToldTheContextOfOneSequence) {
  const Row row = row_of("ollama", {{"ctx", "4096"}, {"n_seq", "2"}});
  EXPECT_EQ(scenario_of(row, facts(), End::middle)->job.context_tokens, 4096);
}

TEST(Scenario, TheEnginesOwnVersionIsPicked) {
  Row row = row_of("transformers", {});
  row.engine_version = "transformers 4.46.0; torch 2.3.1";
  EXPECT_EQ(engine_of(row)->version, "4.46.0");
  row.engine_version = "commit 8641822; torch 2.1.0";
  EXPECT_EQ(engine_of(row)->version, "");
  row = row_of("ik_llama.cpp", {});
  EXPECT_EQ(engine_of(row)->engine, fit::Engine::llama_cpp);
}

TEST(Predict, RefusalsSayWhy) {
  const auto reason = [](const Row& row) { return predict(row, facts()).error().message(); };
  Row row = row_of("llama.cpp", {});
  EXPECT_THAT(reason(row), HasSubstr("model is not told"));
  row.mode = "qlora";
  EXPECT_THAT(reason(row), HasSubstr("no training engine is called"));
  row.mode = "inference";
  row.model = "Nobody/Nothing-7B";
  EXPECT_THAT(reason(row), HasSubstr("no model preset"));
  EXPECT_THAT(reason(row_of("llamacpp2", {{"ctx", "1"}})), HasSubstr("no engine"));
  EXPECT_THAT(reason(row_of("llama.cpp", {{"ctx", "-1"}})), HasSubstr("ctx"));
}

// llama.cpp's log of Mistral-7B at 2,048 tokens (fedora-copr/logdetective#106): KV self size = 256.00 MiB.
TEST(Predict, AShapeAloneIsEnoughForItsCache) {
  Row row = row_of("llama.cpp", {{"kv_type", "f16"}, {"ctx", "2048"}});
  row.arch.add("layers", "32");
  row.arch.add("kv_dim", "1024");
  EXPECT_EQ(predict(row, facts())->prediction.expected, 256 << 20);
}

}  // namespace
}  // namespace gpuwright::scorer

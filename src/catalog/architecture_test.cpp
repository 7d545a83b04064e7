#include "catalog/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/embedded.h"
#include "catalog/catalog.h"

namespace gpuwright::catalog {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const Architecture& named(const std::vector<Architecture>& all, std::string_view name) {
  for (const Architecture& one : all)
    if (one.name == name) return one;
  ADD_FAILURE() << name;
  return all.front();
}

// The Transformer Engine support matrix: BF16 from 8.0, FP8 from 8.9, NVFP4 from 10.0.
TEST(Architectures, DataTypesAgreeWithTheSupportMatrix) {
  const auto all = load_architectures();
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_THAT(named(*all, "Turing").data_types, Not(Contains("BF16")));
  EXPECT_THAT(named(*all, "Ampere").data_types, Contains("BF16"));
  EXPECT_THAT(named(*all, "Ampere").data_types, Not(Contains("FP8")));
  EXPECT_THAT(named(*all, "Ada Lovelace").data_types, Contains("FP8"));
  EXPECT_THAT(named(*all, "Hopper").data_types, Not(Contains("FP4")));
  EXPECT_THAT(named(*all, "Blackwell").data_types, Contains("FP4"));
  EXPECT_EQ(named(*all, "Volta").last_cuda, "12.9");
  EXPECT_FALSE(named(*all, "Turing").last_cuda);
}

TEST(Architectures, CoverTheGpusOfNvidiaAmdAndIntel) {
  const auto all = load_architectures();
  const auto catalog = Catalog::from_toml(embedded_data("gpus.toml").value(), "gpus.toml");
  ASSERT_TRUE(all && catalog);
  for (const Accelerator& gpu : catalog->accelerators()) {
    if (gpu.vendor != "NVIDIA" && gpu.vendor != "AMD") continue;
    const Architecture& architecture = named(*all, gpu.architecture);
    EXPECT_EQ(architecture.vendor, gpu.vendor) << gpu.id;
    EXPECT_THAT(architecture.compute_capabilities, Contains(gpu.compute_capability.value_or(""))) << gpu.id;
    EXPECT_LE(architecture.year, gpu.year) << gpu.id;
    const bool fp8 = std::any_of(architecture.data_types.begin(), architecture.data_types.end(),
                                 [](const std::string& type) { return type.starts_with("FP8"); });
    EXPECT_TRUE(fp8 || gpu.throughput.fp8_tflops.value_or(0) == 0) << gpu.id;
  }
  for (const Architecture& architecture : *all) EXPECT_FALSE(architecture.sources.empty()) << architecture.name;
}

TEST(Architectures, ErrorsNameTheLine) {
  const auto broken = architectures_from_toml("[[architecture]]\nvendor = \"V\"\nname = 3\n", "a.toml");
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), testing::AllOf(HasSubstr("a.toml"), HasSubstr("3"), HasSubstr("name")));
  EXPECT_FALSE(architectures_from_toml("[[architecture", "a.toml"));
  EXPECT_FALSE(architectures_from_toml("architecture = [1]", "a.toml"));
}

}  // namespace
}  // namespace gpuwright::catalog

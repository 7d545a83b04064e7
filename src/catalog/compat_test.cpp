// The tables against what vendors and users printed, and against each other.
#include "catalog/compat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rules/facts.h"
#include "catalog/catalog.h"

namespace gpuwright::catalog {
namespace {

using ::testing::HasSubstr;

const Compat& tables() {
  static const Compat kTables = Compat::load().value();
  return kTables;
}

TEST(Compat, LoadsEveryTableWithSources) {
  const Compat& t = tables();
  EXPECT_GE(t.cuda.size(), 55U);
  EXPECT_GE(t.torch.size(), 18U);
  const auto all_sourced = [](const auto& rows) {
    for (const auto& row : rows) {
      EXPECT_FALSE(row.sources.empty());
      for (const std::string& source : row.sources) EXPECT_GT(source.size(), 20U) << source;
    }
  };
  all_sourced(t.cuda);
  all_sourced(t.cuda_majors);
  all_sourced(t.branches);
  all_sourced(t.architectures);
  all_sourced(t.compilers);
  all_sourced(t.torch);
  all_sourced(t.tensorflow);
  all_sourced(t.jax);
  all_sourced(t.amd);
  all_sourced(t.containers);
}

TEST(Compat, VersionsRiseTogetherWithTheirDrivers) {
  for (std::size_t i = 1; i < tables().cuda.size(); ++i) {
    EXPECT_LT(compare_versions(tables().cuda[i - 1].version, tables().cuda[i].version), 0);
    EXPECT_LE(compare_versions(tables().cuda[i - 1].driver, tables().cuda[i].driver), 0) << tables().cuda[i].version;
  }
}

TEST(Compat, TagsAndVersionsAreTakenApart) {
  EXPECT_EQ(cuda_of_tag("cu128"), "12.8");
  EXPECT_EQ(cuda_of_tag("cu92"), "9.2");
  EXPECT_FALSE(cuda_of_tag("cpu"));
  EXPECT_FALSE(cuda_of_tag("cu"));
  EXPECT_FALSE(cuda_of_tag("rocm6.4"));
  EXPECT_EQ(version_prefix("2.9.1+cu128", 2), "2.9");
  EXPECT_EQ(version_prefix("535", 1), "535");
  EXPECT_EQ(version_prefix("", 2), "");
}

// CUDA C++ Programming Guide, binary compatibility: from one minor revision to the next one of the same major, not to
// the previous one, nor across majors; not for Tegra.
TEST(Compat, CubinsRunOnLaterMinorsOfTheSameMajor) {
  EXPECT_TRUE(cubin_runs_on("8.0", "8.9"));
  EXPECT_TRUE(cubin_runs_on("12.0", "12.1"));
  EXPECT_FALSE(cubin_runs_on("8.6", "8.0"));
  EXPECT_FALSE(cubin_runs_on("9.0", "10.0"));
  EXPECT_FALSE(cubin_runs_on("8.6", "8.7"));
  EXPECT_TRUE(cubin_runs_on("8.7", "8.7"));
  EXPECT_TRUE(cubin_runs_on("gfx942", "gfx942"));
  EXPECT_FALSE(cubin_runs_on("gfx1100", "gfx1101"));
}

// torch.cuda.get_arch_list() of wheels (github.com/moi90/pytorch_compute_capabilities table.md), pytorch issue 157517
// (V100 and cu128), PyTorch 2.7 release notes (Blackwell needs cu128).
TEST(Compat, TorchBuildsServeWhatTheirWheelsServed) {
  const auto runs = [](const char* release, const char* tag, const char* gpu) {
    return tables().runs_on(*tables().torch_release(release)->build(tag), gpu, false);
  };
  EXPECT_EQ(runs("2.6", "cu124", "12.0"), false);
  EXPECT_EQ(runs("2.7", "cu128", "12.0"), true);
  EXPECT_EQ(runs("2.7", "cu128", "7.0"), false);
  EXPECT_EQ(runs("2.8", "cu128", "7.0"), true);
  EXPECT_EQ(runs("2.11", "cu128", "7.0"), false);
  EXPECT_EQ(runs("2.14", "cu126", "6.1"), true);
  EXPECT_EQ(runs("2.14", "cu130", "7.0"), false);
  EXPECT_EQ(runs("1.13", "cu117", "8.9"), true);  // by the code for 8.6
  EXPECT_EQ(runs("1.13", "cu117", "9.0"), false);
  EXPECT_EQ(runs("2.7", "cu118", "3.7"), true);
  EXPECT_EQ(runs("2.9", "cu128", "8.7"), false);  // Jetson has wheels of its own
}

TEST(Compat, DoesNotGuessAboutAarch64) {
  const TorchRelease& release = *tables().torch_release("2.9.1+cu128");
  EXPECT_EQ(tables().runs_on(*release.build("cu128"), "9.0", true), std::nullopt);
  EXPECT_EQ(tables().runs_on(*release.build("cu130"), "12.1", true), true);
}

// What nvidia-smi printed beside driver versions: 535.104.05 CUDA 12.2, 550.54.15 CUDA 12.4, 580.95.05 CUDA 13.0.
TEST(Compat, DriversShowTheCudaThatNvidiaSmiShows) {
  EXPECT_EQ(tables().newest_cuda_of("535.104.05"), "12.2");
  EXPECT_EQ(tables().newest_cuda_of("550.54.15"), "12.4");
  EXPECT_EQ(tables().newest_cuda_of("580.95.05"), "13.0");
  EXPECT_EQ(tables().newest_cuda_of("470.256.02"), "11.4");
  EXPECT_EQ(tables().newest_cuda_of("300.1"), std::nullopt);
}

TEST(Compat, FloorsFollowTheMajor) {
  EXPECT_EQ(tables().driver_floor("12.8"), "525.60.13");
  EXPECT_EQ(tables().driver_floor("11.7"), "450.80.02");
  EXPECT_EQ(tables().driver_floor("10.2"), "440.33");
  EXPECT_EQ(tables().driver_floor("13.2"), "580.65.06");
  EXPECT_EQ(tables().driver_floor("99.0"), std::nullopt);
}

TEST(Compat, DriversServeTheirGpus) {
  EXPECT_EQ(tables().serves(580, "7.0"), true);
  EXPECT_EQ(tables().serves(595, "7.0"), false);
  EXPECT_EQ(tables().serves(535, "12.0"), false);
  EXPECT_EQ(tables().serves(470, "3.7"), true);
  EXPECT_EQ(tables().serves(580, "99.0"), std::nullopt);
}

// Two files of facts that must not disagree: data/gpus.toml says per GPU which toolkits can target it.
TEST(Compat, AgreesWithTheCatalogueOfGpus) {
  const Catalog catalog = Catalog::load().value();
  for (const Accelerator& gpu : catalog.accelerators()) {
    if (gpu.vendor != "NVIDIA" || !gpu.compute_capability) continue;
    const ArchitectureWindow* window = tables().architecture(*gpu.compute_capability);
    ASSERT_NE(window, nullptr) << gpu.id;
    if (gpu.first_cuda) {
      EXPECT_EQ(window->first_cuda, *gpu.first_cuda) << gpu.id;
    }
    if (gpu.last_cuda) {
      EXPECT_EQ(window->last_cuda, gpu.last_cuda) << gpu.id;
    }
  }
}

TEST(Compat, OwnRowsAddToTheTablesOrTakeAPlace) {
  Compat own = tables();
  const std::size_t releases = own.torch.size();
  ASSERT_TRUE(
      own.overlay("[[torch]]\nversion = \"2.16\"\nnewest = \"2.16.0\"\npython = [\"3.11\", \"3.15\"]\n"
                  "default = \"cu134\"\nsource = \"a note of my own\"\n"
                  "builds = [{ tag = \"cu134\", cudnn = \"9.30\", archs = [\"7.5\", \"9.0\"] }]\n"
                  "[[host_compiler]]\ncuda = \"13.3\"\ngcc = 16\nsource = \"host_config.h\"\n",
                  "mine.toml"));
  EXPECT_EQ(own.torch.size(), releases + 1);
  EXPECT_EQ(own.torch.back().version, "2.16");
  EXPECT_EQ(own.torch_release("2.16.0")->build("cu134")->cuda, "13.4");
  EXPECT_EQ(own.compilers.size(), tables().compilers.size());
  EXPECT_EQ(own.newest_gcc("13.3"), 16);
  ASSERT_FALSE(own.overlay("[[cuda]]\nversion = \"99.0\"\n", "mine.toml"));
  EXPECT_EQ(own.cuda_release("99.0"), nullptr);
}

TEST(Compat, NamesTheLineOfAWrongRow) {
  const auto result = Compat::from_toml("\n[[cuda]]\nversion = 12\n", "mine.toml");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("mine.toml"));
  EXPECT_THAT(result.error().message(), HasSubstr("version has to be a text"));
  EXPECT_EQ(result.error().where.line, 2);
  EXPECT_FALSE(Compat::from_toml("[[torch]]\nversion = \"3.0\"\nnewest = \"3.0\"\npython = [\"3.11\"]\n", "x"));
  EXPECT_FALSE(Compat::from_toml("cuda = 3\n", "x"));
}

}  // namespace
}  // namespace gpuwright::catalog

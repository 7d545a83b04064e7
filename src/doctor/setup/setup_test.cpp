// The whole grid of GPUs, distributions and releases against the tables, judged here by arithmetic of its own; known
// answers from release notes; refusals that are truly the smallest.
#include "doctor/setup/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "catalog/catalog.h"

namespace gpuwright::doctor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const catalog::Compat& compat() {
  static const catalog::Compat kCompat = catalog::Compat::load().value();
  return kCompat;
}
const SetupTables& tables() {
  static const SetupTables kTables = SetupTables::load().value();
  return kTables;
}
const catalog::Catalog& gpus() {
  static const catalog::Catalog kCatalog = catalog::Catalog::load().value();
  return kCatalog;
}
const Setup& setup() {
  static const Setup kSetup(compat(), tables());
  return kSetup;
}

SetupWish wish_for(const char* gpu, const char* distribution) {
  SetupWish wish;
  wish.gpus = {gpus().find(gpu).value()};
  wish.distribution = distribution;
  return wish;
}

int part(const std::string& version, int index) {
  std::size_t at = 0;
  for (int i = 0; i < index; ++i) {
    at = version.find('.', at);
    if (at == std::string::npos) return 0;
    ++at;
  }
  return std::atoi(version.c_str() + at);
}
int number(const std::string& version) {
  return part(version, 0) * 100 + part(version, 1);
}

// CUDA C++ Programming Guide: a cubin runs on the same major, equal or later minor; PTX on everything later.
bool serves(const catalog::TorchBuild& build, const std::string& capability) {
  for (const std::string& code : build.archs)
    if (part(code, 0) == part(capability, 0) && part(code, 1) <= part(capability, 1)) return true;
  return build.ptx && number(*build.ptx) <= number(capability);
}

std::vector<const catalog::Accelerator*> desktop_gpus() {
  std::vector<const catalog::Accelerator*> list;
  for (const catalog::Accelerator& gpu : gpus().accelerators())
    if (gpu.vendor == "NVIDIA" && gpu.compute_capability && gpu.family != "embedded" &&
        gpu.compute_capability != "11.0")
      list.push_back(&gpu);
  return list;
}

void expect_consistent(const SetupWish& wish, const SetupSet& set) {
  const std::string& capability = *wish.gpus.front()->compute_capability;
  SCOPED_TRACE(wish.gpus.front()->id + " " + wish.distribution + " torch " + set.torch->version);
  ASSERT_NE(set.build, nullptr);
  EXPECT_TRUE(serves(*set.build, capability));
  EXPECT_GE(number(set.python), number(set.torch->oldest_python));
  EXPECT_LE(number(set.python), number(set.torch->newest_python));
  // Floors of CUDA 11, 12 and 13: 450, 525 and 580 (NVIDIA CUDA Compatibility).
  const int major = part(set.build->cuda, 0);
  EXPECT_GE(set.driver->branch, major == 13 ? 580 : major == 12 ? 525 : major == 11 ? 450 : 440);
  // R580 is the last branch for compute capability below 7.5, and Blackwell needs open modules of 570 and newer.
  if (number(capability) < 705) {
    EXPECT_LE(set.driver->branch, 580);
    EXPECT_FALSE(set.driver->open);
  } else {
    EXPECT_TRUE(set.driver->open);
  }
  if (number(capability) >= 1000) {
    EXPECT_GE(set.driver->branch, 570);
  }
  if (!set.toolkit) return;
  EXPECT_EQ(part(*set.toolkit, 0), major);
  // CUDA 13 dropped what is below 7.5; 11.8 is the first for 8.9 and 9.0; 12.8 for Blackwell.
  if (number(capability) < 705) {
    EXPECT_LT(number(*set.toolkit), 1300);
  }
  if (number(capability) >= 809) {
    EXPECT_GE(number(*set.toolkit), 1108);
  }
  if (number(capability) >= 1000) {
    EXPECT_GE(number(*set.toolkit), 1208);
  }
}

TEST(SetupGrid, EveryAnswerAgreesWithTheTablesAndEveryRefusalIsTrue) {
  int possible = 0, refused = 0;
  for (const catalog::Accelerator* gpu : desktop_gpus()) {
    for (const SetupDistribution& distribution : tables().distributions) {
      for (const catalog::TorchRelease& release : compat().torch) {
        SetupWish wish;
        wish.gpus = {gpu};
        wish.distribution = distribution.id;
        wish.torch = release.version;
        const auto set = setup().solve(wish);
        const bool code = std::any_of(release.builds.begin(), release.builds.end(),
                                      [&](const auto& build) { return serves(build, *gpu->compute_capability); });
        ASSERT_EQ(set.has_value(), code) << gpu->id << " " << distribution.id << " " << release.version << ": "
                                         << (set ? "" : set.error().en);
        if (set) {
          ++possible;
          EXPECT_EQ(set->torch, &release);
          expect_consistent(wish, *set);
        } else {
          ++refused;
          EXPECT_THAT(set.error().en, HasSubstr(*gpu->compute_capability));
          EXPECT_THAT(set.error().zh, HasSubstr(*gpu->compute_capability));
        }
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(possible, 15000);
  EXPECT_GT(refused, 3000);
}

TEST(SetupGrid, ToolkitsAreOfTheDistributionAndTakeItsCompiler) {
  for (const catalog::Accelerator* gpu : desktop_gpus()) {
    for (const SetupDistribution& distribution : tables().distributions) {
      SetupWish wish;
      wish.gpus = {gpu};
      wish.distribution = distribution.id;
      wish.toolkit = true;
      const auto set = setup().solve(wish);
      if (!set) continue;
      expect_consistent(wish, *set);
      ASSERT_TRUE(set->toolkit);
      EXPECT_GE(number(*set->toolkit), number(distribution.first_toolkit)) << gpu->id << distribution.id;
      const int gcc = set->gcc.value_or(distribution.gcc);
      // torch/utils/cpp_extension.py: CUDA 11 up to GCC 11, 12.0 to 12.2 up to 12, 12.3 to 12.7 up to 13, 12.8 and 12.9
      // up to 14, 13 up to 15.
      const int cuda = number(*set->toolkit);
      EXPECT_LE(gcc, cuda < 1200   ? 11
                     : cuda < 1203 ? 12
                     : cuda < 1208 ? 13
                     : cuda < 1300 ? 14
                                   : 15)
          << gpu->id << " " << distribution.id << " " << *set->toolkit;
    }
  }
}

// A refusal's changes work, and it never asks for two changes where one is enough.
TEST(SetupGrid, RefusalsOfferTheSmallestChangeThatWorks) {
  int checked = 0;
  for (const char* gpu : {"gtx-1080-ti-11gb", "v100-sxm2-32gb", "rtx-2080-ti-11gb", "a100-sxm4-80gb", "rtx-4090-24gb",
                          "h100-sxm5-80gb", "rtx-5090-32gb"}) {
    const auto found = gpus().find(gpu);
    if (!found) continue;
    for (const char* driver : {"", "470.256.02", "525.60.13", "535", "580"})
      for (const char* torch : {"", "1.13", "2.3", "2.6", "2.8", "2.15"})
        for (const char* cuda : {"", "11.7", "12.1", "12.8", "13.2"})
          for (const char* python : {"", "3.8", "3.14"}) {
            SetupWish wish;
            wish.gpus = {*found};
            wish.distribution = "ubuntu-22.04";
            if (*driver != '\0') wish.driver = driver;
            if (*torch != '\0') wish.torch = torch;
            if (*cuda != '\0') wish.cuda = cuda;
            if (*python != '\0') wish.python = python;
            if (setup().solve(wish)) continue;
            const SetupRefusal refusal = setup().refusal(wish);
            ASSERT_FALSE(refusal.changes.empty()) << gpu << driver << torch << cuda << python << refusal.reason.en;
            EXPECT_FALSE(refusal.reason.en.empty());
            ++checked;
            const std::size_t size = refusal.changes.front().values.size();
            for (const SetupChange& change : refusal.changes) {
              EXPECT_EQ(change.values.size(), size);
              EXPECT_EQ(change.text.en.find('{'), std::string::npos) << change.text.en;
              EXPECT_NE(change.set.torch, nullptr);
            }
            if (size == 1) continue;
            // By hand: freeing any one of the wishes alone does not help.
            for (auto member : {&SetupWish::driver, &SetupWish::torch, &SetupWish::cuda, &SetupWish::python}) {
              SetupWish freed = wish;
              freed.*member = std::nullopt;
              EXPECT_FALSE(setup().solve(freed))
                  << gpu << " " << driver << " " << torch << " " << cuda << " " << python;
            }
          }
  }
  EXPECT_GT(checked, 500);
}

// The issue's own words: "RTX 5090 needs cu128: torch >= 2.7".
TEST(Setup, Rtx5090NeedsTorch27ForCu128) {
  SetupWish wish = wish_for("rtx 5090", "ubuntu-24.04");
  wish.torch = "2.6.0";
  ASSERT_FALSE(setup().solve(wish));
  const SetupRefusal refusal = setup().refusal(wish);
  EXPECT_THAT(refusal.reason.en, HasSubstr("cu118, cu124, cu126"));
  ASSERT_EQ(refusal.changes.size(), 1U);
  EXPECT_EQ(refusal.changes[0].values, (std::vector<std::pair<std::string, std::string>>{{"torch", "2.7"}}));
  EXPECT_EQ(refusal.changes[0].set.tag, "cu128");
}

// PyTorch issue 157517: V100 is served by cu126 where the default build leaves it out.
TEST(Setup, VoltaGetsCu126AndTheLastBranchThatKnowsIt) {
  const auto set = setup().solve(wish_for("v100-sxm2-32gb", "debian-12"));
  ASSERT_TRUE(set);
  EXPECT_EQ(set->tag, "cu126");
  EXPECT_EQ(set->torch->version, "2.14");
  EXPECT_EQ(set->driver->branch, 580);
  EXPECT_FALSE(set->driver->open);
  EXPECT_THAT(set->driver->why.en, HasSubstr("the last that serves"));
}

TEST(Setup, ADriverThatStaysDecidesTheBuild) {
  SetupWish wish = wish_for("h100-sxm5-80gb", "ubuntu-22.04");
  wish.driver = "535.104.05";
  const auto set = setup().solve(wish);
  ASSERT_TRUE(set) << set.error().en;
  EXPECT_EQ(set->build->cuda.substr(0, 3), "12.");
  EXPECT_TRUE(set->driver->keeps);
  wish.torch = "2.15";
  ASSERT_FALSE(setup().solve(wish));
  EXPECT_THAT(setup().refusal(wish).reason.en, HasSubstr("580.65.06"));
}

TEST(Setup, TheDriverThatIsHereStaysWhereItIsEnough) {
  SetupWish wish = wish_for("rtx 4090", "ubuntu-22.04");
  wish.present_driver = "550.54.15";  // CUDA 12.4, no fixes since June 2025
  auto set = setup().solve(wish);
  ASSERT_TRUE(set);
  EXPECT_TRUE(set->driver->keeps);
  EXPECT_EQ(set->tag, "cu126");
  EXPECT_THAT(set->notes.front().en, HasSubstr("550"));
  wish.toolkit = true;
  wish.cuda = "13.0";
  set = setup().solve(wish);
  ASSERT_TRUE(set);
  EXPECT_FALSE(set->driver->keeps);
  for (const SetupAction& action : setup().actions(wish, *set))
    if (action.id == "driver.open") {
      EXPECT_TRUE(action.reboot);
    }
}

// nvidia-cudnn-cu12 and nvidia-cudnn-cu13 both bring nvidia/cudnn/lib/libcudnn.so.9.
TEST(Setup, FrameworksOfOneEnvironmentShareTheMajorOfCuda) {
  SetupWish wish = wish_for("rtx 4090", "ubuntu-24.04");
  wish.wants_tensorflow = wish.wants_jax = true;
  const auto set = setup().solve(wish);
  ASSERT_TRUE(set) << set.error().en;
  EXPECT_EQ(part(set->tensorflow->cuda, 0), 12);
  EXPECT_EQ(part(set->build->cuda, 0), 12);
  EXPECT_EQ(set->jax->extra, "cuda12");
  wish.torch = "2.15";
  ASSERT_FALSE(setup().solve(wish));
  EXPECT_THAT(setup().refusal(wish).reason.en, HasSubstr("overwrite each other"));
  EXPECT_EQ(setup().refusal(wish).changes.front().values.front().second, "2.14");
}

TEST(Setup, InsideWslTheDriverIsWindows) {
  SetupWish wish = wish_for("rtx 4090", "ubuntu-24.04");
  wish.wsl = true;
  const auto set = setup().solve(wish);
  ASSERT_TRUE(set);
  for (const SetupAction& action : setup().actions(wish, *set)) {
    EXPECT_NE(action.id, "driver.open");
    EXPECT_NE(action.id, "headers");
    EXPECT_FALSE(action.reboot);
  }
  EXPECT_THAT(setup().script(wish, *set, "en"), Not(HasSubstr("nvidia-open")));
}

TEST(Setup, OneMachineCannotLoadTwoKindsOfModules) {
  SetupWish wish = wish_for("rtx 5090", "ubuntu-24.04");
  wish.gpus.push_back(gpus().find("gtx 1080 ti").value());
  ASSERT_FALSE(setup().solve(wish));
  const SetupRefusal refusal = setup().refusal(wish);
  EXPECT_THAT(refusal.reason.en, HasSubstr("one machine loads one kind"));
  EXPECT_TRUE(refusal.changes.empty());
}

TEST(Setup, AmdTakesRocmWheelsOrARelativesCode) {
  SetupWish wish = wish_for("mi300x", "ubuntu-24.04");
  const auto set = setup().solve(wish);
  ASSERT_TRUE(set) << set.error().en;
  EXPECT_THAT(set->tag, HasSubstr("rocm"));
  EXPECT_FALSE(set->driver);
  wish.cuda = "12.8";
  ASSERT_FALSE(setup().solve(wish));
  wish.cuda.reset();
  wish.torch = "2.0";  // ROCm 5.4.2 had no gfx942
  ASSERT_FALSE(setup().solve(wish));
  EXPECT_EQ(setup().refusal(wish).changes.front().values.front().second, "2.3");  // ROCm 6.0 has
}

TEST(Setup, SaysWhatItCannotSetUp) {
  const auto reason = [](const char* gpu) {
    const auto set = setup().solve(wish_for(gpu, "ubuntu-22.04"));
    return set ? std::string() : set.error().en;
  };
  EXPECT_THAT(reason("Jetson AGX Orin 64GB"), HasSubstr("JetPack"));
  EXPECT_THAT(reason("m2 ultra"), HasSubstr("Apple"));
}

TEST(Setup, GraceBoardsTakeTheWheelForAarch64) {
  SetupWish wish = wish_for("gb10", "ubuntu-24.04");
  wish.aarch64 = true;
  const auto set = setup().solve(wish);
  ASSERT_TRUE(set) << set.error().en;
  EXPECT_GE(number(set->build->cuda), 1300);
  wish.torch = "2.8";
  ASSERT_FALSE(setup().solve(wish));
  EXPECT_THAT(setup().refusal(wish).reason.en, HasSubstr("AArch64"));
}

TEST(Setup, EveryStepIsFilledInForEveryone) {
  for (const char* gpu : {"v100-sxm2-32gb", "rtx 4090", "mi300x", "arc b580"}) {
    for (const SetupDistribution& distribution : tables().distributions) {
      for (const bool container : {false, true}) {
        SetupWish wish = wish_for(gpu, distribution.id.c_str());
        wish.container = container;
        wish.toolkit = wish.gpus.front()->vendor == "NVIDIA" && container;
        const auto set = setup().solve(wish);
        ASSERT_TRUE(set) << gpu << " " << distribution.id << " " << set.error().en;
        const auto actions = setup().actions(wish, *set);
        EXPECT_GE(actions.size(), 4U);
        static const re2::RE2 kForgotten("\\{[a-z_]+\\}");
        for (const SetupAction& action : actions) {
          for (const std::string& text : {action.title.en, action.title.zh, action.why.en, action.why.zh})
            EXPECT_FALSE(re2::RE2::PartialMatch(text, kForgotten)) << action.id << ": " << text;
          for (const std::string& command : action.commands)
            EXPECT_FALSE(re2::RE2::PartialMatch(command, kForgotten)) << action.id << ": " << command;
          EXPECT_FALSE(action.id == "driver.open" && action.commands.empty()) << distribution.id;
        }
      }
    }
  }
}

TEST(Setup, OldRecipesAreThoseOfTheWish) {
  SetupWish wish = wish_for("rtx 4090", "ubuntu-24.04");
  std::vector<std::string> ids;
  for (const OldRecipe* recipe : setup().old_recipes(wish)) ids.push_back(recipe->id);
  EXPECT_THAT(ids, Contains("cu117-rtx-40"));
  EXPECT_THAT(ids, Contains("nvidia-smi-cuda"));
  EXPECT_THAT(ids, Contains("driver-470"));
  EXPECT_THAT(ids, Not(Contains("nvidia-docker2")));
}

TEST(Setup, TextsKeepWhatTheyDoNotKnow) {
  EXPECT_EQ(filled_in("a {x} {unknown} {} {X} {", {{"x", "{y}"}}), "a {y} {unknown} {} {X} {");
}

}  // namespace
}  // namespace gpuwright::doctor

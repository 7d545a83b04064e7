#include "cli/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/parse.h"

namespace gpuwright::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Answer {
  std::string out;
  int code = -1;
  std::string error;
  Json json;
};

Answer run_with(const Command& command, const Arguments& arguments, bool json = false, int width = 100) {
  std::ostringstream out, err;
  Console console{out, err};
  console.json = json;
  console.width = width;
  console.wide = true;
  const auto code = command.run(arguments, console);
  Answer answer{out.str(), code.value_or(-1), code ? "" : code.error().message(), {}};
  if (json && code) answer.json = parse_json(answer.out, "answer").value();
  return answer;
}

Arguments with(std::initializer_list<std::pair<const char*, const char*>> values) {
  Arguments arguments;
  for (const auto& [name, value] : values) *value != '\0' ? arguments.add(name, value) : arguments.mark(name);
  return arguments;
}

const Json& at(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  static const Json kNull;
  EXPECT_NE(found, nullptr) << key;
  return found != nullptr ? *found : kNull;
}

TEST(Gpus, ListsTheWholeCatalogue) {
  const Answer answer = run_with(gpus_command(), {});
  EXPECT_EQ(answer.code, kDone);
  EXPECT_THAT(answer.out, HasSubstr("GeForce RTX 4090"));
  EXPECT_THAT(answer.out, HasSubstr("Instinct MI300X"));
  EXPECT_THAT(answer.out, HasSubstr("185 GPUs."));
}

// TechPowerUp and NVIDIA list three Ada cards of 24 GB (4090, 4090 D, RTX 4500 Ada) and the L4.
TEST(Gpus, FiltersSortsAndLimits) {
  const Arguments arguments = with({{"--filter", "arch=ada and vram=24"}, {"--sort", "-bandwidth"}});
  const Answer answer = run_with(gpus_command(), arguments, true);
  ASSERT_EQ(at(answer.json, "schema").as_string(), "gpuwright.gpus/1");
  EXPECT_EQ(at(answer.json, "found").as_int(), 4);
  EXPECT_EQ(at(at(answer.json, "gpus").items().back(), "id").as_string(), "l4-24gb");
  Arguments limited = arguments;
  limited.add("--limit", "1");
  EXPECT_EQ(at(run_with(gpus_command(), limited, true).json, "gpus").items().size(), 1U);
  EXPECT_THAT(run_with(gpus_command(), limited).out, HasSubstr("1 of 4 GPUs"));
  Arguments both = arguments;
  both.add("--filter", "tdp<100");
  EXPECT_EQ(at(run_with(gpus_command(), both, true).json, "found").as_int(), 1);
  EXPECT_THAT(run_with(gpus_command(), with({{"--filter", "vram>9999"}})).out, HasSubstr("none of the 185"));
}

TEST(Gpus, RefusesWrongWords) {
  EXPECT_THAT(run_with(gpus_command(), with({{"--filter", "vrma>1"}})).error, HasSubstr("did you mean vram?"));
  EXPECT_THAT(run_with(gpus_command(), with({{"--sort", "powr"}})).error, HasSubstr("did you mean power?"));
  EXPECT_NE(run_with(gpus_command(), with({{"--limit", "0"}})).error, "");
  EXPECT_THAT(run_with(gpus_show_command(), with({{"NAME", "a100"}})).error, HasSubstr("a100-sxm4-80gb"));
  EXPECT_THAT(run_with(gpus_compare_command(), with({{"NAME", "4090"}})).error, HasSubstr("nothing to compare"));
}

TEST(Gpus, ShowsOneInFull) {
  const Answer answer = run_with(gpus_show_command(), with({{"NAME", "4090"}}));
  for (const char* text : {"NVIDIA GeForce RTX 4090", "AD102", "24 GiB GDDR6X", "23.64 GiB", "1,008 GB/s",
                           "165.2 TFLOPS", "USD 1,599", "11.8 and later", "10de:2684", "no NVLink", "no MIG", "no FP4"})
    EXPECT_THAT(answer.out, HasSubstr(text));
  const Answer volta = run_with(gpus_show_command(), with({{"NAME", "V100-SXM2-32GB"}}));
  EXPECT_THAT(volta.out, HasSubstr("9.0 to 12.9"));
  EXPECT_THAT(volta.out, HasSubstr("no CUDA after 12.9"));
  EXPECT_THAT(run_with(gpus_show_command(), with({{"NAME", "a30"}})).out, HasSubstr("1g.6gb"));
  EXPECT_THAT(run_with(gpus_show_command(), with({{"NAME", "rtx pro 5000"}})).out, HasSubstr("n/a (sources disagree"));
}

TEST(Gpus, JsonTellsUnknownFromLacking) {
  const Answer answer = run_with(gpus_show_command(), with({{"NAME", "b300"}}), true);
  const Json& gpu = at(answer.json, "gpus").items().at(0);
  EXPECT_TRUE(at(at(gpu, "throughput"), "fp4_tflops").is_null());
  EXPECT_THAT(std::string(at(at(gpu, "unknown"), "fp4_tflops").as_string().value()), HasSubstr("disagree"));
  const Answer ampere = run_with(gpus_show_command(), with({{"NAME", "a30"}}), true);
  EXPECT_EQ(at(at(at(ampere.json, "gpus").items().at(0), "throughput"), "fp8_tflops").as_double(), 0.0);
}

// White papers: 936 GB/s and 71 TFLOPS against 1,008 and 165.2.
TEST(Gpus, ComparesByRatios) {
  const Arguments pair = with({{"NAME", "3090"}, {"NAME", "4090"}});
  const Answer answer = run_with(gpus_compare_command(), pair);
  EXPECT_THAT(answer.out, HasSubstr("1,008 (1.08x)"));
  EXPECT_THAT(answer.out, HasSubstr("165.2 (2.32x)"));
  EXPECT_THAT(answer.out, HasSubstr("GeForce RTX 3090: no FP8"));
  EXPECT_THAT(answer.out, Not(HasSubstr("GeForce RTX 4090: no FP8")));
  const Answer json = run_with(gpus_compare_command(), pair, true);
  const Json& bandwidth = at(at(json.json, "comparison"), "memory_bandwidth_gb_per_second");
  EXPECT_NEAR(at(bandwidth, "ratios_to_first").items().at(1).as_double().value(), 1008.0 / 936.0, 1e-9);
  EXPECT_TRUE(at(at(at(json.json, "comparison"), "fp8_tflops"), "ratios_to_first").items().at(1).is_null());
}

TEST(Gpus, SaysWhatArchitecturesBrought) {
  const Answer answer = run_with(gpus_command(), with({{"--architectures", ""}}));
  EXPECT_LT(answer.out.find("NVIDIA Volta"), answer.out.find("NVIDIA Blackwell"));
  EXPECT_THAT(answer.out, HasSubstr("first tensor cores"));
  const Answer json = run_with(gpus_command(), with({{"--architectures", ""}}), true);
  EXPECT_GE(at(json.json, "architectures").items().size(), 15U);
}

TEST(Gpus, ShowsThoseOfThisMachineOrWhereItLooked) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(::testing::TempDir()) / "gpuwright_gpus_here";
  fs::create_directories(root);
  const Arguments here = with({{"--here", ""}, {"--root", root.c_str()}});
  Answer answer = run_with(gpus_command(), here);
  EXPECT_EQ(answer.code, kDone);
  EXPECT_EQ(answer.out, "no GPUs found: looked at " + root.string() + "/sys/bus/pci/devices (0 PCI devices)\n");
  const fs::path device = root / "sys/bus/pci/devices/0000:01:00.0";
  fs::create_directories(device);
  std::ofstream(device / "class") << "0x030000\n";
  std::ofstream(device / "vendor") << "0x10de\n";
  std::ofstream(device / "device") << "0x2204\n";
  answer = run_with(gpus_command(), here);
  EXPECT_THAT(answer.out, HasSubstr("0000:01:00.0  NVIDIA GeForce RTX 3090"));
  const Answer json = run_with(gpus_command(), here, true);
  EXPECT_EQ(at(at(at(json.json, "here"), "gpus").items().at(0), "id").as_string(), "rtx-3090-24gb");
  fs::remove_all(root);
}

}  // namespace
}  // namespace gpuwright::cli

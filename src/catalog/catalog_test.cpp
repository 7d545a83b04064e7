#include "catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/embedded.h"

namespace gpuwright::catalog {
namespace {

using ::testing::HasSubstr;

const Catalog& builtin() {
  static const Catalog kCatalog = [] {
    auto catalog = Catalog::from_toml(embedded_data("gpus.toml").value(), "gpus.toml");
    if (!catalog) ADD_FAILURE() << catalog.error().message();
    return std::move(catalog).value();
  }();
  return kCatalog;
}

std::string found(std::string_view name) {
  const auto gpu = builtin().find(name);
  return gpu ? (*gpu)->id : "error: " + gpu.error().message();
}

TEST(Find, NamesAsPeopleWriteThem) {
  EXPECT_EQ(found("4090"), "rtx-4090-24gb");
  EXPECT_EQ(found("RTX4090"), "rtx-4090-24gb");
  EXPECT_EQ(found("nvidia geforce rtx 4090"), "rtx-4090-24gb");
  EXPECT_EQ(found("4090 d"), "rtx-4090-d-24gb");
  EXPECT_EQ(found("4090D"), "rtx-4090-d-24gb");
  EXPECT_EQ(found("h100 sxm"), "h100-sxm5-80gb");
  EXPECT_EQ(found("H100-PCIe"), "h100-pcie-80gb");
  EXPECT_EQ(found("h100 nvl"), "h100-nvl-94gb");
  EXPECT_EQ(found("rtx a6000"), "rtx-a6000-48gb");
  EXPECT_EQ(found("a6000"), "rtx-a6000-48gb");
  EXPECT_EQ(found("6000 ada"), "rtx-6000-ada-48gb");
  EXPECT_EQ(found("3090ti"), "rtx-3090-ti-24gb");
  EXPECT_EQ(found("3060"), "rtx-3060-12gb");
  EXPECT_EQ(found("3080 12GB"), "rtx-3080-12gb");
  EXPECT_EQ(found("4060ti 16g"), "rtx-4060-ti-16gb");
  EXPECT_EQ(found("rtx 2060"), "rtx-2060-6gb");
  EXPECT_EQ(found("a100 sxm4 80gb"), "a100-sxm4-80gb");
  EXPECT_EQ(found("A100 40 GB pcie"), "a100-pcie-40gb");
  EXPECT_EQ(found("tesla t4"), "t4-16gb");
  EXPECT_EQ(found("mi300x"), "mi300x-192gb");
  EXPECT_EQ(found("7900xtx"), "rx-7900-xtx-24gb");
  EXPECT_EQ(found("gb10"), "gb10-128gb");
  EXPECT_EQ(found("gb10/spark"), "gb10-128gb");
  EXPECT_EQ(found("DGX Spark"), "gb10-128gb");
  EXPECT_EQ(found("strix halo"), "ryzen-ai-max-395-128gb");
  EXPECT_EQ(found("l4"), "l4-24gb");
  EXPECT_EQ(found("l40"), "l40-48gb");
  EXPECT_EQ(found("arc b580"), "arc-b580-12gb");
  EXPECT_EQ(found("ascend 910b"), "ascend-910b-64gb");
  EXPECT_EQ(found("m3 ultra"), "apple-m3-ultra-512gb");
}

TEST(Find, OpenNamesListTheCandidates) {
  EXPECT_THAT(found("mi300"), testing::AllOf(HasSubstr("any of 2"), HasSubstr("mi300a-128gb, mi300x-192gb")));
  EXPECT_THAT(found("orin"), testing::AllOf(HasSubstr("may be any of"), HasSubstr("jetson-agx-orin-64gb"),
                                            HasSubstr("jetson-orin-nx-8gb")));
  EXPECT_THAT(found("rtx 5000"), testing::AllOf(HasSubstr("rtx-5000-ada-32gb"), HasSubstr("rtx-pro-5000-bw-48gb")));
}

TEST(Find, HintsAreNearInWhatMatters) {
  EXPECT_THAT(found("4900"), HasSubstr("did you mean 4090"));
  EXPECT_THAT(found("24"), testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(found("mi308"), HasSubstr("mi308x-192gb"));
}

TEST(Find, PciIds) {
  EXPECT_EQ(found("10de:2684"), "rtx-4090-24gb");
  EXPECT_EQ(found("10DE:2684"), "rtx-4090-24gb");
  EXPECT_THAT(found("10de:ffff"), HasSubstr("no GPU of the catalogue has the PCI id 10de:ffff"));
}

TEST(Find, LaptopsAreChipsOfTheirOwn) {
  EXPECT_EQ(found("rtx 4090 laptop"), "rtx-4090-laptop-16gb");
  EXPECT_EQ(found("4070 mobile"), "rtx-4070-laptop-8gb");
  EXPECT_EQ(found("NVIDIA GeForce RTX 3080 Laptop GPU"), "rtx-3080-laptop-16gb");
  EXPECT_EQ(found("4090"), "rtx-4090-24gb");
  EXPECT_THAT(found("rtx 2080 laptop"), testing::AllOf(HasSubstr("is not in the catalogue"),
                                                       HasSubstr("the desktop GeForce RTX 2080 (8.00 GiB")));
}

TEST(Find, OlderAndSmallerCards) {
  EXPECT_EQ(found("1080"), "gtx-1080-8gb");
  EXPECT_EQ(found("gtx 1070"), "gtx-1070-8gb");
  EXPECT_EQ(found("1660 ti"), "gtx-1660-ti-6gb");
  EXPECT_EQ(found("p4"), "p4-8gb");
  EXPECT_EQ(found("m4 pro"), "apple-m4-pro-64gb");
  EXPECT_EQ(found("apple m2 max"), "apple-m2-max-96gb");
}

// The GB300 carries the chip and the memory of the B300, whose total is known.
TEST(Find, SiblingsLendTheirTotals) {
  const Accelerator& gb300 = *builtin().find("gb300").value();
  EXPECT_EQ(gb300.usable(), builtin().find("b300").value()->usable());
  EXPECT_THAT(gb300.usable_source(), HasSubstr("B300 SXM"));
}

// Names that nvidia-smi and torch print, as seen in public logs.
TEST(Find, NamesThatDriversReport) {
  EXPECT_EQ(found("NVIDIA A100-SXM4-80GB"), "a100-sxm4-80gb");
  EXPECT_EQ(found("NVIDIA A100 80GB PCIe"), "a100-pcie-80gb");
  EXPECT_EQ(found("NVIDIA H100 80GB HBM3"), "h100-sxm5-80gb");
  EXPECT_EQ(found("NVIDIA H200"), "h200-sxm5-141gb");
  EXPECT_EQ(found("NVIDIA B200"), "b200-sxm-180gb");
  EXPECT_EQ(found("NVIDIA GH200 480GB"), "gh200-96gb");
  EXPECT_EQ(found("Tesla V100-SXM2-16GB"), "v100-sxm2-16gb");
  EXPECT_EQ(found("NVIDIA RTX 6000 Ada Generation"), "rtx-6000-ada-48gb");
  EXPECT_EQ(found("NVIDIA RTX PRO 6000 Blackwell Server Edition"), "rtx-pro-6000-bw-server-96gb");
  EXPECT_EQ(found("AMD Instinct MI250X/MI250"), found("AMD Instinct MI250X/MI250"));
  EXPECT_EQ(found("AMD Radeon RX 9070 XT"), "rx-9070-xt-16gb");
  EXPECT_EQ(found("Radeon 8060S Graphics"), "ryzen-ai-max-395-128gb");
}

TEST(Find, SaysWhatAnAmbiguousNameMayBe) {
  const auto a100 = builtin().find("a100");
  ASSERT_FALSE(a100);
  EXPECT_EQ(a100.error().code, ErrorCode::bad_input);
  for (const char* id : {"a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm4-40gb", "a100-sxm4-80gb"})
    EXPECT_THAT(a100.error().hint, HasSubstr(id));
  EXPECT_THAT(found("a100 80gb"), HasSubstr("2 GPUs"));
  EXPECT_THAT(found("4060 ti"), HasSubstr("rtx-4060-ti-8gb, rtx-4060-ti-16gb"));
  EXPECT_THAT(found("rtx 6000"), HasSubstr("quadro-rtx-6000-24gb, rtx-6000-ada-48gb"));
  EXPECT_THAT(found("nvidia"), HasSubstr("more"));
}

TEST(Find, SuggestsTheNearestName) {
  EXPECT_THAT(found("rtx 4909"), HasSubstr("did you mean"));
  EXPECT_THAT(found("GeForce RTX 4091"), HasSubstr("GeForce RTX 4090"));
  EXPECT_THAT(found("amd 4090"), HasSubstr("no GPU is called"));
  EXPECT_THAT(found(""), HasSubstr("empty"));
  EXPECT_THAT(found("---"), HasSubstr("no GPU is called"));
  EXPECT_THAT(found(std::string(500, 'a')), HasSubstr("too long"));
}

TEST(Find, EveryRowIsFoundByItsOwnIdAndName) {
  for (const Accelerator& gpu : builtin().accelerators()) {
    EXPECT_EQ(found(gpu.id), gpu.id);
    EXPECT_EQ(found(gpu.name), gpu.id) << gpu.name;
    for (const std::string& alias : gpu.aliases) EXPECT_EQ(found(alias), gpu.id) << alias;
  }
}

// Ids from pci.ids: 10de:2684 is "AD102 [GeForce RTX 4090]", 1002:74a1 "Aqua Vanjaram [Instinct MI300X]".
TEST(PciId, FindsTheOneRowOrNone) {
  ASSERT_NE(builtin().find_by_pci_id({0x10de, 0x2684}), nullptr);
  EXPECT_EQ(builtin().find_by_pci_id({0x10de, 0x2684})->id, "rtx-4090-24gb");
  EXPECT_EQ(builtin().find_by_pci_id({0x10de, 0x2684, 0x1043, 0x889a})->id, "rtx-4090-24gb");
  EXPECT_EQ(builtin().find_by_pci_id({0x1002, 0x74a1})->id, "mi300x-192gb");
  EXPECT_EQ(builtin().find_by_pci_id({0x1234, 0x1111}), nullptr);
  // 744c is the RX 7900 XT, XTX and GRE.
  EXPECT_EQ(builtin().find_by_pci_id({0x1002, 0x744c}), nullptr);
  EXPECT_EQ(builtin().all_by_pci_id({0x1002, 0x744c}).size(), 3U);
}

// NVIDIA's table of compatible GPUs: 25B6 10DE 14A9 is the A16, 25B6 10DE 157E the A2.
TEST(PciId, SubsystemTellsBoardsApart) {
  EXPECT_EQ(builtin().find_by_pci_id({0x10de, 0x25b6, 0x10de, 0x14a9})->id, "a16-16gb");
  EXPECT_EQ(builtin().find_by_pci_id({0x10de, 0x25b6, 0x10de, 0x157e})->id, "a2-16gb");
}

constexpr std::string_view kOne = R"([sources]
sheet = "Vendor, data sheet"
[[gpu]]
id = "x"
vendor = "NVIDIA"
name = "X 1"
memory_gib = 24
usable_memory_mib = 24000
fp16_tflops = 100
sources = ["sheet"]
)";

std::string error_of(std::string_view text) {
  const auto catalog = Catalog::from_toml(text, "my.toml");
  return catalog ? "no error" : catalog.error().message();
}

TEST(File, ErrorsNameFileAndLine) {
  EXPECT_EQ(error_of(kOne), "no error");
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\nvendor = \"V\"\nname = \"N\"\nmemory_gib = 1\nfp16_tflop = 3\n"),
              testing::AllOf(HasSubstr("my.toml"), HasSubstr("6"), HasSubstr("no field \"fp16_tflop\""),
                             HasSubstr("did you mean fp16_tflops?")));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\nfp16_tflops = \"fast\"\n"),
              testing::AllOf(HasSubstr("3"), HasSubstr("number")));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\nfp16_tflops = -1\n"), HasSubstr("number"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\nfp16_tflops = nan\n"), HasSubstr("number"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\nunified_memory = 1\n"), HasSubstr("true or false"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\npci_ids = [\"10de-2684\"]\n"), HasSubstr("PCI id"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\nsources = [\"nobody\"]\n"), HasSubstr("[sources] has no"));
  EXPECT_THAT(error_of("[[gpu]]\nname = \"x\"\n"), HasSubstr("needs an id"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"x\"\n"), HasSubstr("needs vendor, name and memory_gib"));
  EXPECT_THAT(error_of("[[gpu]\n"), HasSubstr("my.toml"));
  EXPECT_THAT(error_of("[[gpus]]\nid = \"x\"\n"), HasSubstr("unknown key \"gpus\""));
  EXPECT_THAT(error_of("gpu = 3\n"), HasSubstr("unknown key"));
  EXPECT_THAT(error_of("gpu = [3]\n"), HasSubstr("needs an id"));
  EXPECT_THAT(error_of(std::string(kOne) + "[[gpu]]\nid = \"x\"\n"), HasSubstr("already defined above"));
  EXPECT_THAT(error_of("a = " + std::string(2000, '[')), HasSubstr("my.toml"));
}

TEST(File, JsonOfTheBuildHoldsTheSameRows) {
  const char* before = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
  const auto loaded = Catalog::load();
  before != nullptr ? ::setenv("XDG_CONFIG_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CONFIG_HOME");
  ASSERT_TRUE(loaded) << loaded.error().message();
  ASSERT_EQ(loaded->accelerators().size(), builtin().accelerators().size());
  for (std::size_t i = 0; i < loaded->accelerators().size(); ++i) {
    const Accelerator &json = loaded->accelerators()[i], &toml = builtin().accelerators()[i];
    EXPECT_EQ(json.id, toml.id);
    EXPECT_EQ(json.sources, toml.sources) << json.id;
    EXPECT_EQ(json.usable(), toml.usable()) << json.id;
    EXPECT_EQ(json.throughput.fp16_tflops, toml.throughput.fp16_tflops) << json.id;
    EXPECT_EQ(json.mig_profiles.size(), toml.mig_profiles.size()) << json.id;
    EXPECT_EQ(json.notes, toml.notes) << json.id;
  }
}

TEST(File, OverlayReplacesFieldByField) {
  Catalog catalog = Catalog::from_toml(kOne, "a").value();
  ASSERT_TRUE(
      catalog.overlay("[[gpu]]\nid = \"x\"\nfp16_tflops = 120\n[[gpu]]\nid = \"y\"\nvendor = \"V\"\nname = \"Y\"\n"
                      "memory_gib = 8\n",
                      "b"));
  ASSERT_EQ(catalog.accelerators().size(), 2U);
  const Accelerator& x = catalog.accelerators()[0];
  EXPECT_EQ(x.throughput.fp16_tflops, 120);
  EXPECT_EQ(x.name, "X 1");
  EXPECT_EQ(x.usable_memory, Bytes::from_mib(24000));
  EXPECT_EQ(x.sources, std::vector<std::string>{"Vendor, data sheet"});
  // A card with its memory doubled: the total measured on 24 GB says nothing any more.
  ASSERT_TRUE(catalog.overlay("[[gpu]]\nid = \"x\"\nmemory_gib = 48\n", "c"));
  EXPECT_FALSE(catalog.accelerators()[0].usable_memory.has_value());
  EXPECT_GT(catalog.accelerators()[0].usable(), Bytes::from_gib(46));
}

TEST(File, OverlayThatFailsChangesNothing) {
  Catalog catalog = Catalog::from_toml(kOne, "a").value();
  EXPECT_FALSE(catalog.overlay("[[gpu]]\nid = \"x\"\nfp16_tflops = 1\nbf16_tflops = \"?\"\n", "b"));
  EXPECT_EQ(catalog.accelerators()[0].throughput.fp16_tflops, 100);
}

TEST(File, LoadLaysTheUsersFileOverTheBuiltInOne) {
  namespace fs = std::filesystem;
  const fs::path home = fs::path(testing::TempDir()) / "gpuwright_catalog_test";
  fs::create_directories(home / "gpuwright");
  std::ofstream(home / "gpuwright/gpus.toml") << "[[gpu]]\nid = \"rtx-4090-24gb\"\nnotes = \"mine\"\n";
  const char* before = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("XDG_CONFIG_HOME", home.c_str(), 1);
  const auto catalog = Catalog::load();
  std::ofstream(home / "gpuwright/gpus.toml") << "\n\n[[gpu]]\nid = \"rtx-4090-24gb\"\nnote = \"mine\"\n";
  const auto broken = Catalog::load();
  before != nullptr ? ::setenv("XDG_CONFIG_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CONFIG_HOME");
  fs::remove_all(home);
  ASSERT_TRUE(catalog) << catalog.error().message();
  EXPECT_EQ(catalog->find("4090").value()->notes, "mine");
  EXPECT_EQ(catalog->find("4090").value()->throughput.fp8_tflops, 330.3);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), testing::AllOf(HasSubstr("gpuwright/gpus.toml"), HasSubstr("5")));
}

}  // namespace
}  // namespace gpuwright::catalog

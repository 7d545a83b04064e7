// What every row of data/gpus.toml must satisfy, and figures that vendors' data sheets give.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/embedded.h"
#include "base/text.h"
#include "catalog/catalog.h"

namespace gpuwright::catalog {
namespace {

const std::vector<Accelerator>& rows() {
  static const Catalog kCatalog = Catalog::from_toml(embedded_data("gpus.toml").value(), "gpus.toml").value();
  return kCatalog.accelerators();
}

TEST(Data, HasEveryAcceleratorWithSources) {
  EXPECT_EQ(rows().size(), 185U);
  std::set<std::string> ids;
  for (const Accelerator& gpu : rows()) {
    EXPECT_TRUE(ids.insert(gpu.id).second) << gpu.id;
    EXPECT_FALSE(gpu.sources.empty()) << gpu.id;
    for (const std::string& source : gpu.sources) EXPECT_GT(source.size(), 10U) << gpu.id << ": " << source;
    EXPECT_FALSE(gpu.family.empty()) << gpu.id;
    EXPECT_FALSE(gpu.architecture.empty()) << gpu.id;
    EXPECT_TRUE(gpu.year && *gpu.year >= 2016 && *gpu.year <= 2026) << gpu.id;
    EXPECT_TRUE(!gpu.memory_bandwidth_gb_per_second || *gpu.memory_bandwidth_gb_per_second > 30) << gpu.id;
  }
}

TEST(Data, UsableMemoryIsBelowNominalAndHasASource) {
  int measured = 0;
  for (const Accelerator& gpu : rows()) {
    EXPECT_LT(gpu.usable(), gpu.nominal_memory) << gpu.id;
    EXPECT_GT(gpu.usable(), gpu.nominal_memory.scaled(gpu.unified_memory ? 0.45 : 0.88)) << gpu.id;
    EXPECT_EQ(gpu.usable_memory.has_value(), !gpu.usable_memory_source.empty()) << gpu.id;
    measured += gpu.usable_memory.has_value();
  }
  EXPECT_GE(measured, 40);
}

// The rule against every total that drivers reported. Left out: the B300, whose board carries more HBM than the driver
// ever offers, and Strix Halo, where the share is a setting.
TEST(Data, RuleForUsableMemoryIsWithinOneAndAHalfPercentOfReportedTotals) {
  for (const Accelerator& gpu : rows()) {
    if (!gpu.usable_memory || gpu.id == "b300-sxm-288gb" || gpu.id == "ryzen-ai-max-395-128gb") continue;
    const double ratio = gpu.usable_by_rule().mib() / gpu.usable_memory->mib();
    EXPECT_NEAR(ratio, 1.0, 0.015) << gpu.id << ": rule " << gpu.usable_by_rule().mib() << " MiB, reported "
                                   << gpu.usable_memory->mib();
  }
}

TEST(Data, ThroughputIsConsistent) {
  for (const Accelerator& gpu : rows()) {
    const Throughput& t = gpu.throughput;
    if (t.fp16_tflops && t.fp16_accumulate_fp16_tflops) {
      EXPECT_GE(*t.fp16_accumulate_fp16_tflops, *t.fp16_tflops) << gpu.id;
    }
    if (t.fp16_tflops && t.bf16_tflops && gpu.architecture != "Gaudi") {
      EXPECT_GE(*t.fp16_tflops, *t.bf16_tflops) << gpu.id;
    }
    if (t.fp16_tflops && t.tf32_tflops) {
      EXPECT_GE(*t.fp16_tflops, *t.tf32_tflops) << gpu.id;
    }
    if (t.fp8_tflops.value_or(0) > 0 && t.bf16_tflops && gpu.vendor == "NVIDIA") {
      EXPECT_NEAR(*t.fp8_tflops / *t.bf16_tflops, 2.0, 0.05) << gpu.id;
    }
    if (t.fp4_tflops.value_or(0) > 0 && t.fp8_tflops) {
      EXPECT_GE(*t.fp4_tflops, *t.fp8_tflops) << gpu.id;
    }
    if (gpu.family == "consumer" && gpu.architecture == "Ada Lovelace") {
      EXPECT_NEAR(*t.fp16_accumulate_fp16_tflops / *t.fp16_tflops, 2.0, 0.01) << gpu.id;
    }
  }
}

// CUDA 13.0 release notes: Maxwell, Pascal and Volta are no longer targets; R580 is their last driver branch.
TEST(Data, NvidiaRowsKnowTheirToolkits) {
  for (const Accelerator& gpu : rows()) {
    if (gpu.vendor != "NVIDIA") {
      EXPECT_FALSE(gpu.first_cuda) << gpu.id;
      continue;
    }
    ASSERT_TRUE(gpu.compute_capability) << gpu.id;
    EXPECT_TRUE(gpu.first_cuda && gpu.first_driver) << gpu.id;
    const bool dropped = to_number(*gpu.compute_capability).value() <= 7.0;
    EXPECT_EQ(gpu.last_cuda.value_or(""), dropped ? "12.9" : "") << gpu.id;
    EXPECT_EQ(gpu.last_driver.value_or(""), dropped ? "R580" : "") << gpu.id;
  }
}

// pci.ids: who owns which vendor id.
TEST(Data, PciVendorsMatch) {
  const std::map<std::string, std::set<int>> kVendors = {
      {"NVIDIA", {0x10de}}, {"AMD", {0x1002}}, {"Intel", {0x8086, 0x1da3}}, {"Huawei", {0x19e5}}, {"AWS", {0x1d0f}}};
  for (const Accelerator& gpu : rows())
    for (const PciId& id : gpu.pci_ids) {
      ASSERT_TRUE(kVendors.contains(gpu.vendor)) << gpu.id;
      EXPECT_TRUE(kVendors.at(gpu.vendor).contains(id.vendor)) << gpu.id << ' ' << to_string(id);
    }
}

// NVIDIA Multi-Instance GPU User Guide, Supported GPUs: product, memory, largest number of instances.
TEST(Data, MigBoardsAreThoseOfTheGuide) {
  const std::map<std::string, int> kInstances = {
      {"a30-24gb", 4},       {"a100-sxm4-40gb", 7},          {"a100-pcie-80gb", 7},
      {"h100-sxm5-80gb", 7}, {"h100-nvl-94gb", 7},           {"h20-sxm5-96gb", 7},
      {"gh200-96gb", 7},     {"h200-sxm5-141gb", 7},         {"b200-sxm-180gb", 7},
      {"gb200-186gb", 7},    {"rtx-pro-6000-bw-ws-96gb", 4},
  };
  for (const Accelerator& gpu : rows()) {
    int most = 0;
    for (const MigProfile& profile : gpu.mig_profiles) {
      most = std::max(most, profile.max_instances);
      EXPECT_LE(profile.memory, gpu.usable() + Bytes::from_gib(0.3)) << gpu.id << ' ' << profile.name;
      EXPECT_LE(profile.memory * profile.max_instances, gpu.nominal_memory) << gpu.id << ' ' << profile.name;
    }
    if (kInstances.contains(gpu.id)) {
      EXPECT_EQ(most, kInstances.at(gpu.id)) << gpu.id;
    }
    if (!gpu.mig_profiles.empty()) {
      EXPECT_EQ(supports_mig(gpu), true);
    }
  }
}

struct Sheet {
  const char* id;
  double memory_gib, bandwidth, fp16, fp8, watts;  // -1: the sheet does not say
};

// Dense figures of the vendors' data sheets and white papers (sparse ones halved), board power, GB/s.
TEST(Data, AgreesWithDataSheets) {
  const Sheet kSheets[] = {
      {"t4-16gb", 16, 320, 65, -1, 70},                   // NVIDIA T4 data sheet: 65 TFLOPS mixed precision
      {"v100-sxm2-32gb", 32, 900, 125, -1, 300},          // V100 data sheet
      {"a30-24gb", 24, 933, 165, -1, 165},                // A30 data sheet
      {"a40-48gb", 48, 696, 149.7, -1, 300},              // A40 data sheet
      {"a10-24gb", 24, 600, 125, -1, 150},                // A10 data sheet
      {"a100-sxm4-40gb", 40, 1555, 312, -1, 400},         // A100 data sheet
      {"a100-pcie-80gb", 80, 1935, 312, -1, 300},         // A100 80GB data sheet
      {"a100-sxm4-80gb", 80, 2039, 312, -1, 400},         // A100 80GB data sheet
      {"h100-sxm5-80gb", 80, 3350, 989.5, 1979, 700},     // H100 data sheet: 1,979 and 3,958 with sparsity
      {"h100-nvl-94gb", 94, 3938, 835.5, 1670.5, 400},    // H100 NVL data sheet: 1,671 and 3,341 with sparsity
      {"h200-sxm5-141gb", 141, 4800, 989.5, 1979, 700},   // H200 data sheet
      {"l4-24gb", 24, 300, 121, 242.5, 72},               // L4 data sheet: 242 and 485 with sparsity
      {"l40-48gb", 48, 864, 181.05, 362, 300},            // L40 data sheet
      {"l40s-48gb", 48, 864, 362.05, 733, 350},           // L40S data sheet
      {"rtx-3090-24gb", 24, 936, 71, -1, 350},            // GA102 white paper: FP16 with FP32 accumulate
      {"rtx-4090-24gb", 24, 1008, 165.2, 330.3, 450},     // Ada white paper, appendix A
      {"rtx-5090-32gb", 32, 1792, 209.5, 419, 575},       // RTX Blackwell white paper, appendix A
      {"b200-sxm-180gb", 180, 8000, 2250, 4500, 1000},    // HGX B200: 36 and 72 PFLOPS with sparsity for eight
      {"mi210-64gb", 64, 1638.4, 181, -1, 300},           // AMD Instinct MI210 data sheet
      {"mi300x-192gb", 192, 5300, 1307.4, 2614.9, 750},   // AMD Instinct MI300X data sheet
      {"mi325x-256gb", 256, 6000, 1307.4, 2614.9, 1000},  // AMD Instinct MI325X data sheet
      {"mi355x-288gb", 288, 8000, 2516.6, 5033.2, 1400},  // AMD Instinct MI355X data sheet: 2.5 and 5.0 PFLOPS
      {"rx-7900-xtx-24gb", 24, 960, 122.8, -1, 355},      // AMD product page
  };
  std::map<std::string, const Accelerator*> index;
  for (const Accelerator& gpu : rows()) index[gpu.id] = &gpu;
  for (const Sheet& sheet : kSheets) {
    ASSERT_TRUE(index.contains(sheet.id)) << sheet.id;
    const Accelerator& gpu = *index[sheet.id];
    EXPECT_DOUBLE_EQ(gpu.nominal_memory.gib(), sheet.memory_gib) << sheet.id;
    EXPECT_NEAR(*gpu.memory_bandwidth_gb_per_second, sheet.bandwidth, sheet.bandwidth * 0.005) << sheet.id;
    EXPECT_NEAR(*gpu.throughput.fp16_tflops, sheet.fp16, sheet.fp16 * 0.005) << sheet.id;
    if (sheet.fp8 > 0) {
      EXPECT_NEAR(*gpu.throughput.fp8_tflops, sheet.fp8, sheet.fp8 * 0.005) << sheet.id;
    }
    if (sheet.watts > 0) {
      EXPECT_DOUBLE_EQ(gpu.board_power->value, sheet.watts) << sheet.id;
    }
  }
}

// Boards of several devices, figures for one of them (AMD and Intel product pages give the board's).
TEST(Data, BoardAndDeviceAreApart) {
  std::map<std::string, const Accelerator*> index;
  for (const Accelerator& gpu : rows()) index[gpu.id] = &gpu;
  EXPECT_EQ(index["a16-16gb"]->devices_per_board, 4);
  EXPECT_DOUBLE_EQ(index["a16-16gb"]->nominal_memory.gib(), 16);
  EXPECT_EQ(index["mi250x-128gb"]->devices_per_board, 2);
  EXPECT_DOUBLE_EQ(index["mi250x-128gb"]->nominal_memory.gib(), 64);
  EXPECT_NEAR(*index["mi250x-128gb"]->throughput.fp16_tflops * 2, 383, 0.1);
  EXPECT_NEAR(*index["mi250x-128gb"]->memory_bandwidth_gb_per_second * 2, 3276.8, 0.1);
  EXPECT_EQ(index["max-1550-128gb"]->devices_per_board, 2);
  EXPECT_DOUBLE_EQ(index["max-1550-128gb"]->nominal_memory.gib(), 64);
}

}  // namespace
}  // namespace gpuwright::catalog

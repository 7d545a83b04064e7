#include "device/sysfs/fdinfo.h"

#include <gtest/gtest.h>

#include "device/testing/tree.h"

namespace gpuwright::device {
namespace {

// Linux, drivers/gpu/drm/xe/xe_drm_client.c, "Example of the output".
constexpr std::string_view kXe =
    "pos:    0\nflags:  0100002\nmnt_id: 26\nino:    685\ndrm-driver:     xe\ndrm-client-id:  3\n"
    "drm-pdev:       0000:03:00.0\ndrm-total-system:       0\ndrm-total-gtt:  192 KiB\ndrm-resident-gtt:       192 "
    "KiB\n"
    "drm-total-vram0:        23992 KiB\ndrm-shared-vram0:       16 MiB\ndrm-resident-vram0:     23992 KiB\n"
    "drm-cycles-rcs: 28257900\ndrm-total-cycles-rcs:   7655183225\ndrm-cycles-vcs: 0\n"
    "drm-total-cycles-vcs:   7655183225\ndrm-engine-capacity-vcs:        2\n";

// What amdgpu_fdinfo.c prints.
std::string amdgpu(int id, std::int64_t gfx_ns, std::int64_t vram_kib) {
  return "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t1053\npasid:\t32781\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:03:"
         "00.0\n"
         "drm-client-id:\t" +
         std::to_string(id) + "\ndrm-memory-vram:\t" + std::to_string(vram_kib) +
         " KiB\ndrm-memory-gtt: \t2048 KiB\ndrm-memory-cpu: \t0 KiB\namd-evicted-vram:\t0 KiB\ndrm-engine-gfx:\t" +
         std::to_string(gfx_ns) + " ns\n";
}

FoundClient found(int pid, const std::string& text) {
  return {pid, parse_fdinfo(text).value()};
}

TEST(Fdinfo, TheExampleOfXe) {
  const auto client = parse_fdinfo(kXe);
  ASSERT_TRUE(client);
  EXPECT_EQ(client->driver, "xe");
  EXPECT_EQ(client->pci_address, "0000:03:00.0");
  EXPECT_EQ(client->id, 3);
  EXPECT_EQ(client->memory.at("vram0"), Bytes{23992 * 1024});
  EXPECT_EQ(client->memory.at("gtt"), Bytes{192 * 1024});
  EXPECT_EQ(client->engines.at("rcs").cycles, 28257900);
  EXPECT_EQ(client->engines.at("rcs").total_cycles, 7655183225);
  EXPECT_EQ(client->engines.at("vcs").capacity, 2);
}

TEST(Fdinfo, OfAmdgpu) {
  const auto client = parse_fdinfo(amdgpu(7, 4200, 512));
  ASSERT_TRUE(client);
  EXPECT_EQ(client->memory.at("vram"), Bytes{512 * 1024});
  EXPECT_EQ(client->engines.at("gfx").busy_ns, 4200);
}

TEST(Fdinfo, ResidentIsWhatIsHeldNow) {
  const auto client = parse_fdinfo(
      "drm-driver: i915\ndrm-total-local0: 64 MiB\ndrm-resident-local0: 8 MiB\ndrm-memory-local0: 9 MiB\n");
  EXPECT_EQ(client->memory.at("local0"), Bytes{8 << 20});
}

TEST(Fdinfo, SharesAreDifferences) {
  DrmUsage usage;
  const auto first = usage.update({found(10, amdgpu(1, 1'000'000'000, 512))}, "amdgpu", 5'000'000'000);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].engines.at("gfx").why(), Why::needs_two_samples);
  const auto second = usage.update({found(10, amdgpu(1, 1'250'000'000, 512))}, "amdgpu", 6'000'000'000);
  EXPECT_DOUBLE_EQ(second[0].engines.at("gfx")->value, 0.25);
}

TEST(Fdinfo, CyclesAreSharesOfTheEnginesOwnClock) {
  DrmUsage usage;
  const auto at = [](std::int64_t busy, std::int64_t all) {
    return found(10,
                 "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 3\ndrm-cycles-ccs: " + std::to_string(busy) +
                     "\ndrm-total-cycles-ccs: " + std::to_string(all) + "\ndrm-engine-capacity-ccs: 4\n");
  };
  usage.update({at(1000, 100000)}, "xe", 1);
  EXPECT_DOUBLE_EQ(usage.update({at(3000, 101000)}, "xe", 2)[0].engines.at("ccs")->value, 0.5);
}

// drm-usage-stats.rst: "userspace is expected to stay with that larger previous value until a monotonic update is
// seen".
TEST(Fdinfo, ValuesMayStepBack) {
  DrmUsage usage;
  usage.update({found(10, amdgpu(1, 3'000'000'000, 0))}, "amdgpu", 1'000'000'000);
  EXPECT_DOUBLE_EQ(
      usage.update({found(10, amdgpu(1, 2'000'000'000, 0))}, "amdgpu", 2'000'000'000)[0].engines.at("gfx")->value, 0);
  EXPECT_DOUBLE_EQ(
      usage.update({found(10, amdgpu(1, 3'500'000'000, 0))}, "amdgpu", 3'000'000'000)[0].engines.at("gfx")->value, 0.5);
}

// xpumanager#145: a client behind several descriptors or in several processes counts once.
TEST(Fdinfo, MemoryCountedTwice) {
  DrmUsage usage;
  const auto rows = usage.update({found(10, amdgpu(1, 0, 512)), found(10, amdgpu(1, 0, 512)),
                                  found(10, amdgpu(2, 0, 100)), found(11, amdgpu(1, 0, 512))},
                                 "amdgpu", 1);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].memory.at("vram"), Bytes{612 * 1024});
}

TEST(Fdinfo, HostileTexts) {
  EXPECT_FALSE(parse_fdinfo(""));
  EXPECT_FALSE(parse_fdinfo("pos: 0\nflags: 0\n"));
  EXPECT_FALSE(parse_fdinfo("drm-driver:\n"));
  const auto client = parse_fdinfo(
      "drm-driver: amdgpu\ndrm-client-id: -4\ndrm-engine-gfx: -5 ns\ndrm-engine-x: 1e9 ns\ndrm-memory-vram: "
      "9223372036854775807 MiB\ndrm-memory-gtt: 5 parsec\ndrm-engine-capacity-gfx: 0\ndrm-engine-: 3 ns\nno colon\n");
  ASSERT_TRUE(client);
  EXPECT_FALSE(client->id);
  EXPECT_FALSE(client->engines.at("gfx").busy_ns);
  EXPECT_EQ(client->engines.at("gfx").capacity, 1);
  EXPECT_TRUE(client->memory.empty());
  std::string many = "drm-driver: amdgpu\n";
  for (int i = 0; i < 10000; ++i) many += "drm-engine-e" + std::to_string(i) + ": 1 ns\n";
  EXPECT_LE(parse_fdinfo(many)->engines.size(), 64U);
}

TEST(Fdinfo, OnePassFindsTheDescriptorsOfDrmNodes) {
  testing::Tree tree;
  tree.file("proc/10/fdinfo/3", amdgpu(1, 5, 512)).link("proc/10/fd/3", "/dev/dri/renderD128");
  tree.file("proc/10/fdinfo/4", amdgpu(9, 5, 512)).link("proc/10/fd/4", "socket:[123]");
  tree.file("proc/11/fdinfo/7", amdgpu(2, 5, 512));                          // captured without links
  tree.fifo("proc/12/fdinfo/0").sparse("proc/12/fdinfo/1", 10'000'000'000);  // hostile
  tree.file("proc/self/fdinfo/3", amdgpu(3, 5, 512)).file("proc/meminfo", "MemTotal: 1 kB\n");
  FdinfoScan scan(tree.root());
  const auto& clients = scan.clients(1);
  ASSERT_EQ(clients.size(), 2U);
  EXPECT_EQ(clients[0].pid, 10);
  EXPECT_EQ(clients[0].client.id, 1);
  EXPECT_EQ(clients[1].pid, 11);
  tree.remove("proc/11");
  EXPECT_EQ(scan.clients(1).size(), 2U);  // the same moment is not looked at again
  EXPECT_EQ(scan.clients(2).size(), 1U);
}

// btop#1831: reading xe's fdinfo resumes the device.
TEST(Fdinfo, WakesTheSleepingDgpu) {
  testing::Tree tree;
  tree.file("sys/class/drm/renderD128/device/power/runtime_status", "suspended\n");
  tree.file("proc/10/fdinfo/3", amdgpu(1, 5, 512)).link("proc/10/fd/3", "/dev/dri/renderD128");
  FdinfoScan scan(tree.root());
  EXPECT_TRUE(scan.clients(1).empty());
}

}  // namespace
}  // namespace gpuwright::device

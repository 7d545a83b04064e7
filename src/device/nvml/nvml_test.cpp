// What NVIDIA's drivers are known to answer in the field, each case with where it was met: traffic, Xids, older
// ways to the same values, and libraries that cannot be used.
#include <chrono>
#include <cstring>
#include <thread>

#include "device/fields.h"
#include "device/nvml/trouble.h"
#include "device/testing/nvml_case.h"

namespace gpuwright::device::nvidia {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---------------------------------------------------------------- Xids

// NVIDIA/dcgm-exporter#500: the last code only, and for ever.
TEST_F(NvmlTest, XidsAreCountedByCodeWithTheTimeOfTheLast) {
  EXPECT_EQ(read(0).gpus[1].last_xid, Reading<std::int64_t>(Why::no_data));
  fake_.xids = {{1, 31}, {1, 94}, {1, 31}};
  const Snapshot snapshot = read(1);
  EXPECT_THAT(snapshot.gpus[1].xids, ElementsAre(XidEvent{31, snapshot.time, 2}, XidEvent{94, snapshot.time, 1}));
  EXPECT_EQ(snapshot.gpus[1].last_xid, Reading<std::int64_t>(31));
  EXPECT_THAT(snapshot.gpus[0].xids, IsEmpty());
  EXPECT_THAT(read(2).gpus[1].xids, SizeIs(2));
}

TEST_F(NvmlTest, XidOfTheMomentAGpuIsLostIsTold) {
  read(0);
  fake_.xids = {{0, 79}};
  fake_.gpus[0].all = nvml::kGpuIsLost;
  const Gpu gpu = read(1).gpus[0];
  EXPECT_EQ(gpu.state, State::lost);
  EXPECT_EQ(gpu.last_xid, Reading<std::int64_t>(79));
}

// ---------------------------------------------------------------- traffic

TEST_F(NvmlTest, PcieTrafficIsTheDifferenceOfCounters) {
  options_.wants.traffic = true;
  fake_.gpus.resize(1);
  auto& fields = fake_.gpus[0].fields;
  fields[nvml::field::kPcieSentBytes] = {nvml::kSuccess, 1'000'000};
  fields[nvml::field::kPcieReceivedBytes] = {nvml::kSuccess, 5'000'000};
  EXPECT_EQ(read(0).gpus[0].pcie_sent, Reading<BytesPerSecond>(Why::needs_two_samples));
  fields[nvml::field::kPcieSentBytes].second = 3'000'000;
  fields[nvml::field::kPcieReceivedBytes].second = 5'500'000;
  const Gpu gpu = read(2).gpus[0];
  EXPECT_EQ(gpu.pcie_sent, Reading<BytesPerSecond>(BytesPerSecond{1'000'000}));
  EXPECT_EQ(gpu.pcie_received, Reading<BytesPerSecond>(BytesPerSecond{250'000}));
  EXPECT_EQ(fake_.calls["nvmlDeviceGetPcieThroughput"], 0);
}

TEST_F(NvmlTest, CounterOfThirtyTwoBitsMayWrap) {
  ByteRate rate;
  rate.take(0xFFFFFF00ULL, 1, 32, kSecond);
  EXPECT_EQ(rate.take(0x100ULL, 1, 32, 2 * kSecond), Reading<BytesPerSecond>(BytesPerSecond{512}));
  ByteRate reset;
  reset.take(5'000'000ULL, 1, 64, kSecond);
  EXPECT_EQ(reset.take(100ULL, 1, 64, 2 * kSecond), Reading<BytesPerSecond>(Why::needs_two_samples));
}

// nvidia_gpu_exporter's documentation: 40 ms a GPU, 320 ms at 8.
TEST_F(NvmlTest, PcieThroughputThatBlocksDoesNotBlockTheReading) {
  options_.wants.traffic = true;
  fake_.gpus.resize(1);
  fake_.pcie_throughput_ms = 150;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read(0).gpus[0].pcie_sent, Reading<BytesPerSecond>(Why::needs_two_samples));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(150));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(read(1).gpus[0].pcie_sent, Reading<BytesPerSecond>(BytesPerSecond{1000 * 1024.0}));
  source_.reset();
}

TEST_F(NvmlTest, NvLinkTrafficIsInKibibytes) {
  options_.wants.traffic = true;
  auto& fields = fake_.gpus[0].fields;
  fields[nvml::field::kNvLinkDataSent] = {nvml::kSuccess, 1000};
  fields[nvml::field::kNvLinkDataReceived] = {nvml::kSuccess, 1000};
  read(0);
  fields[nvml::field::kNvLinkDataSent].second = 3000;
  EXPECT_EQ(read(1).gpus[0].nvlink_sent, Reading<BytesPerSecond>(BytesPerSecond{2000 * 1024.0}));
}

// Blackwell has counters of bytes per link only (nvml.h, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES).
TEST_F(NvmlTest, NvLinkTrafficOfBlackwellIsTheSumOverItsLinks) {
  options_.wants.traffic = true;
  auto& fields = fake_.gpus[0].fields;
  fields[nvml::field::kNvLinkCount] = {nvml::kSuccess, 18};
  fields[nvml::field::kNvLinkSentBytes] = {nvml::kSuccess, 1'000'000};
  fields[nvml::field::kNvLinkReceivedBytes] = {nvml::kSuccess, 0};
  read(0);
  EXPECT_EQ(read(1).gpus[0].nvlink_sent, Reading<BytesPerSecond>(Why::needs_two_samples));
  fields[nvml::field::kNvLinkSentBytes].second = 1'500'000;
  const Gpu gpu = read(2).gpus[0];
  EXPECT_EQ(gpu.nvlink_sent, Reading<BytesPerSecond>(BytesPerSecond{18 * 500'000.0}));
  EXPECT_EQ(gpu.nvlink_received, Reading<BytesPerSecond>(BytesPerSecond{0}));
  EXPECT_EQ(read(3).gpus[1].nvlink_sent, Reading<BytesPerSecond>(Why::not_supported));
}

// ---------------------------------------------------------------- older ways to the same values

TEST_F(NvmlTest, RemappedRowsAndRetiredPagesWithoutFields) {
  fake_.take_away("nvmlDeviceGetFieldValues");
  fake_.replace("nvmlDeviceGetRemappedRows",
                [](nvml::Device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                   unsigned* failed) -> nvml::Return {
                  *corrected = 1, *uncorrected = 2, *pending = 1, *failed = 0;
                  return nvml::kSuccess;
                });
  // Asked without room, the driver says how many there are.
  fake_.replace("nvmlDeviceGetRetiredPages",
                [](nvml::Device, nvml::RetirementCause cause, unsigned* count, unsigned long long*) -> nvml::Return {
                  *count = cause == nvml::kRetiredDoubleBit ? 5 : 0;
                  return *count == 0 ? nvml::kSuccess : nvml::kInsufficientSize;
                });
  fake_.replace("nvmlDeviceGetEccMode", [](nvml::Device, nvml::EnableState* now, nvml::EnableState*) -> nvml::Return {
    *now = 1;
    return nvml::kSuccess;
  });
  fake_.replace("nvmlDeviceGetTotalEccErrors",
                [](nvml::Device, nvml::MemoryErrorType type, nvml::EccCounter counter,
                   unsigned long long* errors) -> nvml::Return {
                  *errors = 10U * static_cast<unsigned>(type) + static_cast<unsigned>(counter);
                  return nvml::kSuccess;
                });
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(gpu.remapped_rows_uncorrected, Reading<std::int64_t>(2));
  EXPECT_EQ(gpu.remapping_pending, Reading<bool>(true));
  EXPECT_EQ(gpu.retired_pages_corrected, Reading<std::int64_t>(0));
  EXPECT_EQ(gpu.retired_pages_uncorrected, Reading<std::int64_t>(5));
  EXPECT_EQ(gpu.ecc_uncorrected_aggregate, Reading<std::int64_t>(11));
}

TEST_F(NvmlTest, AddressOfTheFirstPciInfoIsPutTogether) {
  fake_.take_away("nvmlDeviceGetPciInfo_v3");
  fake_.replace("nvmlDeviceGetPciInfo", [](nvml::Device, nvml::PciInfo* pci) -> nvml::Return {
    pci->domain = 0, pci->bus = 0x3B, pci->device = 0, pci->pci_device_id = 0x1DB610DE;
    std::memset(pci->bus_id, 'x', sizeof pci->bus_id);  // version 1 does not know this part
    return nvml::kSuccess;
  });
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(gpu.pci_address, Reading<std::string>("0000:3b:00.0"));
  EXPECT_EQ(gpu.pci_id, Reading<std::string>("10de:1db6"));
}

// XuehaiPan/nvitop#168, jetson_stats: NVML answers SUCCESS with zeros and pids that are none.
TEST_F(NvmlTest, JetsonIsLeftToTheKernelsFiles) {
  fake_.gpus.resize(1);
  fake_.gpus[0].name = "Orin (nvgpu)";
  fake_.gpus[0].compute = {{4294967295U, 0}};
  const Snapshot snapshot = read();
  EXPECT_THAT(snapshot.gpus, IsEmpty());
  EXPECT_THAT(snapshot.processes, IsEmpty());
}

// NVIDIA/DCGM#152: SM activity above 100 % on MIG.
TEST(NvmlAnswer, ActivityAboveTheWholeIsTheWhole) {
  EXPECT_EQ(percent_or_clamped(nvml::kSuccess, 112.5, 25), Reading<Ratio>(Ratio{1}));
  EXPECT_EQ(percent_or_clamped(nvml::kSuccess, 1e6, 25), Reading<Ratio>(Why::implausible));
  EXPECT_EQ(percent_or_clamped(nvml::kSuccess, std::nan(""), 25), Reading<Ratio>(Why::implausible));
}

// ---------------------------------------------------------------- no way in

TEST_F(NvmlTest, LibraryThatIsNotInstalledIsAbsent) {
  SourceOptions options;
  options.nvml_library = "libno-such-nvml.so.1";
  Snapshot snapshot;
  NvmlSource(options).read(snapshot, no_watch());
  ASSERT_THAT(snapshot.sources, SizeIs(1));
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::absent);
  EXPECT_EQ(snapshot.sources[0].text, "libno-such-nvml.so.1 is not installed");
}

TEST_F(NvmlTest, CapturedTreeDoesNotShowTheGpusOfThisMachine) {
  SourceOptions options;
  options.root = tree_.root();
  Snapshot snapshot;
  NvmlSource(options).read(snapshot, no_watch());
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::absent);
}

// Syllo/nvtop#95, XuehaiPan/nvitop#41: "No GPU to monitor", exit code 0.
TEST_F(NvmlTest, MismatchOfDriverAndLibraryNamesBothVersionsAndTheCure) {
  tree_.file("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n");
  fake_.init = nvml::kLibRmVersionMismatch;
  const Snapshot snapshot = read();
  EXPECT_THAT(snapshot.gpus, IsEmpty());
  ASSERT_THAT(snapshot.sources, SizeIs(1));
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::failed);
  EXPECT_EQ(snapshot.sources[0].text, "the kernel module is 535.54.03, the library 550.90.07: versions differ");
  EXPECT_THAT(snapshot.sources[0].hint, HasSubstr("reboot"));
  EXPECT_EQ(snapshot.drivers[0].version, Reading<std::string>("535.54.03"));
}

TEST_F(NvmlTest, OpenKernelModuleTellsItsVersionInOtherWords) {
  tree_.file("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder)\n");
  EXPECT_EQ(HostFiles(options_).module_version(), "570.86.15");
}

TEST_F(NvmlTest, ModuleThatIsNotLoadedIsAFaultOnlyWhereThereIsAGpu) {
  fake_.init = nvml::kDriverNotLoaded;
  EXPECT_EQ(read().sources[0].outcome, SourceReport::Outcome::absent);
  on_bus("0000:17:00.0");
  const SourceReport report = read(20).sources[0];
  EXPECT_EQ(report.outcome, SourceReport::Outcome::failed);
  EXPECT_THAT(report.hint, HasSubstr("modprobe nvidia"));
}

// NVIDIA/nvidia-container-toolkit#48, #251, #1227
TEST(NvmlTrouble, ContainerThatLostItsDevicesNamesDaemonReload) {
  InitFailure failure;
  failure.code = nvml::kUnknown;
  failure.nodes_forbidden = failure.inside_container = true;
  const SourceReport report = report_of(failure);
  EXPECT_THAT(report.text, HasSubstr("/dev/nvidia*"));
  EXPECT_THAT(report.hint, HasSubstr("systemctl daemon-reload"));
}

TEST(NvmlTrouble, UnknownErrorKeepsTheDriversWords) {
  InitFailure failure;
  failure.code = nvml::kUnknown;
  failure.driver_words = "Unknown Error";
  EXPECT_EQ(report_of(failure).text, "nvmlInit: Unknown Error (code 999)");
}

}  // namespace
}  // namespace gpuwright::device::nvidia

// PCI trees as Linux shows them (Documentation/ABI/testing/sysfs-bus-pci), with the word that nvidia-smi topo -m has
// for the path: PIX, at most a single PCIe bridge; PXB, multiple PCIe bridges; PHB, a host bridge; NODE, within a NUMA
// node; SYS, between NUMA nodes (its legend). CUDA_VISIBLE_DEVICES as the CUDA C++ programming guide describes it.
#include "device/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/cuda_order.h"
#include "device/testing/tree.h"
#include "sim/host.h"

namespace gpuwright::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Tree;

Gpu nvidia_gpu(int index, const std::string& address, const std::string& name = "NVIDIA A100") {
  Gpu gpu;
  gpu.index = gpu.vendor_index = index;
  gpu.vendor = Vendor::nvidia;
  gpu.name = name;
  gpu.uuid = "GPU-" + std::string(8, static_cast<char>('a' + index));
  gpu.pci_address = address;
  gpu.numa_node = std::int64_t{0};
  return gpu;
}

class TopologyTest : public ::testing::Test {
 protected:
  void add(const std::string& address, const std::string& bridges, std::int64_t node) {
    const int index = static_cast<int>(snapshot_.gpus.size());
    snapshot_.gpus.push_back(nvidia_gpu(index, address));
    snapshot_.gpus.back().vendor = Vendor::amd;  // no library is asked
    snapshot_.gpus.back().numa_node = node;
    const std::string folder = "sys/devices/" + bridges + "/" + address;
    tree_.file(folder + "/local_cpulist", node == 0 ? "0-31,64-95\n" : "32-63,96-127\n");
    tree_.link("sys/bus/pci/devices/" + address, "../../../devices/" + bridges + "/" + address);
  }
  Topology read() {
    SourceOptions options;
    options.root = tree_.root();
    return read_topology(options, snapshot_, std::chrono::seconds(5));
  }

  Tree tree_;
  Snapshot snapshot_;
};

TEST_F(TopologyTest, PathsAreReadFromThePciTree) {
  const std::string one_switch = "pci0000:16/0000:16:01.0/0000:17:00.0";
  add("0000:19:00.0", one_switch + "/0000:18:00.0", 0);
  add("0000:1a:00.0", one_switch + "/0000:18:01.0", 0);
  add("0000:1d:00.0", one_switch + "/0000:18:02.0/0000:1b:00.0/0000:1c:00.0", 0);
  add("0000:21:00.0", "pci0000:16/0000:16:02.0", 0);
  add("0000:41:00.0", "pci0000:40/0000:40:01.0", 0);
  add("0000:81:00.0", "pci0000:80/0000:80:01.0", 1);
  const Topology topology = read();
  EXPECT_EQ(topology.pair(0, 1)->path, Reading<Path>(Path::one_switch));
  EXPECT_EQ(topology.pair(2, 0)->path, Reading<Path>(Path::switches));
  EXPECT_EQ(topology.pair(0, 3)->path, Reading<Path>(Path::host_bridge));
  EXPECT_EQ(topology.pair(0, 4)->path, Reading<Path>(Path::numa_node));
  EXPECT_EQ(topology.pair(5, 0)->path, Reading<Path>(Path::system));
  EXPECT_EQ(topology.gpus[0].cpus, Reading<std::string>("0-31,64-95"));
  EXPECT_EQ(topology.gpus[5].numa_node, Reading<std::int64_t>(1));
  EXPECT_EQ(topology.gpus[0].cuda_by_bus, Reading<std::int64_t>(Why::not_supported));
}

TEST_F(TopologyTest, WithoutATreeNothingIsGuessed) {
  snapshot_.gpus = {nvidia_gpu(0, "0000:19:00.0"), nvidia_gpu(1, "0000:1a:00.0")};
  const Topology topology = read();
  EXPECT_FALSE(topology.pair(0, 1)->path.known());
  EXPECT_FALSE(topology.gpus[0].cpus.known());
}

TEST(TopologySimulated, EightH100AreJoinedByEighteenLinksEach) {
  SourceOptions options;
  options.simulated = sim::Host::from_scenario("8xh100").value();
  Snapshot snapshot;
  nvml_source(options)->read(snapshot, no_watch());
  for (std::size_t i = 0; i < snapshot.gpus.size(); ++i) snapshot.gpus[i].index = static_cast<int>(i);
  const Topology topology = read_topology(options, snapshot, std::chrono::seconds(5));
  ASSERT_EQ(topology.gpus.size(), 8U);
  ASSERT_EQ(topology.pairs.size(), 28U);
  EXPECT_EQ(topology.note, "");
  // "NVLink: 18 links of the fourth generation", all to switches (H100 data sheet, DGX H100 user guide).
  EXPECT_EQ(topology.gpus[3].links, Reading<std::int64_t>(18));
  EXPECT_EQ(topology.gpus[3].links_to_switch, Reading<std::int64_t>(18));
  EXPECT_EQ(topology.pair(0, 7)->links, Reading<std::int64_t>(0));
  EXPECT_TRUE(topology.pair(0, 7)->path.known());
  EXPECT_TRUE(topology.pair(0, 7)->peer_read.value_or(false));
  EXPECT_TRUE(topology.gpus[0].cpus.known());
  EXPECT_EQ(topology.gpus[5].cuda_by_speed, Reading<std::int64_t>(5));
}

// ---------------------------------------------------------------- CUDA's numbers

TEST(CudaOrder, LikeGpusAreCountedAlongTheBus) {
  // NVML's order is the bus's, too, but a reader's rows need not be.
  const std::vector<CudaNumbers> numbers =
      cuda_numbers({nvidia_gpu(0, "0000:c1:00.0"), nvidia_gpu(1, "0000:01:00.0"), nvidia_gpu(2, "10000:01:00.0")});
  EXPECT_EQ(numbers[0].by_bus, Reading<std::int64_t>(1));
  EXPECT_EQ(numbers[1].by_speed, Reading<std::int64_t>(0));
  EXPECT_EQ(numbers[2].by_bus, Reading<std::int64_t>(2));
}

// gpustat's README warns of it: without CUDA_DEVICE_ORDER=PCI_BUS_ID, CUDA's GPU 0 need not be nvidia-smi's.
TEST(CudaOrder, UnlikeGpusHaveNoSureNumberUnlessOrderedByBus) {
  const std::vector<CudaNumbers> numbers = cuda_numbers(
      {nvidia_gpu(0, "0000:01:00.0", "NVIDIA GeForce GT 1030"), nvidia_gpu(1, "0000:02:00.0", "NVIDIA RTX 6000")});
  EXPECT_EQ(numbers[1].by_bus, Reading<std::int64_t>(1));
  EXPECT_EQ(numbers[1].by_speed, Reading<std::int64_t>(Why::no_data));
}

TEST(CudaOrder, AfterALostGpuNoNumberIsSure) {
  std::vector<Gpu> gpus = {nvidia_gpu(0, "0000:01:00.0"), nvidia_gpu(1, "0000:02:00.0"), nvidia_gpu(2, "0000:03:00.0")};
  gpus[1].state = State::lost;
  const std::vector<CudaNumbers> numbers = cuda_numbers(gpus);
  EXPECT_EQ(numbers[0].by_bus, Reading<std::int64_t>(0));
  EXPECT_EQ(numbers[2].by_bus, Reading<std::int64_t>(Why::no_data));
}

class CudaViewTest : public ::testing::Test {
 protected:
  CudaViewTest() {
    for (int i = 0; i < 4; ++i) snapshot_.gpus.push_back(nvidia_gpu(i, "0000:0" + std::to_string(i + 1) + ":00.0"));
  }
  CudaView view(const char* visible, const char* order = nullptr) const { return cuda_view(snapshot_, visible, order); }
  Snapshot snapshot_;
};

TEST_F(CudaViewTest, UnsetShowsAll) {
  EXPECT_THAT(view(nullptr).gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(view(nullptr).note, "");
}

TEST_F(CudaViewTest, NumbersAndUuidsChooseAndOrder) {
  EXPECT_THAT(view("3, 0").gpus, ElementsAre(3, 0));
  EXPECT_THAT(view("GPU-bbbb,GPU-aaaaaaaa").gpus, ElementsAre(1, 0));  // the start of a UUID suffices
  EXPECT_THAT(view("MIG-1a2b").mig_instances, ElementsAre("MIG-1a2b"));
}

// "If one of the indices is invalid, only the devices whose index precedes the invalid index are visible."
TEST_F(CudaViewTest, NothingAfterAnInvalidEntryIsVisible) {
  EXPECT_THAT(view("2,7,1").gpus, ElementsAre(2));
  EXPECT_THAT(view("2,7,1").note, HasSubstr("\"7\""));
  EXPECT_THAT(view("1,-1,2").gpus, ElementsAre(1));
  EXPECT_THAT(view("").gpus, IsEmpty());
  EXPECT_THAT(view("-1").gpus, IsEmpty());
  EXPECT_THAT(view("GPU-").gpus, IsEmpty());  // four have that start
  EXPECT_THAT(view("\x1b[2J").note, HasSubstr("\\x1b"));
}

TEST_F(CudaViewTest, UnlikeGpusCanBeNamedByUuidOrInBusOrder) {
  snapshot_.gpus[0].name = std::string("NVIDIA T400");
  EXPECT_THAT(view("1").gpus, IsEmpty());
  EXPECT_THAT(view("1", "PCI_BUS_ID").gpus, ElementsAre(1));
  EXPECT_THAT(view("GPU-cccccccc").gpus, ElementsAre(2));
  EXPECT_THAT(view(nullptr).note, HasSubstr("not known"));
}

}  // namespace
}  // namespace gpuwright::device

#include "device/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gpuwright::device {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class GpuMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "gpus-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }

  std::string root_;
};

TEST_F(GpuMemoryTest, NvidiaTellsNameAndFreeMemory) {
  const Present present = read_gpu_memory({root_, FAKE_NVML});
  ASSERT_THAT(present.gpus, SizeIs(1));  // the lost one is left out
  EXPECT_EQ(present.gpus[0].name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(present.gpus[0].total, Bytes{25757220864});
  EXPECT_EQ(present.gpus[0].free, Bytes{25000000000});
}

TEST_F(GpuMemoryTest, AmdTellsUsedMemoryInSysfs) {
  write("/sys/class/drm/card1/device/vendor", "0x1002\n");
  write("/sys/class/drm/card1/device/device", "0x744c\n");
  write("/sys/class/drm/card1/device/mem_info_vram_total", "25753026560\n");
  write("/sys/class/drm/card1/device/mem_info_vram_used", "1073741824\n");
  write("/sys/class/drm/card1-DP-1/status", "connected\n");
  const Present present = read_gpu_memory({root_, ""});
  ASSERT_THAT(present.gpus, SizeIs(1));
  EXPECT_EQ(present.gpus[0].free, Bytes{25753026560 - 1073741824});
  EXPECT_EQ(present.gpus[0].pci_device, 0x744c);
  EXPECT_EQ(present.gpus[0].name, "AMD 1002:744c");
}

TEST_F(GpuMemoryTest, FiguresThatCannotBeAreNoGpu) {
  for (const auto& [total, used] : {std::pair("10", "11"), std::pair("-5", "0"), std::pair("x", "0"),
                                    std::pair("99999999999999999999999", "1"), std::pair("0", "0")}) {
    write("/sys/class/drm/card0/device/mem_info_vram_total", total);
    write("/sys/class/drm/card0/device/mem_info_vram_used", used);
    EXPECT_THAT(read_gpu_memory({root_, ""}).gpus, IsEmpty()) << total;
  }
}

TEST_F(GpuMemoryTest, WithoutAGpuItSaysWhereItLooked) {
  const Present present = read_gpu_memory({root_, "libno-such-nvml.so.1"});
  EXPECT_THAT(present.gpus, IsEmpty());
  ASSERT_THAT(present.looked_at, SizeIs(2));
  EXPECT_THAT(present.looked_at[0], HasSubstr("libno-such-nvml.so.1"));
  EXPECT_THAT(present.looked_at[1], HasSubstr("mem_info_vram_total"));
}

}  // namespace
}  // namespace gpuwright::device

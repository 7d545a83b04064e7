// An NVML source over a library of functions that a test makes answer as drivers were seen to.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/nvml/nvml_source.h"
#include "device/testing/fake_library.h"
#include "device/testing/tree.h"

namespace gpuwright::device::nvidia {

inline constexpr std::int64_t kSecond = 1'000'000'000;

class NvmlTest : public ::testing::Test {
 protected:
  NvmlTest() { options_.root = tree_.root(); }

  // A read `seconds` after the first.
  Snapshot read(double seconds = 0) {
    if (!source_) source_ = std::make_unique<NvmlSource>(options_, fake_.library());
    Snapshot snapshot;
    snapshot.monotonic_ns = 100 * kSecond + static_cast<std::int64_t>(seconds * 1e9);
    snapshot.time.nanoseconds = 1'700'000'000 * kSecond + static_cast<std::int64_t>(seconds * 1e9);
    source_->read(snapshot, no_watch());
    return snapshot;
  }
  static unsigned long long sample_time(double seconds) {
    return static_cast<unsigned long long>((1'700'000'000 + seconds) * 1e6);
  }
  testing::Tree& on_bus(const std::string& address, const std::string& power = "active") {
    const std::string folder = "sys/bus/pci/devices/" + address;
    return tree_.file(folder + "/vendor", "0x10de\n")
        .file(folder + "/class", "0x030200\n")
        .file(folder + "/power/runtime_status", power + "\n");
  }

  testing::Tree tree_;
  SourceOptions options_;
  testing::FakeLibrary fake_;
  std::unique_ptr<NvmlSource> source_;
};

}  // namespace gpuwright::device::nvidia

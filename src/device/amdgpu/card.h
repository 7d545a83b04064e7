// One GPU of amdgpu: its attributes as readings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "device/amdgpu/gpu_metrics.h"
#include "device/amdgpu/kfd.h"
#include "device/source.h"
#include "device/sysfs/drm_card.h"

namespace gpuwright::device {

class AmdCard {
 public:
  // The facts that do not change are read once, here, without waking the device.
  AmdCard(const DrmCard& card, const KfdNode* node, const std::string& root);

  // All readings of the moment. Each attribute is tried each time: what failed once may work again.
  Gpu read(const SourceOptions& options, std::int64_t monotonic_ns);
  const Gpu& identity() const { return facts_; }
  const DrmCard& card() const { return card_; }
  std::int64_t kfd_id() const { return node_ ? node_->gpu_id : 0; }
  bool is_apu() const { return is_apu_; }

 private:
  Gpu asleep() const;
  void read_awake_facts(Gpu& gpu);
  void read_memory(Gpu& gpu) const;
  void share_memory_with_host(Gpu& gpu) const;
  void read_activity(Gpu& gpu) const;
  void read_clocks(Gpu& gpu) const;
  void read_power(Gpu& gpu) const;
  void read_temperatures(Gpu& gpu) const;
  void read_fan(Gpu& gpu) const;
  void read_throttling(Gpu& gpu);
  void read_health(Gpu& gpu) const;
  void read_traffic(Gpu& gpu, std::int64_t monotonic_ns);
  void read_links(Gpu& gpu) const;
  void judge(Gpu& gpu) const;
  std::string attribute(const char* name) const { return card_.device + "/" + name; }
  std::string sensor(const char* name) const { return hwmon_ + "/" + name; }

  struct Traffic {
    std::int64_t at = 0, sent = 0, received = 0;
  };

  DrmCard card_;
  std::optional<KfdNode> node_;
  std::string root_;
  std::string hwmon_;
  Gpu facts_;                     // what does not change
  bool has_awake_facts_ = false;  // those that can be read of a device that is awake only
  bool is_apu_ = false;
  std::optional<GpuMetrics> metrics_;
  std::optional<ThrottleResidency> residency_before_;
  std::optional<Traffic> traffic_before_;
};

}  // namespace gpuwright::device

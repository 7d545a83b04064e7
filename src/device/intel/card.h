// One GPU of i915 or xe: its attributes as readings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/source.h"
#include "device/sysfs/drm_card.h"

namespace gpuwright::device {

class IntelCard {
 public:
  IntelCard(const DrmCard& card, const std::string& root);

  // All readings of the moment.
  Gpu read(const SourceOptions& options, std::int64_t monotonic_ns);
  const Gpu& identity() const { return facts_; }
  const DrmCard& card() const { return card_; }

 private:
  // One unit of engines with a clock and a sleep counter: a tile has one that renders, newer chips one for media.
  struct Gt {
    std::string clocks;     // folder of the frequencies
    std::string residency;  // file with the milliseconds asleep
    std::string throttle;   // what stands before status, reason_pl1 or status, pl1, ...
    bool is_media = false;
  };
  struct Sample {
    std::int64_t at = 0, value = 0;
  };

  void find_gts();
  void read_memory(const SourceOptions& options, Gpu& gpu) const;
  void read_activity(Gpu& gpu, std::int64_t now);
  void read_clocks(Gpu& gpu) const;
  void read_power(Gpu& gpu, std::int64_t now);
  void read_sensors(Gpu& gpu) const;
  Reading<ThrottleReasons> read_throttling() const;
  Reading<Ratio> awake_share(const std::string& file, std::int64_t now);
  std::string sensor(const char* name) const { return hwmon_ + "/" + name; }

  DrmCard card_;
  std::string root_;
  std::string hwmon_;
  std::string render_node_;  // "/dev/dri/renderD128"
  bool is_xe_ = false;
  bool is_integrated_ = false;
  bool has_awake_facts_ = false;
  std::vector<Gt> gts_;
  Gpu facts_;
  std::map<std::string, Sample> residency_before_;
  std::optional<Sample> energy_before_;
};

}  // namespace gpuwright::device

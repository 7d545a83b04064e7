// What went wrong on one GPU, seen by comparing snapshots.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/report.h"

namespace gpuwright::device {

class FaultWatch {
 public:
  // The faults that are new in this snapshot; `index` is written into them.
  std::vector<Fault> compare(const Gpu& gpu, UnixTime time, int index);

 private:
  void compare_state(const Gpu& gpu);
  void compare_xids(const Gpu& gpu);
  void compare_counts(const Gpu& gpu);
  void compare_flags(const Gpu& gpu);
  void add(Fault::Kind kind, std::string text, std::optional<UnixTime> time = std::nullopt);

  UnixTime now_;
  int index_ = 0;
  std::vector<Fault> found_;

  State state_ = State::ok;
  std::map<int, XidEvent> xids_;
  std::optional<std::int64_t> last_xid_;
  std::map<std::string, std::int64_t> counts_;  // as last known, so that a silent spell hides nothing
  std::map<std::string, bool> flags_;
  std::string recovery_;
};

}  // namespace gpuwright::device

// One GPU of a Host at one moment: everything that its driver would tell is computed here from the scenario and the
// time alone, so that the same moment always gives the same answer.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/host_state.h"
#include "sim/scenario.h"

namespace gpuwright::sim {

enum class Condition { ok, lost, needs_reset, no_permission, failed };

class GpuView {
 public:
  // `instance`: position in GpuSpec::instances, -1 for the whole GPU.
  GpuView(const Host::State& host, int index, int instance, double seconds);

  const GpuSpec& spec() const { return *spec_; }
  const Scenario& scenario() const { return host_->scenario; }
  const Host::State& host() const { return *host_; }
  int index() const { return index_; }
  double time() const { return time_; }
  const MigSpec* instance() const;  // null: the whole GPU
  int instance_position() const { return instance_; }
  // Positions of the MIG instances that exist now.
  std::vector<int> instances() const;

  Condition condition() const;
  template <class Visit>
  void for_each_fault(FaultKind kind, Visit&& visit) const {  // the ones that hold now
    for (const Fault& fault : scenario().faults)
      if (fault.kind == kind && fault.concerns(index_) && fault.interval.holds(time_)) visit(fault);
  }

  // Bytes; of the instance, where this is one.
  std::int64_t memory_total() const;
  std::int64_t memory_reserved() const;
  std::int64_t memory_used() const;  // without what is reserved

  struct Process {
    const ProcessSpec* spec = nullptr;
    unsigned gpu_instance = 0, compute_instance = 0;  // 0xFFFFFFFF outside MIG
  };
  // The processes that run now and do one of the kinds (bits), in the order of the scenario.
  std::vector<Process> processes(std::uint8_t kinds) const;

  bool idle() const;
  unsigned percent(const Curve& curve) const;                            // 0..100
  unsigned graphics_mhz() const, memory_mhz() const, video_mhz() const;  // of clocks that the spec has
  std::uint64_t throttle_reasons() const;
  // Nanoseconds until now during which one of the reasons held because of a fault.
  std::uint64_t throttled_ns(std::uint64_t reasons) const;
  int performance_state() const;

  double watts() const;          // now
  double average_watts() const;  // of the last second
  double energy_joules() const;  // since the driver was loaded, an hour before the host's start
  double celsius() const, memory_celsius() const;
  unsigned fan_percent() const;

  std::uint64_t counter(const Curve& bytes_per_second) const;  // since the start
  double rate(const Curve& bytes_per_second) const;            // of the last 20 ms

  struct Errors {
    std::uint64_t corrected = 0, uncorrected = 0;
    bool pending = false, failure = false;
  };
  Errors errors(FaultKind kind) const;  // ecc, remap: those that have appeared by now

 private:
  const Host::State* host_;
  const GpuSpec* spec_;
  int index_, instance_;
  double time_;
};

}  // namespace gpuwright::sim

// The source of NVIDIA's GPUs: which devices there are, how they are kept between reads, and what becomes of those that
// do not answer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/nvml/card.h"
#include "device/nvml/events.h"
#include "device/nvml/pcie_meter.h"
#include "device/source.h"

namespace gpuwright::device::nvidia {

class NvmlSource : public Source {
 public:
  explicit NvmlSource(const SourceOptions& options);
  // Over a library of functions: for tests.
  NvmlSource(const SourceOptions& options, std::shared_ptr<const Library> library);
  ~NvmlSource() override;

  std::string_view name() const override { return "nvml"; }
  void read(Snapshot& snapshot, CallWatch& watch) override;

 private:
  enum class Outcome { done, stale_handle, session_over };

  bool open(Snapshot& snapshot);
  bool start(Snapshot& snapshot, Asker& ask);
  void stop(Asker& ask);
  void read_driver(Asker& ask);
  void retire_cards(Asker& ask);
  void find_devices(Asker& ask, const std::vector<BusDevice>& bus);
  nvml::Return count_devices(Asker& ask, unsigned& count);
  // Whether the handles that are kept are still those of the devices that are there.
  Outcome check_devices(Asker& ask, const std::vector<BusDevice>& bus);
  void read_everything(Snapshot& snapshot, Asker& ask, const std::vector<BusDevice>& bus);
  Outcome read_devices(Asker& ask, const Round& round, Snapshot& snapshot);
  Outcome begin_devices(Asker& ask, const Round& round);
  Outcome reach(Card& card, Asker& ask);
  // Writes the facts of a device into `row` as soon as they are known: should a later call hang, it has a name.
  Outcome read_device(Card& card, Asker& ask, const Round& round, Gpu& row);
  void tell_sleep(Card& card);
  // Gives the device its share of the time that is left for it and `others` after it.
  static void allot(Asker& ask, Asker::Clock::time_point end, std::size_t others);
  static void note_lateness(Card& card, Asker& ask);
  void tell_slowness(Card& card, Asker& ask, std::int64_t now_ns);
  nvml::Return get_handle(Card& card, Asker& ask);
  void get_to_know(Card& card, CardAsker& ask);
  nvml::Return ask_all(Card& card, CardAsker& ask, const Round& round, Gpu& row);
  Outcome judge(Card& card, Asker& ask, nvml::Return memory);
  void ask_dear_questions(Card& card, const Round& round);
  Outcome read_processes_of(Card& card, Asker& ask, const Round& round, std::vector<Process>& processes);
  bool may_restart(std::int64_t now_ns) const { return now_ns - started_ns_ >= restart_wait_ns_; }
  void tell_failure(Card& card, Asker& ask, nvml::Return code);
  void tell_traffic_by_meter(Card& card);
  void tell_what_the_bus_knows(Card& card);
  void tell_events(Asker& ask, const Round& round);
  XidHistory& history_of(const Card& card);
  void number_for_cuda(Snapshot& snapshot, std::size_t first) const;
  std::vector<BusDevice> scan_bus(std::int64_t now_ns);

  const SourceOptions options_;
  const HostFiles files_;
  std::shared_ptr<const Library> library_;
  std::unique_ptr<PcieMeter> meter_;
  const bool injected_;
  std::int64_t opened_ns_ = 0;
  bool mismatched_ = false;  // the library is not of the kernel module's version
  bool started_ = false;
  std::int64_t restart_wait_ns_ = 0;  // grows while a device stays away
  std::vector<Card> before_;          // of the session before
  bool never_shut_down_ = false;      // a call hangs in the meter's thread
  std::int64_t started_ns_ = 0;
  bool by_address_ = false;                        // devices are asked for by PCI address, as some sleep
  Asker::Clock::time_point first_end_, last_end_;  // when the values, and when the processes have to be told
  std::vector<BusDevice> bus_;
  std::optional<std::int64_t> bus_read_ns_;
  Driver driver_;
  std::vector<Card> cards_;
  EventQueue events_;
  std::map<std::string, XidHistory> histories_;  // by UUID, so that a new enumeration keeps them
};

}  // namespace gpuwright::device::nvidia

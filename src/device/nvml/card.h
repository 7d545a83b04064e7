// What is kept about one GPU between reads, and the questions that fill in its row. One function a theme, each in its
// own .cpp; each leaves at once when the device stops answering (Asker::fine).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/nvml/answer.h"
#include "device/nvml/asker.h"
#include "device/nvml/dear.h"
#include "device/nvml/gpm.h"
#include "device/nvml/host_files.h"
#include "device/nvml/rate.h"
#include "device/snapshot.h"

namespace gpuwright::device::nvidia {

class FieldBatch;

// A MIG device, which is a compute instance of a GPU instance.
struct Slice {
  nvml::Device handle = nullptr;
  MigInstance facts;
  GpmMeter activity;
};

// The last utilisation of a process: drivers take a sample about every second, readers may come more often.
struct ProcessSample {
  nvml::ProcessUtilizationSample sample{};
  std::int64_t read_ns = 0;
};

struct Card {
  int index = 0;
  std::string address;  // as the bus tells it, where the handle could not be had
  nvml::Device handle = nullptr;
  bool gone = false;     // does not answer any more; a new session may find it again
  int position = -1;     // in Snapshot::gpus of this read; -1 where another source tells it
  bool answers = false;  // in this read, so far
  std::optional<DearQuestions> dear;
  bool has_facts = false;
  bool asleep = false;
  bool late = false;                            // its answers took too long in this read
  std::int64_t rest_until_ns = 0, rest_ns = 0;  // after that it is left alone for a while
  unsigned architecture = nvml::kArchitectureUnknown;
  bool integrated = false;  // a known chip without memory of its own
  bool pcie_needs_meter = false;
  bool fanless = false;
  Gpu facts;  // what does not change while the handle is good
  Gpu row;    // as told last, over which each read writes

  std::optional<std::int64_t> slow_read_ns, health_read_ns, slices_read_ns, links_read_ns;
  bool mig_on = false;
  std::vector<Slice> slices;

  // Lists of processes by kind that were empty when last asked, and when that was.
  std::map<std::uint8_t, std::int64_t> empty_lists;

  ByteRate pcie_sent, pcie_received, link_sent, link_received;
  enum class LinkCounters { untried, total, each, none } link_counters = LinkCounters::untried;
  std::optional<unsigned> link_count;
  std::map<int, std::string> remotes;
  GpmMeter activity;

  // What a new session goes on from: rates and samples.
  void adopt(Card&& before);

  unsigned long long last_sample_us = 0;
  std::map<unsigned, ProcessSample> samples;

  // Questions to which the device said once that it never answers: function and first argument.
  std::map<std::pair<const char*, long>, nvml::Return> refused;
};

// Questions to one card, of which those are dropped that it refused before.
class CardAsker {
 public:
  CardAsker(Asker& ask, Card& card) : ask_(ask), card_(card) {}

  template <class... Parameters, class... Arguments>
  nvml::Return operator()(const Function<nvml::Return(nvml::Device, Parameters...)>& function, Arguments... arguments) {
    const std::pair<const char*, long> key{function.name, salt(arguments...)};
    if (const auto found = card_.refused.find(key); found != card_.refused.end()) return found->second;
    const nvml::Return code = ask_(function, card_.handle, arguments...);
    if (code == nvml::kNotSupported || code == nvml::kFunctionNotFound) card_.refused.emplace(key, code);
    return code;
  }

  Asker& plain() { return ask_; }
  nvml::Device handle() const { return card_.handle; }
  const Functions& functions() const { return ask_.functions(); }
  bool fine() const { return ask_.fine(); }

 private:
  static long salt() { return 0; }
  template <class First, class... Rest>
  static long salt(First first, Rest...) {
    if constexpr (std::is_pointer_v<First> || std::is_null_pointer_v<First>) {
      return 0;
    } else {
      return static_cast<long>(first);
    }
  }

  Asker& ask_;
  Card& card_;
};

// What one read needs beside the card.
struct Round {
  std::int64_t now_ns = 0;  // monotonic
  UnixTime time;
  const Wants& wants;
  const HostFiles& files;
};

inline constexpr std::int64_t kSlowPeriod = 5'000'000'000;
bool due(const std::optional<std::int64_t>& last_ns, std::int64_t now_ns, std::int64_t period_ns);

// Of a GPU or a MIG instance. A total of 0 is NOT_SUPPORTED.
struct MemoryReadings {
  nvml::Return code;
  Reading<Bytes> total, used, reserved, free;
};
MemoryReadings read_memory_of(Asker& ask, nvml::Device device);

void read_facts(Card& card, CardAsker& ask, const HostFiles& files);  // facts.cpp
nvml::Return read_memory(Card& card, CardAsker& ask);                 // memory.cpp
// Once the processes are known: what a GPU without memory of its own holds.
void tell_unified_memory(Card& card, const HostFiles& files, nvml::Return listed,
                         const std::vector<Process>& processes);
Reading<Ratio> engine_utilization(const Card& card, CardAsker& ask,
                                  const Function<nvml::Return(nvml::Device, unsigned*, unsigned*)>& function);
void read_utilization(Card& card, CardAsker& ask);                // load.cpp
void read_clocks(Card& card, CardAsker& ask);                     // clocks.cpp
void read_slow(Card& card, CardAsker& ask, std::int64_t now_ns);  // slow.cpp
void tell_fan(Card& card, const DearAnswers& dear);
// Power, energy, traffic, and (seldom) errors: what one trip to the driver tells together.
void read_fields(Card& card, CardAsker& ask, const Round& round);  // fields.cpp
void want_traffic(FieldBatch& fields, const Card& card);           // traffic.cpp
void tell_traffic(Card& card, const FieldBatch& fields, std::int64_t now_ns);
void want_health(FieldBatch& fields);  // health.cpp
void tell_health(Gpu& gpu, CardAsker& ask, const FieldBatch& fields);
void read_links(Card& card, CardAsker& ask, const Round& round);   // links.cpp
void read_mig_mode(Card& card, CardAsker& ask);                    // mig.cpp
void read_slices(Card& card, CardAsker& ask, const Round& round);  // mig.cpp
// Which of the lists that are seldom filled to ask for now.
std::vector<std::uint8_t> rare_lists_due(const Card& card, std::int64_t now_ns);  // processes.cpp
// The code is that of the first list: whether the processes are known at all.
nvml::Return read_processes(Card& card, CardAsker& ask, const Round& round, const DearAnswers& dear,
                            std::vector<Process>& processes);
void read_process_utilization(Card& card, CardAsker& ask, const Round& round, std::vector<Process>& processes);

}  // namespace gpuwright::device::nvidia

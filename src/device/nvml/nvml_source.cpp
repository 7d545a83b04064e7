#include "device/nvml/nvml_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "device/cuda_order.h"
#include "device/nvml/trouble.h"

namespace gpuwright::device::nvidia {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr unsigned kMostDevices = 256;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBusPeriod = 10 * kSecond;
constexpr std::int64_t kFirstRest = 5 * kSecond, kLastRest = 60 * kSecond;  // of a device that is too slow
constexpr Milliseconds kLeastOfOne{100}, kMostOfOne{1500};                  // for the questions to one device
constexpr Milliseconds kLeastForAll{400};                                   // whatever the start of the library took

bool any_asleep(const std::vector<BusDevice>& bus) {
  return std::any_of(bus.begin(), bus.end(), [](const BusDevice& device) { return device.asleep; });
}
bool all_asleep(const std::vector<BusDevice>& bus) {
  return !bus.empty() && std::all_of(bus.begin(), bus.end(), [](const BusDevice& device) { return device.asleep; });
}

void report(Snapshot& snapshot, SourceReport::Outcome outcome, std::string text, std::string hint = {}) {
  snapshot.sources.push_back({"nvml", outcome, std::move(text), std::move(hint)});
}

}  // namespace

NvmlSource::NvmlSource(const SourceOptions& options) : options_(options), files_(options), injected_(false) {}

NvmlSource::NvmlSource(const SourceOptions& options, std::shared_ptr<const Library> library)
    : options_(options), files_(options), library_(std::move(library)), injected_(true) {}

NvmlSource::~NvmlSource() {
  if (library_ == nullptr || !library_->open()) return;
  Asker ask(*library_, no_watch());
  stop(ask);
}

// ---------------------------------------------------------------- which devices

std::vector<BusDevice> NvmlSource::scan_bus(std::int64_t now_ns) {
  if (options_.wake) return {};
  if (due(bus_read_ns_, now_ns, kBusPeriod)) {
    bus_ = files_.bus_devices();
    bus_read_ns_ = now_ns;
  } else {
    for (BusDevice& device : bus_) device.asleep = files_.asleep(device.address);
  }
  return bus_;
}

nvml::Return NvmlSource::count_devices(Asker& ask, unsigned& count) {
  nvml::Return code = ask(ask.functions().nvmlDeviceGetCount_v2, &count);
  if (code == nvml::kFunctionNotFound) code = ask(ask.functions().nvmlDeviceGetCount, &count);
  count = code == nvml::kSuccess ? std::min(count, kMostDevices) : 0;
  return code;
}

NvmlSource::Outcome NvmlSource::check_devices(Asker& ask, const std::vector<BusDevice>& bus) {
  if (cards_.empty() || any_asleep(bus) != by_address_) return Outcome::stale_handle;
  if (by_address_) {
    const bool same =
        std::equal(bus.begin(), bus.end(), cards_.begin(), cards_.end(), [](const BusDevice& device, const Card& card) {
          return device.address == card.address && device.asleep == card.asleep;
        });
    return same ? Outcome::done : Outcome::stale_handle;
  }
  unsigned count = 0;
  const nvml::Return code = count_devices(ask, count);
  if (code != nvml::kSuccess) return Outcome::session_over;
  return count != cards_.size() ? Outcome::stale_handle : Outcome::done;
}

void NvmlSource::retire_cards(Asker& ask) {
  if (cards_.empty()) return;
  for (Card& card : cards_) {
    for (Slice& slice : card.slices) slice.activity.release(ask);
    card.activity.release(ask);
  }
  before_ = std::move(cards_);
  cards_.clear();
}

// Where some GPU sleeps, the others are asked for by address: a handle by index is had by opening devices, which wakes
// them (aristocratos/btop#1831).
void NvmlSource::find_devices(Asker& ask, const std::vector<BusDevice>& bus) {
  retire_cards(ask);
  by_address_ = any_asleep(bus);
  auto count = static_cast<unsigned>(bus.size());
  if (!by_address_) {
    count_devices(ask, count);
  }
  cards_.resize(std::min(count, kMostDevices));
  // Both are in the order of the bus; where a GPU is hidden from one of them, which is which is not known.
  const bool same = bus.size() == cards_.size();
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    cards_[i].index = static_cast<int>(i);
    if (same) cards_[i].address = bus[i].address;
    cards_[i].asleep = by_address_ && bus[i].asleep;
  }
}

nvml::Return NvmlSource::get_handle(Card& card, Asker& ask) {
  const Functions& f = ask.functions();
  nvml::Return code = nvml::kSuccess;
  if (by_address_) {
    code = ask(f.nvmlDeviceGetHandleByPciBusId_v2, card.address.c_str(), &card.handle);
    if (code == nvml::kFunctionNotFound)
      code = ask(f.nvmlDeviceGetHandleByPciBusId, card.address.c_str(), &card.handle);
  } else {
    const auto index = static_cast<unsigned>(card.index);
    code = ask(f.nvmlDeviceGetHandleByIndex_v2, index, &card.handle);
    if (code == nvml::kFunctionNotFound) code = ask(f.nvmlDeviceGetHandleByIndex, index, &card.handle);
  }
  if (code != nvml::kSuccess) card.handle = nullptr;
  return code;
}

// ---------------------------------------------------------------- one device

void NvmlSource::tell_what_the_bus_knows(Card& card) {
  const auto at = static_cast<std::size_t>(card.index);
  if (!card.has_facts && before_.size() == cards_.size() && before_[at].facts.uuid) {
    // The devices are as many as before, so they stand in the same order.
    card.facts = before_[at].facts;
  } else if (!card.has_facts) {
    card.facts = Gpu{};
    card.facts.vendor = Vendor::nvidia;
    card.facts.source = "nvml";
    card.facts.index = card.facts.vendor_index = card.index;
    if (!card.address.empty()) {
      card.facts.pci_address = card.address;
      const ModuleFacts known = files_.module_facts(card.address);
      if (!known.name.empty()) card.facts.name = known.name;
      if (!known.uuid.empty()) card.facts.uuid = known.uuid;
      if (known.minor) card.facts.device_minor = *known.minor;
      card.facts.numa_node = files_.numa_node(card.address);
    }
  }
  card.row = card.facts;
  card.slow_read_ns.reset();
  card.health_read_ns.reset();
  card.slices_read_ns.reset();
  card.links_read_ns.reset();
}

void NvmlSource::tell_failure(Card& card, Asker& ask, nvml::Return code) {
  tell_what_the_bus_knows(card);
  card.gone = code != nvml::kTimeout && code != nvml::kNoPermission;
  card.row.state = state_of(code);
  card.row.state_detail = advice_for(card.row.state, card.index, ask.library().text_of(code));
  explain_missing(card.row, why_of(code));
}

void NvmlSource::tell_traffic_by_meter(Card& card) {
  if (!options_.wants.traffic || !card.pcie_needs_meter || card.integrated) return;
  if (meter_ == nullptr) meter_ = std::make_unique<PcieMeter>(library_);
  const PcieMeter::Traffic traffic = meter_->read(card.index, card.handle);
  card.row.pcie_sent = traffic.sent;
  card.row.pcie_received = traffic.received;
}

XidHistory& NvmlSource::history_of(const Card& card) {
  return histories_[card.facts.uuid ? *card.facts.uuid : fmt::format("#{}", card.index)];
}

namespace {

void tell_activity(Card& card, Asker& ask, const Round& round) {
  if (!round.wants.activity) return;
  const Activity activity = card.activity.read(ask, card.handle, std::nullopt, round.now_ns);
  card.row.sm_activity = activity.sm;
  card.row.sm_occupancy = activity.occupancy;
  card.row.tensor_activity = activity.tensor;
}

// A device that answers may yet say that it must not be worked with.
void tell_state(Card& card) {
  card.row.state = State::ok;
  card.row.state_detail.clear();
  const std::string action = card.row.recovery_action.value_or("none");
  if (action.find("reset") == std::string::npos && action.find("reboot") == std::string::npos) return;
  card.row.state = State::needs_reset;
  card.row.state_detail = fmt::format("the driver asks to {}", action);
}

}  // namespace

void NvmlSource::get_to_know(Card& card, CardAsker& ask) {
  read_facts(card, ask, files_);
  if (!ask.fine()) return;
  const auto same = std::find_if(before_.begin(), before_.end(), [&card](const Card& other) {
    return other.facts.uuid.known() && other.facts.uuid == card.facts.uuid;
  });
  if (same != before_.end()) card.adopt(std::move(*same));
  XidHistory& history = history_of(card);
  const nvml::Return watched = events_.watch(ask.plain(), card.index, card.handle);
  if (watched != nvml::kSuccess && history.events.empty()) history.last = why_of(watched);
}

// The code is that of the memory, by which a handle shows whether it is still good.
nvml::Return NvmlSource::ask_all(Card& card, CardAsker& ask, const Round& round, Gpu& row) {
  if (!card.has_facts) {
    get_to_know(card, ask);
    row = card.row;
  }
  const bool look_at_mode = card.mig_on || due(card.slow_read_ns, round.now_ns, kSlowPeriod);
  if (ask.fine() && look_at_mode) read_mig_mode(card, ask);
  const nvml::Return memory = ask.fine() ? read_memory(card, ask) : ask.plain().trouble();
  if (memory == nvml::kInvalidArgument) return memory;
  if (ask.fine()) read_utilization(card, ask);
  if (ask.fine()) read_clocks(card, ask);
  if (ask.fine()) read_fields(card, ask, round);
  if (ask.fine()) read_slow(card, ask, round.now_ns);
  if (ask.fine()) read_links(card, ask, round);
  if (ask.fine()) read_slices(card, ask, round);
  if (ask.fine()) tell_activity(card, ask.plain(), round);
  return memory;
}

namespace {

// NVML answers zeros and garbage there, the kernel's files know (tegra_source).
bool is_jetson(const Card& card) {
  return card.facts.name && card.facts.name->find("(nvgpu)") != std::string::npos;
}

// A device that answers neither for its memory nor for its load answers nothing.
bool answers_nothing(const Card& card, nvml::Return memory) {
  const Why why = why_of(memory);
  const bool fault = why == Why::failed || why == Why::no_permission || why == Why::unresponsive;
  return memory != nvml::kSuccess && fault && !card.row.utilization && card.row.utilization.why() == why;
}

}  // namespace

NvmlSource::Outcome NvmlSource::judge(Card& card, Asker& ask, nvml::Return memory) {
  const nvml::Return code = ask.fine() ? memory : ask.trouble();
  // A handle that is refused belongs to a device that is no more.
  const bool stale = code == nvml::kInvalidArgument;
  card.answers = !stale && ask.fine() && !answers_nothing(card, memory);
  if (!card.answers) tell_failure(card, ask, code);
  if (ends_the_session(code)) return Outcome::session_over;
  return stale ? Outcome::stale_handle : Outcome::done;
}

NvmlSource::Outcome NvmlSource::reach(Card& card, Asker& ask) {
  if (card.handle != nullptr) return Outcome::done;
  const nvml::Return code = get_handle(card, ask);
  if (code != nvml::kSuccess) {
    tell_failure(card, ask, code);
    return ends_the_session(code) ? Outcome::session_over : Outcome::done;
  }
  card.has_facts = false;
  return Outcome::done;
}

NvmlSource::Outcome NvmlSource::read_device(Card& card, Asker& plain, const Round& round, Gpu& row) {
  CardAsker ask(plain, card);
  const nvml::Return memory = ask_all(card, ask, round, row);
  note_lateness(card, plain);
  if (card.late && !card.row.memory_total && memory == nvml::kTimeout) {
    tell_slowness(card, plain, round.now_ns);
    return Outcome::done;
  }
  return judge(card, plain, memory);
}

void NvmlSource::ask_dear_questions(Card& card, const Round& round) {
  const bool listed = round.wants.processes || card.integrated;
  const std::vector<std::uint8_t> kinds = listed ? rare_lists_due(card, round.now_ns) : std::vector<std::uint8_t>{};
  const bool fan = due(card.slow_read_ns, round.now_ns, kSlowPeriod) && !card.fanless;
  if (fan || !kinds.empty()) card.dear.emplace(library_, card.handle, fan, kinds);
}

// The dear questions first, so that they are answered while everything else is asked.
NvmlSource::Outcome NvmlSource::begin_devices(Asker& ask, const Round& round) {
  Outcome outcome = Outcome::done;
  for (Card& card : cards_) {
    ask.turn_to(card.index);
    card.answers = false;
    card.position = -1;
    card.late = false;
    allot(ask, first_end_, cards_.size() - 1);
    const bool rests = round.now_ns < card.rest_until_ns;
    if (!card.has_facts && !rests) tell_what_the_bus_knows(card);
    if (card.asleep) {
      tell_sleep(card);
    } else if (ask.watch().forbidden("nvml", card.index)) {
      tell_failure(card, ask, nvml::kTimeout);
    } else if (rests) {
      // As told when it was found too slow.
    } else {
      outcome = std::max(outcome, reach(card, ask));
      card.answers = card.handle != nullptr;
      if (card.answers && !is_jetson(card) && !card.dear) ask_dear_questions(card, round);
    }
  }
  return outcome;
}

NvmlSource::Outcome NvmlSource::read_processes_of(Card& card, Asker& plain, const Round& round,
                                                  std::vector<Process>& processes) {
  DearAnswers dear;
  if (card.dear) {
    if (auto answers = card.dear->take(plain.watch(), card.index, plain.until())) {
      dear = std::move(*answers);
      card.dear.reset();
    }
  }
  plain.add(dear.calls, dear.trouble);
  tell_fan(card, dear);
  CardAsker ask(plain, card);
  if (ask.fine() && (round.wants.processes || card.integrated)) {
    const nvml::Return listed = read_processes(card, ask, round, dear, processes);
    if (ask.fine()) read_process_utilization(card, ask, round, processes);
    tell_unified_memory(card, files_, listed, processes);
  }
  note_lateness(card, plain);
  const Outcome outcome = judge(card, plain, nvml::kSuccess);
  if (!card.answers || !round.wants.processes) processes.clear();
  if (!card.answers) return outcome;
  tell_traffic_by_meter(card);
  card.gone = false;
  tell_state(card);
  if (!card.late) card.rest_ns = 0;
  if (card.late && card.row.state == State::ok) card.row.state_detail = "too slow to answer every question in time";
  return outcome;
}

// ---------------------------------------------------------------- a read

void NvmlSource::tell_sleep(Card& card) {
  tell_what_the_bus_knows(card);
  card.row.state = State::asleep;
  card.row.state_detail = advice_for(State::asleep, card.index, "");
  explain_missing(card.row, Why::asleep);
}

// A device that is slow must not cost the others their turn. What it leaves of its share is theirs.
void NvmlSource::allot(Asker& ask, Asker::Clock::time_point end, std::size_t others) {
  const auto now = Asker::Clock::now();
  const auto left = std::max(end - now, Asker::Clock::duration::zero());
  const auto share = left / static_cast<std::int64_t>(others + 1);
  // One that answers in time is asked even when those before it took all there was.
  ask.ask_until(now + std::clamp<Asker::Clock::duration>(share, kLeastOfOne, kMostOfOne));
}

void NvmlSource::note_lateness(Card& card, Asker& ask) {
  card.late = card.late || ask.late();
}

void NvmlSource::tell_slowness(Card& card, Asker& ask, std::int64_t now_ns) {
  const Gpu told = card.facts;
  tell_failure(card, ask, nvml::kTimeout);
  if (!card.has_facts) card.row = card.facts = told;
  card.answers = false;
  card.row.state = State::unresponsive;
  card.rest_ns = std::clamp(card.rest_ns * 2, kFirstRest, kLastRest);
  card.rest_until_ns = now_ns + card.rest_ns;
  card.row.state_detail = fmt::format(
      "too slow: its answers took longer than the time for a reading; asked again after {} s", card.rest_ns / kSecond);
  explain_missing(card.row, Why::unresponsive);
}

NvmlSource::Outcome NvmlSource::read_devices(Asker& ask, const Round& round, Snapshot& snapshot) {
  const auto now = Asker::Clock::now();
  first_end_ = std::max(first_end_, now + kLeastForAll);
  last_end_ = std::max(last_end_, first_end_ + kLeastForAll / 4);
  Outcome outcome = begin_devices(ask, round);
  std::size_t others = cards_.size();
  for (Card& card : cards_) {
    const std::size_t position = snapshot.gpus.size();
    snapshot.gpus.push_back(card.facts);
    ask.turn_to(card.index);
    allot(ask, first_end_, --others);
    if (card.answers) outcome = std::max(outcome, read_device(card, ask, round, snapshot.gpus[position]));
    if (is_jetson(card)) {
      card.answers = false;
      snapshot.gpus.pop_back();
      continue;
    }
    card.position = static_cast<int>(position);
    snapshot.gpus[position] = card.row;
  }
  others = cards_.size();
  for (Card& card : cards_) {
    --others;
    if (!card.answers) continue;
    std::vector<Process> processes;
    ask.turn_to(card.index);
    allot(ask, last_end_, others);
    outcome = std::max(outcome, read_processes_of(card, ask, round, processes));
    for (Process& process : processes) {
      process.gpu = card.position;
      snapshot.processes.push_back(std::move(process));
    }
  }
  ask.turn_to(-1);
  tell_events(ask, round);
  for (const Card& card : cards_)
    if (card.position >= 0) snapshot.gpus[static_cast<std::size_t>(card.position)] = card.row;
  return outcome;
}

void NvmlSource::tell_events(Asker& ask, const Round& round) {
  bool mig_changed = false;
  for (const auto& [index, code] : events_.poll(ask, mig_changed))
    if (const auto at = static_cast<std::size_t>(index); at < cards_.size())
      history_of(cards_[at]).add(code, round.time);
  for (Card& card : cards_) {
    if (mig_changed) card.slices_read_ns.reset();
    if (card.asleep || !(card.has_facts || card.facts.uuid)) continue;
    const XidHistory& history = history_of(card);
    card.row.xids = history.events;
    card.row.last_xid = history.last;
  }
}

void NvmlSource::number_for_cuda(Snapshot& snapshot, std::size_t first) const {
  const char* order = options_.simulated == nullptr ? std::getenv("CUDA_DEVICE_ORDER") : nullptr;
  const bool by_bus = order != nullptr && std::string_view(order) == "PCI_BUS_ID";
  const auto begin = snapshot.gpus.begin() + static_cast<std::ptrdiff_t>(first);
  const std::vector<CudaNumbers> numbers = cuda_numbers({begin, snapshot.gpus.end()});
  for (std::size_t i = 0; i < numbers.size(); ++i)
    snapshot.gpus[first + i].cuda_index = by_bus ? numbers[i].by_bus : numbers[i].by_speed;
}

// A session that ended is begun anew at once. For one device that stays away it is begun anew ever more seldom, as that
// costs the others time.
void NvmlSource::read_everything(Snapshot& snapshot, Asker& ask, const std::vector<BusDevice>& bus) {
  const Round round{snapshot.monotonic_ns, snapshot.time, options_.wants, files_};
  const auto any_gone = [this] {
    return std::any_of(cards_.begin(), cards_.end(), [](const Card& card) { return card.gone; });
  };
  const std::size_t gpus = snapshot.gpus.size(), processes = snapshot.processes.size();
  if (started_ && any_gone() && may_restart(round.now_ns)) stop(ask);
  for (int attempt = 0; attempt < 2; ++attempt) {
    snapshot.gpus.resize(gpus);
    snapshot.processes.resize(processes);
    if (!started_ && !all_asleep(bus) && !start(snapshot, ask)) return;
    Outcome outcome = check_devices(ask, bus);
    if (outcome == Outcome::stale_handle) find_devices(ask, bus);
    if (outcome != Outcome::session_over) outcome = read_devices(ask, round, snapshot);
    const bool again =
        outcome == Outcome::session_over || (outcome == Outcome::stale_handle && may_restart(round.now_ns));
    if (!again || attempt > 0) break;
    stop(ask);
  }
  if (!any_gone()) restart_wait_ns_ = 0;
  if (unsigned count = 0; cards_.empty()) {
    const nvml::Return code = count_devices(ask, count);
    if (code != nvml::kSuccess) {
      report(snapshot, SourceReport::Outcome::failed, fmt::format("nvmlDeviceGetCount: {}", library_->text_of(code)));
      return;
    }
  }
  number_for_cuda(snapshot, gpus);
  if (started_) snapshot.drivers.push_back(driver_);
  if (snapshot.gpus.size() == gpus)
    report(snapshot, SourceReport::Outcome::absent, "NVIDIA's driver runs, but has no GPU");
  else
    report(snapshot, SourceReport::Outcome::found, "");
}

void NvmlSource::read(Snapshot& snapshot, CallWatch& watch) {
  if (options_.nvml_library.empty() && options_.simulated == nullptr && library_ == nullptr) return;
  if (watch.forbidden("nvml", -1)) {
    report(snapshot, SourceReport::Outcome::failed, "NVIDIA's driver did not answer in time",
           "'dmesg | grep -i -e nvrm -e xid' says what it met");
    return;
  }
  const std::vector<BusDevice> bus = scan_bus(snapshot.monotonic_ns);
  if (!open(snapshot)) return;
  if (!library_->simulation().empty()) snapshot.simulated = library_->simulation();
  Asker ask(*library_, watch);
  first_end_ = Asker::Clock::now() + watch.budget() * 3 / 4;
  last_end_ = Asker::Clock::now() + watch.budget();
  read_everything(snapshot, ask, bus);
  snapshot.vendor_calls += ask.calls() + (meter_ != nullptr ? meter_->take_calls() : 0);
}

}  // namespace gpuwright::device::nvidia

namespace gpuwright::device {

std::unique_ptr<Source> nvml_source(const SourceOptions& options) {
  return std::make_unique<nvidia::NvmlSource>(options);
}

}  // namespace gpuwright::device

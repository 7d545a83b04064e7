#include "device/report.h"

#include <algorithm>
#include <utility>

#include "device/report_faults.h"
#include "device/report_figures.h"
#include "device/report_owners.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostFaults = 10'000;

struct GpuBook {
  GpuReport report;
  Figure utilization, memory_used, power, temperature;
  Energy energy;
  FaultWatch faults;
};

bool same_device(const Gpu& a, const Gpu& b) {
  if (a.uuid && b.uuid) return *a.uuid == *b.uuid;
  if (a.pci_address && b.pci_address) return *a.pci_address == *b.pci_address;
  return a.source == b.source && a.vendor_index == b.vendor_index;
}

// The mean of both ends, for what is a state of the moment.
template <class T>
std::optional<double> between(const Reading<T>& before, const Reading<T>& after) {
  if (!before || !after) return std::nullopt;
  if constexpr (std::is_same_v<T, Bytes>) {
    return (static_cast<double>(before->count) + static_cast<double>(after->count)) / 2;
  } else {
    return (before->value + after->value) / 2;
  }
}

void add_if_known(Figure& figure, std::optional<double> value, Seconds time) {
  if (value) figure.add(*value, time);
}

void see_moment(GpuBook& book, const Gpu& gpu) {
  if (gpu.utilization) book.utilization.see(gpu.utilization->value);
  if (gpu.memory_used) book.memory_used.see(static_cast<double>(gpu.memory_used->count));
  if (gpu.power) book.power.see(gpu.power->value);
  if (gpu.temperature) book.temperature.see(gpu.temperature->value);
}

// The counter is what the device measured; where it was reset or is missing, power times time stands in.
std::optional<Joules> add_energy(Energy& energy, const Gpu& before, const Gpu& after, Seconds time) {
  std::optional<Joules> used;
  if (before.energy && after.energy && *after.energy >= *before.energy) {
    used = Joules{after.energy->value - before.energy->value};
    energy.from_counter += time;
  } else if (const auto power = between(before.power, after.power)) {
    used = Joules{*power * time.count()};
    energy.from_power += time;
  }
  if (used) energy.total.value += used->value;
  return used;
}

void add_throttling(GpuReport& report, const Gpu& after, Seconds time) {
  if (!after.throttle_reasons) return;
  report.throttle_known += time;
  const ThrottleReasons reasons{after.throttle_reasons->bits & ~throttle::kIdle};
  for (const std::string_view name : names_of(reasons)) report.throttled[std::string(name)] += time;
}

void add_figures(GpuBook& book, const Gpu& before, const Gpu& after, Seconds time) {
  book.report.observed += time;
  if (after.utilization) book.utilization.add(after.utilization->value, time);
  add_if_known(book.memory_used, between(before.memory_used, after.memory_used), time);
  add_if_known(book.power, between(before.power, after.power), time);
  add_if_known(book.temperature, between(before.temperature, after.temperature), time);
  add_throttling(book.report, after, time);
}

GpuReport closed(GpuBook&& book) {
  GpuReport report = std::move(book.report);
  report.utilization = book.utilization.over_time<Ratio>([](double value) { return Ratio{value}; });
  report.memory_used = book.memory_used.over_time<Bytes>([](double value) { return Bytes{std::llround(value)}; });
  report.power = book.power.over_time<Watts>([](double value) { return Watts{value}; });
  report.temperature = book.temperature.over_time<Celsius>([](double value) { return Celsius{value}; });
  if (book.energy.from_counter + book.energy.from_power > Seconds(0)) report.energy = book.energy;
  return report;
}

}  // namespace

struct Reporter::State {
  explicit State(const ReportOptions& given) : options(given) {}

  std::size_t book_of(const Gpu& gpu);
  void add_interval(const Snapshot& after, Seconds time);
  void add_gpu(const Snapshot& after, const Gpu& gpu, int book, Seconds time);
  void add_faults(const Snapshot& snapshot);

  ReportOptions options;
  Report report;
  std::vector<GpuBook> books;
  Owners owners;
  std::optional<Snapshot> before;
};

std::size_t Reporter::State::book_of(const Gpu& gpu) {
  const auto known = std::find_if(books.begin(), books.end(),
                                  [&gpu](const GpuBook& book) { return same_device(book.report.gpu, gpu); });
  if (known != books.end()) return static_cast<std::size_t>(known - books.begin());
  books.emplace_back().report.gpu = gpu;
  return books.size() - 1;
}

void Reporter::State::add_gpu(const Snapshot& after, const Gpu& gpu, int book, Seconds time) {
  const auto old = std::find_if(before->gpus.begin(), before->gpus.end(),
                                [&gpu](const Gpu& each) { return same_device(each, gpu); });
  if (old == before->gpus.end()) return owners.interrupt(book, options.idle_after);
  GpuBook& page = books[static_cast<std::size_t>(book)];
  add_figures(page, *old, gpu, time);
  Interval interval;
  interval.gpu = book;
  interval.before = &*old;
  interval.after = &gpu;
  interval.from = before->time;
  interval.to = after.time;
  interval.time = time;
  interval.energy = add_energy(page.energy, *old, gpu, time);
  interval.at_start = tenants_of(*before, *old);
  interval.at_end = tenants_of(after, gpu);
  interval.unattributed_before = unattributed_memory(*before, *old);
  interval.unattributed_after = unattributed_memory(after, gpu);
  owners.add(interval, options.idle_after, options.least_held);
}

void Reporter::State::add_interval(const Snapshot& after, Seconds time) {
  const bool counts = time > Seconds(0) && time <= options.max_gap;
  if (counts) report.observed += time;
  std::vector<bool> present(books.size(), false);
  for (const Gpu& gpu : after.gpus) {
    const std::size_t book = book_of(gpu);
    if (book < present.size()) present[book] = true;
    if (counts) add_gpu(after, gpu, static_cast<int>(book), time);
  }
  for (std::size_t book = 0; book < present.size(); ++book)
    if (!present[book] || !counts) owners.interrupt(static_cast<int>(book), options.idle_after);
}

void Reporter::State::add_faults(const Snapshot& snapshot) {
  for (const Gpu& gpu : snapshot.gpus) {
    const std::size_t book = book_of(gpu);
    see_moment(books[book], gpu);
    for (Fault& fault : books[book].faults.compare(gpu, snapshot.time, static_cast<int>(book))) {
      if (report.faults.size() < kMostFaults)
        report.faults.push_back(std::move(fault));
      else
        ++report.faults_left_out;
    }
    books[book].report.gpu = gpu;
    books[book].report.gpu.index = static_cast<int>(book);
  }
}

Reporter::Reporter(const ReportOptions& options) : state_(std::make_unique<State>(options)) {}
Reporter::Reporter(Reporter&&) noexcept = default;
Reporter& Reporter::operator=(Reporter&&) noexcept = default;
Reporter::~Reporter() = default;

void Reporter::add(const Snapshot& snapshot) {
  State& state = *state_;
  if (state.report.snapshots == 0) {
    state.report.hostname = snapshot.hostname;
    state.report.simulated = snapshot.simulated;
    state.report.from = snapshot.time;
  }
  if (state.before) {
    const std::int64_t nanoseconds = snapshot.time.nanoseconds - state.before->time.nanoseconds;
    state.add_interval(snapshot, Seconds(static_cast<double>(nanoseconds) / 1e9));
  }
  state.add_faults(snapshot);
  ++state.report.snapshots;
  state.report.to = snapshot.time;
  state.before = snapshot;
}

Report Reporter::finish() {
  State& state = *state_;
  state.owners.finish(state.report, state.options.idle_after);
  for (GpuBook& book : state.books) state.report.gpus.push_back(closed(std::move(book)));
  std::stable_sort(state.report.faults.begin(), state.report.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.time < b.time; });
  return std::move(state.report);
}

}  // namespace gpuwright::device

#include "fit/learn/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text.h"

namespace gpuwright::fit {
namespace {

using What = Measurement::What;

// Below this nothing is said to differ: logs print hundredths of a MiB, and page sizes enter.
constexpr double kSmallBytes = 1 << 20;

struct Bounds {
  double low = 0, expected = 0, high = 0;

  void add(const Range& range) {
    low += static_cast<double>(range.low.count);
    expected += static_cast<double>(range.expected.count);
    high += static_cast<double>(range.high.count);
  }
};

bool takes_a_share(Engine engine) {
  return engine == Engine::vllm || engine == Engine::sglang;
}

// What the engine's own words for a part cover of ours.
std::vector<ComponentKind> kinds_of(ComponentKind kind, Engine engine) {
  if (!takes_a_share(engine)) return {kind};
  if (kind == ComponentKind::runtime) return {kind, ComponentKind::communication};
  if (kind == ComponentKind::activations) return {kind, ComponentKind::vision, ComponentKind::logits};
  return {kind};
}

// A part may be live in some instants only.
Bounds most_of(const GpuEstimate& gpu, ComponentKind kind, Engine engine) {
  Bounds most;
  for (const Instant& instant : gpu.instants) {
    Bounds sum;
    for (const ComponentKind part : kinds_of(kind, engine)) sum.add(instant.total_of(part));
    most = {std::max(most.low, sum.low), std::max(most.expected, sum.expected), std::max(most.high, sum.high)};
  }
  return most;
}

Bounds on_host(const Estimate& estimate, ComponentKind kind) {
  Bounds sum;
  for (const Component& component : estimate.host)
    if (component.kind == kind) sum.add({component.low, component.expected, component.high});
  return sum;
}

Bounds total_of(const GpuEstimate& gpu, Meter meter, Engine engine) {
  Bounds most;
  for (const Instant& instant : gpu.instants) {
    Bounds sum;
    sum.add(instant.total(meter));
    most = {std::max(most.low, sum.low), std::max(most.expected, sum.expected), std::max(most.high, sum.high)};
  }
  if (!takes_a_share(engine)) return most;
  // Such an engine fills its share with cache: below it nothing ends.
  const auto share = static_cast<double>(gpu.usable.count);
  return {std::min(most.low, share), std::max(most.expected, share), std::max(most.high, share * 1.03)};
}

// What is left for the cache: the share less everything else.
std::optional<Bounds> cache_budget(const GpuEstimate& gpu) {
  if (gpu.instants.empty()) return std::nullopt;
  const Instant& serve = gpu.instants.back();
  const Range all = serve.total(), kv = serve.total_of(ComponentKind::kv_cache),
              state = serve.total_of(ComponentKind::recurrent_state);
  const auto left = [&](Bytes total, Bytes cache, Bytes states) {
    return static_cast<double>((gpu.usable - (total - cache - states)).count);
  };
  return Bounds{left(all.high, kv.high, state.high), left(all.expected, kv.expected, state.expected),
                left(all.low, kv.low, state.low)};
}

class Comparer {
 public:
  Comparer(const LogRun& run, const Estimate& estimate, Engine engine)
      : run_(run), estimate_(estimate), engine_(engine) {
    for (const Measurement& measurement : run.measurements)
      if (measurement.gpu) numbers_.insert(*measurement.gpu);
  }

  Comparison compare() {
    for (const Measurement& measurement : run_.measurements) row(measurement);
    std::stable_sort(answer_.rows.begin(), answer_.rows.end(),
                     [](const Compared& a, const Compared& b) { return place(a.measured) < place(b.measured); });
    return std::move(answer_);
  }

 private:
  // Parts, then totals, GPU by GPU; then the host; then capacities.
  static std::tuple<int, int, int> place(const Measurement& measurement) {
    if (measurement.what == What::capacity) return {1 << 20, 0, 0};
    const int where = measurement.gpu.value_or((1 << 20) - 1);
    if (measurement.what == What::component) return {where, 0, static_cast<int>(measurement.kind)};
    return {where, 1, static_cast<int>(measurement.meter)};
  }

  // The job's rank of a GPU of the log.
  const GpuEstimate* rank_of(int number) const {
    const auto ranks = estimate_.per_gpu.size();
    if (static_cast<std::size_t>(number) < ranks) return &estimate_.per_gpu[static_cast<std::size_t>(number)];
    if (numbers_.size() > ranks) return nullptr;
    return &estimate_.per_gpu[static_cast<std::size_t>(std::distance(numbers_.begin(), numbers_.find(number)))];
  }

  void row(const Measurement& measurement) {
    Compared compared;
    compared.measured = measurement;
    std::optional<Bounds> bounds;
    if (measurement.what == What::capacity) {
      bounds = capacity(measurement, compared);
    } else if (!measurement.gpu) {
      compared.where = "host";
      compared.what = std::string(label_of(measurement.kind));
      bounds = on_host(estimate_, measurement.kind);
    } else {
      compared.where = fmt::format("GPU {}", *measurement.gpu);
      bounds = on_gpu(measurement, compared);
    }
    if (!bounds) {
      answer_.notes.push_back(
          fmt::format("Line {} has no prediction to compare with: {}", measurement.line, printable(measurement.text)));
      return;
    }
    compared.low = bounds->low;
    compared.expected = bounds->expected;
    compared.high = bounds->high;
    compared.agreement = judge(compared);
    answer_.rows.push_back(std::move(compared));
  }

  std::optional<Bounds> on_gpu(const Measurement& measurement, Compared& compared) const {
    const GpuEstimate* gpu = rank_of(*measurement.gpu);
    if (gpu == nullptr) return std::nullopt;
    if (measurement.what == What::component) {
      compared.what = std::string(label_of(measurement.kind));
      return most_of(*gpu, measurement.kind, engine_);
    }
    constexpr std::array<std::string_view, 4> kTotals = {"all tensors", "all that torch allocated",
                                                         "all that torch reserved", "all of the process"};
    compared.what =
        std::string(measurement.others ? "all in use" : kTotals[static_cast<std::size_t>(measurement.meter)]);
    return total_of(*gpu, measurement.meter, engine_);
  }

  std::optional<Bounds> capacity(const Measurement& measurement, Compared& compared) const {
    if (measurement.name == "kv_cache_budget") {
      compared.what = "room for the KV cache";
      return estimate_.per_gpu.empty() ? std::nullopt : cache_budget(estimate_.per_gpu.front());
    }
    compared.bytes = false;
    compared.what = measurement.name;
    std::replace(compared.what.begin(), compared.what.end(), '_', ' ');
    for (const Capacity& known : estimate_.capacities)
      if (known.name == measurement.name)
        return Bounds{static_cast<double>(known.low), static_cast<double>(known.expected),
                      static_cast<double>(known.high)};
    return std::nullopt;
  }

  static Agreement judge(const Compared& compared) {
    const Measurement& measured = compared.measured;
    const double value = compared.value(), slack = measured.slack;
    const double over = value - slack - compared.high, under = compared.low - value - slack;
    if (measured.at_least && under > 0) return Agreement::possible;
    if (measured.others && over > 0) return Agreement::possible;
    if (over <= 0 && under <= 0) return measured.at_least || measured.others ? Agreement::possible : Agreement::inside;
    const double off = std::max(over, under);
    const double end = std::max(std::abs(over > 0 ? compared.high : compared.low), 1.0);
    if (off / end <= kTolerated || (compared.bytes && off < kSmallBytes)) return Agreement::near;
    return Agreement::differs;
  }

  const LogRun& run_;
  const Estimate& estimate_;
  Engine engine_;
  std::set<int> numbers_;
  Comparison answer_;
};

}  // namespace

std::string_view name_of(Agreement agreement) {
  constexpr std::array<std::string_view, 4> kNames = {"inside", "near", "differs", "possible"};
  return kNames[static_cast<std::size_t>(agreement)];
}

std::optional<double> Compared::error() const {
  if (value() == 0) return std::nullopt;
  return expected / value() - 1;
}

bool Comparison::differs() const {
  return std::any_of(rows.begin(), rows.end(), [](const Compared& row) { return row.agreement == Agreement::differs; });
}

Comparison compare(const LogRun& run, const Estimate& estimate, Engine engine) {
  return Comparer(run, estimate, engine).compare();
}

}  // namespace gpuwright::fit

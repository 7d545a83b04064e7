#include "reading.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gpuwright::scorer {
namespace {

bool contains(const std::vector<fit::ComponentKind>& kinds, fit::ComponentKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

fit::Range largest_of(const fit::GpuEstimate& gpu, std::string_view instant, const InstantFigure& figure) {
  const bool named = std::any_of(gpu.instants.begin(), gpu.instants.end(),
                                 [&](const fit::Instant& candidate) { return candidate.name == instant; });
  fit::Range largest;
  for (const fit::Instant& candidate : gpu.instants) {
    if (named && candidate.name != instant) continue;
    const fit::Range range = figure(gpu, candidate);
    largest.low = std::max(largest.low, range.low);
    largest.expected = std::max(largest.expected, range.expected);
    largest.high = std::max(largest.high, range.high);
  }
  return largest;
}

}  // namespace

fit::Range operator+(const fit::Range& a, const fit::Range& b) {
  return {a.low + b.low, a.expected + b.expected, a.high + b.high};
}

Result<fit::Range> read_gpus(const Row& row, const fit::Estimate& estimate, const InstantFigure& figure) {
  const std::string_view instant = row.settings.text("instant").value_or("");
  const std::string_view where = row.where;
  std::vector<fit::Range> ranges;
  for (const fit::GpuEstimate& gpu : estimate.per_gpu) ranges.push_back(largest_of(gpu, instant, figure));
  if (ranges.empty()) return fail(ErrorCode::unsupported, "the estimate has no GPU");
  if (where == "sum") {
    fit::Range sum;
    for (const fit::Range& range : ranges) sum = sum + range;
    return sum;
  }
  if (where.size() > 3 && where.substr(0, 3) == "gpu") {
    const auto index = static_cast<std::size_t>(to_integer(where.substr(3)).value_or(0));
    if (index >= ranges.size())
      return fail(ErrorCode::bad_input, fmt::format("there are {} GPUs, none is {}", ranges.size(), where));
    return ranges[index];
  }
  return *std::max_element(ranges.begin(), ranges.end(),
                           [](const fit::Range& a, const fit::Range& b) { return a.expected < b.expected; });
}

fit::Range read_host(const fit::Estimate& estimate, const std::vector<fit::ComponentKind>& kinds) {
  fit::Range sum;
  for (const fit::Component& component : estimate.host)
    if (contains(kinds, component.kind)) sum = sum + fit::Range{component.low, component.expected, component.high};
  return sum;
}

InstantFigure sum_of(std::vector<fit::ComponentKind> kinds) {
  return [kinds = std::move(kinds)](const fit::GpuEstimate&, const fit::Instant& instant) {
    fit::Range sum;
    for (fit::ComponentKind kind : kinds) sum = sum + instant.total_of(kind);
    return sum;
  };
}

InstantFigure outside_of_framework(std::vector<fit::ComponentKind> kinds) {
  return [kinds = std::move(kinds)](const fit::GpuEstimate&, const fit::Instant& instant) {
    fit::Range sum;
    for (const fit::Component& part : instant.components)
      if (part.first_seen_by == fit::Meter::device && contains(kinds, part.kind))
        sum = sum + fit::Range{part.low, part.expected, part.high};
    return sum;
  };
}

Result<InstantFigure> total_seen_by(std::string_view meter) {
  for (const fit::Meter known : {fit::Meter::tensor, fit::Meter::allocated, fit::Meter::reserved, fit::Meter::device})
    if (fit::name_of(known) == meter)
      return InstantFigure(
          [known](const fit::GpuEstimate&, const fit::Instant& instant) { return instant.total(known); });
  if (meter == "unknown")
    return InstantFigure([](const fit::GpuEstimate&, const fit::Instant& instant) {
      const fit::Range least = instant.total(fit::Meter::tensor), most = instant.total(fit::Meter::device);
      return fit::Range{least.low, (least.expected + most.expected) / 2, most.high};
    });
  return fail(ErrorCode::unsupported, fmt::format("a total seen by the meter \"{}\"", meter));
}

}  // namespace gpuwright::scorer

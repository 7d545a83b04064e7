#include "fit/learn/calibration.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/text.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kMostFileBytes = 1 << 20;
constexpr std::size_t kMostCorrections = 1000;
constexpr std::size_t kLongestText = 512;
// A run that teaches more than this was not the run that was estimated.
constexpr double kLowestRatio = 0.2, kHighestRatio = 5.0;
constexpr Bytes kLargestOffset = Bytes{std::int64_t{8} << 30};
// Not worth a correction.
constexpr double kNoticeable = 0.005;

constexpr std::array kCorrectable = {ComponentKind::compute_buffer, ComponentKind::activations,
                                     ComponentKind::allocator, ComponentKind::runtime};

std::string_view key_of(ComponentKind kind) {
  std::string_view key = json_key(kind);
  key.remove_suffix(std::string_view("_bytes").size());
  return key;
}

std::optional<ComponentKind> kind_named(std::string_view name) {
  for (const ComponentKind kind : kCorrectable)
    if (key_of(kind) == name) return kind;
  return std::nullopt;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable(text.substr(0, kLongestText))) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

Result<Correction> correction_from(const toml::table& row, const Location& where) {
  const auto text = [&](std::string_view key) { return row[key].value_or(std::string()); };
  Correction correction;
  const auto engine = engine_named(text("engine"));
  if (!engine) return fail_at(ErrorCode::bad_input, where, engine.error().what, engine.error().hint);
  correction.engine = engine->engine;
  correction.gpu = text("gpu");
  if (correction.gpu.empty()) return fail_at(ErrorCode::bad_input, where, "a correction needs the name of a GPU: gpu");
  const auto kind = kind_named(text("component"));
  if (!kind)
    return fail_at(ErrorCode::bad_input, where, fmt::format("\"{}\" is no component to correct", text("component")),
                   "components: compute_buffer, activations, allocator, runtime");
  correction.kind = *kind;
  const auto ratio = row["ratio"].value<double>();
  const auto offset = row["offset_bytes"].value<std::int64_t>();
  if (ratio.has_value() == offset.has_value())
    return fail_at(ErrorCode::bad_input, where, "a correction has either ratio or offset_bytes");
  correction.ratio = ratio.value_or(1);
  correction.offset = Bytes{offset.value_or(0)};
  const bool ratio_fits = correction.ratio >= kLowestRatio && correction.ratio <= kHighestRatio;
  if (!ratio_fits || correction.offset > kLargestOffset || correction.offset < Bytes{} - kLargestOffset)
    return fail_at(ErrorCode::bad_input, where, "the correction is out of bounds",
                   fmt::format("ratio from {} to {}, offset_bytes at most {} either way", kLowestRatio, kHighestRatio,
                               kLargestOffset.count));
  correction.date = text("date");
  correction.source = text("source");
  return correction;
}

bool same_subject(const Correction& a, const Correction& b) {
  return a.engine == b.engine && a.kind == b.kind && lower(a.gpu) == lower(b.gpu);
}

void widen(Component& component, Bytes expected) {
  component.expected = expected;
  component.low = std::min(component.low, expected);
  component.high = std::max(component.high, expected);
}

// True when the instant has the part.
bool apply(Instant& instant, const Correction& correction) {
  bool applied = false;
  for (Component& component : instant.components) {
    if (component.kind != correction.kind) continue;
    const bool once = correction.offset != Bytes{};
    if (once && applied) break;
    const Bytes moved = component.expected.scaled(correction.ratio) + correction.offset;
    widen(component, std::max(moved, Bytes{}));
    component.formula += fmt::format(", {} as measured", describe(correction));
    applied = true;
  }
  return applied;
}

// What is left for the cache on each GPU: usable less everything else.
std::vector<double> rooms_for_cache(const Estimate& estimate) {
  std::vector<double> rooms;
  for (const GpuEstimate& gpu : estimate.per_gpu) {
    Bytes others;
    if (!gpu.instants.empty()) {
      const Instant& serve = gpu.instants.back();
      others = serve.total().expected - serve.total_of(ComponentKind::kv_cache).expected -
               serve.total_of(ComponentKind::recurrent_state).expected;
    }
    rooms.push_back(static_cast<double>((gpu.usable - others).count));
  }
  return rooms;
}

// An engine that fills its share with cache has less of it where its other parts take more. The GPU with the least
// room decides for all.
void scale_capacities(Estimate& estimate, const std::vector<double>& before, const std::vector<double>& after) {
  if (before.empty()) return;
  const double was = *std::min_element(before.begin(), before.end());
  const double is = std::max(*std::min_element(after.begin(), after.end()), 0.0);
  if (was <= 0 || was == is) return;
  for (Capacity& capacity : estimate.capacities) {
    capacity.expected = static_cast<std::int64_t>(static_cast<double>(capacity.expected) * (is / was));
    capacity.low = std::min(capacity.low, capacity.expected);
    capacity.high = std::max(capacity.high, capacity.expected);
  }
}

}  // namespace

bool can_be_corrected(ComponentKind kind) {
  return std::find(kCorrectable.begin(), kCorrectable.end(), kind) != kCorrectable.end();
}

std::string describe(const Correction& correction) {
  if (correction.offset == Bytes{}) return fmt::format("x {:.3g}", correction.ratio);
  const bool less = correction.offset < Bytes{};
  return fmt::format("{}{}", less ? "-" : "+", to_string(less ? Bytes{} - correction.offset : correction.offset));
}

Result<std::vector<Correction>> corrections_from_toml(std::string_view text, std::string_view name) {
  const auto file = [&]() -> Result<toml::table> {
    try {
      return toml::parse(text, name);
    } catch (const toml::parse_error& error) {
      return fail_at(ErrorCode::bad_input, {std::string(name), error.source().begin.line, std::nullopt},
                     std::string(error.description()));
    }
  }();
  if (!file) return tl::unexpected(file.error());
  std::vector<Correction> corrections;
  const toml::array* rows = (*file)["correction"].as_array();
  if (rows == nullptr) return corrections;
  for (const toml::node& node : *rows) {
    const Location where{std::string(name), node.source().begin.line, std::nullopt};
    const toml::table* row = node.as_table();
    if (row == nullptr) return fail_at(ErrorCode::bad_input, where, "a correction is a table: [[correction]]");
    if (corrections.size() == kMostCorrections)
      return fail_at(ErrorCode::bad_input, where, fmt::format("more than {} corrections", kMostCorrections));
    corrections.push_back(GW_TRY(correction_from(*row, where)));
  }
  return corrections;
}

std::string to_toml(const std::vector<Correction>& corrections) {
  std::string text =
      "# What runs on these GPUs taught gpuwright fit (fit --from-log FILE --calibrate). Each row moves the expected\n"
      "# size of one part; delete a row, or use fit --forget, to go back.\n";
  for (const Correction& correction : corrections) {
    text += fmt::format("\n[[correction]]\nengine = {}\ngpu = {}\ncomponent = {}\n", quoted(name_of(correction.engine)),
                        quoted(correction.gpu), quoted(key_of(correction.kind)));
    text += correction.offset == Bytes{} ? fmt::format("ratio = {:.4f}\n", correction.ratio)
                                         : fmt::format("offset_bytes = {}\n", correction.offset.count);
    text += fmt::format("date = {}\nsource = {}\n", quoted(correction.date), quoted(correction.source));
  }
  return text;
}

std::string calibration_path() {
  const std::string directory = config_directory();
  return directory.empty() ? directory : directory + "/calibration.toml";
}

Result<std::vector<Correction>> load_corrections(const std::string& path) {
  if (path.empty() || !path_exists(path)) return std::vector<Correction>{};
  const std::string text = GW_TRY(read_file(path, kMostFileBytes));
  auto corrections = corrections_from_toml(text, path);
  if (!corrections && corrections.error().hint.empty())
    corrections.error().hint = "repair the file, or delete it to do without corrections";
  return corrections;
}

Status save_corrections(const std::vector<Correction>& corrections, const std::string& path) {
  if (path.empty())
    return fail(ErrorCode::unavailable, "there is no home to keep corrections in", "set HOME or XDG_CONFIG_HOME");
  const std::string directory = path.substr(0, path.rfind('/'));
  for (std::size_t at = directory.find('/', 1);; at = directory.find('/', at + 1)) {
    ::mkdir(directory.substr(0, at).c_str(), 0755);
    if (at == std::string::npos) break;
  }
  return write_file_atomically(path, to_toml(corrections));
}

std::vector<Correction> corrections_from(const Comparison& comparison, Engine engine, std::string_view gpu,
                                         std::string_view date, std::string_view source) {
  struct Sum {
    double measured = 0, expected = 0;
    int gpus = 0;
    std::int64_t line = 0;
    std::string text;
  };
  std::map<ComponentKind, Sum> sums;
  for (const Compared& row : comparison.rows) {
    const Measurement& measured = row.measured;
    if (measured.what != Measurement::What::component || !measured.gpu || measured.at_least || measured.others ||
        measured.weak || !can_be_corrected(measured.kind))
      continue;
    Sum& sum = sums[measured.kind];
    sum.measured += row.value();
    sum.expected += row.expected;
    if (sum.gpus++ == 0) sum.line = measured.line, sum.text = measured.text;
  }
  std::vector<Correction> corrections;
  for (const auto& [kind, sum] : sums) {
    if (sum.expected <= 0 || std::abs(sum.measured / sum.expected - 1) < kNoticeable) continue;
    Correction correction;
    correction.engine = engine;
    correction.gpu = gpu;
    correction.kind = kind;
    // What a driver takes does not grow with the job; buffers do.
    if (kind == ComponentKind::runtime)
      correction.offset = Bytes{static_cast<std::int64_t>((sum.measured - sum.expected) / sum.gpus)};
    else
      correction.ratio = sum.measured / sum.expected;
    const bool bounded = correction.ratio >= kLowestRatio && correction.ratio <= kHighestRatio &&
                         correction.offset <= kLargestOffset && correction.offset >= Bytes{} - kLargestOffset;
    if (!bounded) continue;
    correction.date = date;
    correction.source = fmt::format("{}:{}: {}", printable(source), sum.line, printable(sum.text));
    corrections.push_back(std::move(correction));
  }
  return corrections;
}

void merge(std::vector<Correction>& known, const std::vector<Correction>& newer) {
  for (const Correction& correction : newer) {
    const auto old = std::find_if(known.begin(), known.end(),
                                  [&](const Correction& other) { return same_subject(other, correction); });
    if (old != known.end())
      *old = correction;
    else if (known.size() < kMostCorrections)
      known.push_back(correction);
  }
}

void apply_corrections(Estimate& estimate, const Job& job) {
  if (job.corrections.empty()) return;
  const std::vector<double> before = rooms_for_cache(estimate);
  for (const Correction& correction : job.corrections) {
    if (correction.engine != job.engine) continue;
    bool applied = false;
    for (GpuEstimate& gpu : estimate.per_gpu)
      if (lower(correction.gpu) == lower(gpu.gpu))
        for (Instant& instant : gpu.instants) applied = apply(instant, correction) || applied;
    if (applied)
      estimate.notes.push_back(fmt::format("{} of {} on {}: {} by the run of {}; gpuwright fit --calibration lists it.",
                                           label_of(correction.kind), name_of(job.engine), correction.gpu,
                                           describe(correction), correction.date));
  }
  const bool shares = job.engine == Engine::vllm || job.engine == Engine::sglang;
  if (shares && !job.vllm.kv_budget) scale_capacities(estimate, before, rooms_for_cache(estimate));
}

}  // namespace gpuwright::fit

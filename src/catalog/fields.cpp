#include "catalog/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "catalog/catalog.h"

namespace gpuwright::catalog {
namespace {

using Gpu = Accelerator;

FieldValue text(const std::string& value) {
  return value.empty() ? FieldValue{} : FieldValue{value};
}
template <class T>
FieldValue number(const std::optional<T>& value) {
  return value ? FieldValue{static_cast<double>(*value)} : FieldValue{};
}

FieldValue capability(const Gpu& gpu) {
  if (!gpu.compute_capability) return {};
  if (const auto version = parse_version(*gpu.compute_capability)) return *version;
  return *gpu.compute_capability;
}

// First and last CUDA toolkit; an open end is the largest version.
FieldValue toolkits(const Gpu& gpu) {
  constexpr Version kOpen{std::numeric_limits<int>::max(), 0};
  const auto first = gpu.first_cuda ? parse_version(*gpu.first_cuda) : std::nullopt;
  if (!first) return {};
  const auto last = gpu.last_cuda ? parse_version(*gpu.last_cuda) : std::nullopt;
  return std::pair(*first, last.value_or(kOpen));
}

FieldValue flag(const std::optional<bool>& value) {
  return value ? FieldValue{*value} : FieldValue{};
}

using K = FieldKind;
using U = FieldUnit;

constexpr std::array kFields = {
    Field{"vram", "memory", K::number, U::gib, "memory of one device as sold, GiB",
          [](const Gpu& g) { return FieldValue{g.nominal_memory.gib()}; }},
    Field{"usable", "", K::number, U::gib, "memory a program can use, GiB",
          [](const Gpu& g) { return FieldValue{g.usable().gib()}; }},
    Field{"bandwidth", "bw", K::number, U::gb_per_second, "memory bandwidth, GB/s",
          [](const Gpu& g) { return number(g.memory_bandwidth_gb_per_second); }},
    Field{"fp32", "", K::number, U::tera, "TFLOPS, vector units",
          [](const Gpu& g) { return number(g.throughput.fp32_tflops); }},
    Field{"tf32", "", K::number, U::tera, "dense TFLOPS, matrix units",
          [](const Gpu& g) { return number(g.throughput.tf32_tflops); }},
    Field{"fp16", "", K::number, U::tera, "dense TFLOPS with FP32 accumulation",
          [](const Gpu& g) { return number(g.throughput.fp16_tflops); }},
    Field{"fp16acc", "", K::number, U::tera, "dense TFLOPS with FP16 accumulation",
          [](const Gpu& g) { return number(g.throughput.fp16_accumulate_fp16_tflops); }},
    Field{"bf16", "", K::number, U::tera, "dense TFLOPS",
          [](const Gpu& g) { return number(g.throughput.bf16_tflops); }},
    Field{"fp8", "", K::number, U::tera, "dense TFLOPS; 0 = lacks it",
          [](const Gpu& g) { return number(g.throughput.fp8_tflops); }},
    Field{"fp4", "", K::number, U::tera, "dense TFLOPS; 0 = lacks it",
          [](const Gpu& g) { return number(g.throughput.fp4_tflops); }},
    Field{"int8", "", K::number, U::tera, "dense TOPS", [](const Gpu& g) { return number(g.throughput.int8_tops); }},
    Field{"tdp", "power", K::number, U::watts, "board power, W",
          [](const Gpu& g) { return g.board_power ? FieldValue{g.board_power->value} : FieldValue{}; }},
    Field{"price", "", K::number, U::money, "launch price, US dollars",
          [](const Gpu& g) {
            return g.launch_price ? FieldValue{static_cast<double>(g.launch_price->micros) / 1e6} : FieldValue{};
          }},
    Field{"nvlink", "", K::number, U::gb_per_second, "GPU-to-GPU links, GB/s both directions; 0 = none",
          [](const Gpu& g) { return number(g.nvlink_gb_per_second); }},
    Field{"sm", "multiprocessors", K::number, U::none, "multiprocessors or compute units",
          [](const Gpu& g) { return number(g.multiprocessors); }},
    Field{"boost", "", K::number, U::mhz, "boost clock, MHz", [](const Gpu& g) { return number(g.boost_mhz); }},
    Field{"year", "", K::number, U::none, "year of launch", [](const Gpu& g) { return number(g.year); }},
    Field{"devices", "", K::number, U::none, "devices a board",
          [](const Gpu& g) { return FieldValue{static_cast<double>(g.devices_per_board)}; }},
    Field{"vendor", "", K::text, U::none, "NVIDIA, AMD, Intel, Huawei, ...",
          [](const Gpu& g) { return text(g.vendor); }},
    Field{"name", "", K::text, U::none, "name", [](const Gpu& g) { return text(g.name); }},
    Field{"id", "", K::text, U::none, "id", [](const Gpu& g) { return text(g.id); }},
    Field{"arch", "architecture", K::text, U::none, "Ada, Hopper, CDNA3, ...",
          [](const Gpu& g) { return text(g.architecture); }},
    Field{"chip", "", K::text, U::none, "AD102, ...", [](const Gpu& g) { return text(g.chip); }},
    Field{"family", "", K::text, U::none, "consumer, workstation, datacenter, embedded, apu",
          [](const Gpu& g) { return text(g.family); }},
    Field{"form", "", K::text, U::none, "PCIe, SXM5, OAM, ...", [](const Gpu& g) { return text(g.form_factor); }},
    Field{"type", "", K::text, U::none, "kind of memory: HBM3e, GDDR6X, ...",
          [](const Gpu& g) { return text(g.memory_type); }},
    Field{"pcie", "", K::text, U::none, "generation and lanes: 4x16", [](const Gpu& g) { return text(g.pcie); }},
    Field{"cc", "", K::version, U::none, "compute capability: 8.9, or gfx942", capability},
    Field{"cuda", "", K::toolkit, U::none, "= a CUDA toolkit that can compile for it", toolkits},
    Field{"unified", "", K::flag, U::none, "yes: memory shared with the CPU",
          [](const Gpu& g) { return FieldValue{g.unified_memory}; }},
    Field{"mig", "", K::flag, U::none, "yes: can be cut into MIG instances",
          [](const Gpu& g) { return flag(supports_mig(g)); }},
};

struct Unit {
  FieldUnit of;
  std::string_view text;
  double factor;
};
constexpr std::array kUnits = {
    Unit{U::gib, "g", 1},
    Unit{U::gib, "gb", 1},
    Unit{U::gib, "gib", 1},
    Unit{U::gib, "m", 1.0 / 1024},
    Unit{U::gib, "mb", 1. / 1024},
    Unit{U::gib, "mib", 1.0 / 1024},
    Unit{U::gib, "t", 1024},
    Unit{U::gib, "tb", 1024},
    Unit{U::gib, "tib", 1024},
    Unit{U::watts, "w", 1},
    Unit{U::watts, "kw", 1000},
    Unit{U::gb_per_second, "gb/s", 1},
    Unit{U::gb_per_second, "tb/s", 1000},
    Unit{U::gb_per_second, "gbps", 1},
    Unit{U::tera, "tflops", 1},
    Unit{U::tera, "tops", 1},
    Unit{U::tera, "pflops", 1000},
    Unit{U::tera, "pops", 1000},
    Unit{U::tera, "t", 1},
    Unit{U::tera, "p", 1000},
    Unit{U::mhz, "mhz", 1},
    Unit{U::mhz, "ghz", 1000},
    Unit{U::money, "usd", 1},
    Unit{U::money, "$", 1},
    Unit{U::money, "k", 1000},
};

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  const auto dot = text.find('.');
  const auto major = to_integer(text.substr(0, dot));
  const auto minor = dot == std::string_view::npos ? std::optional<std::int64_t>(0) : to_integer(text.substr(dot + 1));
  if (!major || !minor || *major < 0 || *minor < 0 || *major > 9999 || *minor > 9999) return std::nullopt;
  return Version{static_cast<int>(*major), static_cast<int>(*minor)};
}

std::span<const Field> fields() {
  return kFields;
}

const Field* field_named(std::string_view name) {
  const std::string wanted = lower(name);
  for (const Field& field : kFields)
    if (field.name == wanted || (!field.synonym.empty() && field.synonym == wanted)) return &field;
  return nullptr;
}

std::optional<double> unit_factor(FieldUnit unit, std::string_view text) {
  if (text.empty()) return 1.0;
  const std::string wanted = lower(text);
  for (const Unit& known : kUnits)
    if (known.of == unit && known.text == wanted) return known.factor;
  return std::nullopt;
}

tl::unexpected<Error> no_such_field(std::string_view name) {
  std::vector<std::string> names = filter_fields();
  for (const Field& field : kFields)
    if (!field.synonym.empty()) names.emplace_back(field.synonym);
  const auto near = nearest_name(name, names);
  return fail(ErrorCode::bad_input, fmt::format("GPUs have no field \"{}\"", name),
              near ? fmt::format("did you mean {}?", *near) : "`gpuwright gpus --help` lists the fields");
}

std::vector<std::string> filter_fields() {
  std::vector<std::string> names;
  for (const Field& field : kFields) names.emplace_back(field.name);
  return names;
}

std::vector<std::string> filter_field_descriptions() {
  std::vector<std::string> lines;
  for (const Field& field : kFields) lines.push_back(fmt::format("{}: {}", field.name, field.help));
  return lines;
}

namespace {

bool known(const FieldValue& value) {
  return !std::holds_alternative<std::monostate>(value);
}

bool before(const FieldValue& a, const FieldValue& b) {
  if (a.index() != b.index()) return a.index() < b.index();
  if (const auto* left = std::get_if<std::string>(&a)) return lower(*left) < lower(std::get<std::string>(b));
  return a < b;
}

}  // namespace

Status sort_by(std::vector<const Accelerator*>& list, std::string_view field_text) {
  const bool descending = field_text.starts_with('-');
  const std::string_view name = descending ? field_text.substr(1) : field_text;
  const Field* field = field_named(name);
  if (field == nullptr) return no_such_field(name);
  std::stable_sort(list.begin(), list.end(), [&](const Accelerator* a, const Accelerator* b) {
    const FieldValue left = field->value(*a), right = field->value(*b);
    if (!known(left) || !known(right)) return known(left) && !known(right);
    return descending ? before(right, left) : before(left, right);
  });
  return {};
}

}  // namespace gpuwright::catalog

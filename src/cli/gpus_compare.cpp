// gpuwright gpus compare: figures side by side, as ratios to the first GPU, and what each cannot do.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/gpus.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using Gpu = catalog::Accelerator;
using List = std::vector<const Gpu*>;

struct Row {
  std::string_view label;
  std::string_view key;  // in JSON
  std::optional<double> (*value)(const Gpu&);
};

std::optional<double> watts(const Gpu& gpu) {
  return gpu.board_power ? std::optional(gpu.board_power->value) : std::nullopt;
}

// Of one device, though power is the board's.
std::optional<double> per_watt(const std::optional<double>& value, const Gpu& gpu) {
  const auto power = watts(gpu);
  if (!value || *value == 0 || !power || *power == 0) return std::nullopt;
  return *value * gpu.devices_per_board / *power;
}

constexpr std::array kRows = {
    Row{"memory, GiB", "memory_gib", [](const Gpu& g) { return std::optional(g.nominal_memory.gib()); }},
    Row{"usable, GiB", "usable_memory_gib", [](const Gpu& g) { return std::optional(g.usable().gib()); }},
    Row{"bandwidth, GB/s", "memory_bandwidth_gb_per_second",
        [](const Gpu& g) { return g.memory_bandwidth_gb_per_second; }},
    Row{"FP32, TFLOPS", "fp32_tflops", [](const Gpu& g) { return g.throughput.fp32_tflops; }},
    Row{"TF32, TFLOPS", "tf32_tflops", [](const Gpu& g) { return g.throughput.tf32_tflops; }},
    Row{"FP16, TFLOPS", "fp16_tflops", [](const Gpu& g) { return g.throughput.fp16_tflops; }},
    Row{"BF16, TFLOPS", "bf16_tflops", [](const Gpu& g) { return g.throughput.bf16_tflops; }},
    Row{"FP8, TFLOPS", "fp8_tflops", [](const Gpu& g) { return g.throughput.fp8_tflops; }},
    Row{"FP4, TFLOPS", "fp4_tflops", [](const Gpu& g) { return g.throughput.fp4_tflops; }},
    Row{"INT8, TOPS", "int8_tops", [](const Gpu& g) { return g.throughput.int8_tops; }},
    Row{"GPU links, GB/s", "nvlink_gb_per_second", [](const Gpu& g) { return g.nvlink_gb_per_second; }},
    Row{"board power, W", "board_power_watts", watts},
    Row{"FP16 per W", "fp16_tflops_per_watt", [](const Gpu& g) { return per_watt(g.throughput.fp16_tflops, g); }},
    Row{"GB/s per W", "gb_per_second_per_watt",
        [](const Gpu& g) { return per_watt(g.memory_bandwidth_gb_per_second, g); }},
    Row{"launch price, USD", "launch_price_usd",
        [](const Gpu& g) {
          return g.launch_price ? std::optional(static_cast<double>(g.launch_price->micros) / 1e6) : std::nullopt;
        }},
};

std::optional<double> ratio(const std::optional<double>& value, const std::optional<double>& base) {
  if (!value || !base || *value == 0 || *base == 0) return std::nullopt;
  return *value / *base;
}

std::string cell(const Row& row, const Gpu& gpu, const Gpu& base) {
  const auto value = row.value(gpu);
  const auto times = &gpu == &base ? std::nullopt : ratio(value, row.value(base));
  return times ? fmt::format("{} ({:.2f}x)", figure_text(value), *times) : figure_text(value);
}

void print_comparison(const List& list, const Console& console) {
  std::vector<Column> columns{{""}};
  for (const Gpu* gpu : list) columns.push_back({gpu->name, Align::right, true});
  Table table(std::move(columns));
  for (const Row& row : kRows) {
    const bool known =
        std::any_of(list.begin(), list.end(), [&](const Gpu* gpu) { return row.value(*gpu).has_value(); });
    if (!known) continue;
    std::vector<Cell> cells{std::string(row.label)};
    for (const Gpu* gpu : list) cells.emplace_back(cell(row, *gpu, *list.front()));
    table.add(std::move(cells));
  }
  table.print(console);
  print_legend(console,
               "In parentheses: times the first. Rates are dense, sums in FP32, of one device; \"no\" = the hardware "
               "lacks it.");
  print_heading(console, "What each cannot do");
  for (const Gpu* gpu : list) {
    const auto lacks = what_it_lacks(*gpu);
    std::string text;
    for (const std::string& one : lacks) text += (text.empty() ? "" : ", ") + one;
    console.out << "  "
                << wrap(printable(fmt::format("{}: {}", gpu->name, lacks.empty() ? "nothing known" : text)),
                        std::max(console.width, 60), 4)
                << '\n';
  }
}

Json comparison_json(const List& list) {
  Json figures = Json::object();
  for (const Row& row : kRows) {
    Json values = Json::array(), ratios = Json::array();
    for (const Gpu* gpu : list) {
      values.push(row.value(*gpu));
      ratios.push(ratio(row.value(*gpu), row.value(*list.front())));
    }
    Json figure = Json::object();
    figure.set("values", std::move(values));
    figure.set("ratios_to_first", std::move(ratios));
    figures.set(row.key, std::move(figure));
  }
  Json rows = Json::array();
  for (const Gpu* gpu : list) rows.push(to_json(*gpu));
  Json answer = gpus_answer();
  answer.set("gpus", std::move(rows));
  answer.set("comparison", std::move(figures));
  return answer;
}

Result<int> run_compare(const Arguments& arguments, const Console& console) {
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  List list;
  for (const std::string& name : arguments.values("NAME")) list.push_back(GW_TRY(catalog.find(name)));
  if (list.size() < 2)
    return fail(ErrorCode::bad_input, "there is nothing to compare with",
                "name two GPUs or more: gpus compare 3090 4090");
  if (console.json) {
    console.out << comparison_json(list).dump() << '\n';
  } else {
    print_comparison(list, console);
  }
  return kDone;
}

}  // namespace

Command gpus_compare_command() {
  return {"gpus compare",
          "Compare GPUs: figures, ratios, and what each cannot do",
          "Puts the figures of two or more GPUs side by side, each also as a ratio to the first, and lists what each "
          "one's hardware or software cannot do.",
          {{"NAME", "names or ids of GPUs", true, true, false}},
          {},
          {{"gpuwright gpus compare 3090 4090 5090", "three generations"},
           {"gpuwright gpus compare 'a100 sxm 80gb' 'h100 sxm' mi300x", "across vendors"}},
          {},
          run_compare};
}

}  // namespace gpuwright::cli

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "cli/live/stat_json.h"
#include "cli/live/stat_text.h"
#include "cli/live/topo.h"
#include "cli/live/values.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;
using device::Reading;
using device::Snapshot;
using device::Topology;
using device::TopologyGpu;
using device::TopologyPair;

const TopologyGpu* find(const Topology& topology, int index) {
  for (const TopologyGpu& gpu : topology.gpus)
    if (gpu.index == index) return &gpu;
  return nullptr;
}

std::string number_text(const Reading<std::int64_t>& number) {
  return number ? fmt::format("{}", *number) : "n/a";
}

// Links by which two GPUs reach each other: their own, or those of both into one switch.
std::int64_t links_between(const Topology& topology, const TopologyPair& pair) {
  if (pair.links.value_or(0) > 0) return *pair.links;
  const TopologyGpu *a = find(topology, pair.a), *b = find(topology, pair.b);
  if (!a || !b) return 0;
  return std::min(a->links_to_switch.value_or(0), b->links_to_switch.value_or(0));
}

void print_matrix(const Snapshot& snapshot, const Topology& topology, const Console& console) {
  std::vector<Column> columns = {{""}};
  for (const Gpu& gpu : snapshot.gpus) columns.push_back({fmt::format("GPU{}", gpu.index)});
  columns.push_back({"CPU affinity"});
  columns.push_back({"NUMA"});
  Table table(std::move(columns));
  for (const Gpu& row : snapshot.gpus) {
    std::vector<Cell> cells = {{fmt::format("GPU{}", row.index), Tone::heading}};
    for (const Gpu& column : snapshot.gpus) {
      const std::string text = connection(topology, row.index, column.index);
      cells.emplace_back(text, text == "X" || text == "n/a" ? Tone::dim
                               : text.rfind("NV", 0) == 0   ? Tone::good
                               : text == "SYS"              ? Tone::warning
                                                            : Tone::plain);
    }
    const TopologyGpu* facts = find(topology, row.index);
    cells.emplace_back(facts && facts->cpus ? *facts->cpus : "n/a");
    cells.emplace_back(facts ? number_text(facts->numa_node) : "n/a");
    table.add(std::move(cells));
  }
  table.print(console);
}

// Only the words that stand in the matrix.
void print_legend_of(const Snapshot& snapshot, const Topology& topology, const Console& console) {
  std::set<device::Path> paths;
  bool links = false, unknown = false;
  for (const Gpu& a : snapshot.gpus)
    for (const Gpu& b : snapshot.gpus) {
      const TopologyPair* pair = a.index < b.index ? topology.pair(a.index, b.index) : nullptr;
      if (!pair) continue;
      if (links_between(topology, *pair) > 0)
        links = true;
      else if (pair->path)
        paths.insert(*pair->path);
      else
        unknown = true;
    }
  std::vector<std::string> words;
  if (links) words.emplace_back("NV#: that many links (NVLink) between them, or from both into one switch");
  for (const device::Path path : paths) words.push_back(fmt::format("{}: {}", short_name(path), to_string(path)));
  if (unknown) words.emplace_back("n/a: not known");
  if (words.empty()) return;
  print_heading(console, "What lies between");
  for (const std::string& word : words) console.out << "  " << word << '\n';
}

void print_numbers(const Snapshot& snapshot, const Topology& topology, const device::CudaView& view,
                   const Console& console) {
  print_heading(console, "Numbers of a GPU");
  Table table({{"GPU", Align::right},
               {"name", Align::left, true},
               {"PCI address"},
               {"by bus", Align::right},
               {"by speed", Align::right},
               {"here", Align::right},
               {"UUID", Align::left, true, 1}},
              2);
  for (const Gpu& gpu : snapshot.gpus) {
    const TopologyGpu* facts = find(topology, gpu.index);
    const auto seen = std::find(view.gpus.begin(), view.gpus.end(), gpu.index);
    const bool nvidia = gpu.vendor == device::Vendor::nvidia;
    table.add({{fmt::format("{}", gpu.index), Tone::heading},
               {gpu.name.value_or("n/a"), Tone::name},
               gpu.pci_address.value_or("n/a"),
               facts && nvidia ? number_text(facts->cuda_by_bus) : "-",
               facts && nvidia ? number_text(facts->cuda_by_speed) : "-",
               !nvidia                   ? Cell("-")
               : seen == view.gpus.end() ? Cell("hidden", Tone::warning)
                                         : Cell(fmt::format("{}", seen - view.gpus.begin())),
               gpu.uuid.value_or("n/a")});
  }
  table.print(console);
  constexpr std::string_view kText =
      "GPU: as gpuwright and nvidia-smi count. by bus: CUDA's number with CUDA_DEVICE_ORDER=PCI_BUS_ID; by speed: "
      "without it; here: with this CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES.";
  console.out << "  " << (console.wide ? std::string(kText) : wrap(kText, std::max(console.width, 60), 2)) << '\n';
}

template <class T>
void set_reading(Json& json, Json& unknown, std::string_view name, const Reading<T>& reading) {
  json.set(name, reading ? Json(*reading) : Json());
  if (!reading) unknown.set(name, to_string(reading.why()));
}

Json gpu_json(const Gpu& gpu, const Topology& topology, const device::CudaView& view) {
  Json json = Json::object(), unknown = Json::object();
  json.set("index", gpu.index);
  json.set("vendor_index", gpu.vendor_index);
  set_reading(json, unknown, "name", gpu.name);
  set_reading(json, unknown, "uuid", gpu.uuid);
  set_reading(json, unknown, "pci_address", gpu.pci_address);
  if (const TopologyGpu* facts = find(topology, gpu.index)) {
    set_reading(json, unknown, "cpus", facts->cpus);
    set_reading(json, unknown, "numa_node", facts->numa_node);
    set_reading(json, unknown, "links", facts->links);
    set_reading(json, unknown, "links_to_switch", facts->links_to_switch);
    set_reading(json, unknown, "cuda_by_bus", facts->cuda_by_bus);
    set_reading(json, unknown, "cuda_by_speed", facts->cuda_by_speed);
  }
  const auto seen = std::find(view.gpus.begin(), view.gpus.end(), gpu.index);
  json.set("cuda_here", seen == view.gpus.end() ? Json() : Json(static_cast<std::int64_t>(seen - view.gpus.begin())));
  json.set("unknown", std::move(unknown));
  return json;
}

Json pair_json(const TopologyPair& pair, const Topology& topology) {
  Json json = Json::object(), unknown = Json::object();
  json.set("a", pair.a);
  json.set("b", pair.b);
  json.set("connection", connection(topology, pair.a, pair.b));
  json.set("path", pair.path ? Json(short_name(*pair.path)) : Json());
  if (!pair.path) unknown.set("path", to_string(pair.path.why()));
  set_reading(json, unknown, "links", pair.links);
  set_reading(json, unknown, "peer_read", pair.peer_read);
  set_reading(json, unknown, "peer_write", pair.peer_write);
  set_reading(json, unknown, "peer_atomics", pair.peer_atomics);
  set_reading(json, unknown, "peer_over_links", pair.peer_over_links);
  json.set("unknown", std::move(unknown));
  return json;
}

}  // namespace

std::string connection(const Topology& topology, int a, int b) {
  if (a == b) return "X";
  const TopologyPair* pair = topology.pair(a, b);
  if (!pair) return "n/a";
  if (const std::int64_t links = links_between(topology, *pair); links > 0) return fmt::format("NV{}", links);
  return pair->path ? std::string(short_name(*pair->path)) : "n/a";
}

void print_topology(const Snapshot& snapshot, const Topology& topology, const device::CudaView& view,
                    const Console& console) {
  print_banner(snapshot, console);
  print_matrix(snapshot, topology, console);
  print_legend_of(snapshot, topology, console);
  print_numbers(snapshot, topology, view, console);
  for (const std::string& note : {topology.note, view.note})
    if (!note.empty()) console.out << paint(console, Tone::warning, "note: " + printable(note)) << '\n';
}

Json topology_json(const Snapshot& snapshot, const Topology& topology, const device::CudaView& view) {
  Json answer = snapshot_head("gpuwright.topo/1", snapshot);
  Json gpus = Json::array(), pairs = Json::array(), seen = Json::array();
  for (const Gpu& gpu : snapshot.gpus) gpus.push(gpu_json(gpu, topology, view));
  const auto is_shown = [&](int index) {
    return std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(), [&](const Gpu& gpu) { return gpu.index == index; });
  };
  for (const TopologyPair& pair : topology.pairs)
    if (is_shown(pair.a) && is_shown(pair.b)) pairs.push(pair_json(pair, topology));
  for (const int index : view.gpus) seen.push(index);
  answer.set("gpus", std::move(gpus));
  answer.set("pairs", std::move(pairs));
  answer.set("cuda_visible", std::move(seen));
  const std::string note = topology.note + (topology.note.empty() || view.note.empty() ? "" : "; ") + view.note;
  answer.set("note", note.empty() ? Json() : Json(note));
  return answer;
}

}  // namespace gpuwright::cli

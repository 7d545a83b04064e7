// gpuwright gpus: lists, filters and sorts the catalogue; shows one GPU; shows the GPUs of this machine.
#include "cli/gpus.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using List = std::vector<const catalog::Accelerator*>;

Result<List> select(const catalog::Catalog& catalog, const Arguments& arguments) {
  std::vector<catalog::Filter> filters;
  for (const std::string& text : arguments.values("--filter")) filters.push_back(GW_TRY(catalog::Filter::parse(text)));
  List list;
  for (const catalog::Accelerator& gpu : catalog.accelerators()) {
    bool wanted = true;
    for (const catalog::Filter& filter : filters) wanted = wanted && filter.matches(gpu);
    if (wanted) list.push_back(&gpu);
  }
  if (const auto field = arguments.value("--sort")) GW_TRY(catalog::sort_by(list, *field));
  return list;
}

void print_table(const List& list, const Console& console) {
  Table table({{"GPU", Align::left, true},
               {"year"},
               {"architecture", Align::left, true},
               {"GiB", Align::right},
               {"usable", Align::right},
               {"GB/s", Align::right},
               {"FP16", Align::right},
               {"FP8", Align::right},
               {"W", Align::right}});
  for (const catalog::Accelerator* gpu : list)
    table.add({{gpu->name, Tone::name},
               gpu->year ? fmt::format("{}", *gpu->year) : "n/a",
               gpu->architecture,
               fmt::format("{:.4g}", gpu->nominal_memory.gib()),
               fmt::format("{:.1f}", gpu->usable().gib()),
               figure_text(gpu->memory_bandwidth_gb_per_second),
               figure_text(gpu->throughput.fp16_tflops),
               figure_text(gpu->throughput.fp8_tflops),
               figure_text(gpu->board_power ? std::optional(gpu->board_power->value) : std::nullopt)});
  table.print(console);
}

void print_list(const List& list, std::size_t found, std::size_t all, const Console& console) {
  if (list.empty()) {
    console.out << fmt::format("none of the {} GPUs matches\n", all);
    return;
  }
  print_table(list, console);
  const std::string shown = list.size() < found ? fmt::format("{} of ", list.size()) : "";
  print_legend(console, fmt::format("{}{} GPUs. usable: GiB that a program can have. FP16, FP8: dense TFLOPS, sums in "
                                    "FP32; \"no\" = the hardware lacks it, n/a = not known.",
                                    shown, found));
}

Result<int> list_gpus(const catalog::Catalog& catalog, const Arguments& arguments, const Console& console) {
  List list = GW_TRY(select(catalog, arguments));
  const std::size_t found = list.size();
  if (const auto limit = GW_TRY(arguments.integer("--limit", 1, 100'000)))
    list.resize(std::min(list.size(), static_cast<std::size_t>(*limit)));
  if (!console.json) {
    print_list(list, found, catalog.accelerators().size(), console);
    return kDone;
  }
  Json rows = Json::array();
  for (const catalog::Accelerator* gpu : list) rows.push(to_json(*gpu));
  Json answer = gpus_answer();
  answer.set("found", static_cast<std::int64_t>(found));
  answer.set("gpus", std::move(rows));
  console.out << answer.dump() << '\n';
  return kDone;
}

Result<int> list_architectures(const Console& console) {
  const auto architectures = GW_TRY(catalog::load_architectures());
  if (!console.json) {
    print_architectures(architectures, console);
    return kDone;
  }
  Json rows = Json::array();
  for (const catalog::Architecture& architecture : architectures) rows.push(to_json(architecture));
  Json answer = gpus_answer();
  answer.set("architectures", std::move(rows));
  console.out << answer.dump() << '\n';
  return kDone;
}

int list_here(const catalog::Catalog& catalog, const std::string& root, const Console& console) {
  const catalog::HostGpus host = catalog::find_host_gpus(catalog, root);
  if (console.json) {
    Json answer = gpus_answer();
    answer.set("here", to_json(host));
    console.out << answer.dump() << '\n';
  } else {
    print_host_gpus(host, console);
  }
  return kDone;
}

Result<int> run_gpus(const Arguments& arguments, const Console& console) {
  if (arguments.has("--architectures")) return list_architectures(console);
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  if (arguments.has("--here")) return list_here(catalog, arguments.value("--root").value_or(""), console);
  return list_gpus(catalog, arguments, console);
}

Result<int> run_show(const Arguments& arguments, const Console& console) {
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  List list;
  for (const std::string& name : arguments.values("NAME")) list.push_back(GW_TRY(catalog.find(name)));
  if (console.json) {
    Json rows = Json::array();
    for (const catalog::Accelerator* gpu : list) rows.push(to_json(*gpu));
    Json answer = gpus_answer();
    answer.set("gpus", std::move(rows));
    console.out << answer.dump() << '\n';
    return kDone;
  }
  for (const catalog::Accelerator* gpu : list) {
    if (gpu != list.front()) console.out << '\n';
    print_gpu(*gpu, console);
  }
  return kDone;
}

std::string field_help() {
  std::string text =
      "A filter compares fields with >= <= > < = != and, for text, ~ (contains); and, or, not and parentheses join "
      "comparisons. Units may follow numbers. What is not known matches nothing. Fields:\n";
  for (const std::string& line : catalog::filter_field_descriptions()) text += "  " + line + "\n";
  text.pop_back();
  return text;
}

}  // namespace

Command gpus_command() {
  return {
      "gpus",
      "List GPUs: all that gpuwright knows, or those of this machine",
      "Lists the catalogue of accelerators, filtered and sorted. Figures are dense and for one device; each has its "
      "sources (gpus show). Rows of your own, or corrections, go into ~/.config/gpuwright/gpus.toml.\n\n" +
          field_help(),
      {},
      {{"--filter", "-f", "CONDITION", "only GPUs that satisfy it; several must all hold", {}, "", true},
       {"--sort", "-s", "FIELD", "order by a field, -FIELD for descending", {}, "vendor, architecture, year"},
       {"--limit", "-n", "N", "at most N rows", {}, ""},
       {"--here", "", "", "the GPUs of this machine, from the PCI bus; needs no driver", {}, ""},
       {"--root", "", "DIR", "with --here: look under DIR instead of /", {}, ""},
       {"--architectures", "", "", "what each architecture brought", {}, ""}},
      {{"gpuwright gpus --filter 'vram>=24 and arch=ada'", "Ada cards with 24 GiB or more"},
       {"gpuwright gpus -f 'fp8>0 and tdp<=300W' --sort -bandwidth -n 5", "the five fastest memories up to 300 W"},
       {"gpuwright gpus --here", "which GPUs this machine has"}},
      {"0  also when nothing matches or no GPU is here"},
      run_gpus};
}

Command gpus_show_command() {
  return {"gpus show",
          "Show all that is known of a GPU, with sources",
          "Prints every figure of the catalogue for the GPU, what it cannot do, its MIG profiles and where the figures "
          "come from. Names are matched as people write them: 4090, h100 sxm, \"RTX A6000\".",
          {{"NAME", "name or id of a GPU", true, true, false}},
          {},
          {{"gpuwright gpus show 4090", "one GPU"}, {"gpuwright gpus show h100-sxm5-80gb --json", "for a program"}},
          {},
          run_show};
}

}  // namespace gpuwright::cli

// Answers of `gpus` for people: one GPU in full, the architectures, the GPUs of this machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/gpus.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {

std::string figure_text(const std::optional<double>& value) {
  if (!value) return "n/a";
  if (*value == 0) return "no";
  if (*value >= 1000) return with_thousands(std::llround(*value));
  return fmt::format("{:.4g}", *value);
}

std::string money_text(const std::optional<Money>& price) {
  if (!price) return "n/a";
  return fmt::format("{} {}", price->currency, with_thousands(price->micros / 1'000'000));
}

std::vector<std::string> what_it_lacks(const catalog::Accelerator& gpu) {
  std::vector<std::string> lacks;
  const auto without = [&](const std::optional<double>& rate, const char* text) {
    if (rate && *rate == 0) lacks.emplace_back(text);
  };
  const catalog::Throughput& rates = gpu.throughput;
  const bool no_matrix_units = rates.fp16_tflops == 0.0 && rates.bf16_tflops.value_or(0) == 0;
  if (no_matrix_units) {
    lacks.emplace_back("no tensor or matrix units");
  } else {
    without(rates.bf16_tflops, "no BF16 in the tensor units");
    without(rates.fp8_tflops, "no FP8 in the tensor units");
    without(rates.fp4_tflops, "no FP4 in the tensor units");
  }
  without(gpu.nvlink_gb_per_second, gpu.vendor == "NVIDIA" ? "no NVLink" : "no GPU-to-GPU links");
  if (catalog::supports_mig(gpu) == false) lacks.emplace_back("no MIG");
  if (gpu.last_cuda)
    lacks.push_back(
        fmt::format("no CUDA after {} (last driver branch {})", *gpu.last_cuda, gpu.last_driver.value_or("unknown")));
  if (gpu.vendor != "NVIDIA") lacks.emplace_back("no CUDA");
  if (gpu.unified_memory) lacks.emplace_back("no memory of its own (shared with the CPU)");
  return lacks;
}

namespace {

bool is_unverified(const catalog::Accelerator& gpu, std::string_view field) {
  return std::find(gpu.unverified.begin(), gpu.unverified.end(), field) != gpu.unverified.end();
}

// One line a fact; marks what is not verified and says why something is unknown, where that is known.
class Facts {
 public:
  Facts(const catalog::Accelerator& gpu, const Console& console) : gpu_(gpu), console_(console) {}

  void line(std::string_view label, const std::string& value, std::string_view field = {}) {
    std::string text = value;
    const auto reason = gpu_.unknown.find(std::string(field));
    if (value == "n/a" && reason != gpu_.unknown.end()) text += fmt::format(" ({})", reason->second);
    if (is_unverified(gpu_, field)) {
      text += " *";
      marked_ = true;
    }
    console_.out << fmt::format("  {:<20} ", label) << wrap(printable(text), std::max(console_.width, 60), 23) << '\n';
  }
  void rate(std::string_view label, const std::optional<double>& value, std::string_view unit, std::string_view field) {
    const bool plain = !value || *value == 0;
    line(label, plain ? figure_text(value) : fmt::format("{} {}", figure_text(value), unit), field);
  }
  bool marked() const { return marked_; }

 private:
  const catalog::Accelerator& gpu_;
  const Console& console_;
  bool marked_ = false;
};

std::string or_unknown(const std::string& text) {
  return text.empty() ? "n/a" : text;
}

void print_memory(Facts& facts, const catalog::Accelerator& gpu) {
  facts.line("memory", fmt::format("{:.4g} GiB {}{}", gpu.nominal_memory.gib(), gpu.memory_type,
                                   gpu.unified_memory ? ", shared with the CPU" : ""));
  facts.line("usable memory", fmt::format("{:.2f} GiB ({})", gpu.usable().gib(), gpu.usable_source()));
  facts.rate("memory bandwidth", gpu.memory_bandwidth_gb_per_second, "GB/s", "memory_bandwidth_gb_per_second");
}

void print_rates(Facts& facts, const catalog::Throughput& rates) {
  facts.rate("FP32", rates.fp32_tflops, "TFLOPS", "fp32_tflops");
  facts.rate("TF32", rates.tf32_tflops, "TFLOPS", "tf32_tflops");
  facts.rate("FP16", rates.fp16_tflops, "TFLOPS", "fp16_tflops");
  if (rates.fp16_accumulate_fp16_tflops && rates.fp16_accumulate_fp16_tflops != rates.fp16_tflops)
    facts.rate("FP16, FP16 sums", rates.fp16_accumulate_fp16_tflops, "TFLOPS", "fp16_accumulate_fp16_tflops");
  facts.rate("BF16", rates.bf16_tflops, "TFLOPS", "bf16_tflops");
  facts.rate("FP8", rates.fp8_tflops, "TFLOPS", "fp8_tflops");
  facts.rate("FP4", rates.fp4_tflops, "TFLOPS", "fp4_tflops");
  facts.rate("INT8", rates.int8_tops, "TOPS", "int8_tops");
}

std::string cuda_text(const catalog::Accelerator& gpu) {
  if (!gpu.first_cuda) return "n/a";
  if (gpu.last_cuda) return fmt::format("{} to {}", *gpu.first_cuda, *gpu.last_cuda);
  return fmt::format("{} and later", *gpu.first_cuda);
}

std::string driver_text(const catalog::Accelerator& gpu) {
  if (!gpu.first_driver) return "n/a";
  if (gpu.last_driver) return fmt::format("{} to {}", *gpu.first_driver, *gpu.last_driver);
  return fmt::format("{} and later", *gpu.first_driver);
}

void print_hardware(Facts& facts, const catalog::Accelerator& gpu) {
  const std::optional<double> count = gpu.multiprocessors ? std::optional<double>(*gpu.multiprocessors) : std::nullopt;
  facts.rate("multiprocessors", count, gpu.vendor == "NVIDIA" ? "SMs" : "units", "multiprocessors");
  facts.rate("boost clock", gpu.boost_mhz, "MHz", "boost_mhz");
  facts.rate(gpu.vendor == "NVIDIA" ? "NVLink" : "GPU-to-GPU links", gpu.nvlink_gb_per_second, "GB/s both ways",
             "nvlink_gb_per_second");
  facts.line("PCIe", or_unknown(gpu.pcie));
  facts.rate("board power", gpu.board_power ? std::optional(gpu.board_power->value) : std::nullopt, "W",
             "board_power_watts");
  facts.line("launch price", money_text(gpu.launch_price), "launch_price_usd");
}

void print_software(Facts& facts, const catalog::Accelerator& gpu) {
  if (gpu.compute_capability) facts.line("compute capability", *gpu.compute_capability);
  if (gpu.vendor == "NVIDIA") {
    facts.line("CUDA", cuda_text(gpu));
    facts.line("driver", driver_text(gpu));
  }
  std::vector<std::string> ids;
  for (const catalog::PciId& id : gpu.pci_ids) ids.push_back(to_string(id));
  facts.line("PCI ids", ids.empty() ? "n/a" : fmt::format("{}", fmt::join(ids, ", ")), "pci_ids");
}

void print_mig(const catalog::Accelerator& gpu, const Console& console) {
  if (gpu.mig_profiles.empty()) return;
  console.out << '\n';
  Table table({{"MIG profile"}, {"memory", Align::right}, {"at most", Align::right}}, 2);
  for (const catalog::MigProfile& profile : gpu.mig_profiles)
    table.add(
        {profile.name, fmt::format("{:.2f} GiB", profile.memory.gib()), fmt::format("{}", profile.max_instances)});
  table.print(console);
}

void print_list(const Console& console, std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  print_heading(console, title);
  for (const std::string& item : items)
    console.out << "  - " << wrap(printable(item), std::max(console.width, 60), 4) << '\n';
}

}  // namespace

void print_legend(const Console& console, std::string_view text) {
  console.out << '\n' << (console.wide ? std::string(text) : wrap(text, std::max(console.width, 60))) << '\n';
}

void print_gpu(const catalog::Accelerator& gpu, const Console& console) {
  console.out << paint(console, Tone::heading, fmt::format("{} {}", gpu.vendor, gpu.name)) << '\n';
  Facts facts(gpu, console);
  facts.line("id", gpu.id);
  facts.line("architecture", gpu.chip.empty() ? gpu.architecture : fmt::format("{} ({})", gpu.architecture, gpu.chip));
  facts.line("kind", fmt::format("{}, {}{}", gpu.family, or_unknown(gpu.form_factor),
                                 gpu.year ? fmt::format(", {}", *gpu.year) : ""));
  if (gpu.devices_per_board > 1)
    facts.line("devices a board", fmt::format("{} (figures are for one device)", gpu.devices_per_board));
  print_memory(facts, gpu);
  print_rates(facts, gpu.throughput);
  print_hardware(facts, gpu);
  print_software(facts, gpu);
  if (!gpu.notes.empty()) facts.line("notes", gpu.notes);
  print_mig(gpu, console);
  print_list(console, "What it cannot do", what_it_lacks(gpu));
  print_list(console, "Sources", gpu.sources);
  const bool rule_in_mig = is_unverified(gpu, "mig_profiles");
  if (facts.marked()) console.out << "\n* from secondary sources only\n";
  if (rule_in_mig) console.out << "\nSome MIG sizes are taken in proportion to the memory.\n";
}

void print_architectures(const std::vector<catalog::Architecture>& architectures, const Console& console) {
  const int width = std::max(console.width, 60);
  const auto line = [&](std::string_view label, const std::string& text) {
    if (!text.empty()) console.out << fmt::format("  {:<11} ", label) << wrap(printable(text), width, 14) << '\n';
  };
  for (const catalog::Architecture& one : architectures) {
    if (&one != &architectures.front()) console.out << '\n';
    const std::string title = fmt::format("{} {} ({})", one.vendor, one.name, one.year);
    console.out << paint(console, Tone::heading, title) << '\n';
    line("targets", fmt::format("{}", fmt::join(one.compute_capabilities, ", ")));
    line("chips", fmt::format("{}", fmt::join(one.chips, ", ")));
    line("made in", one.process);
    line("memory", one.memory);
    line("data types", fmt::format("{}", fmt::join(one.data_types, ", ")));
    for (std::size_t i = 0; i < one.brought.size(); ++i) line(i == 0 ? "brought" : "", one.brought[i]);
    if (one.first_cuda)
      line("CUDA", one.last_cuda ? fmt::format("{} to {}", *one.first_cuda, *one.last_cuda)
                                 : fmt::format("{} and later", *one.first_cuda));
    if (!one.verified) line("", "(not checked against a primary source)");
  }
}

void print_host_gpus(const catalog::HostGpus& host, const Console& console) {
  Table table({{"PCI address"}, {"GPU", Align::left, true}, {"GiB", Align::right}, {"usable", Align::right}, {"id"}});
  int computing = 0;
  for (const catalog::HostGpu& gpu : host.gpus) {
    if (gpu.display_only) continue;
    ++computing;
    const catalog::Accelerator* row = gpu.accelerator();
    const std::string memory = row != nullptr ? fmt::format("{:.4g}", row->nominal_memory.gib())
                               : gpu.memory   ? fmt::format("{:.4g}", gpu.memory->gib())
                                              : "n/a";
    table.add({gpu.pci_address,
               {gpu.name, Tone::name},
               memory,
               row != nullptr ? fmt::format("{:.2f}", row->usable().gib()) : "n/a",
               to_string(gpu.id)});
  }
  if (computing > 0) {
    table.print(console);
  } else {
    console.out << fmt::format("no GPUs found: looked at {} ({} PCI devices)\n", printable(host.looked_at),
                               host.pci_devices);
  }
  for (const catalog::HostGpu& gpu : host.gpus)
    if (gpu.display_only)
      console.out << fmt::format("{} is a display adapter that computes nothing ({})\n", gpu.pci_address,
                                 printable(gpu.name));
}

}  // namespace gpuwright::cli

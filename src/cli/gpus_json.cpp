// Answers of `gpus` for programs.
#include <fmt/format.h>

#include "cli/gpus.h"

namespace gpuwright::cli {
namespace {

Json texts(const std::vector<std::string>& values) {
  Json list = Json::array();
  for (const std::string& value : values) list.push(value);
  return list;
}

Json text_or_null(const std::string& value) {
  return value.empty() ? Json() : Json(value);
}

Json throughput(const catalog::Throughput& rates) {
  Json json = Json::object();
  json.set("fp32_tflops", rates.fp32_tflops);
  json.set("tf32_tflops", rates.tf32_tflops);
  json.set("fp16_tflops", rates.fp16_tflops);
  json.set("fp16_accumulate_fp16_tflops", rates.fp16_accumulate_fp16_tflops);
  json.set("bf16_tflops", rates.bf16_tflops);
  json.set("fp8_tflops", rates.fp8_tflops);
  json.set("fp4_tflops", rates.fp4_tflops);
  json.set("int8_tops", rates.int8_tops);
  return json;
}

Json price(const std::optional<Money>& money) {
  if (!money) return {};
  Json json = Json::object();
  json.set("amount", static_cast<double>(money->micros) / 1e6);
  json.set("currency", money->currency);
  return json;
}

Json mig_profiles(const std::vector<catalog::MigProfile>& profiles) {
  Json list = Json::array();
  for (const catalog::MigProfile& profile : profiles) {
    Json json = Json::object();
    json.set("name", profile.name);
    json.set("memory_bytes", profile.memory.count);
    json.set("max_instances", profile.max_instances);
    list.push(std::move(json));
  }
  return list;
}

Json pci_ids(const std::vector<catalog::PciId>& ids) {
  Json list = Json::array();
  for (const catalog::PciId& id : ids) list.push(to_string(id));
  return list;
}

void set_memory(Json& json, const catalog::Accelerator& gpu) {
  json.set("memory_bytes", gpu.nominal_memory.count);
  json.set("usable_memory_bytes", gpu.usable().count);
  json.set("usable_memory_source", gpu.usable_source());
  json.set("memory_type", text_or_null(gpu.memory_type));
  json.set("unified_memory", gpu.unified_memory);
  json.set("memory_bandwidth_gb_per_second", gpu.memory_bandwidth_gb_per_second);
}

void set_software(Json& json, const catalog::Accelerator& gpu) {
  json.set("compute_capability", gpu.compute_capability);
  json.set("first_cuda", gpu.first_cuda);
  json.set("last_cuda", gpu.last_cuda);
  json.set("first_driver", gpu.first_driver);
  json.set("last_driver", gpu.last_driver);
}

}  // namespace

Json gpus_answer() {
  Json json = Json::object();
  json.set("schema", "gpuwright.gpus/1");
  return json;
}

Json to_json(const catalog::Accelerator& gpu) {
  Json json = Json::object();
  json.set("id", gpu.id);
  json.set("vendor", gpu.vendor);
  json.set("name", gpu.name);
  json.set("aliases", texts(gpu.aliases));
  json.set("family", text_or_null(gpu.family));
  json.set("architecture", text_or_null(gpu.architecture));
  json.set("chip", text_or_null(gpu.chip));
  json.set("year", gpu.year);
  json.set("form_factor", text_or_null(gpu.form_factor));
  json.set("devices_per_board", gpu.devices_per_board);
  set_memory(json, gpu);
  json.set("throughput", throughput(gpu.throughput));
  json.set("multiprocessors", gpu.multiprocessors);
  json.set("boost_mhz", gpu.boost_mhz);
  json.set("nvlink_gb_per_second", gpu.nvlink_gb_per_second);
  json.set("pcie", text_or_null(gpu.pcie));
  json.set("board_power_watts", gpu.board_power ? Json(gpu.board_power->value) : Json());
  json.set("launch_price", price(gpu.launch_price));
  set_software(json, gpu);
  json.set("mig", catalog::supports_mig(gpu));
  json.set("mig_profiles", mig_profiles(gpu.mig_profiles));
  json.set("pci_ids", pci_ids(gpu.pci_ids));
  json.set("lacks", texts(what_it_lacks(gpu)));
  json.set("sources", texts(gpu.sources));
  json.set("unverified", texts(gpu.unverified));
  Json unknown = Json::object();
  for (const auto& [field, reason] : gpu.unknown) unknown.set(field, reason);
  json.set("unknown", std::move(unknown));
  json.set("notes", text_or_null(gpu.notes));
  return json;
}

Json to_json(const catalog::Architecture& architecture) {
  Json json = Json::object();
  json.set("vendor", architecture.vendor);
  json.set("name", architecture.name);
  json.set("year", architecture.year);
  json.set("compute_capabilities", texts(architecture.compute_capabilities));
  json.set("chips", texts(architecture.chips));
  json.set("process", architecture.process);
  json.set("memory", architecture.memory);
  json.set("data_types", texts(architecture.data_types));
  json.set("brought", texts(architecture.brought));
  json.set("first_cuda", architecture.first_cuda);
  json.set("last_cuda", architecture.last_cuda);
  json.set("sources", texts(architecture.sources));
  json.set("verified", architecture.verified);
  return json;
}

Json to_json(const catalog::HostGpus& host) {
  Json list = Json::array();
  for (const catalog::HostGpu& gpu : host.gpus) {
    Json json = Json::object();
    json.set("pci_address", gpu.pci_address);
    json.set("pci_id", to_string(gpu.id));
    json.set("name", gpu.name);
    json.set("id", gpu.accelerator() != nullptr ? Json(gpu.accelerator()->id) : Json());
    Json candidates = Json::array();
    for (const catalog::Accelerator* row : gpu.candidates) candidates.push(row->id);
    json.set("candidates", std::move(candidates));
    json.set("memory_bytes", gpu.memory ? Json(gpu.memory->count) : Json());
    json.set("display_only", gpu.display_only);
    list.push(std::move(json));
  }
  Json json = Json::object();
  json.set("looked_at", host.looked_at);
  json.set("pci_devices", host.pci_devices);
  json.set("gpus", std::move(list));
  return json;
}

}  // namespace gpuwright::cli

// Attributes: Linux, Documentation/gpu/amdgpu/{driver-misc,thermal,ras}.rst and
// Documentation/ABI/testing/sysfs-class-hwmon. pcie_bw is not read: the kernel counts packets for a whole second while
// the reader waits.
#include "device/amdgpu/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "device/amdgpu/attributes.h"
#include "device/fields.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/host_memory.h"

namespace gpuwright::device {
namespace {

constexpr double kMicro = 1e-6, kMilli = 1e-3;
constexpr std::size_t kMostBadPagesBytes = 1 << 20;

template <class T>
void fall_back(Reading<T>& reading, const std::optional<T>& other) {
  if (!reading && other) reading = *other;
}

// unique_id is 16 hexadecimal digits; ROCR_VISIBLE_DEVICES takes "GPU-" and these.
Reading<std::string> uuid_of(const std::string& path) {
  auto id = read_attribute(path);
  if (!id) return id.why();
  if (id->starts_with("0x")) id = id->substr(2);
  const bool is_hex = id->size() <= 16 && id->find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!is_hex) return Why::implausible;
  return fmt::format("GPU-{:0>16}", lower(*id));
}

bool is_catalogued_apu(catalog::PciId id) {
  const catalog::Catalog* catalog = known_gpus();
  if (catalog == nullptr) return false;
  const auto rows = catalog->all_by_pci_id(id);
  return !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const auto* row) { return row->family == "apu"; });
}

}  // namespace

AmdCard::AmdCard(const DrmCard& card, const KfdNode* node, const std::string& root) : card_(card), root_(root) {
  constexpr std::uint16_t kMi300a = 0x74a0;
  if (node != nullptr) node_ = *node;
  facts_.vendor = Vendor::amd;
  facts_.source = "amdgpu";
  facts_.vendor_index = card.number;
  read_pci_facts(card, facts_);
  facts_.uuid = uuid_of(attribute("unique_id"));
  facts_.serial = read_attribute(attribute("serial_number"));
  facts_.vbios = read_attribute(attribute("vbios_version"));
  facts_.name = read_attribute(attribute("product_name"));
  if (node_ && !node_->instruction_set.empty()) facts_.compute_capability = node_->instruction_set;
  is_apu_ = (node_ && node_->has_cpu_cores) || card.id.device == kMi300a || is_catalogued_apu(card.id);
  // Boards that share an id are told apart by their memory, which a sleeping device does not tell.
  identify(card.id, std::nullopt, facts_);
}

Gpu AmdCard::asleep() const {
  Gpu gpu = facts_;
  gpu.state = State::asleep;
  gpu.state_detail = "runtime-suspended by the kernel; not read, as that would wake it";
  gpu.unified_memory = is_apu_;
  explain_missing(gpu, Why::asleep);
  return gpu;
}

void AmdCard::read_awake_facts(Gpu& gpu) {
  if (has_awake_facts_) return;
  const auto memory = read_bytes(attribute("mem_info_vram_total"));
  if (!memory) return;
  has_awake_facts_ = true;
  hwmon_ = find_hwmon(card_.device, "amdgpu");
  facts_.name = read_attribute(attribute("product_name"));
  identify(card_.id, is_apu_ ? std::nullopt : memory.optional(), facts_);
  gpu.name = facts_.name;
  gpu.catalog_id = facts_.catalog_id;
  gpu.architecture = facts_.architecture;
}

Gpu AmdCard::read(const SourceOptions& options, std::int64_t monotonic_ns) {
  if (!options.wake && is_asleep(card_.device)) return asleep();
  Gpu gpu = facts_;
  const FileText table = read_start(attribute("gpu_metrics"));
  metrics_ = table ? parse_gpu_metrics(table.text) : std::nullopt;
  if (metrics_ && metrics_->is_apu) is_apu_ = true;
  read_awake_facts(gpu);
  gpu.unified_memory = is_apu_;
  read_memory(gpu);
  read_activity(gpu);
  read_clocks(gpu);
  read_power(gpu);
  read_temperatures(gpu);
  read_fan(gpu);
  read_throttling(gpu);
  read_pci_link(card_.device, gpu);
  if (metrics_) {
    // The link of the slot: of cards with a switch of their own, the PCI core tells that between switch and GPU.
    if (metrics_->pcie_generation) gpu.pcie_generation = *metrics_->pcie_generation;
    if (metrics_->pcie_width) gpu.pcie_width = *metrics_->pcie_width;
    if (metrics_->pcie_replays) gpu.pcie_replays = *metrics_->pcie_replays;
    if (metrics_->energy) gpu.energy = *metrics_->energy;
  }
  if (!gpu.pcie_replays) gpu.pcie_replays = read_count(attribute("pcie_replay_count"));
  if (options.wants.health) read_health(gpu);
  if (options.wants.traffic) read_traffic(gpu, monotonic_ns);
  if (options.wants.links) read_links(gpu);
  judge(gpu);
  forget_unasked(options.wants, gpu);
  return gpu;
}

void AmdCard::read_memory(Gpu& gpu) const {
  gpu.memory_total = read_bytes(attribute("mem_info_vram_total"));
  gpu.memory_used = read_bytes(attribute("mem_info_vram_used"));
  gpu.gtt_total = read_bytes(attribute("mem_info_gtt_total"));
  gpu.gtt_used = read_bytes(attribute("mem_info_gtt_used"));
  gpu.bar1_total = read_bytes(attribute("mem_info_vis_vram_total"));
  gpu.bar1_used = read_bytes(attribute("mem_info_vis_vram_used"));
  gpu.memory_reserved = Why::not_supported;
  gpu.vram_total = Why::not_supported;
  gpu.vram_used = Why::not_supported;
  gpu.host_used = Why::not_supported;
  if (is_apu_) return share_memory_with_host(gpu);
  gpu.memory_free = gpu.memory_total.why();
  if (!gpu.memory_used) gpu.memory_free = gpu.memory_used.why();
  if (!gpu.memory_total || !gpu.memory_used) return;
  if (*gpu.memory_used > *gpu.memory_total) {
    gpu.memory_used = Why::implausible;
    gpu.memory_free = Why::implausible;
  } else {
    gpu.memory_free = *gpu.memory_total - *gpu.memory_used;
  }
}

// An APU has two kinds of memory, both RAM: what the firmware set apart (vram), which the host does not count as its
// own, and what the GPU may map of the host's (gtt). The kernel lets gtt exceed the RAM there is.
void AmdCard::share_memory_with_host(Gpu& gpu) const {
  gpu.vram_total = gpu.memory_total;
  gpu.vram_used = gpu.memory_used;
  gpu.bar1_total = Why::unified_memory;
  gpu.bar1_used = Why::unified_memory;
  const HostMemory host = read_host_memory(root_);
  if (gpu.gtt_total && host.total && *gpu.gtt_total > *host.total) gpu.gtt_total = *host.total;
  const Why why = !gpu.vram_total ? gpu.vram_total.why() : !gpu.gtt_total ? gpu.gtt_total.why() : Why::no_data;
  gpu.memory_total = why;
  gpu.memory_used = why;
  gpu.memory_free = why;
  if (!gpu.vram_total || !gpu.gtt_total) return;
  gpu.memory_total = Bytes{checked_add(gpu.vram_total->count, gpu.gtt_total->count).value_or(gpu.vram_total->count)};
  if (!gpu.vram_used || !gpu.gtt_used) return;
  const Bytes vram_free = std::max(*gpu.vram_total - *gpu.vram_used, Bytes{});
  Bytes gtt_free = std::max(*gpu.gtt_total - *gpu.gtt_used, Bytes{});
  gpu.memory_used = Bytes{checked_add(gpu.vram_used->count, gpu.gtt_used->count).value_or(gpu.vram_used->count)};
  if (!host.available || !host.total) return;
  gtt_free = std::min(gtt_free, *host.available);
  gpu.memory_free = vram_free + gtt_free;
  gpu.host_used = std::max(*host.total - *host.available - *gpu.gtt_used, Bytes{});
}

void AmdCard::read_activity(Gpu& gpu) const {
  gpu.utilization = read_ratio(attribute("gpu_busy_percent"), 100);
  gpu.memory_utilization = read_ratio(attribute("mem_busy_percent"), 100);
  gpu.encoder_utilization = Why::not_supported;
  gpu.decoder_utilization = read_ratio(attribute("vcn_busy_percent"), 100);
  if (!metrics_) return;
  // Some firmwares leave one of the two at 0 while the GPU works.
  if (metrics_->graphics_activity && (!gpu.utilization || gpu.utilization->value == 0))
    gpu.utilization = *metrics_->graphics_activity;
  if (metrics_->memory_activity && (!gpu.memory_utilization || gpu.memory_utilization->value == 0))
    gpu.memory_utilization = *metrics_->memory_activity;
  fall_back(gpu.decoder_utilization, metrics_->media_activity);
}

void AmdCard::read_clocks(Gpu& gpu) const {
  gpu.graphics_clock = read_hertz(sensor("freq1_input"), 1);
  gpu.memory_clock = read_hertz(sensor("freq2_input"), 1);
  const DpmLevels shader = parse_dpm_levels(read_start(attribute("pp_dpm_sclk")).text);
  const DpmLevels memory = parse_dpm_levels(read_start(attribute("pp_dpm_mclk")).text);
  if (metrics_) {
    fall_back(gpu.graphics_clock, metrics_->graphics_clock);
    fall_back(gpu.memory_clock, metrics_->memory_clock);
  }
  fall_back(gpu.graphics_clock, shader.current);
  fall_back(gpu.memory_clock, memory.current);
  gpu.sm_clock = gpu.graphics_clock;
  gpu.video_clock = metrics_ && metrics_->video_clock ? Reading<Hertz>(*metrics_->video_clock) : Why::not_supported;
  gpu.graphics_clock_max = shader.highest ? Reading<Hertz>(*shader.highest) : Why::not_supported;
  gpu.sm_clock_max = gpu.graphics_clock_max;
  gpu.memory_clock_max = memory.highest ? Reading<Hertz>(*memory.highest) : Why::not_supported;
}

void AmdCard::read_power(Gpu& gpu) const {
  const auto average = read_watts(sensor("power1_average"), kMicro);
  const auto instant = read_watts(sensor("power1_input"), kMicro);
  gpu.power = average;
  fall_back(gpu.power, instant.optional());
  if (metrics_) fall_back(gpu.power, metrics_->power);
  gpu.power_instant = instant;
  gpu.power_limit = read_watts(sensor("power1_cap"), kMicro);
  gpu.power_limit_default = read_watts(sensor("power1_cap_default"), kMicro);
  gpu.power_limit_min = read_watts(sensor("power1_cap_min"), kMicro);
  gpu.power_limit_max = read_watts(sensor("power1_cap_max"), kMicro);
}

// temp1 is the edge, temp2 the junction (hot spot), temp3 the memory; Instinct cards from MI300 on have no edge sensor.
void AmdCard::read_temperatures(Gpu& gpu) const {
  const auto edge = read_celsius(sensor("temp1_input"), kMilli), junction = read_celsius(sensor("temp2_input"), kMilli);
  const bool by_edge = edge.known() || !junction.known();
  gpu.temperature = by_edge ? edge : junction;
  gpu.memory_temperature = read_celsius(sensor("temp3_input"), kMilli);
  gpu.temperature_slowdown = read_celsius(sensor(by_edge ? "temp1_crit" : "temp2_crit"), kMilli);
  gpu.temperature_shutdown = read_celsius(sensor(by_edge ? "temp1_emergency" : "temp2_emergency"), kMilli);
  if (!metrics_) return;
  fall_back(gpu.temperature, metrics_->edge ? metrics_->edge : metrics_->hotspot);
  fall_back(gpu.memory_temperature, metrics_->memory_temperature);
}

void AmdCard::read_fan(Gpu& gpu) const {
  gpu.fan_rpm = read_count(sensor("fan1_input"), 50000);
  const auto full = read_count(sensor("pwm1_max"), 65535);
  gpu.fan = read_ratio(sensor("pwm1"), full && *full > 0 ? static_cast<double>(*full) : 255);
  if (metrics_ && !is_apu_) fall_back(gpu.fan_rpm, metrics_->fan_rpm);
}

void AmdCard::read_throttling(Gpu& gpu) {
  gpu.throttle_reasons = Why::not_supported;
  if (!metrics_) {
    residency_before_.reset();
    return;
  }
  if (metrics_->throttle_reasons) gpu.throttle_reasons = *metrics_->throttle_reasons;
  if (!metrics_->throttle_residency) return;
  gpu.throttle_reasons = Why::needs_two_samples;
  if (residency_before_) gpu.throttle_reasons = throttled_between(*residency_before_, *metrics_->throttle_residency);
  residency_before_ = metrics_->throttle_residency;
}

// Counters since the driver was loaded, summed over the blocks (umc is the memory's).
void AmdCard::read_health(Gpu& gpu) const {
  const std::string folder = attribute("ras");
  const FileText features = read_start(folder + "/features");
  const auto enabled = features ? parse_ras_features(features.text) : std::nullopt;
  gpu.ecc_enabled = enabled ? Reading<bool>(*enabled) : features ? Why::implausible : why_of(features.error);
  RasCounts sum;
  int blocks = 0;
  Why why = Why::not_supported;
  constexpr std::string_view kSuffix = "_err_count";
  for (const std::string& name : names_in(folder)) {
    if (!name.ends_with(kSuffix)) continue;
    const FileText text = read_start(folder + "/" + name, kMostAttributeBytes);
    const auto counts = text ? parse_ras_counts(text.text) : std::nullopt;
    if (!counts) {
      why = text ? Why::implausible : why_of(text.error);
      continue;
    }
    ++blocks;
    sum.uncorrected = checked_add(sum.uncorrected, counts->uncorrected).value_or(INT64_MAX);
    sum.corrected = checked_add(sum.corrected, counts->corrected).value_or(INT64_MAX);
  }
  gpu.ecc_corrected_volatile = blocks > 0 ? Reading<std::int64_t>(sum.corrected) : why;
  gpu.ecc_uncorrected_volatile = blocks > 0 ? Reading<std::int64_t>(sum.uncorrected) : why;

  const FileText bad_pages = read_start(folder + "/gpu_vram_bad_pages", kMostBadPagesBytes);
  gpu.retired_pages_uncorrected = bad_pages ? Why::implausible : why_of(bad_pages.error);
  gpu.retirement_pending = gpu.retired_pages_uncorrected.why();
  if (!bad_pages || !bad_pages.whole) return;
  const BadPages pages = parse_bad_pages(bad_pages.text);
  gpu.retired_pages_uncorrected = pages.retired;
  gpu.retirement_pending = pages.pending > 0;
}

void AmdCard::read_traffic(Gpu& gpu, std::int64_t monotonic_ns) {
  gpu.nvlink_sent = Why::not_supported;
  gpu.nvlink_received = Why::not_supported;
  if (!metrics_) return traffic_before_.reset();
  Traffic now{monotonic_ns, 0, 0};
  bool any = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kXgmiLinks); ++i) {
    if (!metrics_->xgmi_written[i] || !metrics_->xgmi_read[i]) continue;
    any = true;
    now.sent = checked_add(now.sent, *metrics_->xgmi_written[i]).value_or(INT64_MAX);
    now.received = checked_add(now.received, *metrics_->xgmi_read[i]).value_or(INT64_MAX);
  }
  if (!any) return traffic_before_.reset();
  gpu.nvlink_sent = Why::needs_two_samples;
  gpu.nvlink_received = Why::needs_two_samples;
  if (traffic_before_ && now.at > traffic_before_->at && now.sent >= traffic_before_->sent &&
      now.received >= traffic_before_->received) {
    const double seconds = static_cast<double>(now.at - traffic_before_->at) * 1e-9;
    gpu.nvlink_sent = BytesPerSecond{static_cast<double>(now.sent - traffic_before_->sent) / seconds};
    gpu.nvlink_received = BytesPerSecond{static_cast<double>(now.received - traffic_before_->received) / seconds};
  }
  traffic_before_ = now;
}

void AmdCard::read_links(Gpu& gpu) const {
  if (!node_) return;
  for (std::size_t i = 0; i < node_->xgmi_to.size(); ++i) {
    Link link;
    link.number = static_cast<int>(i);
    link.active = Why::not_supported;
    link.remote = node_->xgmi_to[i];
    gpu.links.push_back(std::move(link));
  }
}

// While the GPU is being reset or suspended, amdgpu answers EPERM to who asks its sensors (amdgpu_pm.c), which are
// everybody's to read otherwise.
void AmdCard::judge(Gpu& gpu) const {
  if (!gpu.memory_total && gpu.memory_total.why() == Why::lost) {
    gpu.state = State::lost;
    gpu.state_detail = "the driver answers that the device is gone";
    explain_missing(gpu, Why::lost);
    return;
  }
  const bool refused = (!gpu.utilization && gpu.utilization.why() == Why::no_permission) ||
                       (!gpu.power_limit && gpu.power_limit.why() == Why::no_permission);
  const auto is_eperm = [](const std::string& path) { return read_start(path, kMostAttributeBytes).error == EPERM; };
  if (refused && (is_eperm(attribute("gpu_busy_percent")) || is_eperm(sensor("power1_cap")))) {
    gpu.state = State::failed;
    gpu.state_detail = "being reset or suspended: amdgpu refuses its sensors meanwhile";
    for_each_reading_of_gpu(gpu, [](std::string_view, auto& reading) {
      if (!reading.known() && reading.why() == Why::no_permission) reading = Why::no_data;
    });
  }
  explain_missing(gpu, Why::not_supported);
}

}  // namespace gpuwright::device

// Any bytes as what sysfs, procfs and the drivers behind them answer: nothing is read beyond its end, and no value
// comes out that cannot be. The first byte says whose text it is.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "device/amdgpu/attributes.h"
#include "device/amdgpu/gpu_metrics.h"
#include "device/amdgpu/kfd.h"
#include "device/intel/memory_query.h"
#include "device/process/cgroup.h"
#include "device/process/proc_files.h"
#include "device/process/users.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/drm_card.h"
#include "device/sysfs/host_memory.h"
#include "device/tegra/nvmap.h"

namespace {

using namespace gpuwright;
using namespace gpuwright::device;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_metrics(std::string_view text) {
  const auto metrics = parse_gpu_metrics(text);
  if (!metrics) return;
  for (const auto& ratio : {metrics->graphics_activity, metrics->memory_activity, metrics->media_activity})
    require(!ratio || (ratio->value >= 0 && ratio->value <= 1));
  for (const auto& count : {metrics->pcie_width, metrics->pcie_generation, metrics->pcie_replays, metrics->fan_rpm})
    require(!count || *count >= 0);
  for (const auto& bytes : metrics->xgmi_read) require(!bytes || *bytes >= 0);
}

// The attribute readers want a file: one in memory has a path, too.
void check_attributes(std::string_view text) {
  static const int kFile = ::memfd_create("attribute", MFD_CLOEXEC);
  static const std::string kPath = "/proc/self/fd/" + std::to_string(kFile);
  if (::ftruncate(kFile, 0) != 0 || ::pwrite(kFile, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return;
  const auto count = read_count(kPath);
  require(!count || *count >= 0);
  static_cast<void>(read_integer(kPath));
  const auto celsius = read_celsius(kPath, 1e-3);
  require(!celsius || (celsius->value >= -60 && celsius->value <= 250));
  const auto watts = read_watts(kPath, 1e-6);
  require(!watts || (watts->value >= 0 && watts->value <= 20000));
  const auto ratio = read_ratio(kPath, 100);
  require(!ratio || (ratio->value >= 0 && ratio->value <= 1));
}

void check_processes(std::string_view text) {
  if (const auto stat = parse_proc_stat(text)) require(stat->cpu_ticks >= 0 && stat->start_tick >= 0);
  const ProcStatus status = parse_proc_status(text);
  require(!status.resident || status.resident->count >= 0);
  static_cast<void>(parse_command_line(text));
  static_cast<void>(parse_boot_time(text));
  static_cast<void>(parse_passwd(text));
  static_cast<void>(has_perfmon(text));
}

void check_cgroup(std::string_view text) {
  const Belonging belonging = belonging_of(text);
  require(belonging.container.size() <= text.size() && belonging.pod_uid.size() <= 36);
}

void check_memory(std::string_view text) {
  const HostMemory memory = parse_meminfo(text);
  require(!memory.available || !memory.total || *memory.available <= *memory.total);
  for (const NvmapClient& client : parse_nvmap_clients(text)) require(client.pid > 0 && client.memory.count >= 0);
}

void check_amdgpu(std::string_view text) {
  const DpmLevels levels = parse_dpm_levels(text);
  require(!levels.highest || levels.highest->value >= 0);
  const auto counts = parse_ras_counts(text);
  require(!counts || (counts->corrected >= 0 && counts->uncorrected >= 0));
  static_cast<void>(parse_bad_pages(text));
  static_cast<void>(parse_ras_features(text));
  static_cast<void>(pcie_generation_of(text));
  if (text.size() >= sizeof(std::int64_t)) {
    std::int64_t version = 0;
    std::memcpy(&version, text.data(), sizeof version);
    static_cast<void>(instruction_set_of(version));
  }
}

// A driver that answers these bytes, and as many as it likes.
void check_queries(std::string_view text) {
  const auto answer = [&](std::size_t length_at, std::size_t data_in_request) {
    return [&text, length_at, data_in_request](unsigned long, void* argument) {
      auto* request = static_cast<char*>(argument);
      if (data_in_request == 8) {
        std::uint64_t item = 0;
        std::memcpy(&item, request + 8, sizeof item);
        request = reinterpret_cast<char*>(item);
      }
      std::uint64_t data = 0;
      std::memcpy(&data, request + 16, sizeof data);
      const auto length = static_cast<std::uint32_t>(text.size());
      if (data != 0) std::memcpy(reinterpret_cast<void*>(data), text.data(), text.size());
      std::memcpy(request + length_at, &length, sizeof length);
      return 0;
    };
  };
  for (const auto& memory : {query_i915_memory(answer(8, 8)), query_xe_memory(answer(12, 0))})
    require(!memory || (memory->used.count >= 0 && memory->used <= memory->total));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  using Check = void (*)(std::string_view);
  static constexpr Check kChecks[] = {check_metrics, check_attributes, check_processes, check_cgroup,
                                      check_memory,  check_amdgpu,     check_queries};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  kChecks[data[0] % std::size(kChecks)](text);
  return 0;
}

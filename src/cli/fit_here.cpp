// --measure and --gpu here: live devices as targets.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/fit_log.h"
#include "device/reader.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;
using device::Snapshot;

const catalog::Accelerator* row_of(const Gpu& gpu, const catalog::Catalog& catalog) {
  for (const std::string& name : {gpu.catalog_id, gpu.name.value_or("")})
    if (!name.empty())
      if (const auto found = catalog.find(name)) return *found;
  return nullptr;
}

fit::Target target_of(const Gpu& gpu, const catalog::Accelerator* row, const std::string& suffix, Bytes total,
                      Bytes free) {
  const std::string name = row ? row->name : gpu.name.value_or(std::string(to_string(gpu.vendor)));
  fit::Target target{name + suffix, total, free, row ? row->architecture : gpu.architecture.value_or(""),
                     gpu.unified_memory};
  if (row) target.hardware = fit::target_from(*row).hardware;
  return target;
}

// Whole GPUs; where all are cut up, the one instance with most free memory, as a program can use no more than one.
std::vector<fit::Target> targets_of(const Snapshot& snapshot, const catalog::Catalog& catalog) {
  std::vector<fit::Target> whole;
  std::optional<fit::Target> instance;
  for (const Gpu& gpu : snapshot.gpus) {
    const catalog::Accelerator* row = row_of(gpu, catalog);
    if (gpu.mig_instances.empty() && gpu.memory_total && gpu.memory_free)
      whole.push_back(target_of(gpu, row, "", *gpu.memory_total, *gpu.memory_free));
    for (const device::MigInstance& one : gpu.mig_instances)
      if (one.memory_total && one.memory_free && (!instance || instance->free < *one.memory_free))
        instance = target_of(gpu, row, " MIG " + one.profile.value_or("instance"), *one.memory_total, *one.memory_free);
  }
  if (whole.empty() && instance) whole.push_back(std::move(*instance));
  return whole;
}

// What stood in the way: a GPU that does not tell, or sources that found none.
std::string obstacles(const Snapshot& snapshot) {
  std::vector<std::string> words;
  for (const Gpu& gpu : snapshot.gpus)
    words.push_back(
        fmt::format("GPU {}: {}", gpu.index,
                    gpu.state == device::State::ok ? to_string(gpu.memory_free.why()) : to_string(gpu.state)));
  for (const device::SourceReport& report : snapshot.sources)
    if (report.outcome != device::SourceReport::Outcome::found) words.push_back(report.text);
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

Result<std::vector<fit::Target>> targets_here(const catalog::Catalog& catalog) {
  device::ReaderOptions options;
  options.sources.wants.process_utilization = options.sources.wants.health = false;
  const Snapshot snapshot = device::Reader(std::move(options)).read();
  std::vector<fit::Target> targets = targets_of(snapshot, catalog);
  if (targets.empty())
    return fail(ErrorCode::unavailable, "no GPU of this machine tells its memory", obstacles(snapshot));
  return targets;
}

}  // namespace gpuwright::cli

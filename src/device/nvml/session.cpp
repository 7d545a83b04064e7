// A source's session with the library: opened, begun, ended, and begun anew.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "device/nvml/nvml_source.h"
#include "device/nvml/trouble.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kReopenAfter = 5 * kSecond;  // a library that was not there may be installed later
// A device that was reset answers only to a new session, which costs the other devices time: tried ever more seldom.
constexpr std::int64_t kFirstRestart = kSecond, kLastRestart = 60 * kSecond;

// "535.129.03" of "12.535.129.03": NVML puts the newest CUDA that it knows before the driver's version.
std::string driver_part(std::string version) {
  if (std::count(version.begin(), version.end(), '.') == 3 || version.find('.') <= 2)
    version.erase(0, version.find('.') + 1);
  return version;
}

Reading<std::string> library_version(Asker& ask) {
  std::array<char, nvml::kVersionSize> buffer{};
  const nvml::Return code = ask(ask.functions().nvmlSystemGetNVMLVersion, buffer.data(), nvml::kVersionSize);
  Reading<std::string> version = text(code, buffer.data(), buffer.size());
  if (version) return driver_part(*version);
  const std::string by_name = ask.library().version_in_file_name();
  return by_name.empty() ? version : Reading<std::string>(by_name);
}

}  // namespace

bool NvmlSource::open(Snapshot& snapshot) {
  const bool useless = library_ != nullptr && (!library_->open() || mismatched_);
  const bool retry = useless && !injected_ && snapshot.monotonic_ns - opened_ns_ >= kReopenAfter;
  if (library_ == nullptr || retry) {
    // An updated driver brings a file of the same name, which is found only when the old one is closed.
    meter_.reset();
    library_.reset();
    mismatched_ = false;
    library_ = std::make_shared<const Library>(options_);
    opened_ns_ = snapshot.monotonic_ns;
  }
  if (library_->open()) return true;
  snapshot.sources.push_back(
      {"nvml", library_->absent() ? SourceReport::Outcome::absent : SourceReport::Outcome::failed, library_->trouble(),
       library_->absent() ? "" : "reinstall the NVIDIA driver's libraries of this machine's architecture"});
  return false;
}

bool NvmlSource::start(Snapshot& snapshot, Asker& ask) {
  const Functions& f = ask.functions();
  // Version 1 fails when one GPU of several is bad.
  nvml::Return code = ask(f.nvmlInit_v2);
  if (code == nvml::kFunctionNotFound) code = ask(f.nvmlInit);
  if (code == nvml::kSuccess || code == nvml::kAlreadyInitialized) {
    started_ = true;
    started_ns_ = snapshot.monotonic_ns;
    restart_wait_ns_ = std::clamp(restart_wait_ns_ * 2, kFirstRestart, kLastRestart);
    read_driver(ask);
    events_.start(ask);
    return true;
  }
  mismatched_ = code == nvml::kLibRmVersionMismatch;
  InitFailure failure;
  failure.code = code;
  failure.driver_words = library_->text_of(code);
  failure.module_version = files_.module_version();
  failure.library_version = library_version(ask).optional();
  failure.has_devices = !files_.bus_devices().empty();
  failure.nodes_forbidden = files_.nodes_forbidden();
  failure.inside_container = files_.inside_container();
  snapshot.sources.push_back(report_of(failure));
  Driver driver;
  driver.source = "nvml";
  driver.version = failure.module_version ? Reading<std::string>(*failure.module_version) : Why::no_driver;
  driver.library_version = failure.library_version ? Reading<std::string>(*failure.library_version) : Why::no_data;
  driver.cuda_version = why_of(code);
  snapshot.drivers.push_back(std::move(driver));
  return false;
}

void NvmlSource::stop(Asker& ask) {
  ask.turn_to(-1);
  if (!started_) return;
  started_ = false;
  if (meter_ != nullptr && !meter_->forget_devices()) never_shut_down_ = true;
  retire_cards(ask);
  events_.stop(ask);
  if (!never_shut_down_) ask(ask.functions().nvmlShutdown);
}

void NvmlSource::read_driver(Asker& ask) {
  const Functions& f = ask.functions();
  driver_ = {};
  driver_.source = "nvml";
  std::array<char, nvml::kVersionSize> buffer{};
  nvml::Return code = ask(f.nvmlSystemGetDriverVersion, buffer.data(), nvml::kVersionSize);
  driver_.version = text(code, buffer.data(), buffer.size());
  driver_.library_version = library_version(ask);
  int cuda = 0;
  code = ask(f.nvmlSystemGetCudaDriverVersion_v2, &cuda);
  if (code != nvml::kSuccess) code = ask(f.nvmlSystemGetCudaDriverVersion, &cuda);
  if (code == nvml::kSuccess && cuda > 0)
    driver_.cuda_version = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  else
    driver_.cuda_version = code == nvml::kSuccess ? Why::implausible : why_of(code);
}

}  // namespace gpuwright::device::nvidia

// Huawei's Ascend devices by DCMI, the library of their driver.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/file.h"
#include "device/ascend/library.h"
#include "device/ascend/readings.h"
#include "device/source.h"
#include "device/sysfs/drm_card.h"

namespace gpuwright::device {
namespace {

using dcmi::Asker;
using dcmi::Place;

constexpr const char* kName = dcmi::kSourceName;
constexpr const char* kManager = "/dev/davinci_manager";
constexpr std::int64_t kTryAgainAfter = 30'000'000'000;  // ns
constexpr int kMostChips = 16;                           // of a card

class AscendSource : public Source {
 public:
  explicit AscendSource(const SourceOptions& options) : options_(options) {}

  std::string_view name() const override { return "ascend"; }

  void read(Snapshot& snapshot, CallWatch& watch) override {
    if (options_.simulated) return;
    const bool by_name = options_.dcmi_library.find('/') == std::string::npos;
    if (!options_.root.empty() && by_name)
      return report(snapshot, SourceReport::Outcome::absent,
                    fmt::format("not asked, as {} stands for another machine", options_.root));
    // DCMI works through this device (Huawei, "DCMI API Reference": to be mapped into containers). To look for its
    // library all over the loader's path takes a millisecond, on machines that have none.
    if (by_name && !path_exists(kManager))
      return report(snapshot, SourceReport::Outcome::absent,
                    fmt::format("no Ascend driver: {} is not there", kManager));
    if (watch.forbidden(kName, -1)) return report(snapshot, SourceReport::Outcome::failed, "DCMI did not answer");
    if (!open(snapshot, watch)) return;
    Asker asker(*library_, snapshot, watch);
    if (!find_devices(asker, snapshot)) return;
    for (std::size_t i = 0; i < places_.size(); ++i) read_device(asker, static_cast<int>(i), snapshot, watch);
    snapshot.drivers.push_back(driver(asker));
    report(snapshot, SourceReport::Outcome::found, fmt::format("{} devices", places_.size()));
  }

 private:
  static void report(Snapshot& snapshot, SourceReport::Outcome outcome, std::string text, std::string hint = {}) {
    snapshot.sources.push_back({"ascend", outcome, std::move(text), std::move(hint)});
  }

  bool open(Snapshot& snapshot, CallWatch& watch) {
    if (ready_) return true;
    const bool is_early =
        tried_ && snapshot.monotonic_ns >= tried_at_ && snapshot.monotonic_ns - tried_at_ < kTryAgainAfter;
    if (!is_early) {
      tried_ = true;
      tried_at_ = snapshot.monotonic_ns;
      if (!library_ || !library_->is_open()) library_ = std::make_unique<dcmi::Library>(options_.dcmi_library);
      if (library_->is_open()) init_code_ = Asker(*library_, snapshot, watch).call("dcmi_init", library_->init);
      ready_ = library_->is_open() && init_code_ == dcmi::kOk;
    }
    if (ready_) return true;
    if (!library_->is_open())
      report(snapshot, SourceReport::Outcome::absent, library_->trouble());
    else
      report(snapshot, SourceReport::Outcome::failed, fmt::format("dcmi_init answers {}", init_code_),
             init_code_ == dcmi::kNotPermitted ? "join the group HwHiAiUser or run as root"
                                               : "is the Ascend driver loaded?");
    return false;
  }

  bool find_devices(Asker& asker, Snapshot& snapshot) {
    int count = 0;
    std::array<int, dcmi::kMostCards> cards{};
    asker.set_device(-1, {});
    const int code = asker.call("dcmi_get_card_list", library_->card_list, &count, cards.data(), dcmi::kMostCards);
    if (code != dcmi::kOk || count < 0 || count > dcmi::kMostCards) {
      ready_ = false;
      report(snapshot, SourceReport::Outcome::failed, fmt::format("dcmi_get_card_list answers {}", code));
      return false;
    }
    std::vector<Place> places;
    for (int i = 0; i < count; ++i) add_chips(asker, cards[static_cast<std::size_t>(i)], places);
    if (places != places_) {
      places_ = std::move(places);
      identities_.assign(places_.size(), std::nullopt);
    }
    if (!places_.empty()) return true;
    report(snapshot, SourceReport::Outcome::absent, "DCMI knows of no device");
    return false;
  }

  // A card has chips that compute and a controller, which does not.
  void add_chips(Asker& asker, int card, std::vector<Place>& places) const {
    int chips = 0, controller = 0, processor = 0;
    int code =
        asker.call("dcmi_get_device_id_in_card", library_->device_id_in_card, card, &chips, &controller, &processor);
    if (code != dcmi::kOk) code = asker.call("dcmi_get_device_num_in_card", library_->device_num_in_card, card, &chips);
    if (code != dcmi::kOk) chips = 1;  // the row stays, and says what is wrong
    for (int chip = 0; chip < std::min(chips, kMostChips); ++chip) {
      dcmi::UnitType type = dcmi::UnitType::npu;
      const int typed = asker.call("dcmi_get_device_type", library_->device_type, card, chip, &type);
      if (typed == dcmi::kOk && type != dcmi::UnitType::npu) continue;
      places.push_back({card, chip});
    }
  }

  void read_device(Asker& asker, int index, Snapshot& snapshot, CallWatch& watch) {
    std::optional<Gpu>& identity = identities_[static_cast<std::size_t>(index)];
    Gpu gpu;
    gpu.vendor = Vendor::huawei;
    gpu.source = kName;
    gpu.vendor_index = index;
    const std::size_t position = snapshot.gpus.size();
    snapshot.gpus.push_back(identity ? *identity : gpu);
    if (watch.forbidden(kName, index)) return;
    asker.set_device(index, places_[static_cast<std::size_t>(index)]);
    if (!identity) {
      dcmi::read_identity(asker, gpu);
      if (gpu.name) identity = gpu;
      snapshot.gpus[position] = gpu;
    } else {
      gpu = *identity;
    }
    dcmi::judge(asker, gpu);
    if (gpu.state == State::lost || gpu.state == State::no_permission) {
      explain_missing(gpu, gpu.state == State::lost ? Why::lost : Why::no_permission);
      snapshot.gpus[position] = std::move(gpu);
      return;
    }
    dcmi::read_memory(asker, gpu);
    dcmi::read_sensors(asker, gpu);
    if (options_.wants.health) dcmi::read_ecc(asker, gpu);
    explain_missing(gpu, Why::not_supported);
    forget_unasked(options_.wants, gpu);
    snapshot.gpus[position] = std::move(gpu);
    if (options_.wants.processes) dcmi::read_processes(asker, position, snapshot);
  }

  Driver driver(Asker& asker) const {
    Driver driver;
    driver.source = kName;
    driver.cuda_version = Why::not_supported;
    const auto version = [&](const char* name, int (*function)(char*, unsigned)) -> Reading<std::string> {
      char text[256] = {};
      const int code = asker.call(name, function, text, unsigned{sizeof text - 1});
      if (code != dcmi::kOk) return dcmi::why_of_code(code);
      return dcmi::text_of(text);
    };
    asker.set_device(-1, {});
    driver.version = version("dcmi_get_driver_version", library_->driver_version);
    driver.library_version = version("dcmi_get_dcmi_version", library_->library_version);
    return driver;
  }

  SourceOptions options_;
  std::unique_ptr<dcmi::Library> library_;
  bool ready_ = false, tried_ = false;
  std::int64_t tried_at_ = 0;
  int init_code_ = dcmi::kOk;
  std::vector<Place> places_;
  std::vector<std::optional<Gpu>> identities_;
};

}  // namespace

std::unique_ptr<Source> ascend_source(const SourceOptions& options) {
  return std::make_unique<AscendSource>(options);
}

}  // namespace gpuwright::device

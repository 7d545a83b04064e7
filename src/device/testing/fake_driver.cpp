#include "device/testing/fake_driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <utility>

namespace gpuwright::device::testing {
namespace {

[[noreturn]] void hang() {
  while (true) ::pause();
}

// As it is without a sanitizer, whose handler writes a report for longer than a deadline.
void crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
}

class FakeSource : public Source {
 public:
  FakeSource(std::string name, int devices, FakeDriver::Faults& faults)
      : name_(std::move(name)), devices_(devices), faults_(faults) {}
  std::string_view name() const override { return name_; }

  void read(Snapshot& snapshot, CallWatch& watch) override {
    ++faults_.readings;
    watch.enter(name_, -1, "fakeInit");
    if (faults_.hang_in_start) hang();
    watch.leave();
    if (faults_.hang_unwatched) hang();
    for (int device = 0; device < devices_; ++device)
      if (!bit(faults_.gone, device)) read_device(snapshot, watch, device);
    if (faults_.throws) throw std::runtime_error("a bug");
    snapshot.sources.push_back({name_, SourceReport::Outcome::found, fmt::format("{} GPUs", devices_), ""});
    snapshot.vendor_calls += devices_;
  }

 private:
  static bool bit(const std::atomic<std::uint32_t>& mask, int device) { return (mask >> device & 1) != 0; }

  void read_device(Snapshot& snapshot, CallWatch& watch, int device) {
    Gpu row;
    row.source = name_;
    row.vendor_index = device;
    row.vendor = Vendor::nvidia;
    if (watch.forbidden(name_, device)) {
      snapshot.gpus.push_back(row);
      ++faults_.asked_of_barred;
      if (!faults_.ignores_the_ban) return;
    }
    row.uuid = fmt::format("GPU-{}-{}", name_, device);
    row.name = fmt::format("Fake {}", device);
    const auto position = static_cast<int>(snapshot.gpus.size());
    snapshot.gpus.push_back(row);
    watch.enter(name_, device, "fakeGetMemory");
    if (bit(faults_.hang, device)) hang();
    if (bit(faults_.crash, device)) crash();
    if (faults_.out_of_memory) std::raise(SIGKILL);
    if (faults_.slow_ms > 0) ::usleep(static_cast<useconds_t>(faults_.slow_ms) * 1000);
    watch.leave();
    Gpu& gpu = snapshot.gpus.back();
    if (bit(faults_.lost, device)) {
      gpu.state = State::lost;
      gpu.uuid = Why::lost;
      return;
    }
    gpu.memory_used = Bytes{1000 + device};
    if (faults_.xid != 0) gpu.xids.push_back({faults_.xid, UnixTime{::getpid()}, 1});
    Process process;
    process.gpu = position;
    process.pid = 100 + device;
    process.memory = gpu.memory_used;
    snapshot.processes.push_back(process);
  }

  std::string name_;
  int devices_;
  FakeDriver::Faults& faults_;
};

}  // namespace

FakeDriver::FakeDriver(std::string source, int devices)
    : source_(std::move(source)), devices_(devices), faults_(Shared<Faults>::make().value()) {}

SourceEntry FakeDriver::entry() const {
  return {source_, [source = source_, devices = devices_, faults = faults_]() -> std::unique_ptr<Source> {
            return std::make_unique<FakeSource>(source, devices, *faults);
          }};
}

}  // namespace gpuwright::device::testing

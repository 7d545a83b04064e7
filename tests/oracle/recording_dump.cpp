// recording_dump FILE SCENARIO: records a simulated host into FILE, in whole frames and differences, and
// prints for each frame what was recorded, a line "NAME VALUE" for each known reading. recording.py reads the file.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "device/fields.h"
#include "device/reader.h"
#include "device/recording.h"
#include "sim/host.h"

namespace {

using namespace gpuwright;  // NOLINT: a program of one file

constexpr int kFrames = 140;  // two that stand for themselves among them, and one of a second writer

std::string text_of(const std::string& value) {
  return value;
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string text_of(Bytes value) {
  return fmt::format("{}", value.count);
}
std::string text_of(device::UnixTime value) {
  return fmt::format("{}", value.nanoseconds);
}
std::string text_of(device::ThrottleReasons value) {
  return fmt::format("{}", value.bits);
}
template <class Unit>
std::string text_of(Unit value) {
  return fmt::format("{:.17g}", value.value);
}

void print(const device::Snapshot& snapshot) {
  const auto print_reading = [](std::string_view name, const auto& reading) {
    if (reading) fmt::print("{} {}\n", name, text_of(*reading));
  };
  fmt::print("frame {} {}\n", snapshot.time.nanoseconds, snapshot.vendor_calls);
  for (const device::Gpu& gpu : snapshot.gpus) {
    fmt::print("gpu {} {} {}\n", gpu.index, to_string(gpu.state), gpu.xids.size());
    device::for_each_reading_of_gpu(gpu, print_reading);
    for (const device::MigInstance& instance : gpu.mig_instances)
      device::for_each_reading_of_instance(instance, print_reading);
  }
  for (const device::Process& process : snapshot.processes) {
    fmt::print("process {} {}\n", process.gpu, process.pid);
    device::for_each_reading_of_process(process, print_reading);
  }
}

Status record(const std::string& path, const std::string& scenario) {
  device::ReaderOptions options;
  options.in_process = true;
  options.sources.simulated = GW_TRY(sim::Host::from_scenario(scenario));
  device::Reader reader(options);
  std::optional<device::RecordingWriter> writer;
  for (int frame = 0; frame < kFrames; ++frame) {
    if (frame % (kFrames / 2 + 1) == 0) {
      writer.reset();
      writer.emplace(GW_TRY(device::RecordingWriter::open(path)));
    }
    options.sources.simulated->set_time(frame);
    const device::Snapshot snapshot = reader.read();
    GW_TRY(writer->append(snapshot));
    print(snapshot);
  }
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return fmt::print(stderr, "usage: recording_dump FILE SCENARIO\n"), 2;
  const Status done = record(words[1], words[2]);
  if (!done) fmt::print(stderr, "{}\n", done.error().message());
  return done ? 0 : 1;
}

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "device/recording.h"
#include "device/recording_part.h"

namespace gpuwright::device {
namespace {

struct Part {
  std::unique_ptr<ByteSource> file;
  PartHead head;
};

struct Entry {
  std::int64_t time = 0;
  std::uint32_t part = 0;
  std::int64_t offset = 0;
};

// The older parts that belong to the recording. One that is being renamed meanwhile may be met under two names.
std::vector<Part> older_parts(const std::string& path, const PartHead& latest) {
  std::vector<Part> parts;
  for (int age = 1; age < kMostParts; ++age) {
    auto file = open_file(part_name(path, age));
    if (!file) continue;
    const auto head = read_part_head(**file);
    if (!head || head->recording != latest.recording || head->number >= latest.number) continue;
    const bool known =
        std::any_of(parts.begin(), parts.end(), [&head](const Part& part) { return part.head.number == head->number; });
    if (!known) parts.push_back({std::move(*file), *head});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.head.number < b.head.number; });
  return parts;
}

}  // namespace

struct RecordingReader::State {
  std::vector<Part> parts;
  std::vector<Entry> entries;  // in order of time
  std::vector<std::string> damage;
  Bytes size;
  std::size_t next = 0;
};

Result<RecordingReader> RecordingReader::open(const std::string& path) {
  auto state = std::make_unique<State>();
  auto file = GW_TRY(open_file(path));
  const PartHead head = GW_TRY(read_part_head(*file));
  state->parts = older_parts(path, head);
  state->parts.push_back({std::move(file), head});
  for (std::uint32_t i = 0; i < state->parts.size(); ++i) {
    const ByteSource& part = *state->parts[i].file;
    PartScan scan = GW_TRY(scan_part(part));
    for (const FramePlace& frame : scan.frames) state->entries.push_back({frame.time.nanoseconds, i, frame.offset});
    for (std::string& text : scan.damage) state->damage.push_back(std::move(text));
    state->size += Bytes{part.size()};
  }
  // A clock that was set back leaves frames out of order.
  std::stable_sort(state->entries.begin(), state->entries.end(),
                   [](const Entry& a, const Entry& b) { return a.time < b.time; });
  return RecordingReader(std::move(state));
}

std::size_t RecordingReader::frames() const {
  return state_->entries.size();
}
UnixTime RecordingReader::first() const {
  return state_->entries.empty() ? UnixTime{} : UnixTime{state_->entries.front().time};
}
UnixTime RecordingReader::last() const {
  return state_->entries.empty() ? UnixTime{} : UnixTime{state_->entries.back().time};
}
Bytes RecordingReader::size() const {
  return state_->size;
}
const std::vector<std::string>& RecordingReader::damage() const {
  return state_->damage;
}

Result<std::optional<Snapshot>> RecordingReader::next() {
  if (state_->next >= state_->entries.size()) return std::nullopt;
  const Entry& entry = state_->entries[state_->next++];
  return GW_TRY(read_frame(*state_->parts[entry.part].file, entry.offset));
}

void RecordingReader::seek(UnixTime time) {
  const auto after = std::upper_bound(state_->entries.begin(), state_->entries.end(), time.nanoseconds,
                                      [](std::int64_t wanted, const Entry& entry) { return wanted < entry.time; });
  const auto index = static_cast<std::size_t>(after - state_->entries.begin());
  state_->next = index == 0 ? 0 : index - 1;
}

RecordingReader::RecordingReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordingReader::RecordingReader(RecordingReader&&) noexcept = default;
RecordingReader& RecordingReader::operator=(RecordingReader&&) noexcept = default;
RecordingReader::~RecordingReader() = default;

}  // namespace gpuwright::device

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "device/recording.h"
#include "device/recording_part.h"

namespace gpuwright::device {
namespace {

struct Entry {
  std::uint32_t part = 0;
  std::uint32_t frame = 0;
};

// The older parts that belong to the recording. One that is being renamed meanwhile may be met under two names.
std::vector<PartReader> older_parts(const std::string& path, const PartHead& latest) {
  std::vector<PartReader> parts;
  for (int age = 1; age < kMostParts; ++age) {
    auto file = open_file(part_name(path, age));
    if (!file) continue;
    const auto head = read_part_head(**file);
    if (!head || head->recording != latest.recording || head->number >= latest.number) continue;
    const bool known = std::any_of(parts.begin(), parts.end(),
                                   [&head](const PartReader& part) { return part.head().number == head->number; });
    if (known) continue;
    if (auto part = PartReader::open(std::move(*file))) parts.push_back(std::move(*part));
  }
  std::sort(parts.begin(), parts.end(),
            [](const PartReader& a, const PartReader& b) { return a.head().number < b.head().number; });
  return parts;
}

}  // namespace

struct RecordingReader::State {
  UnixTime time_of(const Entry& entry) const { return parts[entry.part].scan().frames[entry.frame].time; }

  std::vector<PartReader> parts;
  std::vector<Entry> entries;  // in order of time
  std::vector<std::string> damage;
  Bytes size;
  std::size_t next = 0;
};

Result<RecordingReader> RecordingReader::open(const std::string& path) {
  auto state = std::make_unique<State>();
  auto latest = GW_TRY(PartReader::open(GW_TRY(open_file(path))));
  state->parts = older_parts(path, latest.head());
  state->parts.push_back(std::move(latest));
  for (std::uint32_t part = 0; part < state->parts.size(); ++part) {
    const PartScan& scan = state->parts[part].scan();
    for (std::uint32_t frame = 0; frame < scan.frames.size(); ++frame) state->entries.push_back({part, frame});
    state->damage.insert(state->damage.end(), scan.damage.begin(), scan.damage.end());
    state->size += Bytes{state->parts[part].file().size()};
  }
  // A clock that was set back leaves frames out of order.
  std::stable_sort(state->entries.begin(), state->entries.end(),
                   [&state](const Entry& a, const Entry& b) { return state->time_of(a) < state->time_of(b); });
  return RecordingReader(std::move(state));
}

std::size_t RecordingReader::frames() const {
  return state_->entries.size();
}
UnixTime RecordingReader::first() const {
  return state_->entries.empty() ? UnixTime{} : state_->time_of(state_->entries.front());
}
UnixTime RecordingReader::last() const {
  return state_->entries.empty() ? UnixTime{} : state_->time_of(state_->entries.back());
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
  return GW_TRY(state_->parts[entry.part].read(entry.frame));
}

void RecordingReader::seek(UnixTime time) {
  const auto after =
      std::upper_bound(state_->entries.begin(), state_->entries.end(), time,
                       [this](UnixTime wanted, const Entry& entry) { return wanted < state_->time_of(entry); });
  const auto index = static_cast<std::size_t>(after - state_->entries.begin());
  state_->next = index == 0 ? 0 : index - 1;
}

RecordingReader::RecordingReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordingReader::RecordingReader(RecordingReader&&) noexcept = default;
RecordingReader& RecordingReader::operator=(RecordingReader&&) noexcept = default;
RecordingReader::~RecordingReader() = default;

}  // namespace gpuwright::device

#include <fmt/format.h>
#include <time.h>

#include <optional>
#include <random>
#include <utility>

#include "base/append_file.h"
#include "base/file.h"
#include "base/text.h"
#include "device/frame.h"
#include "device/frame_difference.h"
#include "device/recording.h"
#include "device/recording_part.h"

namespace gpuwright::device {
namespace {

// Between two frames that stand for themselves: what damage costs at most, and what a jump in time has to read.
constexpr int kMostDifferences = 63;

tl::unexpected<Error> refusal(const std::string& path, std::string what, std::string hint) {
  return fail_at(ErrorCode::bad_input, {path, std::nullopt, std::nullopt}, std::move(what), std::move(hint));
}

UnixTime now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return {std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
}

std::uint64_t new_recording() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

std::string subject_of(const Snapshot& snapshot) {
  return snapshot.simulated.empty() ? fmt::format("the host {}", printable(snapshot.hostname))
                                    : fmt::format("the simulation {}", printable(snapshot.simulated));
}

}  // namespace

struct RecordingWriter::State {
  State(std::string given_path, const RecordingOptions& given_options, AppendFile given_file)
      : path(std::move(given_path)), options(given_options), file(std::move(given_file)) {}

  Status begin();
  Status go_on();
  Status check_older_parts() const;
  Status check_subject(const Snapshot& snapshot);
  Status rotate();
  std::string bytes_for(const std::string& frame) const;
  std::int64_t part_size() const { return options.max_size.count / kMostParts; }

  std::string path;
  RecordingOptions options;
  AppendFile file;
  PartHead head;
  std::optional<Snapshot> latest;  // of the file before this writer
  std::string before;              // the last frame of this writer, whole
  int differences = 0;             // since one that was written whole
  std::int64_t frames = 0;
  Bytes written;
  std::string note;
};

Result<RecordingWriter> RecordingWriter::open(const std::string& path, const RecordingOptions& options) {
  if (options.max_size < kSmallestRecording)
    return fail(ErrorCode::bad_input, fmt::format("a recording of {} is too small", to_string(options.max_size)),
                fmt::format("allow at least {}", to_string(kSmallestRecording)));
  auto file = GW_TRY(AppendFile::open(path, AppendFile::Mode::open_or_make));
  auto state = std::make_unique<State>(path, options, std::move(file));
  if (state->file.size() == 0) {
    GW_TRY(state->begin());
  } else {
    GW_TRY(state->go_on());
  }
  GW_TRY(state->check_older_parts());
  return RecordingWriter(std::move(state));
}

Status RecordingWriter::State::begin() {
  head = {new_recording(), 1, now()};
  const Status done = file.append(encode_part_head(head));
  if (!done) static_cast<void>(remove_file(path));
  return done;
}

Status RecordingWriter::State::go_on() {
  auto part = PartReader::open(GW_TRY(open_file(path)));
  if (!part) {
    if (part.error().hint.empty()) part.error().hint = "it is left as it is; choose another file";
    return tl::unexpected<Error>(std::move(part.error()));
  }
  head = part->head();
  const PartScan& scan = part->scan();
  if (!scan.frames.empty()) latest = GW_TRY(part->read(scan.frames.size() - 1));
  if (scan.end == file.size()) return {};
  note = fmt::format("{}: byte {}: the recording broke off in the middle of a frame; its last {} bytes were removed",
                     path, scan.end, file.size() - scan.end);
  return file.cut(scan.end);
}

// Files that only look like older parts would be lost when the recording grows.
Status RecordingWriter::State::check_older_parts() const {
  for (int age = 1; age < kMostParts; ++age) {
    const std::string name = part_name(path, age);
    if (!path_exists(name)) continue;
    const auto source = open_file(name);
    const auto part = source ? read_part_head(**source) : tl::unexpected<Error>(source.error());
    if (!part || part->recording != head.recording)
      return refusal(name, fmt::format("is no part of the recording {}, which would take its place", path),
                     "move it away, or record into another file");
  }
  return {};
}

// Two hosts in one file would make one host out of both.
Status RecordingWriter::State::check_subject(const Snapshot& snapshot) {
  if (!latest) return {};
  const bool same = latest->hostname == snapshot.hostname && latest->simulated == snapshot.simulated;
  if (!same)
    return refusal(path, fmt::format("is a recording of {}, not of {}", subject_of(*latest), subject_of(snapshot)),
                   "record into another file");
  latest.reset();
  return {};
}

// The new part gets its name last: at any moment, what bears the names is the recording, at worst without its oldest
// part, or with one part under two names.
Status RecordingWriter::State::rotate() {
  const std::string fresh = path + ".new";
  GW_TRY(remove_file(fresh));
  auto next = GW_TRY(AppendFile::open(fresh, AppendFile::Mode::must_be_new));
  const PartHead next_head{head.recording, head.number + 1, now()};
  Status done = next.append(encode_part_head(next_head));
  if (done) done = file.sync();
  for (int age = kMostParts - 2; age >= 1 && done; --age)
    if (path_exists(part_name(path, age))) done = rename_file(part_name(path, age), part_name(path, age + 1));
  if (done) done = link_file(path, part_name(path, 1));
  if (done) done = rename_file(fresh, path);
  if (!done) {
    static_cast<void>(remove_file(fresh));
    return done;
  }
  next.renamed(path);
  file = std::move(next);
  head = next_head;
  return {};
}

// What has to be written for the frame: all of it now and then, so that a reader need not start at the beginning.
std::string RecordingWriter::State::bytes_for(const std::string& frame) const {
  if (before.empty() || differences >= kMostDifferences) return frame;
  std::string difference = encode_difference(frame, before);
  return difference.size() < frame.size() ? difference : frame;
}

Status RecordingWriter::append(const Snapshot& snapshot) {
  State& state = *state_;
  GW_TRY(state.check_subject(snapshot));
  std::string frame = encode_frame(snapshot);
  const auto whole_size = static_cast<std::int64_t>(frame.size());
  if (whole_size > state.part_size() - kPartHeadSize)
    return refusal(state.path,
                   fmt::format("a frame of {} does not fit into a quarter of {}", to_string(Bytes{whole_size}),
                               to_string(state.options.max_size)),
                   "allow a larger recording");
  std::string bytes = state.bytes_for(frame);
  if (state.file.size() + static_cast<std::int64_t>(bytes.size()) > state.part_size()) {
    GW_TRY(state.rotate());
    bytes = frame;
  }
  GW_TRY(state.file.append(bytes));
  state.differences = is_difference(bytes) ? state.differences + 1 : 0;
  state.before = std::move(frame);
  ++state.frames;
  state.written += Bytes{static_cast<std::int64_t>(bytes.size())};
  return {};
}

std::int64_t RecordingWriter::frames() const {
  return state_->frames;
}
Bytes RecordingWriter::bytes_written() const {
  return state_->written;
}
const std::string& RecordingWriter::note() const {
  return state_->note;
}

RecordingWriter::RecordingWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordingWriter::RecordingWriter(RecordingWriter&&) noexcept = default;
RecordingWriter& RecordingWriter::operator=(RecordingWriter&&) noexcept = default;
RecordingWriter::~RecordingWriter() {
  if (state_) static_cast<void>(state_->file.sync());
}

}  // namespace gpuwright::device

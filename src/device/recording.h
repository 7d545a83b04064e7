// Snapshots in a file, for later: docs/recording.md has the format. A recording is what it is after every append, so
// that a kill or a power cut costs the frame that was being written and no other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/snapshot.h"

namespace gpuwright::device {

struct RecordingOptions {
  // Of all parts of the recording together. When FILE has grown to a quarter of it, it is renamed to FILE.1 (FILE.1 to
  // FILE.2, FILE.2 to FILE.3, the oldest is removed) and FILE goes on: the recording holds the latest frames.
  Bytes max_size = Bytes{std::int64_t{1} << 30};
};
inline constexpr Bytes kSmallestRecording = Bytes{64 << 10};  // of max_size

// Not thread-safe. One writer a file: a second one is refused.
class RecordingWriter {
 public:
  // Makes the file, or goes on with a recording: one that ends in a damaged frame (a power cut) is first cut back to
  // its last whole one, which note() tells. A file that is no recording is refused and left as it is.
  static Result<RecordingWriter> open(const std::string& path, const RecordingOptions& options = {});
  RecordingWriter(RecordingWriter&&) noexcept;
  RecordingWriter& operator=(RecordingWriter&&) noexcept;
  ~RecordingWriter();

  // On failure (the disk is full) the file holds what it held before, and a later append may succeed. A snapshot of
  // another host, or of a simulation in the recording of a machine, is refused: bad_input.
  Status append(const Snapshot& snapshot);

  std::int64_t frames() const;      // appended by this writer
  Bytes bytes_written() const;      // by this writer
  const std::string& note() const;  // what open() had to repair; empty = nothing

 private:
  struct State;
  explicit RecordingWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Reads a recording with all its parts, the oldest first. A file that is still being written is read as far as it went
// when it was opened. Not thread-safe.
class RecordingReader {
 public:
  static Result<RecordingReader> open(const std::string& path);
  RecordingReader(RecordingReader&&) noexcept;
  RecordingReader& operator=(RecordingReader&&) noexcept;
  ~RecordingReader();

  std::size_t frames() const;
  UnixTime first() const, last() const;  // the times of the first and the last frame; 0 when there is none
  Bytes size() const;
  // What could not be read, a sentence a part: "FILE: byte 8123: ..."; empty = the recording is whole.
  const std::vector<std::string>& damage() const;

  // The next frame in order of time; nothing at the end.
  Result<std::optional<Snapshot>> next();
  // next() gives the last frame that is not after `time`, or the first of all when all are.
  void seek(UnixTime time);

 private:
  struct State;
  explicit RecordingReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpuwright::device

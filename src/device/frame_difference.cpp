// The payload is cut into runs that are copied from the payload before and bytes that are new. Where a run comes from
// is told relative to where the last one ended: a number that changed in place costs its bytes and three more.
//
// Runs are found as LZ77 does with a dictionary: the place that comes next if nothing was inserted is tried first, then
// the last place in the payload before that has the same four bytes.
#include "device/frame_difference.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "device/frame.h"
#include "device/frame_bytes.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kShortestRun = 4;  // a shorter one costs as much as its bytes
constexpr unsigned kHashBits = 13;
constexpr std::uint32_t kNowhere = ~0U;

std::string_view payload_of(std::string_view frame) {
  return frame.substr(kFrameHeadSize, frame.size() - kFrameHeadSize - kFrameTailSize);
}

std::uint32_t hash_at(std::string_view bytes, std::size_t at) {
  std::uint32_t four = 0;
  std::memcpy(&four, bytes.data() + at, sizeof four);
  return four * 2654435761U >> (32 - kHashBits);  // Knuth's multiplicative hash
}

std::size_t common_length(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t length = 0;
  while (length < most && a[length] == b[length]) ++length;
  return length;
}

class Finder {
 public:
  explicit Finder(std::string_view before) : before_(before), last_at_(std::size_t{1} << kHashBits, kNowhere) {
    for (std::size_t at = 0; at + kShortestRun <= before.size(); ++at)
      last_at_[hash_at(before, at)] = static_cast<std::uint32_t>(at);
  }
  struct Run {
    std::size_t from = 0, length = 0;
  };
  Run find(std::string_view rest, std::size_t expected) const {
    Run best{expected, expected < before_.size() ? common_length(rest, before_.substr(expected)) : 0};
    if (best.length >= kShortestRun || rest.size() < kShortestRun) return best;
    const std::uint32_t other = last_at_[hash_at(rest, 0)];
    if (other == kNowhere) return best;
    const Run far{other, common_length(rest, before_.substr(other))};
    return far.length > best.length ? far : best;
  }

 private:
  std::string_view before_;
  std::vector<std::uint32_t> last_at_;
};

void put_runs(std::string& out, std::string_view payload, std::string_view before) {
  const Finder finder(before);
  std::size_t done = 0, next = 0;  // in the payload; in the one before: where the last run ended
  while (done < payload.size()) {
    std::size_t fresh = 0;
    Finder::Run run;
    while (done + fresh < payload.size()) {
      run = finder.find(payload.substr(done + fresh), next + fresh);
      if (run.length >= kShortestRun) break;
      ++fresh;
    }
    if (done + fresh >= payload.size()) run = {next + fresh, 0};
    put_varint(out, fresh);
    out.append(payload.substr(done, fresh));
    put_varint(out, run.length);
    if (run.length > 0) put_zigzag(out, static_cast<std::int64_t>(run.from) - static_cast<std::int64_t>(next + fresh));
    done += fresh + run.length;
    next = run.from + run.length;
  }
}

tl::unexpected<Error> refusal(std::string_view name, std::string what) {
  return fail_at(ErrorCode::bad_input, {std::string(name), std::nullopt, std::nullopt}, std::move(what));
}

bool apply_runs(std::string& out, std::size_t length, ByteReader& runs, std::string_view before) {
  std::int64_t next = 0;
  while (out.size() < length) {
    const std::uint64_t fresh = runs.varint();
    if (runs.failed() || fresh > length - out.size()) return false;
    out.append(runs.take(fresh));
    const std::uint64_t copied = runs.varint();
    if (runs.failed() || copied > length - out.size() || (copied == 0 && fresh == 0)) return false;
    next += static_cast<std::int64_t>(fresh);
    if (copied == 0) continue;
    const std::int64_t step = runs.zigzag();
    if (step < -static_cast<std::int64_t>(kLargestPayload) || step > static_cast<std::int64_t>(kLargestPayload))
      return false;
    next += step;
    if (runs.failed() || next < 0 || static_cast<std::uint64_t>(next) > before.size() ||
        copied > before.size() - static_cast<std::uint64_t>(next))
      return false;
    out.append(before.substr(static_cast<std::size_t>(next), copied));
    next += static_cast<std::int64_t>(copied);
  }
  return true;
}

}  // namespace

std::string encode_difference(std::string_view frame, std::string_view before) {
  std::string payload;
  payload.append(before.substr(before.size() - kFrameTailSize));
  payload.append(frame.substr(frame.size() - kFrameTailSize));
  put_varint(payload, payload_of(frame).size());
  put_runs(payload, payload_of(frame), payload_of(before));
  return seal_frame(frame_time(frame), kDifferenceFlag, payload);
}

bool is_difference(std::string_view frame) {
  return frame.size() > kFlagsAt && (static_cast<unsigned char>(frame[kFlagsAt]) & kDifferenceFlag) != 0;
}

Result<std::string> apply_difference(std::string_view difference, std::string_view before, std::string_view name) {
  const auto head = frame_head(difference);
  if (!head || head->size != difference.size() || !frame_is_whole(difference) || !is_difference(difference))
    return refusal(name, "the frame is damaged");
  ByteReader reader(payload_of(difference));
  const std::string_view sum_before = reader.take(kFrameTailSize), sum = reader.take(kFrameTailSize);
  const std::uint64_t length = reader.varint();
  if (reader.failed() || length > kLargestPayload) return refusal(name, "the difference is damaged");
  if (before.size() < kFrameHeadSize + kFrameTailSize || before.substr(before.size() - kFrameTailSize) != sum_before)
    return refusal(name, "the frame tells what changed since a frame that is missing");
  std::string payload;
  if (!apply_runs(payload, length, reader, payload_of(before))) return refusal(name, "the difference is damaged");
  std::string frame = seal_frame(head->time, 0, payload);
  if (std::string_view(frame).substr(frame.size() - kFrameTailSize) != sum)
    return refusal(name, "the difference does not give the frame that was recorded");
  return frame;
}

}  // namespace gpuwright::device

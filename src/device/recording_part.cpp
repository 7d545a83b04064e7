#include "device/recording_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/crc32c.h"
#include "device/frame_difference.h"

namespace gpuwright::device {
namespace {

constexpr std::string_view kMagic = "GWRECORD";
constexpr std::string_view kFrameMagic = "GWFR";
constexpr int kVersion = 1;
constexpr std::int64_t kWindow = 1 << 20;
constexpr std::size_t kMostFrames = 1 << 24;  // half a year of seconds; an index of 256 MiB
// While looking for the next whole frame, so many bytes may be summed for each byte of the file: a file that is made to
// look like the start of a frame everywhere would else take for ever.
constexpr std::int64_t kSearchEffort = 4;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}
std::uint64_t get(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

// The file through a window that moves forward.
class Window {
 public:
  Window(const ByteSource& file, std::int64_t ahead) : file_(file), ahead_(ahead) {}
  std::int64_t size() const { return file_.size(); }

  // Fewer bytes at the end of the file, and where it cannot be read. Valid until the next call.
  std::string_view at(std::int64_t offset, std::int64_t count) {
    count = std::min(count, size() - offset);
    if (count <= 0) return {};
    if (offset < start_ || offset + count > start_ + static_cast<std::int64_t>(bytes_.size())) fill(offset, count);
    const std::string_view all(bytes_);
    const auto skip = static_cast<std::size_t>(offset - start_);
    return skip >= all.size() ? std::string_view() : all.substr(skip, static_cast<std::size_t>(count));
  }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  void fill(std::int64_t offset, std::int64_t count) {
    start_ = offset;
    bytes_.resize(static_cast<std::size_t>(std::min(std::max(count, ahead_), size() - offset)));
    const auto got = file_.read_at(offset, std::as_writable_bytes(std::span(bytes_)));
    if (!got) failure_ = got.error();
    bytes_.resize(got ? *got : 0);
  }

  const ByteSource& file_;
  std::int64_t ahead_;
  std::int64_t start_ = 0;
  std::string bytes_;
  std::optional<Error> failure_;
};

class Scanner {
 public:
  explicit Scanner(const ByteSource& file)
      : window_(file, kWindow), name_(file.name()), effort_(kSearchEffort * (file.size() + kWindow)) {}

  Result<PartScan> scan() {
    std::int64_t at = kPartHeadSize;
    scan_.end = at;
    while (at < window_.size() && scan_.frames.size() < kMostFrames) {
      if (const auto head = whole_frame(at)) {
        take(at, *head, is_difference(window_.at(at, static_cast<std::int64_t>(kFrameHeadSize))));
        scan_.end = at += static_cast<std::int64_t>(head->size);
        continue;
      }
      chained_ = false;
      const std::int64_t next = find_next(at + 1);
      tell_damage(at, next);
      at = next;
    }
    tell_orphans();
    if (at < window_.size() && scan_.frames.size() >= kMostFrames)
      scan_.damage.push_back(fmt::format("{}: more than {} frames; the rest is left out", name_, kMostFrames));
    if (window_.failure()) return tl::unexpected<Error>(*window_.failure());
    return std::move(scan_);
  }

 private:
  void take(std::int64_t at, const FrameHead& head, bool difference) {
    if (difference && !chained_) {
      ++orphans_;
      return;
    }
    tell_orphans();
    chained_ = true;
    scan_.frames.push_back({at, !difference, head.time});
  }
  void tell_orphans() {
    if (const std::int64_t orphans = std::exchange(orphans_, 0); orphans > 0)
      scan_.damage.push_back(
          fmt::format("{}: {} frames tell what changed since one that is damaged: left out", name_, orphans));
  }

  std::optional<FrameHead> whole_frame(std::int64_t at) {
    const auto head = frame_head(window_.at(at, static_cast<std::int64_t>(kFrameHeadSize)));
    if (!head) return std::nullopt;
    const auto size = static_cast<std::int64_t>(head->size);
    if (at + size > window_.size()) return std::nullopt;
    effort_ -= size;
    const std::string_view bytes = window_.at(at, size);
    return bytes.size() == head->size && frame_is_whole(bytes) ? head : std::nullopt;
  }

  // The offset of the next whole frame, or the end of the file.
  std::int64_t find_next(std::int64_t at) {
    while (at < window_.size() && effort_ > 0) {
      const std::string_view bytes = window_.at(at, kWindow);
      const std::size_t found = bytes.find(kFrameMagic);
      if (bytes.size() < kFrameMagic.size()) break;
      if (found == std::string_view::npos) {
        at += static_cast<std::int64_t>(bytes.size() - kFrameMagic.size() + 1);
        continue;
      }
      at += static_cast<std::int64_t>(found);
      if (whole_frame(at)) return at;
      ++at;
    }
    return window_.size();
  }

  void tell_damage(std::int64_t from, std::int64_t to) {
    if (to < window_.size()) {
      scan_.damage.push_back(fmt::format("{}: byte {}: {} bytes are damaged and left out", name_, from, to - from));
    } else {
      scan_.damage.push_back(
          fmt::format("{}: byte {}: the recording breaks off; the last {} bytes are left out", name_, from, to - from));
    }
  }

  Window window_;
  std::string name_;
  std::int64_t effort_;
  bool chained_ = false;      // the frame before is there
  std::int64_t orphans_ = 0;  // differences since damage
  PartScan scan_;
};

}  // namespace

std::string part_name(const std::string& path, int age) {
  return age == 0 ? path : fmt::format("{}.{}", path, age);
}

std::string encode_part_head(const PartHead& head) {
  std::string bytes(kMagic);
  put(bytes, kVersion, 8);
  put(bytes, head.recording, 8);
  put(bytes, head.number, 8);
  put(bytes, static_cast<std::uint64_t>(head.made.nanoseconds), 8);
  put(bytes, 0, 4);
  put(bytes, crc32c(bytes), 4);
  return bytes;
}

Result<PartHead> read_part_head(const ByteSource& file) {
  std::string bytes(static_cast<std::size_t>(kPartHeadSize), '\0');
  const std::size_t got = GW_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
  const Location where{file.name(), std::nullopt, std::nullopt};
  if (got < bytes.size() || !bytes.starts_with(kMagic))
    return fail_at(ErrorCode::bad_input, where, "not a recording of gpuwright");
  if (const std::uint64_t version = get(bytes, 8, 1); version > kVersion)
    return fail_at(ErrorCode::unsupported, where,
                   fmt::format("a recording in format {}, newer than {}, the newest known here", version, kVersion),
                   "use a newer gpuwright");
  const std::size_t sum_at = bytes.size() - 4;
  if (crc32c(std::string_view(bytes).substr(0, sum_at)) != get(bytes, sum_at, 4))
    return fail_at(ErrorCode::bad_input, where, "the head of the recording is damaged");
  return PartHead{get(bytes, 16, 8), get(bytes, 24, 8), UnixTime{static_cast<std::int64_t>(get(bytes, 32, 8))}};
}

Result<PartScan> scan_part(const ByteSource& file) {
  return Scanner(file).scan();
}

Result<PartReader> PartReader::open(std::unique_ptr<ByteSource> file) {
  const PartHead head = GW_TRY(read_part_head(*file));
  PartScan scan = GW_TRY(scan_part(*file));
  return PartReader(std::move(file), head, std::move(scan));
}

Result<std::string> PartReader::bytes_at(std::size_t index) const {
  const std::int64_t offset = scan_.frames[index].offset;
  Window window(*file_, 0);
  const auto head = frame_head(window.at(offset, static_cast<std::int64_t>(kFrameHeadSize)));
  std::string bytes(head ? window.at(offset, static_cast<std::int64_t>(head->size)) : std::string_view());
  if (window.failure()) return tl::unexpected<Error>(*window.failure());
  return bytes;
}

Result<Snapshot> PartReader::read(std::size_t index) {
  std::size_t first = index;
  while (!scan_.frames[first].is_whole && latest_index_ != first - 1) --first;
  for (std::size_t at = first; at <= index; ++at) {
    std::string bytes = GW_TRY(bytes_at(at));
    if (!scan_.frames[at].is_whole) bytes = GW_TRY(apply_difference(bytes, latest_, file_->name()));
    latest_ = std::move(bytes);
    latest_index_ = at;
  }
  auto decoded = decode_frame(latest_, file_->name());
  if (decoded) return std::move(decoded->snapshot);
  decoded.error().where.byte = scan_.frames[index].offset;
  return tl::unexpected<Error>(std::move(decoded.error()));
}

}  // namespace gpuwright::device

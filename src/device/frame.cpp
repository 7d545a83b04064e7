#include "device/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "device/fields.h"
#include "device/frame_bytes.h"
#include "device/frame_codec.h"

namespace gpuwright::device {
namespace {

constexpr std::string_view kMagic = "GWFR";
constexpr std::uint8_t kVersion = 1;

// More than any host has; a frame that says more is damaged.
constexpr std::size_t kMostGpus = 1024;
constexpr std::size_t kMostProcesses = 65536;
constexpr std::size_t kMostPerGpu = 256;  // Xids, instances, links
constexpr std::size_t kMostSources = 64;  // and drivers

void put_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}
std::uint64_t little_endian(std::string_view bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)])} << (8 * i);
  return value;
}

// ---------------------------------------------------------------- the fields, in their order for ever: append only

template <class Codec>
auto readings_into(Codec& codec) {
  return [&codec](std::string_view, auto& reading) { codec(reading); };
}

template <class Codec, class AnyXid>
void fields_of_xid(Codec& codec, AnyXid& xid) {
  codec(xid.code);
  codec(xid.time);
  codec(xid.count);
}

template <class Codec, class AnyInstance>
void fields_of_instance(Codec& codec, AnyInstance& instance) {
  codec(instance.gpu_instance);
  codec(instance.compute_instance);
  codec.block([&] { for_each_reading_of_instance(instance, readings_into(codec)); });
}

template <class Codec, class AnyLink>
void fields_of_link(Codec& codec, AnyLink& link) {
  codec(link.number);
  codec(link.active);
  codec(link.remote);
}

template <class Codec, class AnyGpu>
void fields_of_gpu(Codec& codec, AnyGpu& gpu) {
  codec(gpu.index);
  codec(gpu.vendor_index);
  codec.choice(gpu.vendor, Vendor::huawei, Vendor::unknown);
  codec(gpu.source);
  codec.choice(gpu.state, State::failed, State::failed);
  codec(gpu.state_detail);
  codec(gpu.unified_memory);
  codec(gpu.catalog_id);
  codec.block([&] { for_each_reading_of_gpu(gpu, readings_into(codec)); });
  codec.list(gpu.xids, kMostPerGpu, [&codec](auto& xid) { fields_of_xid(codec, xid); });
  codec.list(gpu.mig_instances, kMostPerGpu, [&codec](auto& instance) { fields_of_instance(codec, instance); });
  codec.list(gpu.links, kMostPerGpu, [&codec](auto& link) { fields_of_link(codec, link); });
}

template <class Codec, class AnyProcess>
void fields_of_process(Codec& codec, AnyProcess& process) {
  codec(process.gpu);
  codec(process.pid);
  codec(process.kind);
  codec.block([&] { for_each_reading_of_process(process, readings_into(codec)); });
}

template <class Codec, class AnyDriver>
void fields_of_driver(Codec& codec, AnyDriver& driver) {
  codec(driver.source);
  codec(driver.version);
  codec(driver.library_version);
  codec(driver.cuda_version);
}

template <class Codec, class AnyReport>
void fields_of_report(Codec& codec, AnyReport& report) {
  codec(report.source);
  codec.choice(report.outcome, SourceReport::Outcome::failed, SourceReport::Outcome::failed);
  codec(report.text);
  codec(report.hint);
}

// `most_processes`: a writer's way to stay within kLargestPayload.
template <class Codec, class AnySnapshot>
void fields_of_snapshot(Codec& codec, AnySnapshot& snapshot, std::size_t most_processes) {
  codec(snapshot.hostname);
  codec(snapshot.simulated);
  codec(snapshot.monotonic_ns);
  codec.list(snapshot.drivers, kMostSources, [&codec](auto& driver) { fields_of_driver(codec, driver); });
  codec.list(snapshot.gpus, kMostGpus, [&codec](auto& gpu) { fields_of_gpu(codec, gpu); });
  codec.list(snapshot.processes, most_processes, [&codec](auto& process) { fields_of_process(codec, process); });
  codec.list(snapshot.sources, kMostSources, [&codec](auto& report) { fields_of_report(codec, report); });
  codec(snapshot.vendor_calls);
}

std::string payload_of(const Snapshot& snapshot) {
  std::size_t most_processes = kMostProcesses;
  while (true) {
    Encoder encoder;
    fields_of_snapshot(encoder, snapshot, most_processes);
    if (encoder.bytes().size() <= kLargestPayload || most_processes == 0) return std::move(encoder.bytes());
    most_processes = std::min(most_processes, snapshot.processes.size()) / 2;
  }
}

tl::unexpected<Error> damaged(std::string_view name, std::string what) {
  return fail_at(ErrorCode::bad_input, {std::string(name), std::nullopt, std::nullopt}, std::move(what));
}

}  // namespace

std::string encode_frame(const Snapshot& snapshot) {
  return seal_frame(snapshot.time, 0, payload_of(snapshot));
}

std::string seal_frame(UnixTime time, std::uint8_t flags, std::string_view payload) {
  std::string frame;
  frame.reserve(kFrameHeadSize + payload.size() + kFrameTailSize);
  frame.append(kMagic);
  put_little_endian(frame, kVersion, 1);
  put_little_endian(frame, flags, 3);
  put_little_endian(frame, static_cast<std::uint64_t>(time.nanoseconds), 8);
  put_little_endian(frame, payload.size(), 4);
  frame.append(payload);
  put_little_endian(frame, crc32c(frame), 4);
  return frame;
}

UnixTime frame_time(std::string_view frame) {
  return {static_cast<std::int64_t>(little_endian(frame, 8, 8))};
}

std::optional<FrameHead> frame_head(std::string_view bytes) {
  if (bytes.size() < kFrameHeadSize || !bytes.starts_with(kMagic)) return std::nullopt;
  const std::size_t payload = little_endian(bytes, 16, 4);
  if (payload > kLargestPayload) return std::nullopt;
  return FrameHead{kFrameHeadSize + payload + kFrameTailSize, frame_time(bytes)};
}

bool frame_is_whole(std::string_view frame) {
  if (frame.size() < kFrameHeadSize + kFrameTailSize) return false;
  const std::size_t end = frame.size() - kFrameTailSize;
  return crc32c(frame.substr(0, end)) == little_endian(frame, end, 4);
}

Result<DecodedFrame> decode_frame(std::string_view bytes, std::string_view name) {
  const auto head = frame_head(bytes);
  if (!head) return damaged(name, "no frame of a recording starts here");
  if (head->size > bytes.size())
    return damaged(name, fmt::format("the frame of {} bytes is cut off after {}", head->size, bytes.size()));
  const std::string_view frame = bytes.substr(0, head->size);
  if (!frame_is_whole(frame)) return damaged(name, "the frame's checksum is wrong: it is damaged");
  if (const auto version = static_cast<unsigned char>(bytes[4]); version > kVersion)
    return fail_at(ErrorCode::unsupported, {std::string(name), std::nullopt, std::nullopt},
                   fmt::format("written in format {}, newer than {}, the newest known here", version, kVersion),
                   "use a newer gpuwright");
  if (static_cast<unsigned char>(bytes[kFlagsAt]) != 0)
    return damaged(name, "the frame tells only what changed since the one before");
  DecodedFrame decoded;
  Decoder decoder(frame.substr(kFrameHeadSize, head->size - kFrameHeadSize - kFrameTailSize));
  fields_of_snapshot(decoder, decoded.snapshot, kMostProcesses);
  if (decoder.failed()) return damaged(name, "the frame's checksum is right, but its contents are not");
  decoded.snapshot.time = head->time;
  decoded.size = head->size;
  return decoded;
}

}  // namespace gpuwright::device

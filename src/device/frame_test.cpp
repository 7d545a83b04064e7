#include "device/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/crc32c.h"
#include "device/fields.h"

namespace gpuwright::device {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// Writes frames by the words of docs/recording.md, without the code that is tested.
std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}
std::string text(const std::string& value) {
  return static_cast<char>(value.size()) + value;
}
std::string block(const std::string& contents) {
  EXPECT_LT(contents.size(), 128u);
  return static_cast<char>(contents.size()) + contents;
}
std::string frame_of(const std::string& payload, int version = 1, std::uint64_t time = 0) {
  std::string frame = "GWFR" + little_endian(static_cast<std::uint64_t>(version), 4) + little_endian(time, 8) +
                      little_endian(payload.size(), 4) + payload;
  return frame + little_endian(crc32c(frame), 4);
}
// hostname "h", not simulated, monotonic 0, no driver, the given GPUs, no process, no source, 7 calls.
std::string payload_with_gpus(const std::string& gpus) {
  return text("h") + text("") + '\0' + '\0' + gpus + '\0' + '\0' + '\x0e';
}
// index 0, vendor index 3, NVIDIA, "nvml", ok, no detail, memory of its own, no id of the catalogue.
std::string gpu_start() {
  return std::string("\0\x06\x01", 3) + text("nvml") + std::string("\0\0\0\0", 4);
}

Snapshot snapshot_with_everything() {
  Snapshot snapshot;
  snapshot.hostname = "node7";
  snapshot.simulated = "8xh100";
  snapshot.time = UnixTime{1'780'000'000'123'456'789};
  snapshot.monotonic_ns = 77;
  snapshot.drivers.push_back({"nvml", std::string("580.95.05"), Why::not_supported, std::string("13.0")});
  snapshot.sources.push_back({"amdgpu", SourceReport::Outcome::failed, "no card", "load amdgpu"});
  snapshot.vendor_calls = 184;
  Gpu gpu;
  gpu.vendor_index = 1;
  gpu.vendor = Vendor::nvidia;
  gpu.source = "nvml";
  gpu.state = State::needs_reset;
  gpu.state_detail = "Xid 79";
  gpu.unified_memory = true;
  gpu.catalog_id = "h100-sxm-80gb";
  int number = 0;
  for_each_reading_of_gpu(gpu, [&number](std::string_view name, auto& reading) {
    using Value = std::remove_cvref_t<decltype(*reading)>;
    ++number;
    if constexpr (std::is_same_v<Value, ThrottleReasons>)
      reading = ThrottleReasons{throttle::kSoftwareThermal | throttle::kIdle};
    else if constexpr (std::is_same_v<Value, std::string>)
      reading = std::string(name);
    else if constexpr (std::is_same_v<Value, bool>)
      reading = number % 2 == 0;
    else if constexpr (requires { Value{1.5}; })
      reading = Value{number / 7.0};
    else
      reading = Value{std::int64_t{number} * 1'000'003};
  });
  gpu.memory_clock = Why::asleep;
  gpu.xids.push_back({79, UnixTime{5}, 2});
  gpu.mig_instances.push_back({3, 0, std::string("MIG-1"), std::string("1g.10gb"), Bytes{1 << 30}, Bytes{-1}, Why::lost,
                               std::int64_t{16}, Ratio{0.25}, Ratio{1}, Ratio{0}, Why::needs_two_samples});
  gpu.links.push_back({4, true, std::string("NVSwitch")});
  snapshot.gpus = {Gpu{}, gpu};
  Process process;
  process.gpu = 1;
  process.pid = 4'000'000'000;
  process.kind = process_kind::kCompute | process_kind::kMps;
  process.user = std::string("ada");
  process.memory = Bytes{std::numeric_limits<std::int64_t>::max()};
  process.started = UnixTime{std::numeric_limits<std::int64_t>::min()};
  process.pid_here = Why::not_visible;
  snapshot.processes = {process};
  return snapshot;
}

TEST(Frame, WhatIsWrittenIsReadAgain) {
  const Snapshot snapshot = snapshot_with_everything();
  const std::string bytes = encode_frame(snapshot);
  const auto decoded = decode_frame(bytes + "what follows", "record");
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->size, bytes.size());
  EXPECT_TRUE(decoded->snapshot == snapshot);
}

TEST(Frame, IsAsTheDocumentationHasIt) {
  // name "A", uuid lost, then readings that are not written: an older writer knew only two.
  const std::string readings = block("\x80" + text("A") + "\x08");
  const std::string payload = payload_with_gpus('\x01' + block(gpu_start() + readings));
  const auto decoded = decode_frame(frame_of(payload, 1, 42), "record");
  ASSERT_TRUE(decoded) << decoded.error().message();
  const Snapshot& snapshot = decoded->snapshot;
  EXPECT_EQ(snapshot.hostname, "h");
  EXPECT_EQ(snapshot.time.nanoseconds, 42);
  EXPECT_EQ(snapshot.vendor_calls, 7);
  ASSERT_THAT(snapshot.gpus, SizeIs(1));
  EXPECT_EQ(snapshot.gpus[0].vendor_index, 3);
  EXPECT_EQ(snapshot.gpus[0].vendor, Vendor::nvidia);
  EXPECT_EQ(snapshot.gpus[0].name, std::string("A"));
  EXPECT_EQ(snapshot.gpus[0].uuid, Why::lost);
  EXPECT_EQ(snapshot.gpus[0].serial, Why::not_read);
}

TEST(Frame, NumbersAreAsTheDocumentationHasThem) {
  Snapshot snapshot;
  snapshot.hostname = "h";
  Gpu gpu;
  gpu.power = Watts{250.5};
  snapshot.gpus.push_back(gpu);
  EXPECT_THAT(encode_frame(snapshot), HasSubstr(std::string("\x81\x88\xca\x1e", 4)));  // 250500 in zigzag is 501000
  snapshot.gpus[0].power = Watts{1.0 / 3};
  EXPECT_THAT(encode_frame(snapshot), HasSubstr("\x80\x55\x55\x55\x55\x55\x55\xd5\x3f"));  // IEEE 754
}

TEST(Frame, ReadingsThatANewerWriterKnewAreSkipped) {
  Snapshot snapshot;
  snapshot.gpus.emplace_back();
  std::string known;
  for_each_reading_of_gpu(snapshot.gpus[0], [&known](std::string_view, const auto&) { known.push_back('\x01'); });
  ASSERT_LT(known.size(), 100u);
  const std::string newer = block(known + "\x80\x02 and more");
  const std::string gpu = block(gpu_start() + newer + '\0' + '\0' + '\0' + "a new field");
  const auto decoded = decode_frame(frame_of(payload_with_gpus('\x01' + gpu) + "another"), "record");
  ASSERT_TRUE(decoded) << decoded.error().message();
  ASSERT_THAT(decoded->snapshot.gpus, SizeIs(1));
  EXPECT_EQ(decoded->snapshot.gpus[0].last_xid, Why::not_supported);
  EXPECT_EQ(decoded->snapshot.vendor_calls, 7);
}

TEST(Frame, WordsOfANewerWriterAreTakenForTheNearest) {
  const std::string gpu = std::string("\0\0\xC8", 3) + text("new") + "\xC8" + std::string("\0\0\0", 3) + block("\x7f");
  const auto decoded = decode_frame(frame_of(payload_with_gpus('\x01' + block(gpu))), "record");
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->snapshot.gpus[0].vendor, Vendor::unknown);
  EXPECT_EQ(decoded->snapshot.gpus[0].state, State::failed);
  EXPECT_EQ(decoded->snapshot.gpus[0].name, Why::failed);
}

TEST(Frame, ANewerFormatSaysSo) {
  const auto decoded = decode_frame(frame_of(payload_with_gpus(std::string(1, '\0')), 2), "record");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::unsupported);
  EXPECT_THAT(decoded.error().message(), HasSubstr("newer"));
}

TEST(Frame, AnUnknownReadingTakesAByte) {
  Snapshot snapshot;
  snapshot.gpus.emplace_back();
  std::size_t readings = 0;
  for_each_reading_of_gpu(snapshot.gpus[0], [&readings](std::string_view, const auto&) { ++readings; });
  EXPECT_LE(encode_frame(snapshot).size(), kFrameHeadSize + kFrameTailSize + readings + 24);
}

TEST(Frame, AnyDamagedOrMissingByteIsNoticed) {
  const std::string bytes = encode_frame(snapshot_with_everything());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_FALSE(decode_frame(std::string_view(bytes).substr(0, i), "record")) << i;
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    ASSERT_FALSE(decode_frame(flipped, "record")) << i;
  }
}

TEST(Frame, LengthsThatLieAreRefused) {
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  for (const std::string& payload :
       {huge + "h", payload_with_gpus(huge), text("h") + text("") + '\0' + huge, payload_with_gpus('\x01' + huge),
        text("h") + text("") + huge + huge, payload_with_gpus("\x02" + block("")).substr(0, 6)}) {
    const auto decoded = decode_frame(frame_of(payload), "record");
    ASSERT_FALSE(decoded);
    EXPECT_THAT(decoded.error().message(), HasSubstr("record: "));
  }
  std::string too_long = frame_of("x");
  too_long.replace(16, 4, "\xff\xff\xff\xff");
  EXPECT_FALSE(decode_frame(too_long, "record"));
}

TEST(Frame, WhatIsNoNumberIsImplausible) {
  Snapshot snapshot;
  snapshot.gpus.emplace_back();
  snapshot.gpus[0].power = Watts{std::numeric_limits<double>::quiet_NaN()};
  snapshot.gpus[0].fan = Ratio{std::numeric_limits<double>::infinity()};
  const auto decoded = decode_frame(encode_frame(snapshot), "record");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->snapshot.gpus[0].power, Why::implausible);
  EXPECT_EQ(decoded->snapshot.gpus[0].fan, Why::implausible);
}

TEST(Frame, ProcessesBeyondItsSizeAreLeftOut) {
  Snapshot snapshot;
  Process process;
  process.command = std::string(100'000, 'x');
  snapshot.processes.assign(3000, process);
  snapshot.vendor_calls = 5;
  const std::string bytes = encode_frame(snapshot);
  EXPECT_LE(bytes.size(), kLargestPayload + kFrameHeadSize + kFrameTailSize);
  const auto decoded = decode_frame(bytes, "record");
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->snapshot.vendor_calls, 5);
  EXPECT_FALSE(decoded->snapshot.processes.empty());
  EXPECT_THAT(*decoded->snapshot.processes[0].command, SizeIs(16384));
}

}  // namespace
}  // namespace gpuwright::device

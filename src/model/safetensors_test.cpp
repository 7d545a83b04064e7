#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/testing/safetensors_bytes.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

using ::testing::HasSubstr;
using testing::safetensors_bytes;

Result<WeightsFile> read(const std::string& header, std::size_t data, std::optional<std::uint64_t> length = {}) {
  return read_safetensors(*bytes_in_memory(safetensors_bytes(header, data, length), "m.safetensors"));
}

void expect_refused(const std::string& header, std::size_t data, const std::string& words) {
  const auto result = read(header, data);
  ASSERT_FALSE(result) << header;
  EXPECT_EQ(result.error().code, ErrorCode::bad_input);
  EXPECT_THAT(result.error().message(), HasSubstr(words)) << header;
  EXPECT_THAT(result.error().message(), HasSubstr("m.safetensors"));
}

TEST(Safetensors, ReadsShapesDtypesAndSizes) {
  const auto file = read(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[3,4],"data_offsets":[0,24]},)"
      R"("b":{"data_offsets":[24,32],"shape":[],"dtype":"F64"},"c":{"dtype":"I8","shape":[2,3,5],"data_offsets":[32,62]}}   )",
      62);
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->tensors[0].name, "a");
  EXPECT_EQ(file->tensors[0].rows, 3);
  EXPECT_EQ(file->tensors[0].columns, 4);
  EXPECT_EQ(file->tensors[0].dtype, Dtype::bf16);
  EXPECT_EQ(file->tensors[1].rows * file->tensors[1].columns, 1);
  EXPECT_EQ(file->tensors[2].rows, 6);
  EXPECT_EQ(file->tensors[2].columns, 5);
  EXPECT_EQ(file->file_bytes - file->header_bytes, Bytes{62});
}

// Bits of each format: Dtype::bitsize in safetensors/src/tensor.rs 0.8.
TEST(Safetensors, ReadsEveryDtypeOfTheFormat) {
  const std::pair<const char*, int> kFormats[] = {
      {"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},
      {"F6_E2M3", 6}, {"I16", 16}, {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F6_E3M2", 6}, {"F32", 32}, {"F64", 64}, {"I64", 64},    {"U64", 64},    {"C64", 64}};
  for (const auto& [name, bits] : kFormats) {
    const int bytes = 8 * bits / 8;
    const std::string header = std::string(R"({"t":{"dtype":")") + name + R"(","shape":[8],"data_offsets":[0,)" +
                               std::to_string(bytes) + "]}}";
    const auto file = read(header, static_cast<std::size_t>(bytes));
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_NE(file->tensors[0].dtype, Dtype::unknown) << name;
    EXPECT_STREQ(file->tensors[0].format, name);
  }
}

TEST(Safetensors, TakesAnUnknownDtypeByItsExtent) {
  const auto file = read(R"({"t":{"dtype":"F3_NEW","shape":[8],"data_offsets":[0,3]}})", 3);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->tensors[0].dtype, Dtype::unknown);
  EXPECT_EQ(file->tensors[0].bytes, Bytes{3});
}

TEST(Safetensors, TakesOffsetsInAnyOrderAndEmptyTensors) {
  const auto file = read(
      R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]},"e":{"dtype":"F32","shape":[0,7],"data_offsets":[2,2]},)"
      R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
      6);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->tensors.size(), 3u);
}

TEST(Safetensors, RefusesWhatTheFormatForbids) {
  const std::string good = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  expect_refused("{" + good + "," + good + "}", 4, "comes twice");
  expect_refused("{" + good + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6, "overlaps 2 bytes");
  expect_refused("{" + good + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})", 10, "hole of 2 bytes");
  expect_refused("{" + good + "}", 5, "header describes 4 bytes");
  expect_refused("{" + good + "}", 3, "cut short");
  expect_refused("{" + good + "} x", 4, "follows the JSON object");
  expect_refused("{" + good + "}{}", 4, "follows the JSON object");
  expect_refused(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}})", 4, "need 5 bytes");
  expect_refused(R"({"a":{"dtype":"F4","shape":[7],"data_offsets":[0,4]}})", 4, "whole bytes");
  expect_refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4, "begin and an end");
  expect_refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,8]}})", 4, "two whole numbers");
  expect_refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[-4,0]}})", 4, "begin and an end");
  expect_refused(R"({"a":{"dtype":"U8","shape":[NaN],"data_offsets":[0,4]}})", 4, "not a size");
  expect_refused(R"({"a":{"dtype":"U8","shape":[4e0],"data_offsets":[0,4]}})", 4, "not a size");
  expect_refused(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,4]}})", 4, "not a size");
  expect_refused(R"({"a":{"dtype":"U8","shape":[9223372036854775807,2,2],"data_offsets":[0,4]}})", 4, "overflows");
  expect_refused(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,4]}})", 4, "overflows");
  expect_refused(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, "not a size");
  expect_refused(R"({"a":{"dtype":"U8","shape":[4]}})", 4, "lacks");
  expect_refused(R"({"a":7})", 4, "not an object");
  expect_refused(R"({"__metadata__":{"n":7}})", 0, "strings only");
  expect_refused(R"([1,2])", 0, "not a JSON object");
  expect_refused("{\"a\xff\":1}", 0, "not a JSON object");
  expect_refused("", 0, "not a JSON object");
  expect_refused("{\"" + std::string(5000, 'n') + R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4,
                 "a name of 5000 bytes");
}

TEST(Safetensors, RefusesImpossibleLengthsWithoutReadingThem) {
  for (const std::uint64_t length : {3ull, 100'000'001ull, 2'000'000'000ull, ~0ull, 1ull << 63}) {
    const auto file = read("{}", 0, length);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().where.byte, 0);
    EXPECT_THAT(file.error().message(), HasSubstr("the header claims " + std::to_string(length)));
  }
  for (const char* bytes : {"", "1234567"}) {
    const auto file = read_safetensors(*bytes_in_memory(bytes, "short"));
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().message(), HasSubstr("bytes long"));
  }
}

TEST(Safetensors, SaysThatAnLfsPointerIsNoFile) {
  const auto file = read_safetensors(
      *bytes_in_memory("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "m.safetensors"));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("git lfs pull"));
}

TEST(Safetensors, ErrorsNameTheByteOfTheTensor) {
  const std::string first = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)";
  const auto file = read(first + R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,8]}})", 8);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().where.byte, 8 + static_cast<std::int64_t>(first.size()) + 1);
}

}  // namespace
}  // namespace gpuwright::model

// Headers and indexes that were tampered with: each gives an answer or a clear error, in bounded memory and time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "model/load.h"
#include "model/testing/mutate.h"
#include "model/testing/safetensors_bytes.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

using ::testing::HasSubstr;
using testing::NamedTensor;
using testing::safetensors_bytes;
using testing::safetensors_of;
using testing::TemporaryFolder;

constexpr int kMutations = 1000;

std::int64_t peak_memory_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

const std::vector<NamedTensor>& sound_tensors() {
  static const std::vector<NamedTensor> kTensors = {{"model.embed_tokens.weight", "BF16", {100, 16}},
                                                    {"model.layers.0.self_attn.q_proj.weight", "BF16", {16, 16}},
                                                    {"model.layers.0.mlp.up_proj.weight", "F32", {32, 16}},
                                                    {"model.layers.0.mlp.up_proj.weight_scale", "F32", {}},
                                                    {"model.norm.weight", "F16", {16}}};
  return kTensors;
}

// What attackers and broken disks put in: numbers that overflow, brackets, other types, names out of the folder.
std::string mutated(std::string text, std::mt19937& random) {
  static const char* const kPieces[] = {"18446744073709551615",
                                        "9223372036854775807",
                                        "-1",
                                        "1e400",
                                        "NaN",
                                        "null",
                                        "\"",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        "\\u0000",
                                        "\xff",
                                        "[[[[[[[[",
                                        "\"../../etc/passwd.safetensors\"",
                                        "4294967296",
                                        "0",
                                        "\"U8\"",
                                        "\\"};
  const auto any = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); };
  for (std::size_t change = any(4) + 1; change > 0 && !text.empty(); --change) {
    const std::size_t at = any(text.size());
    switch (any(5)) {
      case 0:
        text[at] = static_cast<char>(any(256));
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(at, kPieces[any(std::size(kPieces))]);
        break;
      case 3:
        text.replace(at, any(24), kPieces[any(std::size(kPieces))]);
        break;
      default:
        text.insert(at, text.substr(any(text.size()), any(80)));
    }
  }
  return text;
}

TEST(SafetensorsHostile, AnswersOrRefusesAThousandMutatedHeaders) {
  std::mt19937 random(20240607);
  const std::string sound = safetensors_of(sound_tensors());
  int refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string bytes = mutated(sound, random);
    const auto file = read_safetensors(*bytes_in_memory(bytes, "m.safetensors"));
    if (!file) {
      ++refused;
      EXPECT_THAT(file.error().message(), HasSubstr("m.safetensors"));
      EXPECT_EQ(file.error().code, ErrorCode::bad_input);
      continue;
    }
    Bytes total;
    for (const StoredTensor& tensor : file->tensors) total += tensor.bytes;
    EXPECT_EQ(total + file->header_bytes, Bytes{static_cast<std::int64_t>(bytes.size())});
  }
  EXPECT_GT(refused, kMutations / 2);
}

TEST(SafetensorsHostile, AnswersOrRefusesAThousandMutatedHeaderTextsOfTrueLength) {
  std::mt19937 random(7);
  const std::string sound = safetensors_of(sound_tensors());
  const std::string header = sound.substr(8, sound.find("}}") + 2 - 8);
  int accepted = 0;
  for (int i = 0; i < kMutations; ++i) {
    const auto file =
        read_safetensors(*bytes_in_memory(safetensors_bytes(mutated(header, random), 3200 + 512 + 2048 + 4 + 32), "m"));
    EXPECT_TRUE(file || file.error().code == ErrorCode::bad_input) << file.error().message();
    accepted += file ? 1 : 0;
  }
  EXPECT_GT(accepted, kMutations / 100);  // the others are refused for what they say, not for being cut
}

TEST(SafetensorsHostile, AnswersOrRefusesAThousandMutatedIndexes) {
  std::mt19937 random(99);
  const TemporaryFolder folder;
  folder.write("a.safetensors", safetensors_of(sound_tensors()));
  std::string map;
  for (const NamedTensor& tensor : sound_tensors())
    map += (map.empty() ? "\"" : ",\"") + tensor.name + R"(":"a.safetensors")";
  const std::string sound = R"({"metadata":{"total_size":5796},"weight_map":{)" + map + "}}";
  const auto files = local_folder(folder.path());
  ASSERT_FALSE((folder.write("i.json", sound), !read_safetensors_index(*files, "i.json")));
  for (int i = 0; i < kMutations; ++i) {
    folder.write("i.json", mutated(sound, random));
    const auto weights = read_safetensors_index(*files, "i.json");
    EXPECT_TRUE(weights || weights.error().code != ErrorCode::internal) << weights.error().message();
  }
}

TEST(SafetensorsHostile, DoesNotBelieveHugeClaims) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", safetensors_bytes("{}", 0, 2'000'000'000));
  std::filesystem::resize_file(folder.path() + "/model.safetensors", std::uintmax_t{3} << 30);  // sparse
  folder.write("big.json", "{");
  std::filesystem::resize_file(folder.path() + "/big.json", std::uintmax_t{2} << 30);
  const std::int64_t before = peak_memory_kib();
  const auto model = load(folder.path() + "/model.safetensors");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message(), HasSubstr("claims 2000000000 bytes"));
  const auto index = read_safetensors_index(*local_folder(folder.path()), "big.json");
  ASSERT_FALSE(index);
  EXPECT_THAT(index.error().message(), HasSubstr("more than the"));
  EXPECT_LT(peak_memory_kib() - before, 50'000);
}

// The worst that fits the format's cap: 100 MB of brackets, and of names that differ in the last character only.
TEST(SafetensorsHostile, StaysBoundedAtTheCapOfTheFormat) {
  const double begin = testing::processor_seconds();
  EXPECT_FALSE(read_safetensors(*bytes_in_memory(safetensors_bytes(std::string(99'999'999, '[') + "]", 0), "m")));
  EXPECT_FALSE(read_safetensors(*bytes_in_memory(
      safetensors_bytes(R"({"a":{"shape":)" + std::string(50'000'000, '[') + std::string(49'999'900, ']') + "}}", 0),
      "m")));
  EXPECT_LT(testing::processor_seconds() - begin, 20 * testing::kSlowdown);
}

TEST(SafetensorsHostile, FindsADuplicateAmongManyNames) {
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i)
    header += "\"n" + std::to_string(i % 49'999) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  header.back() = '}';
  const auto file = read_safetensors(*bytes_in_memory(safetensors_bytes(header, 0), "m"));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("\"n0\": the name comes twice"));
}

TEST(SafetensorsHostile, RefusesPipesAndFolders) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/model.safetensors");
  EXPECT_FALSE(load(folder.path() + "/model.safetensors/"));
  ASSERT_EQ(::system(("mkfifo " + folder.path() + "/pipe.safetensors").c_str()), 0);
  const auto model = load(folder.path() + "/pipe.safetensors");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace gpuwright::model

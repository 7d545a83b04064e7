// GGUF as a file format: what is read, what is refused, and with which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "model/gguf/split.h"
#include "model/gguf/types.h"
#include "model/testing/gguf_builder.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::small_llama;

Result<Model> read(std::string bytes, const LoadOptions& options = {}) {
  return read_gguf(*bytes_in_memory(std::move(bytes), "dir/tiny.gguf"), nullptr, options);
}
std::string complaint(std::string bytes) {
  const auto model = read(std::move(bytes));
  return model ? "it was read" : model.error().message();
}

class Folder : public ModelFiles {
 public:
  std::map<std::string, std::string> files;
  const std::string& name() const override { return name_; }
  Result<std::vector<std::string>> list() const override {
    std::vector<std::string> names;
    for (const auto& [file, bytes] : files) names.push_back(file);
    return names;
  }
  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    const auto found = files.find(file);
    if (found == files.end()) return fail(ErrorCode::not_found, file + " is not there");
    return bytes_in_memory(found->second, name_ + "/" + file);
  }

 private:
  std::string name_ = "folder";
};

TEST(Gguf, ReadsASmallLlama) {
  const std::string bytes = small_llama().file();
  const auto model = read(bytes);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->name, "Tiny");
  EXPECT_EQ(model->architecture, "llama");
  EXPECT_EQ(model->family, "llama");
  EXPECT_EQ(model->weight_format, "F16");
  EXPECT_EQ(model->source, Source::gguf);
  EXPECT_EQ(model->hidden, 64);
  EXPECT_EQ(model->vocabulary, 4);
  EXPECT_EQ(model->context_length, 128);
  EXPECT_TRUE(model->tied_embeddings);
  EXPECT_TRUE(model->tensors_are_exact);
  ASSERT_EQ(model->layers.size(), 2u);
  const Layer& layer = model->layers[1];
  EXPECT_EQ(layer.attention.kind, AttentionKind::full);
  EXPECT_EQ(layer.attention.heads, 4);
  EXPECT_EQ(layer.attention.kv_heads, 2);
  EXPECT_EQ(layer.attention.key_dim, 16);
  EXPECT_EQ(layer.feed_forward.width, 96);
  EXPECT_TRUE(layer.feed_forward.gated);
  // 64*4 + 64 + 2 * (2*64 + 64*(64+32+32+64) + 3*64*96), by hand
  EXPECT_EQ(model->parameters(), 62016);
  EXPECT_EQ(model->file_bytes.count, static_cast<std::int64_t>(bytes.size()));
  EXPECT_EQ(model->assumptions, std::vector<std::string>{});
}

TEST(Gguf, ReadsVersion2AndBigEndianFilesAlike) {
  const auto reference = read(small_llama().file());
  for (const auto& [version, big_endian] : {std::pair(2u, false), std::pair(3u, true)}) {
    const auto model = read(small_llama(version, big_endian).file());
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->parameters(), reference->parameters());
    EXPECT_EQ(model->weight_bytes(), reference->weight_bytes());
    EXPECT_EQ(model->layers[0].attention.kv_heads, 2);
  }
}

TEST(Gguf, HeaderPaddingAndTensorsMakeUpTheFile) {
  const std::string bytes = small_llama().align(64).file();
  const auto shards = gguf::read_shards(*bytes_in_memory(bytes, "x.gguf"), nullptr, {});
  ASSERT_TRUE(shards) << shards.error().message();
  Bytes tensors;
  for (const StoredTensor& tensor : shards->weights.tensors) tensors += tensor.bytes;
  EXPECT_EQ(shards->header.alignment, 64);
  EXPECT_EQ((tensors + shards->weights.header_bytes).count, static_cast<std::int64_t>(bytes.size()));
}

// Block sizes: the table of ggml type traits, ggml/src/ggml.c. Bytes of 512 elements.
TEST(Gguf, KnowsEveryGgmlType) {
  const std::map<std::uint32_t, std::uint64_t> bytes_of_512 = {
      {0, 2048}, {1, 1024},  {2, 288},  {3, 320},  {6, 352},  {7, 384},   {8, 544},   {9, 576},   {10, 168},
      {11, 220}, {12, 288},  {13, 352}, {14, 420}, {15, 584}, {16, 132},  {17, 148},  {18, 196},  {19, 100},
      {20, 288}, {21, 220},  {22, 164}, {23, 272}, {24, 512}, {25, 1024}, {26, 2048}, {27, 4096}, {28, 4096},
      {29, 112}, {30, 1024}, {31, 288}, {32, 288}, {33, 288}, {34, 108},  {35, 132},  {36, 288},  {37, 288},
      {38, 288}, {39, 272},  {40, 288}, {41, 72},  {42, 144}};
  GgufBuilder builder;
  builder.text("general.architecture", "clip");
  for (const auto& [type, bytes] : bytes_of_512) builder.tensor("v." + std::to_string(type), {512}, type, bytes);
  const auto model = read(builder.file());
  ASSERT_TRUE(model) << model.error().message();
  std::size_t index = 0;
  for (const auto& [type, bytes] : bytes_of_512) {
    EXPECT_EQ(model->tensors[index].bytes.count, static_cast<std::int64_t>(bytes)) << "type " << type;
    EXPECT_NE(model->tensors[index++].dtype, Dtype::unknown) << "type " << type;
  }
}

TEST(Gguf, TakesUnknownTypesByTheirExtent) {
  GgufBuilder builder;
  builder.text("general.architecture", "clip")
      .tensor("v.a", {512}, 137, 300)
      .tensor("v.b", {512}, 0, 2048)
      .tensor("v.c", {256}, 138, 96);
  const auto model = read(builder.file());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->tensors[0].dtype, Dtype::unknown);
  EXPECT_EQ(model->tensors[0].bytes.count, 320);  // with its padding to 32
  EXPECT_EQ(model->tensors[1].bytes.count, 2048);
  EXPECT_EQ(model->tensors[2].bytes.count, 96);
  EXPECT_EQ(gguf::type_name(137), "type 137");
}

// Names: llama_model_ftype_name in src/llama-model-loader.cpp.
TEST(Gguf, NamesFileTypesAsPeopleDo) {
  EXPECT_EQ(gguf::file_type_name(15), "Q4_K_M");
  EXPECT_EQ(gguf::file_type_name(7), "Q8_0");
  EXPECT_EQ(gguf::file_type_name(30), "IQ4_XS");
  EXPECT_EQ(gguf::file_type_name(32), "BF16");
  EXPECT_EQ(gguf::file_type_name(38), "MXFP4_MOE");
  EXPECT_EQ(gguf::file_type_name(1024 + 18), "Q6_K");  // guessed
  EXPECT_EQ(gguf::file_type_name(5), "");
  EXPECT_EQ(gguf::file_type_name(-1), "");
}

TEST(Gguf, RefusesWhatIsNotGgufAndSaysWhatItIs) {
  EXPECT_THAT(complaint(""), HasSubstr("not a GGUF file"));
  EXPECT_THAT(complaint("PK\x03\x04 something else entirely"), HasSubstr("not a GGUF file"));
  EXPECT_THAT(complaint(std::string("tjgg\1\0\0\0", 8)), HasSubstr("before GGUF"));
  EXPECT_THAT(complaint(small_llama(1).file()), HasSubstr("version 1"));
  EXPECT_THAT(complaint(small_llama(9).file()), HasSubstr("version 9"));
}

TEST(Gguf, RefusesFilesCutOffAnywhere) {
  const std::string bytes = small_llama().file();
  const std::string header = small_llama().header();
  for (std::size_t length = 0; length < header.size(); length += 7)
    EXPECT_FALSE(read(bytes.substr(0, length))) << length;
  EXPECT_THAT(complaint(bytes.substr(0, bytes.size() - 1)), HasSubstr("not fully downloaded"));
  EXPECT_THAT(complaint(bytes.substr(0, header.size())), HasSubstr("tiny.gguf: byte"));
}

TEST(Gguf, RefusesAbsurdCounts) {
  EXPECT_THAT(complaint(small_llama().claim_tensors(1ull << 63).file()), HasSubstr("tensors"));
  EXPECT_THAT(complaint(small_llama().claim_entries(~0ull).file()), HasSubstr("metadata entries"));
  const std::string huge_string("\xf0\xff\xff\xff\xff\xff\xff\x7f", 8);
  EXPECT_FALSE(read(small_llama().raw("x", 8, huge_string).file()));
  EXPECT_FALSE(read(small_llama().raw("x", 9, std::string("\6\0\0\0", 4) + huge_string).file()));
  EXPECT_FALSE(read(small_llama().raw("x", 9, std::string("\10\0\0\0", 4) + huge_string).file()));
  EXPECT_THAT(complaint(small_llama().raw("x", 77, "1234").file()), HasSubstr("value type 77"));
}

TEST(Gguf, RefusesArraysNestedTooDeep) {
  std::string nested;
  for (int i = 0; i < 50; ++i) nested += std::string("\11\0\0\0\1\0\0\0\0\0\0\0", 12);
  EXPECT_THAT(complaint(small_llama().raw("x", 9, nested).file()), HasSubstr("deep"));
  const std::string two_deep("\11\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0ab", 26);
  EXPECT_TRUE(read(small_llama().raw("x", 9, two_deep).file()));
}

TEST(Gguf, RefusesBadTensorTables) {
  const auto with = [](std::uint64_t offset, std::vector<std::uint64_t> dimensions, std::uint32_t type) {
    return small_llama().tensor_at(offset, "bad", dimensions, type).file();
  };
  EXPECT_THAT(complaint(with(0, {64}, 0)), HasSubstr("overlaps"));
  const std::uint64_t end = small_llama().data_bytes();
  EXPECT_THAT(complaint(with(end + 5, {1}, 0)), HasSubstr("alignment"));
  EXPECT_THAT(complaint(with(1ull << 62, {1}, 0)), HasSubstr("beyond the file"));
  EXPECT_THAT(complaint(with(0, {1ull << 40, 1ull << 40}, 0)), HasSubstr("63 bits"));
  EXPECT_THAT(complaint(with(0, {0, 1ull << 62, 1ull << 62}, 0)), HasSubstr("no elements"));
  EXPECT_THAT(complaint(with(0, {1, 1, 1, 1, 1}, 0)), HasSubstr("5 dimensions"));
  EXPECT_THAT(complaint(with(end, {100}, 12)), HasSubstr("multiple of Q4_K's block of 256"));
  EXPECT_THAT(complaint(with(end, {1ull << 61}, 99)), HasSubstr("elements in"));
  EXPECT_THAT(complaint(small_llama().f32_tensor("output_norm.weight", {64}).file()), HasSubstr("there twice"));
  EXPECT_THAT(complaint(small_llama().u32("general.name", 1).file()), HasSubstr("there twice"));
  EXPECT_THAT(complaint(small_llama().align(48).file()), HasSubstr("power of two"));
}

TEST(Gguf, RefusesWhatIsNoModel) {
  GgufBuilder adapter;
  adapter.text("general.architecture", "llama").text("general.type", "adapter").f32_tensor("a", {4});
  EXPECT_THAT(complaint(adapter.file()), HasSubstr("adapter"));
  GgufBuilder vocabulary;
  vocabulary.text("general.architecture", "llama").text_array("tokenizer.ggml.tokens", {"a"});
  EXPECT_THAT(complaint(vocabulary.file()), HasSubstr("vocabulary"));
  GgufBuilder nameless;
  nameless.f32_tensor("a", {4});
  EXPECT_THAT(complaint(nameless.file()), HasSubstr("general.architecture"));
}

TEST(Gguf, UnknownArchitecturesNeedUpperBound) {
  GgufBuilder builder;
  builder.text("general.architecture", "new-thing")
      .u32("new-thing.block_count", 3)
      .u32("new-thing.embedding_length", 64)
      .u32("new-thing.attention.head_count", 4)
      .u32("new-thing.attention.sliding_window", 16)
      .f16_tensor("token_embd.weight", {64, 10})
      .f16_tensor("blk.0.attn_q.weight", {64, 64});
  const auto refused = read(builder.file());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("--upper-bound"));
  LoadOptions options;
  options.upper_bound = true;
  const auto model = read(builder.file(), options);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->upper_bound);
  ASSERT_EQ(model->layers.size(), 3u);
  for (const Layer& layer : model->layers) EXPECT_EQ(layer.attention.kind, AttentionKind::full);
  EXPECT_EQ(model->layers[2].attention.cached_elements_per_token(), 128);
  EXPECT_FALSE(model->assumptions.empty());
}

GgufBuilder shard(int number, int count, int tensors_of_all) {
  GgufBuilder builder;
  if (number == 1) builder = small_llama();
  builder.u16("split.no", static_cast<std::uint16_t>(number - 1))
      .u16("split.count", static_cast<std::uint16_t>(count))
      .i32("split.tensors.count", tensors_of_all);
  if (number > 1) builder.f32_tensor("extra." + std::to_string(number), {8});
  return builder;
}

struct SplitModel {
  Folder folder;
  Result<Model> read() const {
    const auto first = folder.open("m-00001-of-00003.gguf");
    return read_gguf(**first, &folder, {});
  }
};

SplitModel split_model() {
  SplitModel model;
  for (int i = 1; i <= 3; ++i)
    model.folder.files["m-0000" + std::to_string(i) + "-of-00003.gguf"] = shard(i, 3, 22).file();
  return model;
}

TEST(GgufSplit, ReadsAllShards) {
  const SplitModel split = split_model();
  const auto model = split.read();
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->tensors.size(), 22u);
  std::size_t bytes = 0;
  for (const auto& [name, file] : split.folder.files) bytes += file.size();
  EXPECT_EQ(model->file_bytes.count, static_cast<std::int64_t>(bytes));
}

TEST(GgufSplit, NamesEveryAbsentShard) {
  SplitModel split = split_model();
  split.folder.files.erase("m-00002-of-00003.gguf");
  split.folder.files.erase("m-00003-of-00003.gguf");
  const auto model = split.read();
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::not_found);
  EXPECT_THAT(model.error().message(), HasSubstr("m-00002-of-00003.gguf, m-00003-of-00003.gguf"));
}

TEST(GgufSplit, RefusesStrangersTwinsAndWrongTotals) {
  SplitModel split = split_model();
  split.folder.files["m-00003-of-00003.gguf"] = split.folder.files["m-00002-of-00003.gguf"];
  EXPECT_THAT(split.read().error().message(), HasSubstr("shard 2 of 3"));
  // The first shard once more in the place of the second: what a cyclic chain would be, if there were one.
  split.folder.files["m-00002-of-00003.gguf"] = split.folder.files["m-00001-of-00003.gguf"];
  EXPECT_THAT(split.read().error().message(), HasSubstr("shard 1 of 3"));
  split = split_model();
  split.folder.files["m-00002-of-00003.gguf"] = shard(2, 3, 22).f32_tensor("output_norm.weight", {64}).file();
  EXPECT_THAT(split.read().error().message(), HasSubstr("in two shards"));
  split = split_model();
  split.folder.files["m-00001-of-00003.gguf"] = shard(1, 3, 99).file();
  EXPECT_THAT(split.read().error().message(), HasSubstr("99"));
}

TEST(GgufSplit, WantsTheFirstShardUnderItsName) {
  const SplitModel split = split_model();
  const auto second = split.folder.open("m-00002-of-00003.gguf");
  EXPECT_THAT(read_gguf(**second, &split.folder, {}).error().message(), HasSubstr("name the first one"));
  const auto renamed = bytes_in_memory(shard(1, 3, 22).file(), "renamed.gguf");
  EXPECT_THAT(read_gguf(*renamed, &split.folder, {}).error().message(), HasSubstr("not named like one"));
  EXPECT_FALSE(gguf::parse_shard_name("model.gguf"));
  EXPECT_FALSE(gguf::parse_shard_name("m-00004-of-00003.gguf"));
  EXPECT_FALSE(gguf::parse_shard_name("m-0000x-of-00003.gguf"));
  EXPECT_EQ(gguf::parse_shard_name("a-b-00002-of-00163.gguf")->stem, "a-b");
}

TEST(Gguf, WithoutTensorsAndVocabularyItHoldsNothing) {
  EXPECT_THAT(complaint(GgufBuilder(3, true).file()), HasSubstr("holds no tensors"));
  EXPECT_THAT(complaint(GgufBuilder().text_array("tokenizer.ggml.tokens", {"a"}).file()),
              HasSubstr("holds a vocabulary"));
}

}  // namespace
}  // namespace gpuwright::model

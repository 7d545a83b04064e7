#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>

#include "model/load.h"
#include "model/testing/gguf_builder.h"
#include "model/testing/safetensors_bytes.h"

namespace gpuwright::model {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::NamedTensor;
using testing::safetensors_of;
using testing::TemporaryFolder;

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
  "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "vocab_size": 1000, "max_position_embeddings": 512, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";

std::vector<NamedTensor> layer(int number) {
  const std::string stem = "model.layers." + std::to_string(number) + ".";
  return {{stem + "self_attn.q_proj.weight", "BF16", {64, 64}},    {stem + "self_attn.k_proj.weight", "BF16", {32, 64}},
          {stem + "self_attn.v_proj.weight", "BF16", {32, 64}},    {stem + "self_attn.o_proj.weight", "BF16", {64, 64}},
          {stem + "mlp.gate_proj.weight", "BF16", {128, 64}},      {stem + "mlp.up_proj.weight", "BF16", {128, 64}},
          {stem + "mlp.down_proj.weight", "BF16", {64, 128}},      {stem + "input_layernorm.weight", "BF16", {64}},
          {stem + "post_attention_layernorm.weight", "BF16", {64}}};
}

// Per layer 64*64*2 + 32*64*2 + 3*64*128 + 2*64; twice that, two matrices of the vocabulary, the last norm.
constexpr std::int64_t kParameters = 2 * (8192 + 4096 + 24576 + 128) + 2 * 64000 + 64;

std::vector<NamedTensor> edges() {
  return {{"model.embed_tokens.weight", "BF16", {1000, 64}},
          {"model.norm.weight", "BF16", {64}},
          {"lm_head.weight", "BF16", {1000, 64}}};
}

std::vector<NamedTensor> joined(std::initializer_list<std::vector<NamedTensor>> parts) {
  std::vector<NamedTensor> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string index_of(const std::vector<std::pair<std::string, std::vector<NamedTensor>>>& shards, std::int64_t total) {
  std::string map;
  for (const auto& [file, tensors] : shards)
    for (const NamedTensor& tensor : tensors) map += (map.empty() ? "\"" : ",\"") + tensor.name + "\":\"" + file + "\"";
  return R"({"metadata":{"total_size":)" + std::to_string(total) + R"(},"weight_map":{)" + map + "}}";
}

std::string failure(const std::string& path, const LoadOptions& options = {}) {
  const auto model = load(path, options);
  return model ? "no error" : model.error().message();
}

TEST(Folder, PutsConfigAndOneFileTogether) {
  const TemporaryFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", safetensors_of(joined({edges(), layer(0), layer(1)})));
  for (const std::string& path : {folder.path(), folder.path() + "/model.safetensors"}) {
    const auto model = load(path);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->parameters(), kParameters);
    EXPECT_EQ(model->weight_bytes(), Bytes{2 * kParameters});
    EXPECT_EQ(model->layers.size(), 2u);
    EXPECT_TRUE(model->tensors_are_exact);
    EXPECT_EQ(model->source, Source::safetensors);
    EXPECT_EQ(model->weight_format, "BF16");
    EXPECT_THAT(model->assumptions, ::testing::IsEmpty());
  }
}

TEST(Folder, ReadsShardsByTheirIndex) {
  const TemporaryFolder folder;
  const auto first = joined({edges(), layer(0)});
  folder.write("config.json", kConfig);
  folder.write("model-00001-of-00002.safetensors", safetensors_of(first));
  folder.write("model-00002-of-00002.safetensors", safetensors_of(layer(1)));
  folder.write("model.safetensors.index.json",
               index_of({{"model-00001-of-00002.safetensors", first}, {"model-00002-of-00002.safetensors", layer(1)}},
                        2 * kParameters));
  for (const char* name : {"", "/model.safetensors.index.json", "/model-00002-of-00002.safetensors"}) {
    const auto model = load(folder.path() + name);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->parameters(), kParameters);
    EXPECT_THAT(model->assumptions, ::testing::IsEmpty());
  }
}

TEST(Folder, SaysWhereAnIndexAndItsShardsDisagree) {
  const TemporaryFolder folder;
  const auto one = joined({edges(), layer(0)});
  folder.write("config.json", kConfig);
  folder.write("a.safetensors", safetensors_of(one));
  const auto with_index = [&](const std::string& text) {
    folder.write("model.safetensors.index.json", text);
    return failure(folder.path());
  };
  EXPECT_THAT(with_index(index_of({{"a.safetensors", one}, {"b.safetensors", layer(1)}}, 1)),
              AllOf(HasSubstr("shard b.safetensors"), HasSubstr("missing")));
  EXPECT_THAT(with_index(index_of({{"a.safetensors", edges()}}, 1)),
              AllOf(HasSubstr("model.layers.0.self_attn.q_proj.weight"), HasSubstr("says nothing of it")));
  EXPECT_THAT(with_index(index_of({{"a.safetensors", joined({one, layer(1)})}}, 1)),
              AllOf(HasSubstr("model.layers.1.self_attn.q_proj.weight"), HasSubstr("no such tensor")));
  for (const char* name : {"../a.safetensors", "/etc/a.safetensors", "a/../../b.safetensors", "a.bin", "",
                           "://a.safetensors", "./a.safetensors", "model.safetensors.index.json"})
    EXPECT_THAT(with_index(index_of({{name, edges()}}, 1)), HasSubstr("not a .safetensors file of this folder"))
        << name;
  EXPECT_THAT(with_index(R"({"weight_map":{"a":"a.safetensors","a":"a.safetensors"}})"), HasSubstr("\"a\" twice"));
  EXPECT_THAT(with_index(R"({"weight_map":{"a":7}})"), HasSubstr("not a string"));
  EXPECT_THAT(with_index(R"({"weight_map":{}})"), HasSubstr("empty"));
  EXPECT_THAT(with_index(R"({"metadata":{}})"), HasSubstr("no weight_map"));
  EXPECT_THAT(with_index("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(with_index(R"({"weight_map":{"a":"a.safetensors")"), HasSubstr("not a JSON object"));
}

TEST(Folder, NotesAnIndexWhoseTotalIsWrong) {
  const TemporaryFolder folder;
  const auto all = joined({edges(), layer(0), layer(1)});
  folder.write("config.json", kConfig);
  folder.write("a.safetensors", safetensors_of(all));
  folder.write("model.safetensors.index.json", index_of({{"a.safetensors", all}}, 5));
  const auto model = load(folder.path());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(model->assumptions, Contains(HasSubstr("says the tensors take 5 bytes")));
}

TEST(Folder, CountsATiedHeadOnce) {
  const TemporaryFolder folder;
  std::string config = kConfig;
  config.replace(config.find("false"), 5, "true");
  folder.write("config.json", config);
  folder.write("model.safetensors", safetensors_of(joined({edges(), layer(0), layer(1)})));
  const auto model = load(folder.path());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->parameters(), kParameters - 64000);
  EXPECT_THAT(model->assumptions, Contains(HasSubstr("counted once")));
}

TEST(Folder, ChecksTheWeightsAgainstTheConfig) {
  const TemporaryFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", safetensors_of(joined({edges(), layer(0), layer(1), layer(2)})));
  EXPECT_THAT(failure(folder.path()), HasSubstr("describes 2 layers, but the weights have a layer 2"));
  folder.write("model.safetensors", safetensors_of(joined({edges(), layer(0)})));
  const auto model = load(folder.path());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(model->assumptions, Contains(HasSubstr("1 of the 2 layers")));
  folder.write("model.safetensors", safetensors_of({{"model.embed_tokens.weight", "BF16", {100, 64}}}));
  EXPECT_THAT(failure(folder.path()), HasSubstr("different models"));
}

TEST(Folder, DescribesWeightsWithoutAConfig) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", safetensors_of(edges()));
  const auto model = load(folder.path());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->layers.empty());
  EXPECT_EQ(model->parameters(), 128064);
  EXPECT_EQ(model->vocabulary, 1000);
  EXPECT_THAT(model->assumptions, Contains(HasSubstr("no config.json")));
}

TEST(Folder, SizesPicklesWithoutOpeningThem) {
  const TemporaryFolder folder;
  folder.write("pytorch_model.bin", std::string(2 * kParameters, '\x80'));
  EXPECT_THAT(failure(folder.path()), HasSubstr("convert the weights to safetensors"));
  EXPECT_THAT(failure(folder.path() + "/pytorch_model.bin"), HasSubstr("pickle"));
  folder.write("config.json", kConfig);
  for (const char* name : {"", "/pytorch_model.bin"}) {
    const auto model = load(folder.path() + name);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->source, Source::pytorch_bin);
    EXPECT_EQ(model->file_bytes, Bytes{2 * kParameters});
    EXPECT_EQ(model->parameters(), kParameters);
  }
}

TEST(Folder, ExplainsAdaptersPipelinesAndEmptyFolders) {
  const TemporaryFolder folder;
  EXPECT_THAT(failure(folder.path()), HasSubstr("holds no model"));
  folder.write("adapter_model.safetensors", safetensors_of(edges()));
  folder.write("adapter_config.json", "{}");
  EXPECT_THAT(failure(folder.path()), HasSubstr("an adapter (LoRA)"));
  const TemporaryFolder pipeline;
  pipeline.write("model_index.json", "{}");
  EXPECT_THAT(failure(pipeline.path()), HasSubstr("diffusers pipeline"));
}

TEST(Folder, ListsQuantisationsToChooseFrom) {
  const TemporaryFolder folder;
  for (const char* name :
       {"x-Q4_K_M.gguf", "x-Q4_K_M_L.gguf", "x-UD-Q4_K_M.gguf", "Q8_0/x-Q8_0-00001-of-00002.gguf", "mmproj-F16.gguf"})
    folder.write(name, "not a GGUF");
  EXPECT_THAT(failure(folder.path()), AllOf(HasSubstr("holds 4 quantisations"), HasSubstr("--variant"),
                                            HasSubstr("x-UD-Q4_K_M"), ::testing::Not(HasSubstr("mmproj"))));
  LoadOptions options;
  options.variant = "q4_k_m";
  EXPECT_THAT(failure(folder.path(), options), HasSubstr("/x-Q4_K_M.gguf"));
  options.variant = "Q8_0";
  EXPECT_THAT(failure(folder.path(), options), HasSubstr("1 of the 2 parts"));
  options.variant = "Q5_0";
  EXPECT_THAT(failure(folder.path(), options), HasSubstr("no single quantisations named \"Q5_0\""));
}

TEST(Load, TellsPathsNamesAndSizesApart) {
  EXPECT_THAT(failure("/no/such/model.gguf"), HasSubstr("no such file"));
  EXPECT_THAT(failure("meta-llama/No-Such-Model-9"), HasSubstr("hf://meta-llama/No-Such-Model-9"));
  EXPECT_THAT(failure(""), HasSubstr("a model is needed"));
  const auto model = load("7B");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->source, Source::parameter_count);
}

TEST(Load, FindsTheSnapshotInAHubCache) {
  const TemporaryFolder cache;
  cache.write("models--o--n/refs/main", "abc123");
  cache.write("models--o--n/snapshots/abc123/config.json", kConfig);
  cache.write("models--o--n/snapshots/zzz999/nothing", "");
  const auto model = load(cache.path() + "/models--o--n");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->layers.size(), 2u);
}

class CurrentFolder {
 public:
  explicit CurrentFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  CurrentFolder(const CurrentFolder&) = delete;
  CurrentFolder& operator=(const CurrentFolder&) = delete;
  ~CurrentFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

TEST(Folder, DotsAreNoNames) {
  const TemporaryFolder folder;
  folder.write("tiny/config.json", kConfig);
  folder.write("tiny/model.safetensors", safetensors_of(joined({edges(), layer(0), layer(1)})));
  folder.write("tiny/other/part.safetensors", safetensors_of(edges()));
  folder.write("half/model-00001-of-00002.safetensors", safetensors_of(edges()));
  const CurrentFolder here(folder.path() + "/tiny");
  EXPECT_EQ(load(".").value().name, "tiny");
  EXPECT_EQ(load("model.safetensors").value().name, "tiny");
  EXPECT_EQ(load("config.json").value().name, "tiny");
  EXPECT_EQ(load("other/part.safetensors").value().name, "part");
  EXPECT_EQ(load("other/..").value().name, "tiny");
  const CurrentFolder half("../half");
  EXPECT_EQ(failure("."), "half: 1 of the 2 parts of model are here (download the missing parts)");
}

TEST(Folder, WhatCannotBeReachedIsNotCalledAbsent) {
  const TemporaryFolder folder;
  const std::string loop = folder.path() + "/loop.gguf";
  std::filesystem::create_symlink("loop.gguf", loop);
  EXPECT_EQ(failure(loop), loop + ": cannot reach: Too many levels of symbolic links");
  std::filesystem::create_symlink("loop", folder.path() + "/loop");
  std::filesystem::create_symlink("nowhere", folder.path() + "/away.gguf");
  EXPECT_THAT(failure(folder.path() + "/away.gguf"), HasSubstr("a symbolic link to something that is not there"));
  EXPECT_THAT(failure(folder.path() + "/absent.gguf"), HasSubstr("no such file or folder"));
  const CurrentFolder here(folder.path());
  EXPECT_THAT(failure("loop"), HasSubstr("Too many levels"));
  if (::geteuid() == 0) return;  // who may read everything
  folder.write("closed/model.gguf", "GGUF");
  std::filesystem::permissions("closed", std::filesystem::perms::none);
  EXPECT_THAT(failure("closed/model.gguf"), HasSubstr("Permission denied"));
  std::filesystem::permissions("closed", std::filesystem::perms::owner_all);
}

TEST(Folder, HeadsOfTheConfigMustBeThoseOfTheWeights) {
  const TemporaryFolder folder;
  std::string config = kConfig;
  config.replace(config.find("\"num_key_value_heads\": 2"), 24, "\"num_key_value_heads\": 4");
  folder.write("config.json", config);
  folder.write("model.safetensors", safetensors_of(joined({edges(), layer(0), layer(1)})));
  EXPECT_THAT(failure(folder.path()), AllOf(HasSubstr("layers.0.self_attn.k_proj.weight is 32 x 64"),
                                            HasSubstr("asks for 64 x 64"), HasSubstr("num_key_value_heads")));
}

TEST(Folder, FusedProjectionsAreComparedToo) {
  const TemporaryFolder folder;
  std::string config = kConfig;
  config.replace(config.find("LlamaForCausalLM"), 16, "Phi3ForCausalLM");
  config.replace(config.find("\"llama\""), 7, "\"phi3\"");
  folder.write("config.json", config);
  const auto fused = [](int number, std::int64_t rows) {
    const std::string stem = "model.layers." + std::to_string(number) + ".";
    return std::vector<NamedTensor>{{stem + "self_attn.qkv_proj.weight", "BF16", {rows, 64}},
                                    {stem + "self_attn.o_proj.weight", "BF16", {64, 64}},
                                    {stem + "mlp.gate_up_proj.weight", "BF16", {256, 64}},
                                    {stem + "mlp.down_proj.weight", "BF16", {64, 128}},
                                    {stem + "input_layernorm.weight", "BF16", {64}},
                                    {stem + "post_attention_layernorm.weight", "BF16", {64}}};
  };
  folder.write("model.safetensors", safetensors_of(joined({edges(), fused(0, 128), fused(1, 128)})));
  EXPECT_EQ(failure(folder.path()), "no error");
  folder.write("model.safetensors", safetensors_of(joined({edges(), fused(0, 128), fused(1, 192)})));
  EXPECT_THAT(failure(folder.path()), HasSubstr("layers.1.self_attn.qkv_proj.weight is 192 x 64"));
}

TEST(Folder, ByteOrderMarksAreSkipped) {
  const TemporaryFolder folder;
  folder.write("config.json", std::string("\xef\xbb\xbf") + kConfig);
  EXPECT_EQ(failure(folder.path()), "no error");
}

TEST(Folder, NumberFormatsAreText) {
  const TemporaryFolder folder;
  std::string config = kConfig;
  config.replace(config.find("\"bfloat16\""), 10, "5");
  folder.write("config.json", config);
  EXPECT_THAT(failure(folder.path()), HasSubstr("torch_dtype is 5, which is no text"));
}

TEST(Folder, AnIndexWithoutItsShardsLeavesTheConfig) {
  const TemporaryFolder folder;
  folder.write("config.json", kConfig);
  const auto all = joined({edges(), layer(0), layer(1)});
  const std::string index =
      index_of({{"a.safetensors", edges()}, {"b.safetensors", joined({layer(0), layer(1)})}}, 2 * kParameters);
  folder.write("model.safetensors.index.json", index);
  for (const char* name : {"", "/model.safetensors.index.json"}) {
    const auto model = load(folder.path() + name);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->parameters(), kParameters);
    EXPECT_FALSE(model->tensors_are_exact);
    EXPECT_THAT(model->assumptions, Contains(AllOf(HasSubstr("None of the 2 shards"), HasSubstr("the index says"))));
  }
  folder.write("a.safetensors", safetensors_of(edges()));
  EXPECT_THAT(failure(folder.path()), HasSubstr("shard b.safetensors"));
}

TEST(Folder, PicklesOfAnotherSizeAreNoted) {
  const TemporaryFolder folder;
  folder.write("config.json", kConfig);
  folder.write("pytorch_model.bin", "\x80\x02");
  for (const char* name : {"", "/pytorch_model.bin"})
    EXPECT_THAT(load(folder.path() + name).value().assumptions, Contains(HasSubstr("The .bin files take 2 B")));
}

TEST(Folder, AGgufMayBeCalledBin) {
  const TemporaryFolder folder;
  folder.write("weights.bin", testing::small_llama().file());
  EXPECT_EQ(load(folder.path() + "/weights.bin").value().source, Source::gguf);
}

}  // namespace
}  // namespace gpuwright::model

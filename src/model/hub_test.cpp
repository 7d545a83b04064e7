#include "model/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/http.h"
#include "base/testing/local_server.h"
#include "model/remote_file.h"
#include "model/testing/safetensors_bytes.h"

namespace gpuwright::model {
namespace {

using gpuwright::testing::LocalServer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::safetensors_of;
using testing::TemporaryFolder;

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
  "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
  "vocab_size": 20000, "max_position_embeddings": 512, "tie_word_embeddings": true, "torch_dtype": "float32"})";

// One megabyte and more of weights, so that reading headers only can be told from reading all.
std::string weights() {
  return safetensors_of({{"model.embed_tokens.weight", "F32", {20000, 64}},
                         {"model.layers.0.self_attn.q_proj.weight", "F32", {64, 64}},
                         {"model.layers.0.self_attn.k_proj.weight", "F32", {32, 64}},
                         {"model.layers.0.self_attn.v_proj.weight", "F32", {32, 64}},
                         {"model.layers.0.self_attn.o_proj.weight", "F32", {64, 64}},
                         {"model.layers.0.mlp.gate_proj.weight", "F32", {128, 64}},
                         {"model.layers.0.mlp.up_proj.weight", "F32", {128, 64}},
                         {"model.layers.0.mlp.down_proj.weight", "F32", {64, 128}},
                         {"model.layers.0.input_layernorm.weight", "F32", {64}},
                         {"model.layers.0.post_attention_layernorm.weight", "F32", {64}},
                         {"model.norm.weight", "F32", {64}}});
}
constexpr std::int64_t kParameters = 20000 * 64 + 8192 + 4096 + 24576 + 128 + 64;

class Hub : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    files_ = new TemporaryFolder;
    for (const std::string repository : {"org/tiny", "gated/tiny"}) {
      files_->write(repository + "/config.json", kConfig);
      files_->write(repository + "/model.safetensors", weights());
    }
    server_ = new LocalServer(files_->path());
  }
  static void TearDownTestSuite() {
    delete server_;
    delete files_;
  }
  void SetUp() override {
    if (!server_->running()) GTEST_SKIP() << "python3 is needed";
    set("HF_ENDPOINT", server_->url());
    set("XDG_CACHE_HOME", cache_.path());
    set("HF_HOME", cache_.path() + "/hf");
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE"}) ::unsetenv(name);
    server_log();
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  std::string server_log() const {
    const auto response = http_client("test")->get({server_->url("/log"), {}, {}, 1 << 20});
    return response ? response->body : "";
  }
  static std::string failure(const std::string& reference) {
    const auto model = load(reference);
    return model ? "no error" : model.error().message();
  }

  static TemporaryFolder* files_;
  static LocalServer* server_;
  TemporaryFolder cache_;
};
TemporaryFolder* Hub::files_ = nullptr;
LocalServer* Hub::server_ = nullptr;

TEST_F(Hub, ReadsARepositoryByItsHeaders) {
  const auto model = load("hf://org/tiny");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->name, "hf://org/tiny");
  EXPECT_EQ(model->parameters(), kParameters);
  EXPECT_TRUE(model->tensors_are_exact);
  const std::string log = server_log();
  EXPECT_THAT(log, HasSubstr("/cdn/org/tiny/model.safetensors?signature=secret range=bytes=0-131071 sent=131072"));
  EXPECT_THAT(log, HasSubstr("agent=gpuwright/"));
  EXPECT_THAT(log, Not(HasSubstr("passwd")));
}

TEST_F(Hub, KeepsWhatTravelled) {
  ASSERT_TRUE(load("hf://org/tiny"));
  server_log();
  ASSERT_TRUE(load("hf://org/tiny"));
  EXPECT_THAT(server_log(), AllOf(HasSubstr("/api/models/org/tiny"), Not(HasSubstr("/cdn/"))));
  set("HF_HUB_OFFLINE", "1");
  const auto model = load("hf://org/tiny");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->parameters(), kParameters);
  EXPECT_EQ(server_log(), "");
}

TEST_F(Hub, SaysThatItIsOffline) {
  set("HF_HUB_OFFLINE", "1");
  EXPECT_THAT(failure("hf://org/tiny"), HasSubstr("not in the cache, and HF_HUB_OFFLINE is set"));
}

TEST_F(Hub, ReadsOneFileAndLinks) {
  for (const char* path : {"hf://org/tiny/model.safetensors", "/org/tiny/blob/main/model.safetensors", "/org/tiny",
                           "/cdn/org/tiny/model.safetensors?signature=secret"}) {
    const std::string reference = *path == '/' ? server_->url(path) : path;
    const auto model = load(reference);
    ASSERT_TRUE(model) << reference << ": " << model.error().message();
    EXPECT_EQ(model->parameters(), kParameters) << reference;
    EXPECT_THAT(model->name, Not(HasSubstr("secret")));
  }
}

TEST_F(Hub, AsksForATokenAndSendsItToTheHubOnly) {
  EXPECT_THAT(failure("hf://gated/tiny"), AllOf(HasSubstr("restricted"), HasSubstr("HF_TOKEN")));
  set("HF_TOKEN", "good");
  ASSERT_TRUE(load("hf://gated/tiny"));
  const std::string log = server_log();
  EXPECT_THAT(log, HasSubstr("auth=Bearer good"));
  for (std::size_t at = log.find("/cdn/"); at != std::string::npos; at = log.find("/cdn/", at + 1))
    EXPECT_THAT(log.substr(at, log.find('\n', at) - at), HasSubstr("auth=- "));
  set("HF_TOKEN", "sesame");
  EXPECT_THAT(failure("hf://gated/other"), Not(HasSubstr("sesame")));
}

TEST_F(Hub, FindsTheTokenInItsFile) {
  cache_.write("hf/token", "good\n");
  ASSERT_TRUE(load("hf://gated/tiny"));
  cache_.write("hf/token", "go\r\nX-Evil: od");
  EXPECT_THAT(failure("hf://gated/other"), HasSubstr("401"));
}

TEST_F(Hub, NamesWhatDoesNotExist) {
  EXPECT_THAT(failure("hf://org/none"), HasSubstr("hf://org/none does not exist"));
  EXPECT_THAT(failure("hf://org/tiny@v9"), HasSubstr("hf://org/tiny@v9 does not exist"));
  EXPECT_THAT(failure("hf://org/tiny/other.gguf"), HasSubstr("no file \"other.gguf\""));
  EXPECT_THAT(failure(server_->url("/cdn/")), HasSubstr("names no file"));
}

TEST_F(Hub, ReadsLinksOfServersWithFaults) {
  EXPECT_THAT(failure(server_->url("/ignores-range")), HasSubstr("no model file that is known"));
  EXPECT_THAT(failure(server_->url("/lies-about-range")), HasSubstr("another byte range"));
  EXPECT_THAT(failure(server_->url("/endless")), HasSubstr("does not tell the size"));
  EXPECT_THAT(failure(server_->url("/empty")), HasSubstr("no model file that is known"));
  EXPECT_THAT(failure("http://example.com/model.gguf"), HasSubstr("not encrypted"));
  for (const char* nameless : {"https://", "https://a.example", "https://a.example/", "https://a.example/?x=/y"})
    EXPECT_THAT(failure(nameless), ::testing::AnyOf(HasSubstr("names no file"), HasSubstr("is no address")));
}

TEST_F(Hub, ReadsAnyPartOfARemoteFile) {
  RemoteAccess access;
  access.client = http_client("test");
  access.cache = std::make_shared<PrefixCache>("");
  const auto file = open_remote_file(access, server_->url("/file"), {});
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ((*file)->size(), 1 << 20);
  for (const std::int64_t offset : {0, 5, 131070, 200000, 1048570, 700000, 1048576, -1}) {
    std::array<char, 100> bytes{};
    const auto got = (*file)->read_at(offset, std::as_writable_bytes(std::span(bytes)));
    ASSERT_TRUE(got) << got.error().message();
    const auto expected = offset < 0 ? 0 : std::clamp<std::int64_t>((1 << 20) - offset, 0, 100);
    ASSERT_EQ(static_cast<std::int64_t>(*got), expected) << offset;
    for (std::size_t i = 0; i < *got; ++i)
      ASSERT_EQ(bytes[i], static_cast<char>((offset + static_cast<std::int64_t>(i)) * 7 % 251)) << offset;
  }
}

TEST(HubReference, ReadsNamesAndPages) {
  const char* hub = "https://huggingface.co";
  const auto plain = parse_hub_reference("hf://org/name@v1.0", hub);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repository, "org/name");
  EXPECT_EQ(plain->revision, "v1.0");
  EXPECT_EQ(parse_hub_reference("hf://gpt2", hub)->repository, "gpt2");
  EXPECT_EQ(parse_hub_reference("hf://o/n/a/b.gguf", hub)->file, "a/b.gguf");
  EXPECT_EQ(parse_hub_reference("hf://o/n@refs/pr/1", hub)->revision, "refs/pr/1");
  const auto page = parse_hub_reference("https://huggingface.co/o/n/blob/main/d/f.gguf?x=1", hub);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->repository + "|" + page->revision + "|" + page->file, "o/n|main|d/f.gguf");
  for (const char* wrong : {"hf://", "hf://../x", "hf://o/n@..", "hf://o/n@", "hf://o/n/../../etc", "hf://o n/x",
                            "hf://o/n%2f..", "hf://o/n\n"})
    EXPECT_FALSE(parse_hub_reference(wrong, hub)) << wrong;
}

TEST(PrefixCache, KeepsWithinItsBoundsAndSurvivesDamage) {
  const TemporaryFolder folder;
  const PrefixCache cache(folder.path() + "/c", 3000);
  for (int i = 0; i < 10; ++i) cache.keep("key" + std::to_string(i), {"v", 5000, std::string(900, 'x')});
  std::uintmax_t total = 0;
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/c")) {
    total += entry.file_size();
    last = entry.path();
  }
  EXPECT_LE(total, 3000u);
  EXPECT_GE(total, 1800u);
  std::filesystem::resize_file(last, 500);
  int found = 0;
  for (int i = 0; i < 10; ++i) found += cache.find("key" + std::to_string(i)) ? 1 : 0;
  EXPECT_GE(found, 1);
  EXPECT_LE(found, 2);
}

}  // namespace
}  // namespace gpuwright::model

#include "base/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/curl_abi.h"
#include "base/testing/local_server.h"

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#endif

namespace gpuwright {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class Http : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new testing::LocalServer; }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    if (!server_->running()) GTEST_SKIP() << "python3 is needed";
    HttpOptions options;
    options.first_pause = milliseconds(1);
    options.max_pause = milliseconds(20);
    options.stall_timeout = std::chrono::seconds(1);
    options.total_timeout = milliseconds(5000);
    client_ = http_client("gpuwright/test", options);
  }

  Result<HttpResponse> get(const std::string& path, std::optional<std::pair<std::int64_t, std::int64_t>> range = {},
                           std::int64_t max_bytes = 4 << 20, const std::string& token = {}) {
    return client_->get({server_->url(path), token, range, max_bytes});
  }
  std::string failure(const std::string& path, std::optional<std::pair<std::int64_t, std::int64_t>> range = {}) {
    const auto response = get(path, range);
    return response ? "status " + std::to_string(response->status) : response.error().message();
  }

  static testing::LocalServer* server_;
  std::unique_ptr<HttpClient> client_;
};
testing::LocalServer* Http::server_ = nullptr;

char content_at(std::int64_t offset) {
  return static_cast<char>(offset * 7 % 251);  // CONTENT of tests/hub_server.py
}

TEST_F(Http, GivesUpOnASilentServerInTime) {
  HttpOptions options;
  options.first_pause = milliseconds(1);
  options.connect_timeout = milliseconds(1000);
  options.stall_timeout = std::chrono::seconds(1);
  options.attempts = 50;
  options.patience = milliseconds(3000);
  const auto client = http_client("gpuwright/test", options);
  for (const char* path : {"/stalls", "/silent"}) {  // after its headers; before them
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(client->get({server_->url(path), {}, {}, 4 << 20}));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(4500)) << path;
  }
  const HttpOptions usual;
  EXPECT_LE(usual.patience, std::chrono::seconds(30));
}

TEST_F(Http, ReadsWholeFilesAndRanges) {
  const auto whole = get("/file");
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->status, 200);
  EXPECT_EQ(whole->body.size(), 1u << 20);
  EXPECT_EQ(whole->total_size, 1 << 20);
  EXPECT_EQ(whole->header("etag"), "\"v1\"");
  const auto part = get("/file", {{1000, 1999}});
  ASSERT_TRUE(part) << part.error().message();
  EXPECT_EQ(part->status, 206);
  ASSERT_EQ(part->body.size(), 1000u);
  EXPECT_EQ(part->body[0], content_at(1000));
  EXPECT_EQ(part->total_size, 1 << 20);
  const auto end = get("/file", {{(1 << 20) - 10, 1 << 21}});
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(end->body.size(), 10u);
  EXPECT_EQ(get("/file", {{1 << 20, 1 << 21}})->status, 416);
}

TEST_F(Http, StopsAtTheBytesItMayTake) {
  for (const char* path : {"/file", "/endless"}) {
    const auto response = get(path, {}, 5000);
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->body.size(), 5000u);
    EXPECT_FALSE(response->complete);
  }
}

TEST_F(Http, SeesThatAServerIgnoresRanges) {
  const auto response = get("/ignores-range", {{100, 199}});
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body.size(), 200u);
}

TEST_F(Http, RefusesAnswersThatContradictTheRange) {
  EXPECT_THAT(failure("/lies-about-range", {{0, 99}}), HasSubstr("another byte range"));
  EXPECT_THAT(failure("/no-content-range", {{0, 99}}), HasSubstr("another byte range"));
  EXPECT_THAT(failure("/short-range", {{0, 99}}), HasSubstr("shorter or longer"));
  EXPECT_THAT(failure("/lies-about-range"), HasSubstr("where the whole was asked for"));
}

TEST_F(Http, FollowsRedirectsWithinReason) {
  const auto response = get("/redirect", {}, 1000, "abc");
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->body, "Bearer abc");
  EXPECT_EQ(response->header("x-linked-etag"), "\"linked\"");
  EXPECT_THAT(failure("/redirect-loop"), HasSubstr("more than 8 redirects"));
  EXPECT_THAT(failure("/redirect-to-file"), HasSubstr("not https"));
}

TEST_F(Http, GivesATokenToNoOtherHost) {
  EXPECT_EQ(get("/authorization", {}, 1000, "abc")->body, "Bearer abc");
  EXPECT_EQ(get("/redirect-elsewhere", {}, 1000, "abc")->body, "none");
}

TEST_F(Http, TriesAgainWhenThatMayHelp) {
  EXPECT_EQ(get("/busy-twice")->body, "at last");
  EXPECT_EQ(get("/always-503")->status, 503);
  EXPECT_EQ(get("/cut-once")->body.size(), 2000u);
}

TEST_F(Http, GivesUpOnServersThatDoNotAnswer) {
  HttpOptions options;
  options.first_pause = milliseconds(1);
  options.total_timeout = milliseconds(300);
  options.attempts = 2;
  client_ = http_client("gpuwright/test", options);
  for (const char* path : {"/always-cut", "/stalls", "/no-http", "/endless-header"}) {
    const auto response = get(path);
    ASSERT_FALSE(response) << path;
    EXPECT_THAT(response.error().message(), HasSubstr(path));
  }
  const auto nobody = client_->get({"http://127.0.0.1:1/x", {}, {}, 10});
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::unavailable);
  EXPECT_THAT(nobody.error().message(), HasSubstr("is there a network?"));
}

TEST_F(Http, ServesManyThreads) {
  std::vector<std::jthread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k)
        if (const auto response = get("/file", {{k, 100 + k}}); response && response->body[0] == content_at(k)) ++good;
    });
  threads.clear();
  EXPECT_EQ(good, 40);
}

TEST(HttpUrl, ShowsNoSecrets) {
  EXPECT_EQ(without_secrets("https://a.b/c/d?X-Sig=s#f"), "https://a.b/c/d");
  EXPECT_EQ(without_secrets("https://user:pass@a.b/c"), "https://a.b/c");
  EXPECT_EQ(without_secrets("https://user:p@ss@a.b"), "https://a.b");
  EXPECT_EQ(without_secrets("https://a.b/c@d"), "https://a.b/c@d");
}

TEST(HttpUrl, TellsOrigins) {
  EXPECT_EQ(origin_of("https://Hub.Example/x"), "https://hub.example");
  EXPECT_EQ(origin_of("http://127.0.0.1:8080/x"), "http://127.0.0.1:8080");
  EXPECT_EQ(origin_of("https://hub.example@evil.example/"), "https://evil.example");
  EXPECT_EQ(origin_of("ftp://a.b/"), "");
  EXPECT_EQ(origin_of("https://"), "");
}

TEST(CurlAbi, MatchesTheHeader) {
#if __has_include(<curl/curl.h>)
  EXPECT_EQ(int{curl::kUrl}, int{CURLOPT_URL});
  EXPECT_EQ(int{curl::kWriteData}, int{CURLOPT_WRITEDATA});
  EXPECT_EQ(int{curl::kWriteFunction}, int{CURLOPT_WRITEFUNCTION});
  EXPECT_EQ(int{curl::kHeaderData}, int{CURLOPT_HEADERDATA});
  EXPECT_EQ(int{curl::kHeaderFunction}, int{CURLOPT_HEADERFUNCTION});
  EXPECT_EQ(int{curl::kHttpHeader}, int{CURLOPT_HTTPHEADER});
  EXPECT_EQ(int{curl::kUserAgent}, int{CURLOPT_USERAGENT});
  EXPECT_EQ(int{curl::kRange}, int{CURLOPT_RANGE});
  EXPECT_EQ(int{curl::kNoSignal}, int{CURLOPT_NOSIGNAL});
  EXPECT_EQ(int{curl::kFollowLocation}, int{CURLOPT_FOLLOWLOCATION});
  EXPECT_EQ(int{curl::kProtocols}, 181);  // CURLOPT_PROTOCOLS, deprecated but kept
  EXPECT_EQ(int{curl::kConnectTimeoutMs}, int{CURLOPT_CONNECTTIMEOUT_MS});
  EXPECT_EQ(int{curl::kTimeoutMs}, int{CURLOPT_TIMEOUT_MS});
  EXPECT_EQ(int{curl::kLowSpeedLimit}, int{CURLOPT_LOW_SPEED_LIMIT});
  EXPECT_EQ(int{curl::kLowSpeedTime}, int{CURLOPT_LOW_SPEED_TIME});
  EXPECT_EQ(int{curl::kSslVerifyPeer}, int{CURLOPT_SSL_VERIFYPEER});
  EXPECT_EQ(int{curl::kSslVerifyHost}, int{CURLOPT_SSL_VERIFYHOST});
  EXPECT_EQ(int{curl::kResponseCode}, int{CURLINFO_RESPONSE_CODE});
  EXPECT_EQ(int{curl::kRedirectUrl}, int{CURLINFO_REDIRECT_URL});
  EXPECT_EQ(long{curl::kHttp}, long{CURLPROTO_HTTP});
  EXPECT_EQ(long{curl::kHttps}, long{CURLPROTO_HTTPS});
  EXPECT_EQ(curl::kGlobalDefault, long{CURL_GLOBAL_DEFAULT});
  EXPECT_EQ(int{curl::kOk}, int{CURLE_OK});
  EXPECT_EQ(int{curl::kCouldntResolveProxy}, int{CURLE_COULDNT_RESOLVE_PROXY});
  EXPECT_EQ(int{curl::kCouldntResolveHost}, int{CURLE_COULDNT_RESOLVE_HOST});
  EXPECT_EQ(int{curl::kCouldntConnect}, int{CURLE_COULDNT_CONNECT});
  EXPECT_EQ(int{curl::kHttp2}, int{CURLE_HTTP2});
  EXPECT_EQ(int{curl::kPartialFile}, int{CURLE_PARTIAL_FILE});
  EXPECT_EQ(int{curl::kWriteError}, int{CURLE_WRITE_ERROR});
  EXPECT_EQ(int{curl::kTimedOut}, int{CURLE_OPERATION_TIMEDOUT});
  EXPECT_EQ(int{curl::kSslConnectError}, int{CURLE_SSL_CONNECT_ERROR});
  EXPECT_EQ(int{curl::kGotNothing}, int{CURLE_GOT_NOTHING});
  EXPECT_EQ(int{curl::kSendError}, int{CURLE_SEND_ERROR});
  EXPECT_EQ(int{curl::kReceiveError}, int{CURLE_RECV_ERROR});
  EXPECT_EQ(int{curl::kSslPeer}, int{CURLE_PEER_FAILED_VERIFICATION});
  EXPECT_EQ(int{curl::kHttp2Stream}, int{CURLE_HTTP2_STREAM});
#else
  GTEST_SKIP() << "curl/curl.h is not installed (libcurl4-openssl-dev)";
#endif
}

}  // namespace
}  // namespace gpuwright

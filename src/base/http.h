// An HTTP(S) client for reading: GET with byte ranges, redirects, retries. It stands on libcurl, which is opened when
// the first request is made; nothing links it, and where it is absent the error says so.
//
// TLS is verified, always. A bearer token travels only to the scheme, host and port it was given for, never along a
// redirect to another. Tokens and query strings (signed links) are in no message.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpuwright {

struct HttpRequest {
  std::string url;  // http:// or https://
  std::string bearer_token;
  // Bytes first..last, both included. A server may ignore it: see HttpResponse::status.
  std::optional<std::pair<std::int64_t, std::int64_t>> range;
  // The transfer is stopped when the body grows beyond this; what came is kept and `complete` is false.
  std::int64_t max_bytes = 64 << 20;
};

struct HttpResponse {
  int status = 0;  // 200: the whole body, even if a range was asked for; 206: the range
  std::string body;
  bool complete = true;
  std::string url;                         // after redirects
  std::optional<std::int64_t> total_size;  // of the whole file, where the server told
  // Names in lower case. Of redirects, headers that the last answer lacks are kept too.
  std::vector<std::pair<std::string, std::string>> headers;

  std::string_view header(std::string_view name) const;  // empty when absent
};

struct HttpOptions {
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds total_timeout{300'000};  // of one attempt
  std::chrono::seconds stall_timeout{10};            // without a byte
  // No attempt begins that a silent server could draw out beyond this, counted from the first one.
  std::chrono::milliseconds patience{30'000};
  int attempts = 4;                            // for 408, 429, 5xx and broken connections
  std::chrono::milliseconds first_pause{500};  // doubles each time; Retry-After is obeyed up to max_pause
  std::chrono::milliseconds max_pause{20'000};
  int max_redirects = 8;
};

// Thread-safe; connections are kept for the next request.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Any status that a server gives after retries is a response; errors are unavailable (no libcurl, no network, TLS)
  // or bad_input (a URL or redirect that is not allowed, an answer that contradicts the request).
  virtual Result<HttpResponse> get(const HttpRequest& request) = 0;
};

// `agent` is the User-Agent. Proxies come from the environment (https_proxy, no_proxy) as libcurl reads them.
std::unique_ptr<HttpClient> http_client(std::string agent, const HttpOptions& options = {});

// "https://host/path" of "https://user:secret@host/path?X-Signature=...": what may be shown.
std::string without_secrets(std::string_view url);
// "https://host:port" in lower case; empty when the text is no http(s) URL.
std::string origin_of(std::string_view url);

}  // namespace gpuwright

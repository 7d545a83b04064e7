#include "base/http.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/curl_abi.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwright {
namespace {

struct Curl {
  curl::EasyInit easy_init;
  curl::EasyCleanup easy_cleanup;
  curl::EasyReset easy_reset;
  curl::EasySetopt easy_setopt;
  curl::EasyGetinfo easy_getinfo;
  curl::EasyPerform easy_perform;
  curl::EasyStrerror easy_strerror;
  curl::ListAppend list_append;
  curl::ListFree list_free;
};

template <class Function>
bool find_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// Opened once and never closed: libcurl's own libraries do not survive being unloaded.
const Curl* libcurl() {
  static const Curl* const kCurl = []() -> const Curl* {
    static Curl table;
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"}) {
      void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      curl::GlobalInit global_init = nullptr;
      if (find_symbol(library, "curl_global_init", global_init) &&
          find_symbol(library, "curl_easy_init", table.easy_init) &&
          find_symbol(library, "curl_easy_cleanup", table.easy_cleanup) &&
          find_symbol(library, "curl_easy_reset", table.easy_reset) &&
          find_symbol(library, "curl_easy_setopt", table.easy_setopt) &&
          find_symbol(library, "curl_easy_getinfo", table.easy_getinfo) &&
          find_symbol(library, "curl_easy_perform", table.easy_perform) &&
          find_symbol(library, "curl_easy_strerror", table.easy_strerror) &&
          find_symbol(library, "curl_slist_append", table.list_append) &&
          find_symbol(library, "curl_slist_free_all", table.list_free) &&
          global_init(curl::kGlobalDefault) == curl::kOk)
        return &table;
    }
    return nullptr;
  }();
  return kCurl;
}

// ---------------------------------------------------------------- one answer

constexpr std::size_t kMaxHeaderBytes = 256 << 10;

// What libcurl's callbacks fill in. They are called from C: nothing may be thrown out of them.
struct Transfer {
  HttpResponse response;
  std::int64_t max_bytes = 0;
  std::size_t header_bytes = 0;
  bool header_too_long = false;
};

std::size_t on_body(const char* data, std::size_t size, std::size_t count, void* context) noexcept {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::size_t arrived = size * count;
  const auto room = static_cast<std::size_t>(
      std::max<std::int64_t>(0, transfer.max_bytes - static_cast<std::int64_t>(transfer.response.body.size())));
  try {
    transfer.response.body.append(data, std::min(arrived, room));
  } catch (...) {
    return 0;
  }
  if (arrived <= room) return arrived;
  transfer.response.complete = false;
  return 0;  // stops the transfer
}

std::size_t on_header(const char* data, std::size_t size, std::size_t count, void* context) noexcept {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::size_t arrived = size * count;
  transfer.header_bytes += arrived;
  transfer.header_too_long = transfer.header_bytes > kMaxHeaderBytes;
  if (transfer.header_too_long) return 0;
  const std::string_view line = trim(std::string_view(data, arrived));
  const std::size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) transfer.response.headers.clear();  // that before was a proxy's, or a "100 Continue"
  if (colon == std::string_view::npos || line.starts_with("HTTP/")) return arrived;
  try {
    transfer.response.headers.emplace_back(lower(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
  } catch (...) {
    return 0;
  }
  return arrived;
}

// "bytes 0-99/1234" -> first, last, total (or no total for "*").
struct ContentRange {
  std::int64_t first, last;
  std::optional<std::int64_t> total;
};
std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!starts_with_ignoring_case(text, "bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto first = to_integer(text.substr(0, dash));
  const auto last = to_integer(text.substr(dash + 1, slash - dash - 1));
  const auto total = to_integer(text.substr(slash + 1));
  if (!first || !last || *first < 0 || *last < *first || (total && *total <= *last)) return std::nullopt;
  return ContentRange{*first, *last, total};
}

bool worth_retrying(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}
bool worth_retrying_code(int code) {
  switch (code) {
    case curl::kCouldntResolveHost:
    case curl::kCouldntConnect:
    case curl::kHttp2:
    case curl::kPartialFile:
    case curl::kTimedOut:
    case curl::kGotNothing:
    case curl::kSendError:
    case curl::kReceiveError:
    case curl::kHttp2Stream:
      return true;
    default:
      return false;
  }
}

// ---------------------------------------------------------------- the client

class CurlClient : public HttpClient {
 public:
  CurlClient(std::string agent, const HttpOptions& options) : agent_(std::move(agent)), options_(options) {}
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;
  ~CurlClient() override {
    for (curl::Easy* easy : idle_) libcurl()->easy_cleanup(easy);
  }

  Result<HttpResponse> get(const HttpRequest& request) override {
    if (libcurl() == nullptr)
      return fail(ErrorCode::unavailable, "reading from the network needs libcurl, which is not installed",
                  "install libcurl4 (Debian, Ubuntu) or libcurl (Fedora), or download the files yourself");
    std::vector<std::pair<std::string, std::string>> kept;
    HttpRequest hop = request;
    for (int redirects = 0; redirects <= options_.max_redirects; ++redirects) {
      std::string location;
      HttpResponse response = GW_TRY(with_retries(hop, location));
      for (auto& header : kept)
        if (response.header(header.first).empty()) response.headers.push_back(header);
      if (location.empty()) return response;
      GW_TRY(check_redirect(hop.url, location));
      if (origin_of(location) != origin_of(hop.url)) hop.bearer_token.clear();
      hop.url = location;
      kept = std::move(response.headers);
    }
    return fail(ErrorCode::unavailable,
                fmt::format("{}: more than {} redirects", without_secrets(request.url), options_.max_redirects));
  }

 private:
  static Status check_redirect(const std::string& from, const std::string& to) {
    const bool secure = to.starts_with("https://");
    if (!origin_of(to).empty() && (secure || from.starts_with("http://"))) return {};
    return fail(ErrorCode::bad_input,
                fmt::format("{} redirects to {}, which is not https", without_secrets(from), without_secrets(to)));
  }

  Result<HttpResponse> with_retries(const HttpRequest& request, std::string& location) {
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::milliseconds pause = options_.first_pause;
    for (int attempt = 1;; ++attempt) {
      bool retry = false;
      auto response = attempt_once(request, location, retry);
      if (!retry || attempt >= options_.attempts) return response;
      const auto wait = std::min(asked_pause(response).value_or(pause), options_.max_pause);
      const auto silence = std::max<std::chrono::milliseconds>(options_.stall_timeout, options_.connect_timeout);
      if (std::chrono::steady_clock::now() - begin + wait + silence > options_.patience) return response;
      std::this_thread::sleep_for(wait);
      pause *= 2;
    }
  }

  static std::optional<std::chrono::milliseconds> asked_pause(const Result<HttpResponse>& response) {
    const auto seconds = response ? to_integer(response->header("retry-after")) : std::nullopt;
    if (!seconds || *seconds < 0) return std::nullopt;
    return std::chrono::seconds(std::min<std::int64_t>(*seconds, 3600));
  }

  Result<HttpResponse> attempt_once(const HttpRequest& request, std::string& location, bool& retry) {
    Transfer transfer;
    transfer.max_bytes = request.max_bytes;
    if (request.range) transfer.max_bytes = std::min(transfer.max_bytes, request.range->second + 1);
    long status = 0;
    const int code = perform(request, transfer, status, location);
    const bool stopped = code == curl::kWriteError && !transfer.response.complete;
    if (code != curl::kOk && !stopped) {
      retry = worth_retrying_code(code);
      return network_failure(request, code, transfer.header_too_long);
    }
    transfer.response.status = static_cast<int>(status);
    transfer.response.url = request.url;
    retry = worth_retrying(transfer.response.status);
    GW_TRY(check_answer(request, transfer.response));
    return std::move(transfer.response);
  }

  int perform(const HttpRequest& request, Transfer& transfer, long& status, std::string& location) {
    const Curl& lib = *libcurl();
    curl::Easy* easy = borrow();
    if (easy == nullptr) return curl::kCouldntConnect;
    curl::List* headers = nullptr;
    if (!request.bearer_token.empty())
      headers = lib.list_append(headers, ("Authorization: Bearer " + request.bearer_token).c_str());
    const std::string range =
        request.range ? fmt::format("{}-{}", request.range->first, request.range->second) : std::string();
    configure(easy, request.url, range, headers, transfer);
    const int code = lib.easy_perform(easy);
    lib.easy_getinfo(easy, curl::kResponseCode, &status);
    const char* redirect = nullptr;
    lib.easy_getinfo(easy, curl::kRedirectUrl, &redirect);
    location = redirect != nullptr && status >= 300 && status < 400 ? redirect : "";
    lib.easy_reset(easy);
    lib.list_free(headers);
    give_back(easy);
    return code;
  }

  void configure(curl::Easy* easy, const std::string& url, const std::string& range, curl::List* headers,
                 Transfer& transfer) const {
    const auto set = libcurl()->easy_setopt;
    set(easy, curl::kUrl, url.c_str());
    set(easy, curl::kUserAgent, agent_.c_str());
    set(easy, curl::kProtocols, static_cast<long>(curl::kHttp | curl::kHttps));
    set(easy, curl::kFollowLocation, 0L);
    set(easy, curl::kNoSignal, 1L);
    set(easy, curl::kSslVerifyPeer, 1L);
    set(easy, curl::kSslVerifyHost, 2L);
    set(easy, curl::kConnectTimeoutMs, static_cast<long>(options_.connect_timeout.count()));
    set(easy, curl::kTimeoutMs, static_cast<long>(options_.total_timeout.count()));
    set(easy, curl::kLowSpeedLimit, 1L);
    set(easy, curl::kLowSpeedTime, static_cast<long>(options_.stall_timeout.count()));
    if (!range.empty()) set(easy, curl::kRange, range.c_str());
    if (headers != nullptr) set(easy, curl::kHttpHeader, headers);
    set(easy, curl::kWriteFunction, &on_body);
    set(easy, curl::kWriteData, static_cast<void*>(&transfer));
    set(easy, curl::kHeaderFunction, &on_header);
    set(easy, curl::kHeaderData, static_cast<void*>(&transfer));
  }

  // A range that was asked for must be the one that came, whole.
  static Status check_answer(const HttpRequest& request, HttpResponse& response) {
    const auto lies = [&](std::string_view what) {
      return fail(ErrorCode::bad_input, fmt::format("{}: {}", without_secrets(request.url), what));
    };
    if (response.status == 206) {
      const auto range = parse_content_range(response.header("content-range"));
      if (!request.range) return lies("the server answered a part where the whole was asked for");
      if (!range || range->first != request.range->first || range->last > request.range->second)
        return lies("the server answered another byte range than the one asked for");
      if (response.complete && static_cast<std::int64_t>(response.body.size()) != range->last - range->first + 1)
        return lies("the answer is shorter or longer than the range it claims");
      response.total_size = range->total;
    } else if (response.status == 200) {
      const auto length = to_integer(response.header("content-length"));
      if (length && *length >= 0) response.total_size = length;
    }
    return {};
  }

  static tl::unexpected<Error> network_failure(const HttpRequest& request, int code, bool header_too_long) {
    const std::string url = without_secrets(request.url);
    if (header_too_long) return fail(ErrorCode::bad_input, fmt::format("{}: the answer has an endless header", url));
    std::string hint;
    if (code == curl::kCouldntResolveHost || code == curl::kCouldntConnect || code == curl::kCouldntResolveProxy)
      hint = "is there a network? a proxy is taken from https_proxy";
    if (code == curl::kSslPeer)
      hint = "the certificate is not trusted; install ca-certificates, or those of your proxy";
    return fail(ErrorCode::unavailable, fmt::format("cannot read {}: {}", url, libcurl()->easy_strerror(code)), hint);
  }

  curl::Easy* borrow() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return libcurl()->easy_init();
    curl::Easy* easy = idle_.back();
    idle_.pop_back();
    return easy;
  }
  void give_back(curl::Easy* easy) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(easy);
  }

  std::string agent_;
  HttpOptions options_;
  std::mutex mutex_;
  std::vector<curl::Easy*> idle_;  // guarded by mutex_; they keep their connections
};

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

std::unique_ptr<HttpClient> http_client(std::string agent, const HttpOptions& options) {
  return std::make_unique<CurlClient>(std::move(agent), options);
}

std::string without_secrets(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  const std::size_t begin = scheme + 3;
  const std::size_t slash = std::min(url.find('/', begin), url.size());
  const std::size_t at = url.substr(0, slash).rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(url);
  return std::string(url.substr(0, begin)) + std::string(url.substr(at + 1));
}

std::string origin_of(std::string_view url) {
  const std::size_t begin = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : std::string_view::npos;
  if (begin == std::string_view::npos) return {};
  const std::string shown = without_secrets(url);
  const std::size_t end = shown.find('/', begin);
  const std::string origin = lower(std::string_view(shown).substr(0, end));
  return origin.size() > begin ? origin : std::string();
}

}  // namespace gpuwright

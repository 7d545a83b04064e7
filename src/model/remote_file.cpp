// Headers stand at the beginning of model files (safetensors, GGUF), so a remote file is read as a prefix that grows:
// each read beyond it fetches at least twice what is there, up to 16 MiB a step. Reads far behind the prefix (the
// tensors of ONNX files, the last bytes) are fetched as they are asked for, in blocks.
#include "model/remote_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <list>
#include <mutex>

#include "base/text.h"
#include "base/units.h"

namespace gpuwright::model {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstStep = 128 << 10;
constexpr std::int64_t kLargestStep = 16 << 20;
constexpr std::int64_t kLargestPrefix = 512 << 20;
constexpr std::int64_t kBlock = 256 << 10;
constexpr std::size_t kBlocks = 16;
constexpr std::int64_t kLargestCachedPrefix = 128 << 20;

tl::unexpected<Error> refused(const HttpResponse& response, const std::string& url) {
  const std::string shown = without_secrets(url);
  const std::string message(response.header("x-error-message").substr(0, 300));
  const std::string what =
      fmt::format("{}: the server answers {}{}{}", shown, response.status, message.empty() ? "" : ": ", message);
  switch (response.status) {
    case 401:
    case 403:
      return fail(ErrorCode::unavailable, what,
                  "a private or gated model: accept its terms on its page and set HF_TOKEN to an access token");
    case 404:
    case 410:
      return fail(ErrorCode::not_found, what);
    case 429:
      return fail(ErrorCode::unavailable, what, "too many requests: wait a while, or set HF_TOKEN");
    default:
      return fail(ErrorCode::unavailable, what);
  }
}

std::string version_of(const HttpResponse& response) {
  const std::string_view linked = response.header("x-linked-etag");
  return std::string(linked.empty() ? response.header("etag") : linked);
}

class RemoteFile : public ByteSource {
 public:
  RemoteFile(RemoteAccess access, std::string url) : access_(std::move(access)), url_(std::move(url)), target_(url_) {
    name_ = without_secrets(url_);
  }
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;
  ~RemoteFile() override {
    const auto grown = static_cast<std::int64_t>(prefix_.size());
    if (grown > kept_ && grown <= kLargestCachedPrefix && !version_.empty())
      access_.cache->keep(url_, {version_, size_, std::move(prefix_)});
  }

  // Knows the size afterwards.
  Status open(const RemoteFacts& facts) {
    auto cached = access_.cache->find(url_);
    if (access_.offline) {
      if (!cached)
        return fail(ErrorCode::unavailable, fmt::format("{} is not in the cache, and HF_HUB_OFFLINE is set", name_));
      return take(std::move(*cached)), Status{};
    }
    if (facts.size && !facts.version.empty()) {
      size_ = *facts.size;
      version_ = facts.version;
      if (cached && cached->version == version_ && cached->size == size_) take(std::move(*cached));
      return {};
    }
    GW_TRY(extend_prefix(kFirstStep));
    if (!size_known_)
      return fail(ErrorCode::unavailable, fmt::format("{}: the server does not tell the size of the file", name_));
    if (cached && !version_.empty() && cached->version == version_ && cached->size == size_ &&
        cached->bytes.size() > prefix_.size())
      take(std::move(*cached));
    return {};
  }

  std::int64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  Result<std::size_t> read_at(std::int64_t offset, std::span<std::byte> into) const override {
    const std::lock_guard lock(mutex_);
    if (offset < 0 || offset >= size_) return 0;
    const std::int64_t wanted = std::min(static_cast<std::int64_t>(into.size()), size_ - offset);
    const auto known = static_cast<std::int64_t>(prefix_.size());
    if (offset + wanted <= known || (offset <= known + kLargestStep && offset + wanted <= kLargestPrefix)) {
      if (offset + wanted > known) GW_TRY(grow_prefix(offset + wanted));
      return copy(prefix_, offset, wanted, into);
    }
    return read_blocks(offset, wanted, into);
  }

 private:
  void take(CachedPrefix&& cached) {
    version_ = std::move(cached.version);
    size_ = cached.size;
    size_known_ = true;
    prefix_ = std::move(cached.bytes);
    kept_ = static_cast<std::int64_t>(prefix_.size());
  }

  static std::size_t copy(std::string_view from, std::int64_t offset, std::int64_t wanted, std::span<std::byte> into) {
    if (offset >= static_cast<std::int64_t>(from.size())) return 0;
    const std::string_view part = from.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(wanted));
    if (!part.empty()) std::memcpy(into.data(), part.data(), part.size());
    return part.size();
  }

  Status grow_prefix(std::int64_t end) const {
    const auto known = static_cast<std::int64_t>(prefix_.size());
    const std::int64_t step = std::clamp(known, kFirstStep, kLargestStep);
    GW_TRY(extend_prefix(std::min(size_, std::max(end, known + step))));
    return {};
  }

  // Fetches from the end of the prefix up to `end`.
  Status extend_prefix(std::int64_t end) const {
    const auto known = static_cast<std::int64_t>(prefix_.size());
    const std::string part = GW_TRY(fetch(known, end - 1));
    prefix_ += part;
    return {};
  }

  Result<std::size_t> read_blocks(std::int64_t offset, std::int64_t wanted, std::span<std::byte> into) const {
    std::size_t done = 0;
    while (static_cast<std::int64_t>(done) < wanted) {
      const std::int64_t at = offset + static_cast<std::int64_t>(done);
      const std::int64_t begin = at / kBlock * kBlock;
      const std::string* block = GW_TRY(block_at(begin));
      const std::size_t got = copy(*block, at - begin, wanted - static_cast<std::int64_t>(done), into.subspan(done));
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  Result<const std::string*> block_at(std::int64_t begin) const {
    for (const auto& [start, bytes] : blocks_)
      if (start == begin) return &bytes;
    std::string bytes = GW_TRY(fetch(begin, std::min(begin + kBlock, size_) - 1));
    if (blocks_.size() == kBlocks) blocks_.pop_back();
    blocks_.emplace_front(begin, std::move(bytes));
    return &blocks_.front().second;
  }

  // Bytes first..last, fewer only at the end of the file.
  Result<std::string> fetch(std::int64_t first, std::int64_t last) const {
    if (access_.offline)
      return fail(ErrorCode::unavailable,
                  fmt::format("byte {} of {} is not in the cache, and HF_HUB_OFFLINE is set", first, name_));
    HttpResponse response = GW_TRY(ask(first, last));
    if (response.status == 416 && first == 0) {  // an empty file has no first byte
      size_known_ = true;
      return std::string();
    }
    if (response.status == 200 && first > 0) {
      if (static_cast<std::int64_t>(response.body.size()) <= first)
        return fail(ErrorCode::unavailable, fmt::format("{}: the server gives no byte ranges", name_));
      response.body.erase(0, static_cast<std::size_t>(first));
    } else if (response.status != 200 && response.status != 206) {
      return refused(response, url_);
    }
    GW_TRY(check_same_file(response));
    return std::move(response.body);
  }

  // A link that a redirect gave (signed, for some minutes) saves the detour; when it has expired, the detour again.
  Result<HttpResponse> ask(std::int64_t first, std::int64_t last) const {
    HttpRequest request;
    request.range = {first, last};
    request.max_bytes = kLargestPrefix + kLargestStep;
    for (const bool direct : {true, false}) {
      if (direct && target_ == url_) continue;
      request.url = direct ? target_ : url_;
      request.bearer_token = origin_of(request.url) == access_.token_origin ? access_.token : "";
      auto response = access_.client->get(request);
      if (direct && (!response || response->status >= 400)) continue;
      if (response) target_ = response->url;
      return response;
    }
    return fail(ErrorCode::internal, "no request was made");
  }

  Status check_same_file(const HttpResponse& response) const {
    const std::string version = version_of(response);
    if (response.total_size && size_known_ && *response.total_size != size_)
      return fail(ErrorCode::unavailable, fmt::format("{} changed while it was read", name_), "try again");
    if (!size_known_ && response.total_size) {
      size_ = *response.total_size;
      size_known_ = true;
    }
    if (version_.empty()) version_ = version;
    return {};
  }

  RemoteAccess access_;
  std::string url_;
  std::string name_;
  mutable std::mutex mutex_;
  // Guarded by mutex_ once the file is open.
  mutable std::string target_;  // where the last redirect led
  mutable std::string version_;
  mutable std::int64_t size_ = 0;
  mutable bool size_known_ = false;
  mutable std::string prefix_;
  std::int64_t kept_ = 0;                                           // bytes of the prefix that the cache has
  mutable std::list<std::pair<std::int64_t, std::string>> blocks_;  // the newest first
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_remote_file(const RemoteAccess& access, const std::string& url,
                                                     const RemoteFacts& facts) {
  auto file = std::make_unique<RemoteFile>(access, url);
  GW_TRY(file->open(facts));
  return std::unique_ptr<ByteSource>(std::move(file));
}

Result<std::string> fetch_document(const RemoteAccess& access, const std::string& url, std::int64_t max_bytes) {
  if (access.offline) {
    const auto cached = access.cache->find(url);
    if (cached) return cached->bytes;
    return fail(ErrorCode::unavailable,
                fmt::format("{} is not in the cache, and HF_HUB_OFFLINE is set", without_secrets(url)));
  }
  HttpRequest request;
  request.url = url;
  request.bearer_token = origin_of(url) == access.token_origin ? access.token : "";
  request.max_bytes = max_bytes;
  HttpResponse response = GW_TRY(access.client->get(request));
  if (response.status != 200) return refused(response, url);
  if (!response.complete)
    return fail(ErrorCode::bad_input,
                fmt::format("{}: an answer of more than {} bytes", without_secrets(url), max_bytes));
  access.cache->keep(url, {"document", static_cast<std::int64_t>(response.body.size()), response.body});
  return std::move(response.body);
}

// ---------------------------------------------------------------- the cache

namespace {

// "gpuwright-cache 1\n<key>\n<version>\n<size>\n<bytes>\n" and so many bytes.
constexpr std::string_view kMagic = "gpuwright-cache 1";

std::uint64_t fnv1a(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::optional<CachedPrefix> parse_entry(std::string_view text, std::string_view key) {
  std::array<std::string_view, 5> lines;
  for (std::string_view& line : lines) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    line = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  const auto size = to_integer(lines[3]);
  const auto bytes = to_integer(lines[4]);
  if (lines[0] != kMagic || lines[1] != key || !size || !bytes || *size < *bytes ||
      *bytes != static_cast<std::int64_t>(text.size()))
    return std::nullopt;
  return CachedPrefix{std::string(lines[2]), *size, std::string(text)};
}

}  // namespace

PrefixCache::PrefixCache(std::string folder, std::int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {}

std::string PrefixCache::path_of(const std::string& key) const {
  return fmt::format("{}/{:016x}{:016x}", folder_, fnv1a(key, 14695981039346656037u), fnv1a(key, 0x9e3779b97f4a7c15u));
}

std::optional<CachedPrefix> PrefixCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const auto text = read_file(path_of(key), kLargestCachedPrefix + (1 << 20));
  return text ? parse_entry(*text, key) : std::nullopt;
}

void PrefixCache::keep(const std::string& key, const CachedPrefix& prefix) const {
  const bool plain = key.find('\n') == std::string::npos && prefix.version.find('\n') == std::string::npos;
  if (folder_.empty() || !plain) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  ::chmod(folder_.c_str(), 0700);  // names of private repositories are in it
  const std::string head =
      fmt::format("{}\n{}\n{}\n{}\n{}\n", kMagic, key, prefix.version, prefix.size, prefix.bytes.size());
  static_cast<void>(write_file_atomically(path_of(key), head + prefix.bytes));
  make_room();
}

void PrefixCache::make_room() const {
  struct Entry {
    fs::file_time_type time;
    std::int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const auto bytes = static_cast<std::int64_t>(entry->file_size(gone));
    const auto time = entry->last_write_time(gone);
    if (gone) continue;
    entries.push_back({time, bytes, entry->path()});
    total += bytes;
  }
  if (total <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_) return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace gpuwright::model

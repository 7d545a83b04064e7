// Inside of the hub: a file behind a URL, of which only what is read travels, and a cache of what travelled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/http.h"
#include "base/result.h"

namespace gpuwright::model {

// What is known of a file from earlier: its beginning. `version` is a commit or an ETag; another version, another file.
struct CachedPrefix {
  std::string version;
  std::int64_t size = 0;  // of the whole file
  std::string bytes;
};

// A folder of such prefixes, one file an URL; bounded: the oldest go when it grows beyond max_bytes. Damaged entries
// count as absent. Thread-safe; processes may share it.
class PrefixCache {
 public:
  // An empty folder name: nothing is kept.
  explicit PrefixCache(std::string folder, std::int64_t max_bytes = std::int64_t{1} << 30);
  std::optional<CachedPrefix> find(const std::string& key) const;
  void keep(const std::string& key, const CachedPrefix& prefix) const;  // failures are silent: it is only a cache

 private:
  std::string path_of(const std::string& key) const;
  void make_room() const;
  std::string folder_;
  std::int64_t max_bytes_;
};

struct RemoteAccess {
  std::shared_ptr<HttpClient> client;
  std::shared_ptr<const PrefixCache> cache;
  std::string token;  // sent to token_origin only
  std::string token_origin;
  bool offline = false;  // answer from the cache or fail
};

// What is known of the file before it is opened, where a listing told it.
struct RemoteFacts {
  std::optional<std::int64_t> size;
  std::string version;  // empty: the server's ETag decides
};

// Opens the file; makes a request only when size or version are not known. not_found for 404; unavailable, with what
// to do, for 401 and 403.
Result<std::unique_ptr<ByteSource>> open_remote_file(const RemoteAccess& access, const std::string& url,
                                                     const RemoteFacts& facts);

// A small document, whole; kept in the cache for offline work.
Result<std::string> fetch_document(const RemoteAccess& access, const std::string& url, std::int64_t max_bytes);

}  // namespace gpuwright::model

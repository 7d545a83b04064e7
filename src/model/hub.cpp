// Endpoints of the hub, as huggingface_hub (hf_api.py, file_download.py) uses them:
//   GET /api/models/<repository>/revision/<revision>?blobs=true   {"sha", "siblings": [{"rfilename", "size", ...}]}
//   GET /<repository>/resolve/<sha>/<file>                        the file, mostly by a redirect to signed storage
// Files are asked for by the commit that the first answer names, so that one model is never read from two revisions.
#include "model/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "model/folder_choice.h"
#include "model/folder_views.h"
#include "model/remote_file.h"

namespace gpuwright::model {
namespace {

constexpr std::int64_t kMaxListingBytes = 32 << 20;
constexpr std::int64_t kMaxTokenBytes = 4096;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_set(const char* name) {
  const std::string value = lower(environment(name));
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

std::string endpoint() {
  std::string text = environment("HF_ENDPOINT");
  if (text.empty()) text = "https://huggingface.co";
  while (text.ends_with('/')) text.pop_back();
  return text;
}

bool is_loopback(std::string_view url) {
  const std::string origin = origin_of(url);
  for (const char* host : {"http://127.0.0.1", "http://localhost", "http://[::1]"})
    if (origin == host || origin.starts_with(std::string(host) + ":")) return true;
  return false;
}

// A header must not be split by what a token file holds.
std::string clean_token(std::string_view text) {
  const std::string_view token = trim(text);
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return plain ? std::string(token) : std::string();
}

std::string token() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (const std::string value = clean_token(environment(name)); !value.empty()) return value;
  std::string path = environment("HF_TOKEN_PATH");
  if (path.empty() && !environment("HF_HOME").empty()) path = environment("HF_HOME") + "/token";
  if (path.empty() && !environment("HOME").empty()) path = environment("HOME") + "/.cache/huggingface/token";
  const auto text = read_file(path, kMaxTokenBytes);
  return text ? clean_token(*text) : std::string();
}

RemoteAccess access_to(const std::string& hub) {
  RemoteAccess access;
  access.client = http_client("gpuwright/" GPUWRIGHT_VERSION);
  const std::string cache = cache_directory();
  access.cache = std::make_shared<PrefixCache>(cache.empty() ? cache : cache + "/hub");
  access.offline = is_set("HF_HUB_OFFLINE");
  // In clear text a token goes nowhere but to this machine.
  if (hub.starts_with("https://") || is_loopback(hub)) {
    access.token = token();
    access.token_origin = origin_of(hub);
  }
  return access;
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
    if (plain || (keep_slashes && c == '/'))
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", byte);
  }
  return encoded;
}

bool is_name(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
  return !text.empty() && text.size() <= 128 && plain && text != "." && text.find("..") == std::string_view::npos;
}

// ---------------------------------------------------------------- repositories

struct Entry {
  std::optional<std::int64_t> size;
  std::string version;
};

class Repository : public ModelFiles {
 public:
  Repository(RemoteAccess access, std::string hub, HubReference reference)
      : access_(std::move(access)), hub_(std::move(hub)), reference_(std::move(reference)) {
    name_ = "hf://" + reference_.repository;
    if (reference_.revision != "main") name_ += "@" + reference_.revision;
  }

  const std::string& name() const override { return name_; }
  int concurrency() const override { return 8; }

  Status read_listing() {
    const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", hub_, reference_.repository,
                                        percent_encoded(reference_.revision, false));
    auto text = fetch_document(access_, url, kMaxListingBytes);
    if (!text) {
      if (text.error().code == ErrorCode::not_found)
        text.error().what = fmt::format("{} does not exist on {}, or it is private", name_, hub_);
      return tl::unexpected(std::move(text.error()));
    }
    const Json listing = GW_TRY(parse_json(*text, without_secrets(url)));
    const Json* sha = listing.find("sha");
    commit_ = sha != nullptr ? std::string(sha->as_string().value_or("")) : "";
    if (!is_name(commit_)) commit_ = reference_.revision;
    const Json* siblings = listing.find("siblings");
    if (siblings == nullptr || !siblings->is_array())
      return fail(ErrorCode::unavailable, fmt::format("{}: the answer of the hub lists no files", name_));
    for (const Json& sibling : siblings->items()) add_entry(sibling);
    return {};
  }

  Result<std::vector<std::string>> list() const override {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    const auto entry = entries_.find(file);
    if (entry == entries_.end())
      return fail(ErrorCode::not_found, fmt::format("{} has no file \"{}\"", name_, file.substr(0, 200)));
    const std::string url = fmt::format("{}/{}/resolve/{}/{}", hub_, reference_.repository,
                                        percent_encoded(commit_, false), percent_encoded(file, true));
    return open_remote_file(access_, url, {entry->second.size, entry->second.version});
  }

 private:
  void add_entry(const Json& sibling) {
    const Json* file = sibling.find("rfilename");
    const std::string name(file != nullptr ? file->as_string().value_or("") : "");
    if (!stays_inside(name)) return;
    Entry entry;
    if (const Json* size = sibling.find("size"))
      if (const auto bytes = size->as_int(); bytes && *bytes >= 0) entry.size = bytes;
    const Json* lfs = sibling.find("lfs");
    const Json* version = lfs != nullptr ? lfs->find("sha256") : nullptr;
    if (version == nullptr) version = sibling.find("blobId");
    entry.version = version != nullptr ? std::string(version->as_string().value_or("").substr(0, 128)) : "";
    if (entry.version.empty() && commit_ != reference_.revision) entry.version = commit_;
    entries_.emplace(name, std::move(entry));
  }

  RemoteAccess access_;
  std::string hub_;
  HubReference reference_;
  std::string name_;
  std::string commit_;
  std::map<std::string, Entry> entries_;
};

// ---------------------------------------------------------------- plain links

// What can be known of the folder of a link without a listing: the file, and what usually stands beside it.
class LinkFolder : public ModelFiles {
 public:
  LinkFolder(RemoteAccess access, std::string_view url) : access_(std::move(access)) {
    const std::size_t query = std::min(url.find_first_of("?#"), url.size());
    const std::size_t slash = url.rfind('/', query - 1);
    base_ = url.substr(0, slash + 1);
    if (base_ != "https://" && base_ != "http://") file_ = url.substr(slash + 1, query - slash - 1);
    query_ = url.substr(query, url.find('#') - query);
    name_ = without_secrets(base_.substr(0, base_.size() - 1));
  }

  const std::string& name() const override { return name_; }
  const std::string& file() const { return file_; }
  int concurrency() const override { return 8; }

  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    if (file == file_) return open_remote_file(access_, base_ + file_ + query_, {});
    if (!stays_inside(file)) return fail(ErrorCode::bad_input, fmt::format("\"{}\" is not beside {}", file, file_));
    auto opened = open_remote_file(access_, base_ + percent_encoded(file, true) + query_, {});
    // Storage that does not list its files answers 403 for those that are not there.
    if (!opened && opened.error().message().find(" answers 403") != std::string::npos)
      opened.error().code = ErrorCode::not_found;
    return opened;
  }

  Result<std::vector<std::string>> list() const override {
    const char* index = "model.safetensors.index.json";
    const bool part = file_.find("-of-") != std::string::npos;
    if (part && file_.ends_with(".safetensors") && open(index)) return std::vector<std::string>{"config.json", index};
    std::vector<std::string> names = {file_, "config.json"};
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  RemoteAccess access_;
  std::string base_;   // ends in '/'
  std::string file_;   // still percent-encoded
  std::string query_;  // with its '?'; a secret where links are signed
  std::string name_;
};

Result<Model> load_link(std::string_view url, const std::string& hub, const LoadOptions& options) {
  if (url.starts_with("http://") && !is_loopback(url))
    return fail(ErrorCode::bad_input, fmt::format("{} is not encrypted", without_secrets(url)), "use https://");
  if (origin_of(url).empty()) return fail(ErrorCode::bad_input, fmt::format("{} is no address", without_secrets(url)));
  const LinkFolder folder(access_to(hub), url);
  if (folder.file().empty()) return fail(ErrorCode::bad_input, fmt::format("{} names no file", without_secrets(url)));
  if (options.progress) options.progress(folder.file());
  return load_file_of(folder, folder.file(), options);
}

bool is_hub_page(std::string_view url, std::string_view hub) {
  if (!url.starts_with(hub) || url.size() <= hub.size() + 1 || url[hub.size()] != '/') return false;
  const std::vector<std::string_view> parts =
      split(url.substr(hub.size() + 1, url.find_first_of("?#") - hub.size() - 1), '/');
  return (parts.size() == 2 && !parts[1].empty()) ||
         (parts.size() > 3 && (parts[2] == "blob" || parts[2] == "resolve" || parts[2] == "tree"));
}

}  // namespace

Result<HubReference> parse_hub_reference(std::string_view text, std::string_view endpoint_url) {
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::bad_input, fmt::format("\"{}\": {}", text.substr(0, 300), what),
                "a repository is written hf://org/name or hf://org/name@revision");
  };
  HubReference reference;
  std::string_view rest = text;
  if (rest.starts_with("hf://")) {
    rest.remove_prefix(5);
    while (rest.ends_with('/')) rest.remove_suffix(1);
    const std::size_t at = rest.find('@');
    if (at != std::string_view::npos) reference.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    const std::size_t org = rest.find('/');
    const std::size_t file = org == std::string_view::npos ? org : rest.find('/', org + 1);
    reference.repository = rest.substr(0, file);
    if (file != std::string_view::npos) reference.file = rest.substr(file + 1);
  } else {
    rest = rest.substr(0, rest.find_first_of("?#")).substr(endpoint_url.size() + 1);
    const std::vector<std::string_view> parts = split(rest, '/');
    reference.repository = fmt::format("{}/{}", parts[0], parts.size() > 1 ? parts[1] : "");
    if (parts.size() > 3) reference.revision = parts[3];
    for (std::size_t i = 4; i < parts.size(); ++i) reference.file += (i > 4 ? "/" : "") + std::string(parts[i]);
  }
  for (const std::string_view part : split(reference.repository, '/'))
    if (!is_name(part)) return bad("not the name of a repository");
  for (const std::string_view part : split(reference.revision, '/'))
    if (!is_name(part)) return bad("not a revision");
  if (!reference.file.empty() && !stays_inside(reference.file)) return bad("not a file of a repository");
  return reference;
}

bool is_remote(std::string_view text) {
  return text.starts_with("hf://") || text.starts_with("https://") || text.starts_with("http://");
}

Result<Model> load_remote(std::string_view text, const LoadOptions& options) {
  const std::string hub = endpoint();
  if (origin_of(hub).empty())
    return fail(ErrorCode::bad_input, fmt::format("HF_ENDPOINT is no http(s) address: {}", without_secrets(hub)));
  if (!text.starts_with("hf://") && !is_hub_page(text, hub)) return load_link(text, hub, options);
  const HubReference reference = GW_TRY(parse_hub_reference(text, hub));
  Repository repository(access_to(hub), hub, reference);
  if (options.progress) options.progress("the list of files of " + repository.name());
  GW_TRY(repository.read_listing());
  if (reference.file.empty()) return load_folder(repository, options);
  return load_file_of(repository, reference.file, options);
}

}  // namespace gpuwright::model

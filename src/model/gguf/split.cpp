#include "model/gguf/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "model/gguf/layout.h"

namespace gpuwright::model::gguf {
namespace {

constexpr std::size_t kMostAbsentTold = 8;
constexpr std::uint64_t kMaxTensorsOfAll = 1 << 19;

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string shard_name(const ShardName& name, std::int64_t number) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.stem, number, name.count);
}

tl::unexpected<Error> refuse(ErrorCode code, const std::string& file, std::string what, std::string hint = {}) {
  return fail_at(code, {file, std::nullopt, std::nullopt}, std::move(what), std::move(hint));
}

Status take(Shards& all, Header header, const ByteSource& file) {
  std::vector<StoredTensor> stored = GW_TRY(lay_out(header, file.name()));
  Bytes tensor_bytes;
  for (const StoredTensor& tensor : stored) tensor_bytes += tensor.bytes;
  all.weights.file_bytes += Bytes{header.file_bytes};
  all.weights.header_bytes += Bytes{header.file_bytes} - tensor_bytes;
  all.weights.files.push_back(file.name());
  if (all.weights.files.size() == 1) {
    all.header = std::move(header);
    all.weights.tensors = std::move(stored);
  } else {
    std::move(header.tensors.begin(), header.tensors.end(), std::back_inserter(all.header.tensors));
    all.weights.tensors.insert(all.weights.tensors.end(), stored.begin(), stored.end());
    // A short name lies inside of its TensorInfo, which has moved.
    for (std::size_t i = 0; i < all.header.tensors.size(); ++i)
      all.weights.tensors[i].name = all.header.tensors[i].name;
  }
  if (all.weights.tensors.size() > kMaxTensorsOfAll)
    return refuse(ErrorCode::bad_input, file.name(), fmt::format("more than {} tensors", kMaxTensorsOfAll));
  return {};
}

Status check_membership(const Header& header, const std::string& file, std::int64_t number, std::int64_t count) {
  const std::int64_t says_number = header.integer("split.no").value_or(-1) + 1;
  const std::int64_t says_count = header.integer("split.count").value_or(-1);
  if (says_number == number && says_count == count) return {};
  return refuse(ErrorCode::bad_input, file,
                fmt::format("is shard {} of {} by its own header, but {} of {} was to be here", says_number, says_count,
                            number, count),
                "shards of different models or splits lie in one folder");
}

// The shards after the first that are not there, so that one message names them all.
std::string absent_shards(const ModelFiles& folder, const ShardName& name) {
  const auto listed = folder.list();
  std::string text;
  std::size_t absent = 0;
  for (std::int64_t number = 2; number <= name.count && listed; ++number) {
    const std::string shard = shard_name(name, number);
    if (std::binary_search(listed->begin(), listed->end(), shard)) continue;
    if (++absent <= kMostAbsentTold) text += (text.empty() ? "" : ", ") + shard;
  }
  if (absent > kMostAbsentTold) text += fmt::format(" and {} more", absent - kMostAbsentTold);
  return text;
}

Status check_unique(const Shards& all, const std::string& file) {
  std::vector<std::string_view> names;
  names.reserve(all.weights.tensors.size());
  for (const StoredTensor& tensor : all.weights.tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return refuse(ErrorCode::bad_input, file, fmt::format("tensor \"{}\" is in two shards", *twice));
}

Status check_total(const Shards& all, const std::string& file) {
  const std::int64_t expected = all.header.integer("split.tensors.count").value_or(-1);
  const std::int64_t found = static_cast<std::int64_t>(all.weights.tensors.size());
  if (expected < 0 || expected == found) return {};
  return refuse(ErrorCode::bad_input, file,
                fmt::format("split.tensors.count is {}, but the shards hold {} tensors", expected, found));
}

Status read_others(Shards& all, const ShardName& name, const ModelFiles& folder, const LoadOptions& options) {
  for (std::int64_t number = 2; number <= name.count; ++number) {
    const std::string shard = shard_name(name, number);
    if (options.progress) options.progress(shard);
    const auto file = folder.open(shard);
    if (!file && file.error().code == ErrorCode::not_found) {
      const std::string absent = absent_shards(folder, name);
      return refuse(ErrorCode::not_found, folder.name(),
                    fmt::format("shards are absent: {}", absent.empty() ? shard : absent), "download them too");
    }
    if (!file) return tl::unexpected<Error>(file.error());
    Header header = GW_TRY(read_header(**file));
    GW_TRY(check_membership(header, (*file)->name(), number, name.count));
    GW_TRY(take(all, std::move(header), **file));
  }
  return {};
}

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view file_name) {
  constexpr std::string_view kPattern = "-00001-of-00002.gguf";
  constexpr std::size_t kDigits = 5;
  if (file_name.size() <= kPattern.size()) return std::nullopt;
  const std::string_view tail = file_name.substr(file_name.size() - kPattern.size());
  if (tail.front() != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  const auto number = to_integer(tail.substr(1, kDigits));
  const auto count = to_integer(tail.substr(10, kDigits));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return ShardName{std::string(file_name.substr(0, file_name.size() - kPattern.size())), *number, *count};
}

Result<Shards> read_shards(const ByteSource& first, const ModelFiles* folder, const LoadOptions& options) {
  Header header = GW_TRY(read_header(first));
  const std::int64_t count = header.integer("split.count").value_or(0);
  const std::int64_t number = header.integer("split.no").value_or(0) + 1;
  Shards all;
  if (count <= 1) {
    GW_TRY(take(all, std::move(header), first));
    return all;
  }
  const auto name = parse_shard_name(base_name(first.name()));
  if (!name || name->count != count || name->number != number)
    return refuse(ErrorCode::bad_input, first.name(),
                  fmt::format("is shard {} of {} by its header, but is not named like one", number, count),
                  fmt::format("give it its name back: NAME-{:05}-of-{:05}.gguf", number, count));
  if (number != 1)
    return refuse(ErrorCode::bad_input, first.name(), fmt::format("is shard {} of {}", number, count),
                  "name the first one: " + shard_name(*name, 1));
  if (folder == nullptr)
    return refuse(ErrorCode::not_found, first.name(), fmt::format("is the first of {} shards, and came alone", count));
  GW_TRY(take(all, std::move(header), first));
  GW_TRY(read_others(all, *name, *folder, options));
  GW_TRY(check_unique(all, first.name()));
  GW_TRY(check_total(all, first.name()));
  return all;
}

}  // namespace gpuwright::model::gguf

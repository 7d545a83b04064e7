// model.safetensors.index.json: {"metadata": {"total_size"}, "weight_map": {tensor: shard}}. Every tensor of the map
// must be in its shard and every tensor of a shard in the map. Shards are read by several threads: their headers are
// small, so opening and parsing dominate.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <thread>

#include "model/folder_choice.h"
#include "model/name_table.h"
#include "model/safetensors_header.h"

namespace gpuwright::model {
namespace {

namespace ondemand = simdjson::ondemand;

// DeepSeek-V3's index, one of the largest, has 9 MB and 163 shards.
constexpr std::int64_t kMaxIndexBytes = 256 << 20;
constexpr std::size_t kMaxShards = 10'000;

// The text of a JSON string up to its closing quote, where it holds no escapes: a view of the document itself.
std::optional<std::string_view> plain_text(const char* begin, const char* limit) {
  const auto* quote = static_cast<const char*>(std::memchr(begin, '"', static_cast<std::size_t>(limit - begin)));
  if (quote == nullptr) return std::nullopt;
  const std::string_view text(begin, static_cast<std::size_t>(quote - begin));
  if (text.find('\\') != std::string_view::npos) return std::nullopt;
  return text;
}

struct Index {
  std::string name;
  std::unique_ptr<char[]> text;  // the names are views of it
  const char* end = nullptr;
  ondemand::parser parser;  // owns the names that had escapes
  NameTable names;
  std::vector<std::uint16_t> shard_of;  // by number of the name
  std::vector<std::string> shards;      // in the order of their first mention
  std::optional<std::int64_t> total_size;

  tl::unexpected<Error> wrong(std::string what, std::string hint = {}) const {
    return fail_at(ErrorCode::bad_input, {name, std::nullopt, std::nullopt}, std::move(what), std::move(hint));
  }
};

bool is_plain_shard_name(std::string_view file) {
  return file.size() <= 512 && file.ends_with(".safetensors") && stays_inside(file);
}

// Gives each shard a number. The map is sorted by tensor, so the shard is mostly that of the tensor before.
class ShardNumbers {
 public:
  explicit ShardNumbers(Index& index) : index_(index) {}

  Result<std::uint16_t> number(std::string_view file) {
    if (!index_.shards.empty() && index_.shards[last_] == file) return last_;
    const auto known = numbers_.find(file);
    if (known != numbers_.end()) return last_ = known->second;
    if (!is_plain_shard_name(file))
      return index_.wrong(fmt::format("shard \"{}\" is not a .safetensors file of this folder", file.substr(0, 200)));
    if (index_.shards.size() == kMaxShards) return index_.wrong(fmt::format("more than {} shards", kMaxShards));
    last_ = static_cast<std::uint16_t>(index_.shards.size());
    index_.shards.emplace_back(file);
    numbers_.emplace(file, last_);
    return last_;
  }

 private:
  Index& index_;
  std::map<std::string, std::uint16_t, std::less<>> numbers_;
  std::uint16_t last_ = 0;
};

Status read_weight_map(ondemand::object& entries, Index& index) {
  ShardNumbers shards(index);
  for (auto entry : entries) {
    ondemand::field field;
    if (const auto error = std::move(entry).get(field)) return index.wrong(simdjson::error_message(error));
    auto tensor = plain_text(field.key().raw(), index.end);
    if (std::string_view text; !tensor && !field.unescaped_key().get(text)) tensor = text;
    if (!tensor) return index.wrong("weight_map holds a name that is not valid");
    if (tensor->size() > kMaxTensorName) return index.wrong("weight_map holds a tensor name that is too long");
    ondemand::raw_json_string value;
    if (field.value().get_raw_json_string().get(value))
      return index.wrong(fmt::format("weight_map: the shard of \"{}\" is not a string", tensor->substr(0, 200)));
    const auto shard = plain_text(value.raw(), index.end);
    if (!shard)
      return index.wrong(fmt::format("weight_map: the shard of \"{}\" is no plain file name", tensor->substr(0, 200)));
    if (!index.names.insert(*tensor).added)
      return index.wrong(fmt::format("weight_map names tensor \"{}\" twice", tensor->substr(0, 200)));
    index.shard_of.push_back(GW_TRY(shards.number(*shard)));
  }
  return {};
}

std::optional<std::int64_t> total_size_of(ondemand::value& metadata) {
  ondemand::object object;
  if (metadata.get_object().get(object)) return std::nullopt;
  std::int64_t size = 0;
  double as_written = 0;
  ondemand::value value;
  if (object.find_field_unordered("total_size").get(value)) return std::nullopt;
  if (!value.get_int64().get(size)) return size;
  // Some writers give 1.4e11.
  if (!value.get_double().get(as_written) && as_written >= 0 && as_written < 9e15)
    return static_cast<std::int64_t>(as_written);
  return std::nullopt;
}

Status read_index(const ByteSource& file, Index& index) {
  if (file.size() > kMaxIndexBytes)
    return index.wrong(
        fmt::format("an index of {} bytes, more than the {} that are read", file.size(), kMaxIndexBytes));
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(file.size(), 0));
  const std::size_t capacity = length + simdjson::SIMDJSON_PADDING;
  index.text = std::make_unique_for_overwrite<char[]>(capacity);
  const std::size_t got = GW_TRY(file.read_at(0, std::as_writable_bytes(std::span(index.text.get(), length))));
  std::memset(index.text.get() + got, 0, capacity - got);
  index.end = index.text.get() + got;
  index.names.reserve(length / 90);  // bytes an entry takes, about
  ondemand::document document;
  ondemand::object root;
  if (index.parser.iterate(index.text.get(), got, capacity).get(document) || document.get_object().get(root))
    return index.wrong("not a JSON object", "this should be a file like model.safetensors.index.json");
  bool has_map = false;
  for (auto entry : root) {
    ondemand::field field;
    if (const auto error = std::move(entry).get(field)) return index.wrong(simdjson::error_message(error));
    const ondemand::raw_json_string key = field.key();
    if (key == "metadata") {
      index.total_size = total_size_of(field.value());
    } else if (key == "weight_map") {
      ondemand::object entries;
      if (has_map || field.value().get_object().get(entries)) return index.wrong("weight_map is not one object");
      has_map = true;
      GW_TRY(read_weight_map(entries, index));
    }
  }
  if (!has_map) return index.wrong("it has no weight_map");
  if (index.shards.empty()) return index.wrong("its weight_map is empty");
  return {};
}

struct Shard {
  std::vector<StoredTensor> tensors;
  Bytes header_bytes;
  Bytes file_bytes;
  std::optional<Error> error;
};

// Indexes and headers are both sorted by name (headers within each dtype): the next tensor of a shard is mostly one or
// two entries after the one before, which is found without the table and its cache misses.
std::optional<std::uint32_t> number_near(const NameTable& names, std::string_view name, std::uint32_t near) {
  for (std::uint32_t next = near + 1; next <= near + 2 && next < names.size(); ++next)
    if (names.name(next) == name) return next;
  return names.find(name);
}

Status read_shard(const ModelFiles& folder, const Index& index, std::size_t number, SafetensorsScanner& scanner,
                  Shard& shard, std::vector<char>& seen) {
  const std::string& name = index.shards[number];
  auto opened = folder.open(name);
  if (!opened && opened.error().code == ErrorCode::not_found) {
    opened.error().what = fmt::format("shard {}, which {} names, is missing", name, index.name);
    opened.error().hint = "download the missing file";
  }
  const auto file = GW_TRY(std::move(opened));
  shard.file_bytes = {file->size()};
  shard.header_bytes = GW_TRY(scanner.scan(*file, shard.tensors, SafetensorsScanner::Names::checked_by_caller));
  std::uint32_t near = 0;
  for (const StoredTensor& tensor : shard.tensors) {
    const auto known = number_near(index.names, tensor.name, near);
    if (!known || index.shard_of[*known] != number)
      return fail_at(ErrorCode::bad_input, {file->name(), std::nullopt, std::nullopt},
                     fmt::format("tensor \"{}\" is in this shard, but {} says {}", tensor.name, index.name,
                                 known ? index.shards[index.shard_of[*known]] : "nothing of it"));
    near = *known;
    if (seen[near]++ != 0)  // each number belongs to one shard, so to one thread
      return fail_at(ErrorCode::bad_input, {file->name(), std::nullopt, std::nullopt},
                     fmt::format("damaged safetensors header: tensor \"{}\": the name comes twice", tensor.name));
  }
  return {};
}

void read_shards(const ModelFiles& folder, const Index& index, std::vector<Shard>& shards, std::vector<char>& seen) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    SafetensorsScanner scanner;
    for (std::size_t number = next++; number < shards.size(); number = next++) {
      auto status = read_shard(folder, index, number, scanner, shards[number], seen);
      if (status) continue;
      shards[number].error = std::move(status.error());
      next = shards.size();  // the others need not be read
    }
  };
  const std::size_t threads = std::min<std::size_t>(shards.size() / 4, static_cast<std::size_t>(folder.concurrency()));
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
}

}  // namespace

Result<WeightsFile> read_safetensors_index(const ModelFiles& folder, const std::string& index_name) {
  Index index;
  index.name = index_name;
  {
    const auto file = GW_TRY(folder.open(index_name));
    GW_TRY(read_index(*file, index));
  }
  std::vector<Shard> shards(index.shards.size());
  std::vector<char> seen(index.names.size(), 0);
  read_shards(folder, index, shards, seen);

  WeightsFile result;
  for (Shard& shard : shards)
    if (shard.error) return tl::unexpected(std::move(*shard.error));
  const auto absent = std::find(seen.begin(), seen.end(), 0);
  if (absent != seen.end()) {
    const auto number = static_cast<std::uint32_t>(absent - seen.begin());
    return index.wrong(fmt::format("it names tensor \"{}\" in {}, but that shard has no such tensor",
                                   index.names.name(number).substr(0, 200), index.shards[index.shard_of[number]]));
  }
  result.tensors.reserve(index.names.size());
  for (Shard& shard : shards) {
    result.header_bytes += shard.header_bytes;
    result.file_bytes += shard.file_bytes;
    std::move(shard.tensors.begin(), shard.tensors.end(), std::back_inserter(result.tensors));
    std::vector<StoredTensor>().swap(shard.tensors);
  }
  const Bytes tensor_bytes = result.file_bytes - result.header_bytes;
  if (index.total_size && *index.total_size != tensor_bytes.count)
    result.notes.push_back(fmt::format("{} says the tensors take {} bytes, the shards hold {}", index_name,
                                       *index.total_size, tensor_bytes.count));
  result.files = std::move(index.shards);
  return result;
}

}  // namespace gpuwright::model

// model.safetensors.index.json: {"metadata": {"total_size"}, "weight_map": {tensor: shard}}. Every tensor of the map
// must be in its shard and every tensor of a shard in the map. Shards are read by several threads: their headers are
// small, so opening and parsing dominate.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "base/json_reader.h"
#include "model/folder_choice.h"
#include "model/name_table.h"
#include "model/safetensors_header.h"

namespace gpuwright::model {
namespace {

// DeepSeek-V3's index, one of the largest, has 9 MB and 163 shards.
constexpr std::int64_t kMaxIndexBytes = 256 << 20;
constexpr std::size_t kMaxShards = 10'000;
constexpr std::size_t kBytesAnEntry = 90;  // about; for reserving only

struct Index {
  std::string name;
  std::unique_ptr<char[]> text;
  std::vector<std::string_view> names;  // views of the text
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

Status read_weight_map(JsonReader& reader, Index& index) {
  ShardNumbers shards(index);
  for (std::string_view tensor, shard; reader.next_member(tensor);) {
    if (tensor.size() > kMaxTensorName) return index.wrong("weight_map holds a tensor name that is too long");
    if (!reader.string(shard)) {
      if (!reader.ok()) return {};
      return index.wrong(fmt::format("weight_map: the shard of \"{}\" is not a string", tensor.substr(0, 200)));
    }
    index.names.push_back(tensor);
    index.shard_of.push_back(GW_TRY(shards.number(shard)));
  }
  return {};
}

std::optional<std::int64_t> read_total_size(JsonReader& reader) {
  std::optional<std::int64_t> total;
  if (!reader.begin_object()) return reader.skip(), total;
  for (std::string_view key; reader.next_member(key);) {
    std::int64_t size = 0;
    double as_written = 0;
    if (key != "total_size") {
      reader.skip();
    } else if (reader.integer(size)) {
      total = size;
    } else if (reader.number(as_written)) {  // some writers give 1.4e11
      if (as_written >= 0 && as_written < 9e15) total = static_cast<std::int64_t>(as_written);
    } else {
      reader.skip();
    }
  }
  return total;
}

Status read_index(const ByteSource& file, Index& index) {
  if (file.size() > kMaxIndexBytes)
    return index.wrong(
        fmt::format("an index of {} bytes, more than the {} that are read", file.size(), kMaxIndexBytes));
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(file.size(), 0));
  index.text = std::make_unique_for_overwrite<char[]>(length);
  const std::span<char> text(index.text.get(), length);
  const std::size_t got = GW_TRY(file.read_at(0, std::as_writable_bytes(text)));
  index.names.reserve(length / kBytesAnEntry);
  index.shard_of.reserve(length / kBytesAnEntry);
  JsonReader reader(text.first(got));
  bool has_map = false;
  if (!reader.begin_object())
    return index.wrong("not a JSON object", "this should be a file like model.safetensors.index.json");
  for (std::string_view key; reader.next_member(key);) {
    if (key == "metadata") {
      index.total_size = read_total_size(reader);
    } else if (key == "weight_map") {
      if (has_map || !reader.begin_object()) return index.wrong("weight_map is not one object");
      has_map = true;
      GW_TRY(read_weight_map(reader, index));
    } else {
      reader.skip();
    }
  }
  if (!reader.at_end())
    return index.wrong(fmt::format("not a JSON object: byte {}: {}", reader.position(),
                                   reader.ok() ? "something follows it" : reader.reason()));
  if (!has_map) return index.wrong("it has no weight_map");
  if (index.shards.empty()) return index.wrong("its weight_map is empty");
  return {};
}

// transformers writes the names in their order; where they are not in order, a table tells whether one comes twice.
Status check_names_differ(const Index& index) {
  const auto not_less = std::adjacent_find(index.names.begin(), index.names.end(), std::greater_equal<>());
  if (not_less == index.names.end()) return {};
  NameTable names;
  names.reserve(index.names.size());
  for (const std::string_view name : index.names)
    if (!names.insert(name).added)
      return index.wrong(fmt::format("weight_map names tensor \"{}\" twice", name.substr(0, 200)));
  return {};
}

// The entries of the index by shard: those of shard i are numbers[begin[i]] up to numbers[begin[i + 1]], in the order
// of the index.
struct Partition {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> numbers;

  std::span<const std::uint32_t> of(std::size_t shard) const {
    return std::span(numbers).subspan(begin[shard], begin[shard + 1] - begin[shard]);
  }
};

Partition partitioned(const Index& index) {
  Partition result;
  result.begin.assign(index.shards.size() + 1, 0);
  for (const std::uint16_t shard : index.shard_of) ++result.begin[shard + 1u];
  for (std::size_t i = 1; i < result.begin.size(); ++i) result.begin[i] += result.begin[i - 1];
  std::vector<std::uint32_t> next(result.begin.begin(), result.begin.end() - 1);
  result.numbers.resize(index.shard_of.size());
  for (std::uint32_t i = 0; i < index.shard_of.size(); ++i) result.numbers[next[index.shard_of[i]]++] = i;
  return result;
}

// The names that the index gives one shard. Indexes and headers are both sorted by name (headers within each dtype):
// the next tensor of a header is mostly one or two entries after the one before. Where it is not, a table of the few
// hundred names finds it.
class ShardNames {
 public:
  explicit ShardNames(const std::vector<std::string_view>& names) : names_(names) {}

  void begin(std::span<const std::uint32_t> numbers) {
    numbers_ = numbers;
    table_.clear();
    last_ = static_cast<std::size_t>(-1);
  }

  // The place among the shard's names.
  std::optional<std::size_t> find(std::string_view name) {
    for (std::size_t next = last_ + 1; next != last_ + 3 && next < numbers_.size(); ++next)
      if (names_[numbers_[next]] == name) return last_ = next;
    if (table_.size() == 0)
      for (const std::uint32_t number : numbers_) table_.insert(names_[number]);
    const auto found = table_.find(name);
    if (!found) return std::nullopt;
    return last_ = *found;
  }

 private:
  const std::vector<std::string_view>& names_;
  std::span<const std::uint32_t> numbers_;
  NameTable table_;
  std::size_t last_ = 0;
};

struct Shard {
  Bytes header_bytes;
  Bytes file_bytes;
  std::optional<Error> error;
  std::optional<std::uint32_t> absent;  // number of the first name of the index that the shard lacks
};

// What one thread needs to read shards, kept from one to the next.
class ShardReader {
 public:
  ShardReader(const ModelFiles& folder, const Index& index) : folder_(folder), index_(index), names_(index.names) {}

  // `numbers` are the shard's entries in the index, `tensors` the places for as many.
  Status read(std::size_t number, std::span<const std::uint32_t> numbers, std::span<StoredTensor> tensors,
              Shard& shard) {
    const auto file = GW_TRY(open(index_.shards[number]));
    shard.file_bytes = {file->size()};
    found_.clear();
    shard.header_bytes = GW_TRY(scanner_.scan(*file, found_, SafetensorsScanner::Names::checked_by_caller));
    names_.begin(numbers);
    seen_.assign(numbers.size(), 0);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const auto place = names_.find(found_[i].name);
      if (!place) return not_of_this_shard(*file, found_[i].name);
      if (seen_[*place]++ != 0)
        return fail_at(ErrorCode::bad_input, {file->name(), std::nullopt, std::nullopt},
                       fmt::format("damaged safetensors header: tensor \"{}\": the name comes twice", found_[i].name));
      tensors[i] = found_[i];
      tensors[i].name = index_.names[numbers[*place]];  // which outlives the scanner's text
    }
    const auto absent = std::find(seen_.begin(), seen_.end(), 0);
    if (absent != seen_.end()) shard.absent = numbers[static_cast<std::size_t>(absent - seen_.begin())];
    return {};
  }

 private:
  Result<std::unique_ptr<ByteSource>> open(const std::string& name) const {
    auto opened = folder_.open(name);
    if (!opened && opened.error().code == ErrorCode::not_found) {
      opened.error().what = fmt::format("shard {}, which {} names, is missing", name, index_.name);
      opened.error().hint = "download the missing file";
    }
    return opened;
  }

  Status not_of_this_shard(const ByteSource& file, std::string_view tensor) const {
    const auto entry = std::find(index_.names.begin(), index_.names.end(), tensor);
    return fail_at(
        ErrorCode::bad_input, {file.name(), std::nullopt, std::nullopt},
        fmt::format("tensor \"{}\" is in this shard, but {} says {}", tensor, index_.name,
                    entry == index_.names.end()
                        ? "nothing of it"
                        : index_.shards[index_.shard_of[static_cast<std::size_t>(entry - index_.names.begin())]]));
  }

  const ModelFiles& folder_;
  const Index& index_;
  SafetensorsScanner scanner_;
  ShardNames names_;
  std::vector<StoredTensor> found_;
  std::vector<char> seen_;
};

void read_shards(const ModelFiles& folder, const Index& index, const Partition& partition, std::vector<Shard>& shards,
                 std::vector<StoredTensor>& tensors) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    ShardReader reader(folder, index);
    for (std::size_t number = next++; number < shards.size(); number = next++) {
      const auto numbers = partition.of(number);
      const auto places = std::span(tensors).subspan(partition.begin[number], numbers.size());
      auto status = reader.read(number, numbers, places, shards[number]);
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

// What is wrong with the shards, if anything: the first of them tells.
Status check(const Index& index, std::vector<Shard>& shards) {
  std::optional<std::uint32_t> absent;
  for (Shard& shard : shards) {
    if (shard.error) return tl::unexpected(std::move(*shard.error));
    if (shard.absent && (!absent || *shard.absent < *absent)) absent = shard.absent;
  }
  if (!absent) return {};
  return index.wrong(fmt::format("it names tensor \"{}\" in {}, but that shard has no such tensor",
                                 index.names[*absent].substr(0, 200), index.shards[index.shard_of[*absent]]));
}

}  // namespace

Result<WeightsFile> read_safetensors_index(const ModelFiles& folder, const std::string& index_name) {
  Index index;
  index.name = index_name;
  {
    const auto file = GW_TRY(folder.open(index_name));
    GW_TRY(read_index(*file, index));
  }
  GW_TRY(check_names_differ(index));
  WeightsFile result;
  result.tensors.resize(index.names.size());
  std::vector<Shard> shards(index.shards.size());
  read_shards(folder, index, partitioned(index), shards, result.tensors);
  GW_TRY(check(index, shards));

  for (const Shard& shard : shards) {
    result.header_bytes += shard.header_bytes;
    result.file_bytes += shard.file_bytes;
  }
  const Bytes tensor_bytes = result.file_bytes - result.header_bytes;
  if (index.total_size && *index.total_size != tensor_bytes.count)
    result.notes.push_back(fmt::format("{} says the tensors take {} bytes, the shards hold {}", index_name,
                                       *index.total_size, tensor_bytes.count));
  result.files = std::move(index.shards);
  result.texts.push_back(std::move(index.text));
  return result;
}

}  // namespace gpuwright::model

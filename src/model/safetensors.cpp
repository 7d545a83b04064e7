// safetensors: 8 bytes of length, a JSON header {"name": {"dtype", "shape", "data_offsets"}}, then the tensors' bytes
// without gaps. Format: README "Format" and safetensors/src/tensor.rs of huggingface/safetensors (0.8). As there,
// offsets must tile the data exactly, the data must end where the file ends, and no name comes twice.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/json_reader.h"
#include "model/name_table.h"
#include "model/safetensors_header.h"

namespace gpuwright::model {
namespace {

constexpr std::int64_t kLengthField = 8;
constexpr std::size_t kBytesATensor = 120;  // of a header, about; for reserving only

struct Format {
  const char* name;
  Dtype dtype;
  std::int64_t bits;
};
// Dtype::bitsize of tensor.rs. The most frequent first.
constexpr Format kFormats[] = {{"BF16", Dtype::bf16, 16},
                               {"F16", Dtype::f16, 16},
                               {"F32", Dtype::f32, 32},
                               {"F8_E4M3", Dtype::f8_e4m3, 8},
                               {"U8", Dtype::u8, 8},
                               {"I32", Dtype::i32, 32},
                               {"I8", Dtype::i8, 8},
                               {"I64", Dtype::i64, 64},
                               {"F8_E5M2", Dtype::f8_e5m2, 8},
                               {"F8_E8M0", Dtype::f8_e8m0, 8},
                               {"F4", Dtype::f4, 4},
                               {"F6_E2M3", Dtype::f6, 6},
                               {"F6_E3M2", Dtype::f6, 6},
                               {"F64", Dtype::f64, 64},
                               {"U32", Dtype::u32, 32},
                               {"U64", Dtype::u64, 64},
                               {"I16", Dtype::i16, 16},
                               {"U16", Dtype::u16, 16},
                               {"C64", Dtype::complex64, 64},
                               {"BOOL", Dtype::boolean, 8},
                               {"F8_E4M3FNUZ", Dtype::f8_e4m3, 8},
                               {"F8_E5M2FNUZ", Dtype::f8_e5m2, 8}};

struct Extent {
  std::int64_t begin;
  std::int64_t end;
  std::uint32_t tensor;
  std::int64_t byte;  // of its name in the file
  auto operator<=>(const Extent&) const = default;
};

// The fields of one tensor as they come, in any order.
struct Fields {
  std::string_view dtype;
  bool has_dtype = false, has_shape = false, has_offsets = false;
  std::int64_t rows = 1, columns = 1;
  std::int64_t begin = 0, end = 0;
};

}  // namespace

struct SafetensorsScanner::State {
  std::unique_ptr<char[]> text;
  std::size_t capacity = 0;
  std::vector<Extent> extents;
  NameTable names;
};

namespace {

// One file's header. Errors carry the offset in the file of the name of the tensor they are about.
class Header {
 public:
  Header(const ByteSource& file, std::span<char> text) : file_(file), text_(text.data()), reader_(text) {}

  // `names` is null when somebody else looks for duplicates.
  Status read(NameTable* names, std::vector<Extent>& extents, std::vector<StoredTensor>& tensors) {
    if (!reader_.begin_object()) return broken("the header is not a JSON object");
    for (std::string_view name; reader_.next_member(name);) {
      at_ = kLengthField + (name.data() - text_);
      GW_TRY(read_entry(name, names, extents, tensors));
    }
    if (!reader_.ok()) return broken(fmt::format("the header is not a JSON object: {}", reader_.reason()));
    if (!reader_.at_end()) return broken("something follows the JSON object of the header");
    return {};
  }

 private:
  tl::unexpected<Error> broken(std::string_view what) const {
    return fail_at(ErrorCode::bad_input, {file_.name(), std::nullopt, at_},
                   fmt::format("damaged safetensors header: {}", what));
  }
  tl::unexpected<Error> wrong(std::string_view tensor, std::string_view what) const {
    return broken(fmt::format("tensor \"{}\": {}", tensor.substr(0, 200), what));
  }

  Status read_entry(std::string_view name, NameTable* names, std::vector<Extent>& extents,
                    std::vector<StoredTensor>& tensors) {
    if (name.size() > kMaxTensorName) return wrong(name, fmt::format("a name of {} bytes", name.size()));
    if (names != nullptr && !names->insert(name).added) return wrong(name, "the name comes twice");
    if (!reader_.begin_object()) return wrong(name, "its description is not an object");
    if (name == "__metadata__") return skim_metadata();

    const Fields fields = GW_TRY(read_fields(name));
    const Format* format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                        [&](const Format& row) { return fields.dtype == row.name; });
    const bool known = format != std::end(kFormats);
    const Bytes bytes{fields.end - fields.begin};
    extents.push_back({fields.begin, fields.end, static_cast<std::uint32_t>(tensors.size()), at_});
    tensors.push_back({name, known ? format->dtype : Dtype::unknown, known ? format->name : nullptr, fields.rows,
                       fields.columns, bytes});
    return known ? check_size(tensors.back(), *format) : Status{};
  }

  Status check_size(const StoredTensor& tensor, const Format& format) const {
    const auto elements = checked_multiply(tensor.rows, tensor.columns);
    const auto total = elements ? checked_multiply(*elements, format.bits) : std::nullopt;
    if (!total) return wrong(tensor.name, "its shape overflows 63 bits");
    if (*total % 8 != 0) return wrong(tensor.name, "its elements do not fill whole bytes");
    if (*total / 8 != tensor.bytes.count)
      return wrong(tensor.name, fmt::format("shape and dtype {} need {} bytes, its offsets span {}", format.name,
                                            *total / 8, tensor.bytes.count));
    return {};
  }

  Status skim_metadata() {
    std::string_view text;
    while (reader_.next_member(text))
      if (!reader_.string(text)) return broken("__metadata__ must hold strings only");
    return {};  // what the reader found broken, read() tells
  }

  Result<Fields> read_fields(std::string_view name) {
    Fields fields;
    for (std::string_view key; reader_.next_member(key);) {
      if (key == "dtype") {
        if (!reader_.string(fields.dtype) || fields.has_dtype || fields.dtype.size() > 32)
          return wrong(name, "its dtype is not a short string");
        fields.has_dtype = true;
      } else if (key == "shape") {
        GW_TRY(read_shape(name, fields));
      } else if (key == "data_offsets") {
        GW_TRY(read_offsets(name, fields));
      } else if (!reader_.skip()) {
        break;
      }
    }
    if (!reader_.ok()) return wrong(name, reader_.reason());
    if (!fields.has_dtype || !fields.has_shape || !fields.has_offsets)
      return wrong(name, "it lacks dtype, shape or data_offsets");
    return fields;
  }

  Status read_shape(std::string_view name, Fields& fields) {
    if (fields.has_shape || !reader_.begin_array()) return wrong(name, "its shape is not one array");
    fields.has_shape = true;
    while (reader_.next_item()) {
      std::int64_t dimension = 0;
      if (!reader_.integer(dimension) || dimension < 0)
        return wrong(name, "its shape holds something that is not a size");
      const auto rows = checked_multiply(fields.rows, fields.columns);
      if (!rows) return wrong(name, "its shape overflows 63 bits");
      fields.rows = *rows;
      fields.columns = dimension;
    }
    return {};
  }

  Status read_offsets(std::string_view name, Fields& fields) {
    if (fields.has_offsets || !reader_.begin_array()) return wrong(name, "its data_offsets are not one array");
    fields.has_offsets = true;
    std::int64_t numbers[2] = {0, 0};
    std::size_t count = 0;
    for (; reader_.next_item(); ++count)
      if (count == 2 || !reader_.integer(numbers[count]))
        return wrong(name, "its data_offsets are not two whole numbers");
    if (count != 2 || numbers[0] < 0 || numbers[1] < numbers[0])
      return wrong(name, "its data_offsets are not a begin and an end behind it");
    fields.begin = numbers[0];
    fields.end = numbers[1];
    return {};
  }

  const ByteSource& file_;
  const char* text_;
  JsonReader reader_;
  std::int64_t at_ = kLengthField;
};

// Sorted by offset, each tensor must begin where the one before it ended.
Status check_tiling(const ByteSource& file, std::vector<Extent>& extents, const std::vector<StoredTensor>& tensors,
                    std::int64_t header) {
  if (!std::is_sorted(extents.begin(), extents.end())) std::sort(extents.begin(), extents.end());
  std::int64_t expected = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != expected) {
      const std::int64_t gap = extent.begin - expected;
      return fail_at(
          ErrorCode::bad_input, {file.name(), std::nullopt, extent.byte},
          fmt::format("damaged safetensors header: tensor \"{}\" {}", tensors[extent.tensor].name.substr(0, 200),
                      gap > 0 ? fmt::format("leaves a hole of {} bytes before it", gap)
                              : fmt::format("overlaps {} bytes of another tensor", -gap)));
    }
    expected = extent.end;
  }
  const auto total = checked_add(expected, header);
  if (total == file.size()) return {};
  const bool cut = !total || *total > file.size();
  return fail_at(ErrorCode::bad_input, {file.name(), std::nullopt, std::nullopt},
                 fmt::format("the header describes {} bytes of tensors after {} of header, but the file has {} in all",
                             expected, header, file.size()),
                 cut ? "the file is cut short: download it again" : "");
}

Result<std::int64_t> read_header_length(const ByteSource& file) {
  unsigned char bytes[kLengthField] = {};
  const std::size_t got = GW_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
  const auto bad = [&](std::string what, std::string hint = {}) {
    return fail_at(ErrorCode::bad_input, {file.name(), std::nullopt, 0}, std::move(what), std::move(hint));
  };
  if (got < sizeof bytes) return bad(fmt::format("no safetensors file: only {} bytes long", got));
  if (std::memcmp(bytes, "version ", kLengthField) == 0)
    return bad("a Git LFS pointer, not the file itself", "fetch it with: git lfs pull");
  std::uint64_t length = 0;
  for (std::size_t i = sizeof bytes; i-- > 0;) length = length << 8 | bytes[i];
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeader))
    return bad(fmt::format("the header claims {} bytes, the format allows {}", length, kMaxSafetensorsHeader),
               "this may be no safetensors file");
  if (static_cast<std::int64_t>(length) > file.size() - kLengthField)
    return bad(fmt::format("the header claims {} bytes, the file has {}", length, file.size()),
               "the file is cut short");
  return static_cast<std::int64_t>(length);
}

}  // namespace

SafetensorsScanner::SafetensorsScanner() : state_(std::make_unique<State>()) {}
SafetensorsScanner::~SafetensorsScanner() = default;
SafetensorsScanner::SafetensorsScanner(SafetensorsScanner&&) noexcept = default;

Result<Bytes> SafetensorsScanner::scan(const ByteSource& file, std::vector<StoredTensor>& tensors, Names names) {
  const std::int64_t length = GW_TRY(read_header_length(file));
  const auto size = static_cast<std::size_t>(length);
  if (size > state_->capacity) {
    state_->text = std::make_unique_for_overwrite<char[]>(size);
    state_->capacity = size;
  }
  const std::span<char> text(state_->text.get(), size);
  const std::size_t got = GW_TRY(file.read_at(kLengthField, std::as_writable_bytes(text)));
  if (got < size)
    return fail_at(ErrorCode::bad_input, {file.name(), std::nullopt, kLengthField + static_cast<std::int64_t>(got)},
                   "the file ends inside its header");
  state_->names.clear();
  tensors.reserve(tensors.size() + size / kBytesATensor);
  state_->extents.clear();
  GW_TRY(Header(file, text).read(names == Names::must_differ ? &state_->names : nullptr, state_->extents, tensors));
  GW_TRY(check_tiling(file, state_->extents, tensors, kLengthField + length));
  return Bytes{kLengthField + length};
}

std::unique_ptr<char[]> SafetensorsScanner::take_text() {
  state_->capacity = 0;
  return std::move(state_->text);
}

Result<WeightsFile> read_safetensors(const ByteSource& file) {
  WeightsFile result;
  SafetensorsScanner scanner;
  result.header_bytes = GW_TRY(scanner.scan(file, result.tensors));
  result.texts.push_back(scanner.take_text());
  result.file_bytes = {file.size()};
  result.files.push_back(file.name());
  return result;
}

}  // namespace gpuwright::model

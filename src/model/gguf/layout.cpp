#include "model/gguf/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "model/gguf/types.h"

namespace gpuwright::model::gguf {
namespace {

// No storage format takes less than an eighth of a bit for a weight: a table that says so is damaged, and its sums
// would not fit into 63 bits.
constexpr std::int64_t kMostElementsPerByte = 64;

tl::unexpected<Error> refuse(const Header& header, const std::string& file_name, const TensorInfo& tensor,
                             std::string_view what, std::string hint = {}) {
  return fail_at(ErrorCode::bad_input, {file_name, std::nullopt, header.data_offset + tensor.offset},
                 fmt::format("tensor \"{}\" {}", tensor.name, what), std::move(hint));
}

StoredTensor described(const TensorInfo& tensor) {
  StoredTensor stored;
  stored.name = tensor.name;
  stored.dtype = dtype_of(tensor.type);
  stored.columns = tensor.dimensions[0];
  stored.rows = tensor.dimensions[1] * tensor.dimensions[2] * tensor.dimensions[3];  // checked by the header reader
  return stored;
}

Result<Bytes> bytes_of(const Header& header, const std::string& file_name, const TensorInfo& tensor,
                       const StoredTensor& stored, std::int64_t room) {
  if (stored.dtype == Dtype::unknown) {
    if (room >= 0 && stored.rows * stored.columns / kMostElementsPerByte <= room) return Bytes{room};
    return refuse(header, file_name, tensor,
                  fmt::format("has {} elements in {} bytes", stored.rows * stored.columns, room));
  }
  const std::int64_t block = traits(stored.dtype).block_elements;
  if (stored.columns % block != 0)
    return refuse(header, file_name, tensor,
                  fmt::format("has rows of {} elements, no multiple of {}'s block of {}", stored.columns,
                              type_name(tensor.type), block));
  const auto bytes = storage_bytes(stored.dtype, stored.rows, stored.columns);
  if (!bytes) return refuse(header, file_name, tensor, "takes more bytes than 63 bits can count");
  return *bytes;
}

}  // namespace

Result<std::vector<StoredTensor>> lay_out(const Header& header, const std::string& file_name) {
  std::vector<std::size_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return header.tensors[a].offset < header.tensors[b].offset; });
  const std::int64_t data_bytes = header.file_bytes - header.data_offset;
  std::vector<StoredTensor> stored(header.tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TensorInfo& tensor = header.tensors[order[i]];
    const bool last = i + 1 == order.size();
    const std::int64_t end = last ? data_bytes : header.tensors[order[i + 1]].offset;
    if (tensor.offset % header.alignment != 0)
      return refuse(header, file_name, tensor,
                    fmt::format("begins at {}, off the alignment of {}", tensor.offset, header.alignment));
    if (tensor.offset > data_bytes)
      return refuse(header, file_name, tensor, "begins beyond the end of the file", "it is cut off or damaged");
    StoredTensor& result = stored[order[i]] = described(tensor);
    result.bytes = GW_TRY(bytes_of(header, file_name, tensor, result, std::min(end, data_bytes) - tensor.offset));
    if (result.bytes.count > data_bytes - tensor.offset)
      return refuse(
          header, file_name, tensor,
          fmt::format("needs {} bytes, where the file has {} left", result.bytes.count, data_bytes - tensor.offset),
          "the file is cut off or not fully downloaded");
    if (result.bytes.count > end - tensor.offset)
      return refuse(header, file_name, tensor, fmt::format("overlaps \"{}\"", header.tensors[order[i + 1]].name));
  }
  return stored;
}

}  // namespace gpuwright::model::gguf

#include "model/onnx/types.h"

#include <array>
#include <string_view>

#include "base/units.h"

namespace gpuwright::model::onnx {
namespace {

struct Row {
  std::string_view name;  // empty: the dtype's own
  Dtype dtype;
  std::int64_t bits;
};

// By TensorProto.DataType. Unsigned 4-bit numbers share the dtype of signed ones; 2-bit and complex128 have none.
constexpr std::array kRows = {
    Row{"undefined", Dtype::unknown, 0},
    Row{"", Dtype::f32, 32},
    Row{"", Dtype::u8, 8},
    Row{"", Dtype::i8, 8},
    Row{"", Dtype::u16, 16},
    Row{"", Dtype::i16, 16},
    Row{"", Dtype::i32, 32},
    Row{"", Dtype::i64, 64},
    Row{"STRING", Dtype::unknown, 0},
    Row{"", Dtype::boolean, 8},
    Row{"", Dtype::f16, 16},
    Row{"", Dtype::f64, 64},
    Row{"", Dtype::u32, 32},
    Row{"", Dtype::u64, 64},
    Row{"", Dtype::complex64, 64},
    Row{"C128", Dtype::unknown, 128},
    Row{"", Dtype::bf16, 16},
    Row{"", Dtype::f8_e4m3, 8},
    Row{"F8_E4M3FNUZ", Dtype::f8_e4m3, 8},
    Row{"", Dtype::f8_e5m2, 8},
    Row{"F8_E5M2FNUZ", Dtype::f8_e5m2, 8},
    Row{"U4", Dtype::i4, 4},
    Row{"", Dtype::i4, 4},
    Row{"", Dtype::f4, 4},
    Row{"", Dtype::f8_e8m0, 8},
    Row{"U2", Dtype::unknown, 2},
    Row{"I2", Dtype::unknown, 2},
};

}  // namespace

ElementType element_type(std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(kRows.size()))
    return {Dtype::unknown, "type " + std::to_string(number), 0};
  const Row& row = kRows[static_cast<std::size_t>(number)];
  return {row.dtype, std::string(row.name.empty() ? traits(row.dtype).name : row.name), row.bits};
}

std::optional<std::int64_t> packed_bytes(const ElementType& type, std::int64_t elements) {
  if (type.bits == 0) return std::nullopt;
  const auto bits = checked_multiply(elements, type.bits);
  return bits ? std::optional(*bits / 8 + (*bits % 8 != 0 ? 1 : 0)) : std::nullopt;
}

}  // namespace gpuwright::model::onnx

#include "model/config/plan.h"

#include <fmt/format.h>

#include "base/units.h"

namespace gpuwright::model {
namespace {

constexpr std::int64_t kMaxTotal = std::int64_t{1} << 60;

// Bytes of `elements` packed at `bits` each.
std::int64_t packed_bytes(std::int64_t elements, std::int64_t bits) {
  return divide_up(elements * bits, 8);
}

bool quantisable(TensorRole role, const Quantization& scheme) {
  switch (role) {
    case TensorRole::output_head:
      return scheme.head_too;
    case TensorRole::vision:
      return scheme.towers_too;
    case TensorRole::expert:
      return true;
    case TensorRole::router:
    case TensorRole::norm:
    case TensorRole::token_embedding:
    case TensorRole::position_embedding:
      return false;
    default:
      return !scheme.experts_only;
  }
}

Dtype stored_as(const Quantization& scheme) {
  switch (scheme.method) {
    case QuantizationMethod::bnb_nf4:
      return Dtype::bnb_nf4;
    case QuantizationMethod::bnb_nf4_dq:
      return Dtype::bnb_nf4_dq;
    case QuantizationMethod::grouped_int:
      return scheme.bits == 4 ? Dtype::i4 : scheme.bits == 8 ? Dtype::i8 : Dtype::unknown;
    case QuantizationMethod::bnb_int8:
    case QuantizationMethod::int8_channel:
      return Dtype::i8;
    case QuantizationMethod::mxfp4:
    case QuantizationMethod::nvfp4:
      return Dtype::f4;
    default:
      return Dtype::f8_e4m3;
  }
}

// bitsandbytes flattens the matrix before it cuts it into blocks of 64 (functional.quantize_4bit); the absmax of a
// block is fp32, or one byte plus an fp32 per 256 blocks and one fp32 offset with double quantisation.
std::int64_t nf4_bytes(std::int64_t elements, bool double_quantised) {
  const std::int64_t blocks = divide_up(elements, 64);
  const std::int64_t absmax = double_quantised ? blocks + 4 * divide_up(blocks, 256) + 4 : 4 * blocks;
  return divide_up(elements, 2) + absmax;
}

std::int64_t weight_bytes(const Quantization& scheme, std::int64_t elements) {
  switch (scheme.method) {
    case QuantizationMethod::bnb_nf4:
      return nf4_bytes(elements, false);
    case QuantizationMethod::bnb_nf4_dq:
      return nf4_bytes(elements, true);
    case QuantizationMethod::grouped_int:
      return packed_bytes(elements, scheme.bits);
    case QuantizationMethod::mxfp4:
    case QuantizationMethod::nvfp4:
      return packed_bytes(elements, 4);
    default:
      return elements;
  }
}

}  // namespace

void Plan::add(Tensor tensor) {
  const auto matrix = checked_multiply(tensor.rows, tensor.columns);
  const auto weights = matrix ? checked_multiply(*matrix, tensor.copies) : std::nullopt;
  if (!weights || *weights > kMaxTotal - total_weights_ || tensor.bytes.count > kMaxTotal - total_bytes_) {
    reading_.wrong(fmt::format("{} would be {} x {} x {} numbers large, too much for any machine", tensor.name,
                               tensor.rows, tensor.columns, tensor.copies));
    return;
  }
  total_weights_ += *weights;
  total_bytes_ += tensor.bytes.count;
  tensors_.push_back(std::move(tensor));
}

void Plan::add(TensorRole role, std::int32_t layer, std::string name, Dtype dtype, std::int64_t rows,
               std::int64_t columns, std::int64_t copies) {
  Tensor tensor{.name = std::move(name),
                .role = role,
                .dtype = dtype,
                .layer = layer,
                .rows = rows,
                .columns = columns,
                .copies = copies,
                .weights_per_element = 1,
                .bytes = {}};
  const auto one = storage_bytes(dtype, rows, columns);
  const auto all = one ? checked_multiply(one->count, copies) : std::nullopt;
  tensor.bytes = {all.value_or(kMaxTotal)};
  add(std::move(tensor));
}

void Plan::matrix(TensorRole role, std::int32_t layer, std::string name, std::int64_t rows, std::int64_t columns,
                  std::int64_t copies) {
  if (rows == 0 || columns == 0 || copies == 0) return;
  add(role, layer, std::move(name), dtype_, rows, columns, copies);
}

void Plan::set_role(std::size_t first, TensorRole role) {
  for (std::size_t i = first; i < tensors_.size(); ++i)
    if (tensors_[i].role != TensorRole::quantization) tensors_[i].role = role;
}

void Plan::vector_f32(TensorRole role, std::int32_t layer, std::string name, std::int64_t elements) {
  add(role, layer, std::move(name), Dtype::f32, 1, elements, 1);
}

void Plan::norm(std::int32_t layer, const std::string& module, std::int64_t width, bool bias, TensorRole role) {
  vector(role, layer, module + ".weight", width);
  if (bias) vector(role, layer, module + ".bias", width);
}

void Plan::linear(TensorRole role, std::int32_t layer, const std::string& module, std::int64_t outputs,
                  std::int64_t inputs, LinearOptions options) {
  const bool plain = quantization_.method == QuantizationMethod::none || !quantisable(role, quantization_) ||
                     quantization_.skips(module);
  if (plain) {
    matrix(role, layer, module + ".weight", outputs, inputs, options.copies);
  } else if (const auto elements = checked_multiply(outputs, inputs); elements && *elements < kMaxTotal / 64) {
    Tensor tensor{.name = module + ".weight",
                  .role = role,
                  .dtype = stored_as(quantization_),
                  .layer = layer,
                  .rows = outputs,
                  .columns = inputs,
                  .copies = options.copies,
                  .weights_per_element = 1,
                  .bytes = {}};
    const auto bytes = checked_multiply(weight_bytes(quantization_, *elements), options.copies);
    tensor.bytes = {bytes.value_or(kMaxTotal)};
    add(std::move(tensor));
    add_scales(quantization_, layer, module, outputs, inputs, options.copies);
  } else {
    reading_.wrong(fmt::format("{} would be {} x {} numbers large", module, outputs, inputs));
  }
  if (options.bias) vector(role, layer, module + ".bias", outputs, options.copies);
}

void Plan::add_scales(const Quantization& scheme, std::int32_t layer, const std::string& module, std::int64_t outputs,
                      std::int64_t inputs, std::int64_t copies) {
  const auto put = [&](std::string_view suffix, Dtype dtype, std::int64_t rows, std::int64_t columns) {
    add(TensorRole::quantization, layer, fmt::format("{}.{}", module, suffix), dtype, rows, columns, copies);
  };
  const Dtype scale = scheme.scales_are_half ? Dtype::f16 : Dtype::f32;
  switch (scheme.method) {
    case QuantizationMethod::bnb_int8:
      put("SCB", Dtype::f32, 1, outputs);
      break;
    case QuantizationMethod::grouped_int: {
      const std::int64_t groups = scheme.group_size > 0 ? divide_up(inputs, scheme.group_size) : 1;
      put("scales", scale, groups, outputs);
      if (scheme.zero_points) put("qzeros", Dtype::u8, groups, packed_bytes(outputs, scheme.bits));
      if (scheme.group_index) put("g_idx", Dtype::i32, 1, inputs);
      break;
    }
    case QuantizationMethod::int8_channel:
    case QuantizationMethod::fp8_channel:
      put("weight_scale", scale, outputs, 1);
      break;
    case QuantizationMethod::fp8_tensor:
      put("weight_scale", Dtype::f32, 1, 1);
      break;
    case QuantizationMethod::fp8_block:
      put("weight_scale_inv", Dtype::f32, divide_up(outputs, scheme.block_rows),
          divide_up(inputs, scheme.block_columns));
      break;
    case QuantizationMethod::mxfp4:
      put("scales", Dtype::u8, outputs, divide_up(inputs, 32));
      break;
    case QuantizationMethod::nvfp4:
      put("weight_scale", Dtype::f8_e4m3, outputs, divide_up(inputs, 16));
      put("weight_scale_2", Dtype::f32, 1, 1);
      break;
    default:
      break;
  }
  if (scheme.input_scale) put("input_scale", Dtype::f32, 1, 1);
}

}  // namespace gpuwright::model

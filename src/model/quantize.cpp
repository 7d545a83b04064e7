#include "model/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/quantize_mix.h"

namespace gpuwright::model {
namespace {

// Formats of PyTorch checkpoints and engines. Bytes of one matrix of `rows` output by `columns` input weights:
//   fp8         1 B a weight and one fp32 scale a matrix
//   fp8-block   one fp32 scale per 128 x 128 block (DeepSeek-V3 technical report, section 3.3.2)
//   bnb-int8    1 B and one fp32 per row (LLM.int8, arXiv 2208.07339)
//   bnb-nf4     4 bit and one fp32 per 64; -dq: double quantisation (QLoRA, arXiv 2305.14314, section 3)
//   gptq, awq   int4 (int8) with an fp16 scale and a zero point of the same width per group; gptq adds the group
//               index of each input row, int32 (AutoGPTQ, AutoAWQ layouts)
//   mxfp4       4 bit and 8-bit scale per 32 (OCP MX v1.0); experts only, as in gpt-oss
//   nvfp4       4 bit, fp8 scale per 16, one fp32 scale a matrix
enum class Packing : std::uint8_t { plain, fp8, fp8_block, bnb_int8, bnb_nf4, bnb_nf4_dq, gptq, awq, mxfp4, nvfp4 };

struct Scheme {
  Packing packing = Packing::plain;
  Dtype plain = Dtype::unknown;
  std::int64_t bits = 4;
  std::int64_t group = 128;
};

struct SchemeRow {
  std::string_view name;
  Scheme scheme;
};
constexpr std::array kSchemes = {
    SchemeRow{"fp32", {Packing::plain, Dtype::f32, 32, 0}},
    SchemeRow{"fp16", {Packing::plain, Dtype::f16, 16, 0}},
    SchemeRow{"bf16", {Packing::plain, Dtype::bf16, 16, 0}},
    SchemeRow{"fp8", {Packing::fp8, Dtype::f8_e4m3, 8, 0}},
    SchemeRow{"fp8-block", {Packing::fp8_block, Dtype::f8_e4m3, 8, 128}},
    SchemeRow{"bnb-int8", {Packing::bnb_int8, Dtype::i8, 8, 0}},
    SchemeRow{"bnb-nf4", {Packing::bnb_nf4, Dtype::bnb_nf4, 4, 64}},
    SchemeRow{"bnb-nf4-dq", {Packing::bnb_nf4_dq, Dtype::bnb_nf4_dq, 4, 64}},
    SchemeRow{"gptq-int4", {Packing::gptq, Dtype::i4, 4, 128}},
    SchemeRow{"gptq-int8", {Packing::gptq, Dtype::i8, 8, 128}},
    SchemeRow{"awq-int4", {Packing::awq, Dtype::i4, 4, 128}},
    SchemeRow{"mxfp4", {Packing::mxfp4, Dtype::mxfp4, 4, 32}},
    SchemeRow{"nvfp4", {Packing::nvfp4, Dtype::nvfp4, 4, 16}},
};

std::optional<Scheme> scheme_named(std::string_view name) {
  std::string wanted = lower(name.substr(0, 32));
  std::int64_t group = 0;
  if (const auto at = wanted.rfind("-g"); at != std::string::npos) {
    const auto number = to_integer(std::string_view(wanted).substr(at + 2));
    if (number && *number >= 8 && *number <= 65536) {
      group = *number;
      wanted.resize(at);
    }
  }
  for (const SchemeRow& row : kSchemes) {
    if (row.name != wanted) continue;
    Scheme scheme = row.scheme;
    if (group != 0 && scheme.packing != Packing::gptq && scheme.packing != Packing::awq) return std::nullopt;
    if (group != 0) scheme.group = group;
    return scheme;
  }
  return std::nullopt;
}

bool is_plain(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

// Linear layers of the blocks; embeddings, head, norms, router, convolutions and vision towers stay 16-bit.
bool is_linear(const Tensor& tensor) {
  if (tensor.rows <= 1 || tensor.columns <= 1) return false;
  if (tensor.name.find("conv") != std::string::npos || tensor.name.find("A_log") != std::string::npos) return false;
  switch (tensor.role) {
    case TensorRole::attention:
    case TensorRole::attention_kv_a:
    case TensorRole::feed_forward:
    case TensorRole::expert:
    case TensorRole::shared_expert:
    case TensorRole::recurrent:
    case TensorRole::encoder:
      return true;
    default:
      return false;
  }
}

bool is_packed_by(const Scheme& scheme, const Tensor& tensor) {
  if (scheme.packing == Packing::mxfp4) return tensor.role == TensorRole::expert && tensor.rows > 1;
  return is_linear(tensor);
}

Bytes packed_bytes(const Scheme& scheme, const Tensor& tensor) {
  const std::int64_t rows = tensor.rows, columns = tensor.columns, weights = rows * columns;
  std::int64_t bytes = 0;
  switch (scheme.packing) {
    case Packing::fp8:
      bytes = weights + 4;
      break;
    case Packing::fp8_block:
      bytes = weights + 4 * divide_up(rows, 128) * divide_up(columns, 128);
      break;
    case Packing::bnb_int8:
      bytes = weights + 4 * rows;
      break;
    case Packing::gptq:
    case Packing::awq: {
      const std::int64_t groups = divide_up(columns, scheme.group);
      bytes = divide_up(weights, 8) * scheme.bits + groups * rows * 2 + divide_up(groups * rows, 8) * scheme.bits;
      if (scheme.packing == Packing::gptq) bytes += 4 * columns;
      break;
    }
    case Packing::nvfp4:
      bytes = divide_up(weights, 2) + divide_up(weights, 16) + 4;
      break;
    case Packing::bnb_nf4:
    case Packing::bnb_nf4_dq:
      bytes = divide_up(weights, traits(scheme.plain).block_elements) * traits(scheme.plain).block_bytes;
      break;
    default:
      bytes = storage_bytes(scheme.plain, rows, columns).value_or(Bytes{}).count;
  }
  return Bytes{bytes} * tensor.copies;
}

Result<Model> with_scheme(const Model& model, const Scheme& scheme) {
  Model converted = model;
  for (Tensor& tensor : converted.tensors) {
    if (scheme.packing == Packing::plain) {
      tensor.dtype = scheme.plain;
      tensor.bytes = storage_bytes(scheme.plain, tensor.rows, tensor.columns).value_or(Bytes{}) * tensor.copies;
    } else if (is_packed_by(scheme, tensor)) {
      tensor.dtype = scheme.plain;
      tensor.bytes = packed_bytes(scheme, tensor);
    }
  }
  return converted;
}

// The rules that wrote the file. Without a word on the version, fused attn_qkv of plain attention is taken from the
// time when such models were published.
MixRules rules_of(const Model& model, std::string_view version) {
  if (version == "2023") return MixRules::y2023;
  if (version == "ollama") return MixRules::ollama;
  const bool linear_attention = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
    return layer.recurrent.kind == RecurrentKind::gated_delta_net;
  });
  if (version.empty()) return linear_attention ? MixRules::by_category : MixRules::y2024;
  if (version.front() == 'b' || version.front() == 'B') version.remove_prefix(1);
  constexpr std::int64_t kStackedExperts = 1708, kByCategory = 8300;
  const auto build = to_integer(version);
  if (!build) return MixRules::by_category;
  if (*build < kStackedExperts) return MixRules::y2023;
  return *build < kByCategory ? MixRules::y2024 : MixRules::by_category;
}

Result<Model> with_file_type(const Model& model, FileType type, std::string_view version) {
  std::vector<GgufTensor> layout = gguf_layout(model);
  const std::vector<Dtype> dtypes = mixed_dtypes(model, layout, type, rules_of(model, version));
  Model converted = model;
  converted.tensors.clear();
  for (std::size_t i = 0; i < layout.size(); ++i) {
    Tensor tensor = std::move(layout[i].tensor);
    tensor.dtype = dtypes[i];
    tensor.bytes = storage_bytes(tensor.dtype, tensor.rows, tensor.columns).value_or(Bytes{}) * tensor.copies;
    converted.tensors.push_back(std::move(tensor));
  }
  if (model.vision)
    converted.assumptions.push_back(
        "the vision tower is a file of its own (mmproj), which counts only where it is named");
  return converted;
}

// The first matrix that the format cannot be made from. llama.cpp's converter reads FP8 checkpoints too, and takes
// experts in MXFP4 as they are.
const Tensor* first_fixed(const Model& model, const std::optional<FileType>& type) {
  const auto fits = [&](const Tensor& tensor) {
    if (is_plain(tensor.dtype) || tensor.rows <= 1) return true;
    if (tensor.role == TensorRole::quantization || tensor.role == TensorRole::other) return true;
    if (!type) return false;
    if (tensor.dtype == Dtype::f8_e4m3 || tensor.dtype == Dtype::f8_e5m2) return true;
    const bool four_bits = tensor.dtype == Dtype::f4 || tensor.dtype == Dtype::mxfp4;
    return *type == FileType::mxfp4_moe && tensor.role == TensorRole::expert && four_bits;
  };
  const auto found = std::find_if_not(model.tensors.begin(), model.tensors.end(), fits);
  return found == model.tensors.end() ? nullptr : &*found;
}

// Shapes come from files; a format with a wider element must not overflow.
bool is_absurd(const Tensor& tensor) {
  constexpr std::int64_t kMostWeights = std::int64_t{1} << 50;
  const auto matrix = checked_multiply(tensor.rows, tensor.columns);
  const auto all = matrix ? checked_multiply(*matrix, tensor.copies) : std::nullopt;
  return !all || *all > kMostWeights;
}

// Two names mean a file type or a checkpoint format by their case.
std::optional<FileType> file_type_of(std::string_view name) {
  if (name == "bf16") return std::nullopt;
  return file_type_named(name == "MXFP4" ? "MXFP4_MOE" : name);
}

tl::unexpected<Error> unknown_format(std::string_view format) {
  std::string hint = fmt::format("known: {}", fmt::join(weight_formats(), " "));
  if (const auto near = nearest_name(format, weight_formats())) hint = fmt::format("did you mean {}?", *near);
  return fail(ErrorCode::not_found, fmt::format("no weight format \"{}\"", format), std::move(hint));
}

}  // namespace

Result<Model> with_weight_format(const Model& model, std::string_view format) {
  if (lower(format) == lower(model.weight_format) && (format != "MXFP4" || model.source == Source::gguf)) return model;
  const std::size_t at = format.find('@');
  const std::string_view name = format.substr(0, at);
  const std::string_view version = at == std::string_view::npos ? std::string_view{} : format.substr(at + 1);
  const std::optional<FileType> type = file_type_of(name);
  const std::optional<Scheme> scheme = scheme_named(name);
  if (!type && !scheme) return unknown_format(format);
  if (const auto absurd = std::find_if(model.tensors.begin(), model.tensors.end(), is_absurd);
      absurd != model.tensors.end())
    return fail(ErrorCode::bad_input, fmt::format("{}: tensor {} has {} x {} weights", model.name, absurd->name,
                                                  absurd->rows, absurd->columns));
  if (const Tensor* fixed = first_fixed(model, type))
    return fail(ErrorCode::unsupported,
                fmt::format("{} is stored as {}, which is not converted to another format", model.name,
                            model.weight_format.empty() ? traits(fixed->dtype).name : model.weight_format),
                "name the original model in BF16 or F16");
  const bool has_experts = std::any_of(model.layers.begin(), model.layers.end(),
                                       [](const Layer& layer) { return layer.feed_forward.experts > 0; });
  if (type == FileType::mxfp4_moe && !has_experts)
    return fail(ErrorCode::unsupported,
                fmt::format("{} has no experts: llama.cpp's MXFP4_MOE keeps only experts in MXFP4, all else in Q8_0",
                            model.name),
                "use Q8_0, or Q4_K_M for 4 bits");
  Model converted = GW_TRY(type ? with_file_type(model, *type, version) : with_scheme(model, *scheme));
  converted.weight_format = type.has_value() ? std::string(name_of(*type)) : lower(name);
  converted.tensors_are_exact = false;
  converted.file_bytes = {};
  return converted;
}

std::vector<std::string> weight_formats() {
  std::vector<std::string> names;
  for (const SchemeRow& row : kSchemes) names.emplace_back(row.name);
  for (const std::string_view name : file_type_names()) names.emplace_back(name);
  return names;
}

}  // namespace gpuwright::model

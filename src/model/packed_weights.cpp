// Layouts, each from the code that writes it:
//   GPTQ               qweight int32 [in*bits/32, out], scales [groups, out], qzeros [groups, out*bits/32]
//                      (AutoGPTQ qlinear_cuda.py, pack)
//   AWQ                qweight int32 [in, out/8], scales [groups, out], qzeros [groups, out/8] (AutoAWQ, gemm.py)
//   bitsandbytes       weight uint8 [n/2, 1], or another storage type of as many bytes (Params4bit, quant_storage),
//                      with weight.absmax and weight.quant_state.* beside it
//   compressed-tensors weight_packed int32 [out, in*bits/32] or uint8 [out, in/2] (pack_quantized.py, nvfp4)
//   MXFP4 (gpt-oss)    *_blocks uint8 [..., groups, 16] with *_scales
//   ModelOpt NVFP4     weight uint8 [out, in/2] with weight_scale and weight_scale_2
//   MLX                weight uint32 [out, in*bits/32] with scales and biases
#include "model/packed_weights.h"

#include <algorithm>

#include "model/name_table.h"

namespace gpuwright::model {
namespace {

// 0 when the config does not say.
std::int64_t bits_in(const Json* config) {
  if (config == nullptr) return 0;
  const auto valid = [](const Json* value) {
    const auto bits = value != nullptr ? value->as_int() : std::nullopt;
    return bits && *bits >= 1 && *bits <= 16 ? *bits : 0;
  };
  for (const char* key : {"quantization_config", "compression_config", "quantization"}) {
    const Json* section = config->find(key);
    if (section == nullptr) continue;
    for (const char* name : {"bits", "w_bit", "nbits"})
      if (const auto bits = valid(section->find(name))) return bits;
    const Json* groups = section->find("config_groups");
    if (groups == nullptr) continue;
    for (const Json::Member& group : groups->members()) {
      const Json* weights = group.second.find("weights");
      if (const auto bits = valid(weights != nullptr ? weights->find("num_bits") : nullptr)) return bits;
    }
  }
  return bits_in(config->find("text_config"));
}

class Packing {
 public:
  Packing(std::vector<Tensor>& tensors, const Json* config) : tensors_(tensors), bits_(bits_in(config)) {
    names_.reserve(tensors.size());
    for (const Tensor& tensor : tensors) names_.insert(tensor.name);
  }

  void count(Tensor& tensor) const {
    const std::string_view name = tensor.name;
    const std::size_t dot = name.rfind('.');
    const std::string_view leaf = dot == std::string_view::npos ? name : name.substr(dot + 1);
    const std::string stem(name.substr(0, name.size() - leaf.size()));
    const bool word = tensor.dtype == Dtype::i32 || tensor.dtype == Dtype::u32;
    const bool byte = tensor.dtype == Dtype::u8 || tensor.dtype == Dtype::i8;
    if (leaf == "qweight" && word) {
      unpack(tensor, bits_beside(stem));
    } else if (leaf == "weight_packed") {
      if (word) unpack(tensor, known_or_four());
      if (byte) tensor.weights_per_element = 2;
    } else if (leaf.ends_with("_blocks") && byte) {
      if (has(std::string(name.substr(0, name.size() - 6)) + "scales")) tensor.weights_per_element = 2;
    } else if (leaf == "weight") {
      count_plain_name(tensor, stem, word, byte);
    }
  }

 private:
  void count_plain_name(Tensor& tensor, const std::string& stem, bool word, bool byte) const {
    if (word && has(stem + "scales")) {
      unpack(tensor, known_or_four());
    } else if (tensor.columns == 1 && has(tensor.name + ".absmax")) {
      tensor.weights_per_element = 2 * std::max<std::int64_t>(1, traits(tensor.dtype).block_bytes);
    } else if (byte && (has(stem + "weight_scale_2") || has_exponent_scale(stem))) {
      tensor.weights_per_element = 2;
    }
  }

  // Scales that are bare exponents belong to a microscaling format; in one byte it holds two FP4 elements.
  bool has_exponent_scale(const std::string& stem) const {
    for (const char* leaf : {"scale", "weight_scale"})
      if (const Tensor* scale = find(stem + leaf)) return scale->dtype == Dtype::f8_e8m0 || scale->dtype == Dtype::u8;
    return false;
  }

  // Both GPTQ and AWQ pack zero points along the same dimension that their scales leave unpacked.
  std::int64_t bits_beside(const std::string& stem) const {
    const Tensor* scales = find(stem + "scales");
    const Tensor* zeros = find(stem + "qzeros");
    if (scales == nullptr || zeros == nullptr || scales->columns <= 0 || zeros->columns <= 0) return known_or_four();
    const auto scaled = checked_multiply(zeros->columns, 32);
    const std::int64_t bits = scaled ? *scaled / scales->columns : 0;
    return bits >= 1 && bits <= 16 ? bits : known_or_four();
  }

  // Where a word holds no whole number of weights (3 bits: 32 weights in 3 words), the packed dimension is unpacked:
  // it is the one that comes out even.
  static void unpack(Tensor& tensor, std::int64_t bits) {
    if (32 % bits == 0) {
      tensor.weights_per_element = 32 / bits;
      return;
    }
    for (std::int64_t* dimension : {&tensor.rows, &tensor.columns}) {
      const auto total = checked_multiply(*dimension, 32);
      if (!total || *total % bits != 0) continue;
      *dimension = *total / bits;
      return;
    }
  }

  std::int64_t known_or_four() const { return bits_ > 0 ? bits_ : 4; }
  const Tensor* find(std::string_view name) const {
    const auto number = names_.find(name);
    return number ? &tensors_[*number] : nullptr;
  }
  bool has(std::string_view name) const { return names_.find(name).has_value(); }

  const std::vector<Tensor>& tensors_;
  std::int64_t bits_;
  NameTable names_;
};

bool may_be_packed(const Tensor& tensor) {
  if (tensor.role == TensorRole::quantization || tensor.role == TensorRole::norm) return false;
  const bool whole = tensor.dtype == Dtype::u8 || tensor.dtype == Dtype::i8 || tensor.dtype == Dtype::i32 ||
                     tensor.dtype == Dtype::u32;
  return whole || (tensor.columns == 1 && tensor.rows > 1);
}

}  // namespace

void count_packed_weights(std::vector<Tensor>& tensors, const Json* config) {
  const auto first = std::find_if(tensors.begin(), tensors.end(), may_be_packed);
  if (first == tensors.end()) return;
  const Packing packing(tensors, config);
  for (auto tensor = first; tensor != tensors.end(); ++tensor)
    if (may_be_packed(*tensor)) packing.count(*tensor);
}

}  // namespace gpuwright::model

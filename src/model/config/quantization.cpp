// Sources: transformers/utils/quantization_config.py and quantizers/*.py (v5), compressed-tensors quant_args.py,
// AutoGPTQ and AutoAWQ qlinear modules (qweight, qzeros, scales, g_idx), Hugging Face docs "Quantization".
#include "model/config/quantization.h"

#include <fmt/format.h>

#include "base/text.h"

namespace gpuwright::model {
namespace {

constexpr std::string_view kReadHeader =
    "point gpuwright at the folder or repository with the safetensors files, whose headers tell the true sizes";

void skip_listed(const Fields& scheme, Keys keys, Quantization& result) {
  for (const std::string& module : scheme.texts(keys))
    if (!module.empty()) result.skipped.add(module);
}

std::string grouped_label(std::string_view name, const Quantization& scheme) {
  return scheme.group_size > 0 ? fmt::format("{}-int{}-g{}", name, scheme.bits, scheme.group_size)
                               : fmt::format("{}-int{}", name, scheme.bits);
}

// -1 (AutoGPTQ) and null (compressed-tensors) mean one group a row.
std::int64_t group_size(const Fields& scheme, Keys keys, std::int64_t fallback) {
  const Json* value = scheme.find(keys);
  if (value && value->as_int() == -1) return 0;
  return scheme.size_or_zero(keys, fallback, 1 << 20);
}

std::int64_t bit_width(const Fields& scheme, Keys keys) {
  return scheme.size(keys, 4, 8);
}

Quantization bitsandbytes(const Fields& scheme) {
  Quantization result;
  result.towers_too = true;
  const bool four = scheme.flag({"load_in_4bit", "_load_in_4bit"}, false);
  const bool doubled = scheme.flag({"bnb_4bit_use_double_quant"}, false);
  if (four) {
    result.method = doubled ? QuantizationMethod::bnb_nf4_dq : QuantizationMethod::bnb_nf4;
    result.bits = 4;
    result.label = fmt::format("bnb-{}{}", scheme.text({"bnb_4bit_quant_type"}, "fp4"), doubled ? "-dq" : "");
  } else {
    result.method = QuantizationMethod::bnb_int8;
    result.bits = 8;
    result.label = "bnb-int8";
  }
  skip_listed(scheme, {"llm_int8_skip_modules"}, result);
  return result;
}

Quantization gptq(const Fields& scheme) {
  Quantization result;
  result.method = QuantizationMethod::grouped_int;
  result.bits = bit_width(scheme, {"bits", "w_bit"});
  result.group_size = group_size(scheme, {"group_size", "q_group_size"}, 128);
  result.zero_points = true;
  result.group_index = true;
  result.head_too = scheme.flag({"lm_head"}, false);
  result.label = grouped_label("gptq", result);
  return result;
}

Quantization awq(const Fields& scheme) {
  Quantization result = gptq(scheme);
  result.group_index = false;
  result.zero_points = scheme.flag({"zero_point"}, true);
  result.head_too = false;
  result.label = grouped_label("awq", result);
  skip_listed(scheme, {"modules_to_not_convert"}, result);
  return result;
}

Quantization fp8(const Fields& scheme) {
  Quantization result;
  result.bits = 8;
  const auto block = scheme.sizes({"weight_block_size"}, 1 << 16);
  if (block.size() == 2 && block[0] > 0 && block[1] > 0) {
    result.method = QuantizationMethod::fp8_block;
    result.block_rows = block[0];
    result.block_columns = block[1];
    result.label = "fp8-block";
  } else {
    result.method = QuantizationMethod::fp8_tensor;
    result.label = "fp8";
  }
  result.input_scale = scheme.text({"activation_scheme"}, "dynamic") == "static";
  skip_listed(scheme, {"modules_to_not_convert", "ignored_layers"}, result);
  return result;
}

Quantization fbgemm_fp8(const Fields& scheme) {
  Quantization result;
  result.method = QuantizationMethod::fp8_channel;
  result.bits = 8;
  result.scales_are_half = false;
  result.label = "fp8";
  skip_listed(scheme, {"modules_to_not_convert"}, result);
  return result;
}

Quantization mxfp4(const Fields& scheme) {
  Quantization result;
  result.method = QuantizationMethod::mxfp4;
  result.bits = 4;
  result.experts_only = true;
  result.label = "mxfp4";
  skip_listed(scheme, {"modules_to_not_convert"}, result);
  return result;
}

Quantization nvfp4() {
  Quantization result;
  result.method = QuantizationMethod::nvfp4;
  result.bits = 4;
  result.input_scale = true;
  result.label = "nvfp4";
  return result;
}

Quantization modelopt(const Fields& scheme) {
  const Fields inner = scheme.child({"quantization"});
  const Fields& source = inner.has({"quant_algo"}) ? inner : scheme;
  const std::string algorithm = lower(source.text({"quant_algo"}, "fp8"));
  Quantization result;
  if (algorithm.find("nvfp4") != std::string::npos || algorithm.find("w4a8_nvfp4") != std::string::npos) {
    result = nvfp4();
  } else if (algorithm == "fp8" || algorithm == "fp8_per_tensor") {
    result.method = QuantizationMethod::fp8_tensor;
    result.bits = 8;
    result.input_scale = true;
    result.label = "fp8";
  } else {
    scheme.reading().refuse(fmt::format("quantisation modelopt/{} is not known", algorithm), std::string(kReadHeader));
  }
  skip_listed(source, {"ignore", "exclude_modules"}, result);
  return result;
}

Quantization compressed_float(const Fields& weights, std::string_view strategy, std::int64_t bits) {
  if (bits == 4) return nvfp4();
  Quantization result;
  result.bits = 8;
  result.label = strategy == "block" ? "fp8-block" : "fp8";
  result.method = strategy == "channel" ? QuantizationMethod::fp8_channel : QuantizationMethod::fp8_tensor;
  if (strategy == "block") {
    const auto block = weights.sizes({"block_structure"}, 1 << 16);
    result.method = QuantizationMethod::fp8_block;
    result.block_rows = block.size() == 2 && block[0] > 0 ? block[0] : 128;
    result.block_columns = block.size() == 2 && block[1] > 0 ? block[1] : 128;
  }
  return result;
}

Quantization compressed_group(const Fields& group) {
  const Fields weights = group.child({"weights"});
  const std::int64_t bits = weights.size({"num_bits"}, 8, 16);
  const std::string strategy = weights.text({"strategy"}, weights.has({"group_size"}) ? "group" : "tensor");
  if (weights.text({"type"}, "int") == "float") return compressed_float(weights, strategy, bits);
  Quantization result;
  result.bits = bits;
  if (bits == 8 && strategy != "group") {
    result.method = QuantizationMethod::int8_channel;
    result.label = "int8";
    return result;
  }
  if (bits > 8) weights.reading().refuse(fmt::format("{}-bit integer weights are not known", bits));
  result.method = QuantizationMethod::grouped_int;
  result.group_size = strategy == "group" ? group_size(weights, {"group_size"}, 128) : 0;
  result.zero_points = !weights.flag({"symmetric"}, true);
  result.label = grouped_label("wna16", result);
  return result;
}

Quantization compressed_tensors(const Fields& scheme) {
  std::optional<Quantization> result;
  std::string first;
  for (const auto& [name, value] : scheme.child({"config_groups"}).json().members()) {
    if (!value.is_object()) continue;
    const Fields group(value, scheme.reading(), "quantization_config.config_groups." + name + ".");
    const std::string weights = group.child({"weights"}).json().dump(0);
    if (!result) {
      result = compressed_group(group);
      first = weights;
    } else if (weights != first) {
      scheme.reading().refuse("quantization_config mixes several weight formats", std::string(kReadHeader));
    }
  }
  if (!result) {
    scheme.reading().refuse("quantization_config has no config_groups", std::string(kReadHeader));
    return {};
  }
  skip_listed(scheme, {"ignore"}, *result);
  return *result;
}

using SchemeReader = Quantization (*)(const Fields&);
struct Scheme {
  std::string_view name;
  SchemeReader read;
};
constexpr Scheme kSchemes[] = {
    {"bitsandbytes", bitsandbytes},
    {"bitsandbytes_4bit", bitsandbytes},
    {"bitsandbytes_8bit", bitsandbytes},
    {"gptq", gptq},
    {"gptq_marlin", gptq},
    {"awq", awq},
    {"fp8", fp8},
    {"fbgemm_fp8", fbgemm_fp8},
    {"mxfp4", mxfp4},
    {"modelopt", modelopt},
    {"modelopt_fp4", modelopt},
    {"compressed-tensors", compressed_tensors},
    {"compressed_tensors", compressed_tensors},
};

}  // namespace

Quantization quantization_of(const Fields& config) {
  const Json* declared = config.find({"quantization_config", "compression_config"});
  if (!declared || !declared->is_object() || declared->members().empty()) return {};
  const Fields scheme = config.child({"quantization_config", "compression_config"});
  std::string method = lower(scheme.text({"quant_method"}));
  // Checkpoints of 2023 name no method: bitsandbytes ones have load_in_4bit, GPTQ ones bits and desc_act.
  if (method.empty() && (scheme.has({"load_in_4bit"}) || scheme.has({"load_in_8bit"}))) method = "bitsandbytes";
  if (method.empty() && scheme.has({"desc_act"})) method = "gptq";
  if (method.empty() && scheme.has({"config_groups"})) method = "compressed-tensors";
  for (const Scheme& known : kSchemes)
    if (known.name == method) return known.read(scheme);
  config.reading().refuse(fmt::format("quantization_config has quant_method \"{}\", which is not known", method),
                          std::string(kReadHeader));
  return {};
}

}  // namespace gpuwright::model

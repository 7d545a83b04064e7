#include "model/config.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/config/families.h"

namespace gpuwright::model {
namespace {

std::vector<std::string> architectures_of(const Fields& config) {
  return config.texts({"architectures"});
}

const Family* recognise(const Fields& config) {
  if (const Family* family = family_of_type(config.text({"model_type"}))) return family;
  for (const std::string& architecture : architectures_of(config))
    if (const Family* family = family_of_architecture(architecture)) return family;
  return nullptr;
}

Error unknown_architecture(const Fields& config, std::string_view name) {
  const std::string type = config.text({"model_type"});
  const std::vector<std::string> architectures = architectures_of(config);
  const std::string shown = !type.empty() ? type : architectures.empty() ? std::string() : architectures.front();
  Error error{ErrorCode::unsupported, {}, Location{std::string(name), {}, {}}, {}};
  if (shown.empty()) {
    error.code = ErrorCode::bad_input;
    error.what = "neither model_type nor architectures says what this model is";
    error.hint = "is this the config.json of a model?";
    return error;
  }
  error.what = fmt::format("the architecture \"{}\" is not known", shown.substr(0, 80));
  const auto near = nearest_name(lower(shown), config_families());
  error.hint = near ? fmt::format("the nearest known model_type is \"{}\"; ", *near) : std::string();
  error.hint += "--upper-bound prices every layer as full attention";
  return error;
}

// "torch.bfloat16", "bfloat16"; in nested configs the decoder's own when the top level has none.
Dtype dtype_of(const Fields& config, const Fields& text) {
  std::string name = config.text({"dtype", "torch_dtype"});
  if (name.empty()) name = text.text({"dtype", "torch_dtype"});
  if (name.starts_with("torch.")) name.erase(0, 6);
  if (name.empty() || name == "auto") {
    config.reading().assumptions.push_back(
        "The config names no dtype: float32, the default of transformers, is taken.");
    return Dtype::f32;
  }
  const auto dtype = dtype_named(name);
  if (dtype && *dtype != Dtype::unknown && traits(*dtype).block_elements == 1) return *dtype;
  config.reading().wrong(fmt::format("torch_dtype is \"{}\", which is no number format", name));
  return Dtype::f32;
}

bool is_nested(const Fields& config) {
  return !config.child({"text_config", "llm_config", "language_config"}).json().members().empty();
}

Fields text_of(const Fields& config) {
  return is_nested(config) ? config.child({"text_config", "llm_config", "language_config"}) : config;
}

// An unknown decoder, priced as Llama with full attention in every layer and all experts that it speaks of.
Decoder read_unknown(const Fields& config) {
  Decoder decoder = read_llama(config);
  const std::int64_t experts =
      config.size_or_zero({"num_experts", "num_local_experts", "n_routed_experts"}, 0, kMaxExperts);
  if (experts == 0) return decoder;
  const std::int64_t active = config.size({"num_experts_per_tok", "moe_topk", "top_k"}, 1, experts);
  const std::int64_t width = config.size({"moe_intermediate_size", "expert_intermediate_size"},
                                         decoder.blocks.front().layer.feed_forward.width);
  for (Block& block : decoder.blocks) {
    block.layer.feed_forward = {.width = 0,
                                .gated = true,
                                .experts = experts,
                                .experts_per_token = active,
                                .expert_width = width,
                                .shared_width = 0};
    block.dense = false;
  }
  return decoder;
}

void describe_decoder(DecoderReader read, const Fields& config, const Fields& text, Plan& plan, Model& model) {
  Decoder decoder = read(text);
  // The top level of a nested config has the last word on tying.
  if (is_nested(config)) decoder.tied = config.flag({"tie_word_embeddings"}, decoder.tied);
  lay_out(decoder, plan, model);
}

Status describe(const Fields& config, const LoadOptions& options, Model& model) {
  Reading& reading = config.reading();
  const Family* family = recognise(config);
  const Fields text = text_of(config);
  if (!family && !options.upper_bound) return tl::unexpected(unknown_architecture(config, reading.file));

  Quantization quantization =
      quantization_of(config.has({"quantization_config", "compression_config"}) ? config : text);
  model.weight_format = quantization.label;
  Plan plan(dtype_of(config, text), std::move(quantization), reading);
  if (model.weight_format.empty()) model.weight_format = traits(plan.dtype()).name;
  if (!family) {
    model.upper_bound = true;
    model.family = lower(config.text({"model_type"}, "unknown"));
    reading.assumptions.push_back("The architecture is not known: every layer is priced as full attention.");
    describe_decoder(read_unknown, config, text, plan, model);
  } else if (family->whole) {
    model.family = family->family;
    family->whole(config, plan, model);

  } else {
    const Family* inner = family->decoder ? family : family_of_type(text.text({"model_type"}, "llama"));
    if (!inner || !inner->decoder) return tl::unexpected(unknown_architecture(text, reading.file));
    model.family = family->family.empty() ? inner->family : family->family;
    describe_decoder(inner->decoder, config, text, plan, model);
    if (family->towers) family->towers(config, plan, model);
  }
  model.tensors = plan.take();
  return {};
}

}  // namespace

Result<Model> model_from_config(const Json& config, std::string_view name, const LoadOptions& options) {
  Reading reading{std::string(name), {}, {}};
  if (!config.is_object())
    return fail_at(ErrorCode::bad_input, {std::string(name), {}, {}}, "a model config is a JSON object");
  const Fields fields(config, reading);
  Model model;
  model.name = name;
  model.source = Source::config;
  const std::vector<std::string> architectures = architectures_of(fields);
  model.architecture = architectures.empty() ? fields.text({"model_type"}) : architectures.front();
  GW_TRY(describe(fields, options, model));
  if (reading.error) return tl::unexpected(std::move(*reading.error));
  model.assumptions = std::move(reading.assumptions);
  return model;
}

std::vector<std::string> config_families() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.model_type);
  return names;
}

}  // namespace gpuwright::model

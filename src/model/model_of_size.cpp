// "7B" names no model. The answer is a Llama of that many parameters: the published shape nearest in size gives depth,
// width and heads, and the feed-forward width is then set so that the total is what was asked.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text.h"
#include "model/config.h"

namespace gpuwright::model {
namespace {

struct Shape {
  double parameters;
  std::int64_t layers, hidden, heads, kv_heads, width;
};
// The Llama 3 herd (arXiv 2407.21783, table 3) and Llama 3.2; between and below them Llama 2 13B and the dense Qwen2.5
// sizes (arXiv 2412.15115, table 1), and SmolLM2-135M for the smallest.
constexpr std::array kShapes = {
    Shape{0.135e9, 30, 576, 9, 3, 1536},       Shape{0.494e9, 24, 896, 14, 2, 4864},
    Shape{1.24e9, 16, 2048, 32, 8, 8192},      Shape{3.21e9, 28, 3072, 24, 8, 8192},
    Shape{8.03e9, 32, 4096, 32, 8, 14336},     Shape{13.0e9, 40, 5120, 40, 8, 13824},
    Shape{32.8e9, 64, 5120, 40, 8, 27648},     Shape{70.6e9, 80, 8192, 64, 8, 28672},
    Shape{405.9e9, 126, 16384, 128, 8, 53248},
};
constexpr std::int64_t kVocabulary = 128256;
constexpr std::int64_t kContext = 131072;

std::optional<double> parameters_named(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word.size() < 2 || word.size() > 16) return std::nullopt;
  const double unit = word.back() == 'b' ? 1e9 : word.back() == 'm' ? 1e6 : word.back() == 't' ? 1e12 : 0;
  const auto number = to_number(std::string_view(word).substr(0, word.size() - 1));
  if (unit == 0 || !number || *number <= 0) return std::nullopt;
  return *number * unit;
}

const Shape& nearest_shape(double parameters) {
  const Shape* best = kShapes.data();
  for (const Shape& shape : kShapes)
    if (std::abs(std::log(shape.parameters / parameters)) < std::abs(std::log(best->parameters / parameters)))
      best = &shape;
  return *best;
}

Json config_of(const Shape& shape, std::int64_t width, bool tied) {
  Json config = Json::object();
  config.set("model_type", "llama").set("torch_dtype", "bfloat16").set("tie_word_embeddings", tied);
  config.set("hidden_size", shape.hidden).set("num_hidden_layers", shape.layers).set("intermediate_size", width);
  config.set("num_attention_heads", shape.heads).set("num_key_value_heads", shape.kv_heads);
  config.set("vocab_size", kVocabulary).set("max_position_embeddings", kContext);
  return config;
}

}  // namespace

Result<Model> model_of_size(std::string_view text) {
  const auto wanted = parameters_named(text);
  if (!wanted)
    return fail(ErrorCode::not_found, fmt::format("\"{}\" is no model size", text.substr(0, 40)),
                "write 7B, 1.1b or 350M");
  if (*wanted < 20e6 || *wanted > 20e12)
    return fail(ErrorCode::bad_input,
                fmt::format("a model of {} parameters is outside 20M to 20T", text.substr(0, 40)));

  const Shape& shape = nearest_shape(*wanted);
  const bool tied = *wanted < 4e9;
  const Model probe = GW_TRY(model_from_config(config_of(shape, 64, tied), text));
  const double per_unit = 3.0 * static_cast<double>(shape.hidden * shape.layers);
  const double missing = *wanted - static_cast<double>(probe.parameters());
  const std::int64_t width = 64 + std::max<std::int64_t>(0, std::llround(missing / per_unit / 64.0)) * 64;

  Model model = GW_TRY(model_from_config(config_of(shape, width, tied), text));
  model.source = Source::parameter_count;
  model.assumptions.push_back(
      fmt::format("Only a size was given: a Llama of {} layers, width {}, {} query and {} key/value heads, "
                  "feed-forward width {} and "
                  "a vocabulary of {} is taken ({} parameters).",
                  shape.layers, shape.hidden, shape.heads, shape.kv_heads, width, with_thousands(kVocabulary),
                  in_billions(model.parameters())));
  model.assumptions.push_back("Weights are taken as BF16 and attention as full in every layer.");
  return model;
}

}  // namespace gpuwright::model

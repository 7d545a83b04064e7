// The base is a Llama-like plan (grouped-query attention, gated feed-forward), which is what sources that print only
// geometry mean. Where the facts tell of other layers (windows, latents, recurrent states) the layers are changed
// after, and such a model answers for caches and graphs only: its weights do not follow from these facts.
#include "shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "model/config.h"

namespace gpuwright::scorer {
namespace {

constexpr std::int64_t kLargestSize = 1 << 24;

struct Shape {
  std::optional<std::int64_t> params, layers, hidden, heads, kv_heads, kv_dim, head_dim, ffn, vocab;
  std::optional<std::int64_t> attn_layers, full_layers, swa_layers, swa_window, kv_lora_rank, rope_dim;
  std::optional<std::int64_t> recurrent_layers, d_inner, d_state, n_group, d_conv, gdn_k_heads, gdn_v_heads,
      gdn_head_dim;
  bool tied = false;
  std::string attention, recurrent;

  bool has_plain_layers_only() const { return attention != "mla" && recurrent.empty() && !swa_layers && !attn_layers; }
};

Result<Shape> read_shape(const Facts& arch) {
  Shape shape;
  const std::vector<std::pair<std::string_view, std::optional<std::int64_t>*>> fields = {
      {"params", &shape.params},
      {"layers", &shape.layers},
      {"hidden", &shape.hidden},
      {"heads", &shape.heads},
      {"kv_heads", &shape.kv_heads},
      {"kv_dim", &shape.kv_dim},
      {"head_dim", &shape.head_dim},
      {"ffn", &shape.ffn},
      {"vocab", &shape.vocab},
      {"attn_layers", &shape.attn_layers},
      {"full_layers", &shape.full_layers},
      {"swa_layers", &shape.swa_layers},
      {"swa_window", &shape.swa_window},
      {"kv_lora_rank", &shape.kv_lora_rank},
      {"rope_dim", &shape.rope_dim},
      {"recurrent_layers", &shape.recurrent_layers},
      {"d_inner", &shape.d_inner},
      {"d_state", &shape.d_state},
      {"n_group", &shape.n_group},
      {"d_conv", &shape.d_conv},
      {"gdn_k_heads", &shape.gdn_k_heads},
      {"gdn_v_heads", &shape.gdn_v_heads},
      {"gdn_head_dim", &shape.gdn_head_dim}};
  for (const auto& [key, field] : fields) {
    *field = GW_TRY(arch.integer(key));
    if (key != "params" && *field && **field > kLargestSize)
      return fail(ErrorCode::bad_input, fmt::format("{}: {} is larger than any model has", key, **field));
  }
  shape.tied = GW_TRY(arch.flag("tied")).value_or(false);
  shape.attention = arch.text("attention").value_or("");
  shape.recurrent = arch.text("recurrent").value_or("");
  if (arch.text("moe").value_or("0") != "0")
    return fail(ErrorCode::unsupported, "the sizes of its experts are not told");
  return shape;
}

// Each of kv_heads, head_dim, kv_dim, hidden and heads from the others where they imply it.
void complete(Shape& shape) {
  if (!shape.head_dim && shape.kv_dim && shape.kv_heads && *shape.kv_heads > 0)
    shape.head_dim = *shape.kv_dim / *shape.kv_heads;
  if (!shape.head_dim && shape.hidden && shape.heads && *shape.heads > 0) shape.head_dim = *shape.hidden / *shape.heads;
  if (!shape.kv_heads && shape.kv_dim && shape.head_dim && *shape.head_dim > 0)
    shape.kv_heads = *shape.kv_dim / *shape.head_dim;
  if (!shape.kv_heads && shape.kv_dim) shape.kv_heads = 1, shape.head_dim = *shape.kv_dim;
  if (!shape.heads && shape.hidden && shape.head_dim && *shape.head_dim > 0)
    shape.heads = *shape.hidden / *shape.head_dim;
  if (!shape.kv_heads && shape.heads && shape.head_dim) shape.kv_heads = shape.heads;
}

// The feed-forward width that gives the told number of parameters, in a gated block.
void solve_feed_forward(Shape& shape) {
  if (shape.ffn || !shape.params || !shape.layers || !shape.hidden || !shape.heads || !shape.vocab) return;
  const double hidden = static_cast<double>(*shape.hidden);
  const double attention =
      hidden * static_cast<double>(*shape.head_dim) * static_cast<double>(2 * *shape.heads + 2 * *shape.kv_heads);
  const double tables = hidden * static_cast<double>(*shape.vocab) * (shape.tied ? 1 : 2);
  const double rest = (static_cast<double>(*shape.params) - tables) / static_cast<double>(*shape.layers) - attention;
  if (rest > 0) shape.ffn = std::llround(rest / (3 * hidden));
}

Status check_told(const Shape& shape, Need need) {
  std::vector<std::string> missing;
  const auto require = [&](const std::optional<std::int64_t>& value, std::string_view name) {
    if (!value || *value < 1) missing.emplace_back(name);
  };
  require(shape.layers ? shape.layers : shape.recurrent_layers, "layers");
  if (shape.recurrent.empty() && shape.attention != "mla") require(shape.kv_heads, "kv_heads or kv_dim");
  if (need >= Need::graph) {
    require(shape.hidden, "hidden");
    require(shape.heads, "heads");
    require(shape.vocab, "vocab");
  }
  if (need == Need::weights) {
    require(shape.ffn, "ffn");
    if (!shape.has_plain_layers_only())
      return fail(ErrorCode::unsupported, "weights of windowed, latent or recurrent layers do not follow from it");
  }
  if (missing.empty()) return {};
  return fail(ErrorCode::bad_input, fmt::format("{} missing", fmt::join(missing, ", ")));
}

Json llama_config(const Shape& shape) {
  const std::int64_t head_dim = shape.head_dim.value_or(64);
  const std::int64_t kv_heads = shape.kv_heads.value_or(1);
  const std::int64_t heads = std::max(shape.heads.value_or(kv_heads), kv_heads);
  const std::int64_t hidden = shape.hidden.value_or(heads * head_dim);
  Json config = Json::object();
  config.set("architectures", Json(Json::Array{Json("LlamaForCausalLM")}));
  config.set("model_type", "llama");
  config.set("torch_dtype", "bfloat16");
  config.set("num_hidden_layers", shape.layers ? *shape.layers : shape.recurrent_layers.value_or(1));
  config.set("hidden_size", hidden);
  config.set("num_attention_heads", heads);
  config.set("num_key_value_heads", kv_heads);
  config.set("head_dim", head_dim);
  // Where it is not told: two thirds of 4 x hidden in multiples of 256, as in the first Llamas (arXiv 2302.13971).
  config.set("intermediate_size", shape.ffn.value_or(pad_to(8 * hidden / 3, 256)));
  config.set("vocab_size", shape.vocab.value_or(32000));
  config.set("tie_word_embeddings", shape.tied);
  config.set("max_position_embeddings", std::int64_t{1} << 24);
  return config;
}

Status window_layers(const Shape& shape, std::vector<model::Layer>& layers) {
  if (!shape.swa_layers) return {};
  if (!shape.swa_window) return fail(ErrorCode::bad_input, "swa_window missing");
  std::int64_t left = *shape.swa_layers;
  for (model::Layer& layer : layers) {
    if (left-- <= 0) break;
    layer.attention.kind = model::AttentionKind::sliding;
    layer.attention.window = *shape.swa_window;
  }
  return {};
}

Status latent_layers(const Shape& shape, std::vector<model::Layer>& layers) {
  if (shape.attention != "mla") return {};
  if (!shape.kv_lora_rank || !shape.rope_dim) return fail(ErrorCode::bad_input, "kv_lora_rank or rope_dim missing");
  for (model::Layer& layer : layers) {
    layer.attention.kind = model::AttentionKind::latent;
    layer.attention.kv_lora_rank = *shape.kv_lora_rank;
    layer.attention.rope_dim = *shape.rope_dim;
  }
  return {};
}

Result<model::Recurrent> recurrent_state(const Shape& shape) {
  model::Recurrent state;
  state.d_conv = shape.d_conv.value_or(4);
  if (shape.recurrent == "gdn") {
    state.kind = model::RecurrentKind::gated_delta_net;
    // llama.cpp prints the same state as d_inner = value heads x d_state and n_group = key heads.
    const auto dim = shape.gdn_head_dim ? shape.gdn_head_dim : shape.d_state;
    const auto key_heads = shape.gdn_k_heads ? shape.gdn_k_heads : shape.n_group;
    if (!dim || !key_heads || *dim < 1 || (!shape.gdn_v_heads && !shape.d_inner))
      return fail(ErrorCode::bad_input, "gdn_head_dim, gdn_k_heads or gdn_v_heads missing");
    state.key_dim = state.value_dim = *dim;
    state.key_heads = *key_heads;
    state.value_heads = shape.gdn_v_heads ? *shape.gdn_v_heads : *shape.d_inner / *dim;
    return state;
  }
  if (!shape.d_inner || !shape.d_state) return fail(ErrorCode::bad_input, "d_inner or d_state missing");
  state.d_inner = *shape.d_inner;
  state.d_state = *shape.d_state;
  if (shape.recurrent == "mamba1") {
    state.kind = model::RecurrentKind::mamba1;
    return state;
  }
  if (shape.recurrent != "mamba2")
    return fail(ErrorCode::unsupported, fmt::format("recurrent kind \"{}\"", printable(shape.recurrent)));
  state.kind = model::RecurrentKind::mamba2;
  state.n_group = shape.n_group.value_or(1);
  return state;
}

// Recurrent layers come first, attention layers last; a layer has both where the counts overlap (Falcon-H1).
Status recurrent_layers(const Shape& shape, std::vector<model::Layer>& layers) {
  const auto total = static_cast<std::int64_t>(layers.size());
  const std::int64_t recurrent = shape.recurrent.empty() ? 0 : shape.recurrent_layers.value_or(total);
  const bool no_attention = !shape.recurrent.empty() && !shape.kv_heads;
  const std::int64_t attention = shape.attn_layers.value_or(no_attention ? 0 : total);
  if (recurrent > total || attention > total)
    return fail(ErrorCode::bad_input, "more attention or recurrent layers than layers");
  if (recurrent > 0) {
    const model::Recurrent state = GW_TRY(recurrent_state(shape));
    for (std::int64_t i = 0; i < recurrent; ++i) layers[static_cast<std::size_t>(i)].recurrent = state;
  }
  for (std::int64_t i = 0; i < total - attention; ++i) layers[static_cast<std::size_t>(i)].attention = {};
  return {};
}

}  // namespace

Result<model::Model> model_from_shape(const Row& row, Need need) {
  Shape shape = GW_TRY(read_shape(row.arch));
  complete(shape);
  solve_feed_forward(shape);
  GW_TRY(check_told(shape, need));
  // Whether a block is Llama's (gated, sequential, biases) is not told by its sizes: a named model may differ.
  const bool nameless = row.model.empty() || row.model.find("-class") != std::string::npos;
  if (need == Need::weights && !nameless) return fail(ErrorCode::unsupported, "the layout of its blocks is not known");
  model::Model model = GW_TRY(model::model_from_config(llama_config(shape), row.model.empty() ? row.id : row.model));
  GW_TRY(window_layers(shape, model.layers));
  // Engines keep a window's cache apart only for families that they know to slide.
  if (shape.swa_layers) model.family = "gemma3";
  if (shape.recurrent == "gdn") model.family = "qwen3next";
  GW_TRY(latent_layers(shape, model.layers));
  GW_TRY(recurrent_layers(shape, model.layers));
  return model;
}

}  // namespace gpuwright::scorer

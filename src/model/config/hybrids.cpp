// State-space models and hybrids of them with attention. Sources: modeling_mamba.py, modeling_mamba2.py,
// modeling_falcon_mamba.py, modeling_jamba.py, modeling_bamba.py, modeling_falcon_h1.py, modeling_nemotron_h.py,
// modeling_granitemoehybrid.py, modeling_lfm2*.py, modeling_rwkv.py of transformers v5.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "model/config/experts.h"

namespace gpuwright::model {
namespace {

Recurrent mamba1_of(const Fields& config, std::int64_t hidden) {
  Recurrent r;
  r.kind = RecurrentKind::mamba1;
  const std::int64_t expand = config.size({"expand", "mamba_expand"}, 2, 256);
  r.d_inner = config.size({"intermediate_size", "d_inner"}, expand * hidden);
  r.d_state = config.size({"state_size", "mamba_d_state"}, 16, 1 << 16);
  r.d_conv = config.size({"conv_kernel", "mamba_d_conv"}, 4, 256);
  return r;
}

// "auto" is a sixteenth of the width.
std::int64_t dt_rank_of(const Fields& config, std::int64_t hidden) {
  const Json* value = config.find({"time_step_rank", "mamba_dt_rank"});
  if (!value || value->is_string()) return divide_up(hidden, 16);
  return config.size({"time_step_rank", "mamba_dt_rank"}, 1);
}

// The mamba_* keys of Bamba, Falcon-H1 and Granite-H.
Recurrent mamba2_of(const Fields& config, std::int64_t hidden) {
  Recurrent r;
  r.kind = RecurrentKind::mamba2;
  r.d_inner = config.size({"mamba_d_ssm"}, config.size({"mamba_expand"}, 2, 256) * hidden);
  r.heads = config.size({"mamba_n_heads"}, 128, kMaxHeads);
  const Json* head_dim = config.find({"mamba_d_head"});
  r.head_dim = head_dim && !head_dim->is_string() ? config.size({"mamba_d_head"}, 64, kMaxHeads)
                                                  : config.quotient(r.d_inner, r.heads, "mamba inner size / heads");
  r.n_group = config.size({"mamba_n_groups"}, 1, kMaxHeads);
  r.d_state = config.size({"mamba_d_state"}, 256, 1 << 16);
  r.d_conv = config.size({"mamba_d_conv"}, 4, 256);
  return r;
}

Mixer mixer_of(const Fields& config) {
  Mixer mixer;
  mixer.conv_bias = config.flag({"mamba_conv_bias", "use_conv_bias"}, true);
  mixer.projection_bias = config.flag({"mamba_proj_bias", "use_bias"}, false);
  return mixer;
}

// transformers v5 writes the general names, earlier versions and the repositories their own.
bool is_attention(std::string_view type) {
  return type == "attention" || type == "full_attention";
}

// A decoder of recurrent layers only: no heads, no feed-forward.
Decoder recurrent_decoder(const Fields& config, const Recurrent& recurrent, const Mixer& mixer, bool tied) {
  Decoder decoder;
  decoder.hidden = config.required({"hidden_size", "d_model"});
  decoder.vocabulary = config.required({"vocab_size"}, kMaxVocabulary);
  decoder.tied = config.flag({"tie_word_embeddings"}, tied);
  decoder.names.embedding = "backbone.embeddings";
  decoder.names.blocks = "backbone.layers";
  decoder.names.final_norm = "backbone.norm_f";
  Block block;
  block.norms = {"norm"};
  block.layer.recurrent = recurrent;
  block.mixer = mixer;
  const std::int64_t layers = config.required({"num_hidden_layers", "n_layer"}, kMaxLayers);
  decoder.blocks.assign(static_cast<std::size_t>(layers), block);
  return decoder;
}

}  // namespace

Decoder read_mamba(const Fields& config) {
  const std::int64_t hidden = config.required({"hidden_size", "d_model"});
  Mixer mixer = mixer_of(config);
  mixer.dt_rank = dt_rank_of(config, hidden);
  return recurrent_decoder(config, mamba1_of(config, hidden), mixer, true);
}

Decoder read_mamba2(const Fields& config) {
  const std::int64_t hidden = config.required({"hidden_size", "d_model"});
  Recurrent r;
  r.kind = RecurrentKind::mamba2;
  r.d_inner = config.size({"expand"}, 2, 256) * hidden;
  r.heads = config.size({"num_heads"}, 128, kMaxHeads);
  r.head_dim = config.size({"head_dim"}, 64, kMaxHeads);
  r.n_group = config.size({"n_groups"}, 8, kMaxHeads);
  r.d_state = config.size({"state_size"}, 128, 1 << 16);
  r.d_conv = config.size({"conv_kernel"}, 4, 256);
  if (r.heads * r.head_dim != r.d_inner)
    config.reading().wrong(
        fmt::format("num_heads {} x head_dim {} is not expand x hidden_size = {}", r.heads, r.head_dim, r.d_inner));
  Mixer mixer = mixer_of(config);
  mixer.gated_norm = r.d_inner;
  return recurrent_decoder(config, r, mixer, false);
}

// One of attn_layer_period layers is attention; every second one has experts.
Decoder read_jamba(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.names.final_norm = "model.final_layernorm";
  decoder.names.mlp = "feed_forward";
  decoder.names.router = "feed_forward.router";
  decoder.names.experts = "feed_forward.experts";
  const std::int64_t width = decoder.blocks.front().layer.feed_forward.width;
  const Experts experts{.count = config.size({"num_experts", "num_local_experts"}, 16, kMaxExperts),
                        .active = config.size({"num_experts_per_tok"}, 2, kMaxExperts),
                        .width = width};
  const std::int64_t attention_period = config.size({"attn_layer_period"}, 8, kMaxLayers);
  const std::int64_t attention_offset = config.size_or_zero({"attn_layer_offset"}, 4, kMaxLayers);
  const std::int64_t expert_period = config.size({"expert_layer_period"}, 2, kMaxLayers);
  const std::int64_t expert_offset = config.size_or_zero({"expert_layer_offset"}, 1, kMaxLayers);
  Recurrent recurrent = mamba1_of(config.with_defaults("{}"), decoder.hidden);
  recurrent.d_inner = config.size({"mamba_expand"}, 2, 256) * decoder.hidden;
  Mixer mixer = mixer_of(config);
  mixer.dt_rank = dt_rank_of(config, decoder.hidden);
  mixer.inner_norms = true;
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    const auto index = static_cast<std::int64_t>(i);
    block.norms = {"input_layernorm", "pre_ff_layernorm"};
    block.recurrent = "mamba";
    block.mixer = mixer;
    if (index % attention_period != attention_offset) {
      block.layer.attention = {};
      block.layer.recurrent = recurrent;
    }
    if (experts.count > 1 && index % expert_period == expert_offset) set_experts(block, experts);
  }
  return decoder;
}

Decoder read_bamba(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.names.final_norm = "model.final_layernorm";
  decoder.names.mlp = "feed_forward";
  const std::vector<std::int64_t> attention_layers = config.sizes({"attn_layer_indices"}, kMaxLayers);
  const std::vector<std::string> types = config.texts({"layers_block_type", "layer_types"});
  const Recurrent recurrent = mamba2_of(config, decoder.hidden);
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    block.norms = {"input_layernorm", "pre_ff_layernorm"};
    block.recurrent = "mamba";
    block.mixer = mixer_of(config);
    block.mixer.gated_norm = recurrent.d_inner;
    const bool listed = std::find(attention_layers.begin(), attention_layers.end(), static_cast<std::int64_t>(i)) !=
                        attention_layers.end();
    if (listed || (i < types.size() && is_attention(types[i]))) continue;
    block.layer.attention = {};
    block.layer.recurrent = recurrent;
  }
  return decoder;
}

// Every layer runs attention and Mamba-2 side by side.
Decoder read_falcon_h1(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.names.final_norm = "model.final_layernorm";
  decoder.names.mlp = "feed_forward";
  const Recurrent recurrent = mamba2_of(config, decoder.hidden);
  Mixer mixer = mixer_of(config);
  mixer.gated_norm = config.flag({"mamba_rms_norm"}, false) ? recurrent.d_inner : 0;
  mixer.projection_bias = config.flag({"mamba_proj_bias"}, false);
  for (Block& block : decoder.blocks) {
    block.norms = {"input_layernorm", "pre_ff_layernorm"};
    block.recurrent = "mamba";
    block.mixer = mixer;
    block.layer.recurrent = recurrent;
  }
  return decoder;
}

// Attention or Mamba-2, then a shared feed-forward, with experts beside it in the larger models.
Decoder read_granite_hybrid(const Fields& config) {
  Decoder decoder = read_llama(config);
  const Recurrent recurrent = mamba2_of(config, decoder.hidden);
  const std::vector<std::string> types = config.texts({"layer_types", "layers_block_type"});
  const std::int64_t shared = config.size({"shared_intermediate_size"}, 1024);
  const Experts experts{.count = config.size_or_zero({"num_local_experts"}, 8, kMaxExperts),
                        .active = config.size_or_zero({"num_experts_per_tok"}, 2, kMaxExperts),
                        .width = config.required({"intermediate_size"}),
                        .shared_width = shared};
  decoder.names.router = "block_sparse_moe.router.layer";
  decoder.names.experts = "block_sparse_moe.experts";
  decoder.names.shared = decoder.names.mlp = "shared_mlp";
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    block.recurrent = "mamba";
    block.mixer = mixer_of(config);
    block.mixer.gated_norm = recurrent.d_inner;
    block.layer.feed_forward.width = shared;
    if (experts.count > 0) set_experts(block, experts);
    if (i < types.size() && is_attention(types[i])) continue;
    block.layer.attention = {};
    block.layer.recurrent = recurrent;
  }
  return decoder;
}

namespace {

// One letter a layer: M is Mamba-2, * attention, - a dense feed-forward, E experts.
std::string nemotron_pattern(const Fields& config) {
  std::string pattern = config.text({"hybrid_override_pattern"});
  for (const std::string& type : config.texts({"layers_block_type"}))
    pattern += type == "mamba" || type == "linear_attention" ? 'M'
               : is_attention(type)                          ? '*'
               : type == "moe"                               ? 'E'
                                                             : '-';
  return pattern;
}

void make_nemotron_experts(const Fields& config, Block& block, std::int64_t hidden) {
  const std::int64_t latent = config.size_or_zero({"moe_latent_size"}, 0);
  const std::int64_t shared = config.size_or_zero({"moe_shared_expert_intermediate_size"}, 0) *
                              config.size_or_zero({"n_shared_experts"}, 1, 1024);
  set_experts(block, {.count = config.required({"n_routed_experts"}, kMaxExperts),
                      .active = config.size({"num_experts_per_tok"}, 2, kMaxExperts),
                      .width = config.required({"moe_intermediate_size"}),
                      .shared_width = shared});
  block.layer.feed_forward.gated = false;
  block.correction_bias = block.layer.feed_forward.experts;
  if (latent == 0) return;
  block.expert_input = latent;
  block.extras = {
      {.name = "mixer.fc1_latent_proj",
       .role = TensorRole::feed_forward,
       .rows = latent,
       .columns = hidden,
       .is_linear = true},
      {.name = "mixer.fc2_latent_proj",
       .role = TensorRole::feed_forward,
       .rows = hidden,
       .columns = latent,
       .is_linear = true},
  };
}

}  // namespace

Decoder read_nemotron_h(const Fields& given) {
  const std::string pattern = nemotron_pattern(given);
  const Fields config = given.with_defaults(R"({"head_dim": 128, "intermediate_size": 21504})");
  const std::int64_t hidden = config.required({"hidden_size"});
  Recurrent r;
  r.kind = RecurrentKind::mamba2;
  r.heads = config.size({"mamba_num_heads"}, 128, kMaxHeads);
  r.head_dim = config.size({"mamba_head_dim"}, 64, kMaxHeads);
  r.d_inner = r.heads * r.head_dim;
  r.n_group = config.size({"n_groups"}, 8, kMaxHeads);
  r.d_state = config.size({"ssm_state_size"}, 128, 1 << 16);
  r.d_conv = config.size({"conv_kernel"}, 4, 256);
  Mixer mixer = mixer_of(config);
  mixer.gated_norm = r.d_inner;

  Decoder decoder;
  decoder.hidden = hidden;
  decoder.vocabulary = config.required({"vocab_size"}, kMaxVocabulary);
  decoder.context = config.size_or_zero({"max_position_embeddings"}, 0, kMaxPositions);
  decoder.tied = config.flag({"tie_word_embeddings"}, false);
  decoder.names.embedding = "backbone.embeddings";
  decoder.names.blocks = "backbone.layers";
  decoder.names.final_norm = "backbone.norm_f";
  decoder.names.attention = decoder.names.mlp = "mixer";
  decoder.names.router = "mixer.gate";
  decoder.names.experts = "mixer.experts";
  decoder.names.shared = "mixer.shared_experts";
  if (pattern.empty() || pattern.size() > static_cast<std::size_t>(kMaxLayers))
    config.reading().wrong("hybrid_override_pattern does not say what each layer is");
  const Attention attention = attention_of(heads_of(config));
  const std::int64_t width = config.required({"intermediate_size"});
  const bool bias = config.flag({"mlp_bias"}, false);
  for (const char letter : pattern) {
    Block block;
    block.norms = {"norm"};
    block.mlp_bias = bias;
    if (letter == 'M') {
      block.layer.recurrent = r;
      block.mixer = mixer;
    } else if (letter == '*') {
      block.layer.attention = attention;
    } else if (letter == 'E') {
      make_nemotron_experts(config, block, hidden);
    } else if (letter == '-') {
      block.layer.feed_forward = {.width = width, .gated = false};
    } else {
      config.reading().wrong(fmt::format("hybrid_override_pattern has a layer '{}', which is not known", letter));
    }
    decoder.blocks.push_back(std::move(block));
    if (config.reading().error) break;
  }
  return decoder;
}

// Short convolutions, with attention on some layers; the feed-forward width is two thirds, rounded up.
Decoder read_lfm2(const Fields& config) {
  Decoder decoder = llama_like(config, config.flag({"tie_embedding"}, true));
  decoder.names.final_norm = "model.embedding_norm";
  decoder.names.o = "out_proj";
  decoder.names.mlp = "feed_forward";
  decoder.names.gate = decoder.names.expert_gate = "w1";
  decoder.names.up = decoder.names.expert_up = "w3";
  decoder.names.down = decoder.names.expert_down = "w2";
  std::int64_t width = config.size({"block_ff_dim", "intermediate_size"}, 4 * decoder.hidden);
  if (config.flag({"block_auto_adjust_ff_dim"}, true) && !config.has({"num_dense_layers"})) {
    width = static_cast<std::int64_t>(config.number({"block_ffn_dim_multiplier"}, 1.0) *
                                      static_cast<double>(2 * width / 3));
    if (width < 1 || width > kMaxWidth)
      config.reading().wrong("block_ffn_dim_multiplier gives no possible width"), width = 1;
    width = pad_to(width, config.size({"block_multiple_of"}, 256));
  }
  const std::vector<std::string> types = config.texts({"layer_types"});
  const std::vector<std::int64_t> full = config.sizes({"full_attn_idxs"}, kMaxLayers);
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    block.norms = {"operator_norm", "ffn_norm"};
    block.recurrent = "conv";
    block.mixer.conv_bias = block.mixer.projection_bias = config.flag({"conv_bias"}, false);
    block.q_norm = block.k_norm = block.layer.attention.key_dim;
    block.layer.feed_forward.width = width;
    const bool attention = i < types.size() ? is_attention(types[i])
                                            : full.empty() || std::find(full.begin(), full.end(),
                                                                        static_cast<std::int64_t>(i)) != full.end();
    if (attention) continue;
    block.layer.attention = {};
    block.layer.recurrent.kind = RecurrentKind::short_convolution;
    block.layer.recurrent.d_inner = decoder.hidden;
    block.layer.recurrent.d_conv = config.size({"conv_L_cache"}, 3, 256);
  }
  return decoder;
}

Decoder read_lfm2_moe(const Fields& config) {
  Decoder decoder = read_lfm2(config.with_defaults(R"({"num_dense_layers": 2})"));
  decoder.names.router = "feed_forward.gate";
  decoder.names.experts = "feed_forward.experts";
  const Experts experts{.count = config.size({"num_experts", "num_local_experts"}, 32, kMaxExperts),
                        .active = config.size({"num_experts_per_tok"}, 4, kMaxExperts),
                        .width = config.required({"moe_intermediate_size"})};
  const std::int64_t dense = config.size_or_zero({"num_dense_layers"}, 2, kMaxLayers);
  for (std::size_t i = static_cast<std::size_t>(dense); i < decoder.blocks.size(); ++i) {
    set_experts(decoder.blocks[i], experts);
    if (config.flag({"use_expert_bias"}, true)) decoder.blocks[i].correction_bias = experts.count;
  }
  return decoder;
}

// RWKV-4: per layer the last inputs of both mixers, and numerator, denominator and maximum of the weighted sum.
Decoder read_rwkv(const Fields& config) {
  Recurrent r;
  r.kind = RecurrentKind::rwkv;
  const std::int64_t hidden = config.required({"hidden_size"});
  const std::int64_t inner = config.size({"attention_hidden_size"}, hidden);
  const std::int64_t width = config.size({"intermediate_size"}, 4 * hidden);
  r.d_inner = hidden;
  r.heads = 3 * inner;
  r.head_dim = 1;
  Decoder decoder = recurrent_decoder(config, r, {}, false);
  decoder.context = config.size_or_zero({"context_length"}, 0, kMaxPositions);
  decoder.norm_bias = true;
  decoder.names.embedding = "rwkv.embeddings";
  decoder.names.blocks = "rwkv.blocks";
  decoder.names.final_norm = "rwkv.ln_out";
  decoder.names.head = "head";
  const auto vector = [](std::string_view name, std::int64_t elements) {
    return Extra{.name = name, .role = TensorRole::recurrent, .columns = elements};
  };
  const auto linear = [](std::string_view name, std::int64_t rows, std::int64_t columns) {
    return Extra{.name = name, .role = TensorRole::recurrent, .rows = rows, .columns = columns, .is_linear = true};
  };
  for (Block& block : decoder.blocks) {
    block.norms = {"ln1", "ln2"};
    block.mixer.standard = false;
    block.extras = {vector("attention.time_decay", inner),
                    vector("attention.time_first", inner),
                    vector("attention.time_mix_key", hidden),
                    vector("attention.time_mix_value", hidden),
                    vector("attention.time_mix_receptance", hidden),
                    linear("attention.key", inner, hidden),
                    linear("attention.value", inner, hidden),
                    linear("attention.receptance", inner, hidden),
                    linear("attention.output", hidden, inner),
                    vector("feed_forward.time_mix_key", hidden),
                    vector("feed_forward.time_mix_receptance", hidden),
                    linear("feed_forward.key", width, hidden),
                    linear("feed_forward.receptance", hidden, hidden),
                    linear("feed_forward.value", hidden, width)};
  }
  decoder.blocks.front().norms = {"pre_ln", "ln1", "ln2"};
  return decoder;
}

}  // namespace gpuwright::model

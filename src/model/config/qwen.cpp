// Qwen 1 to 3.6. Sources: modeling_qwen.py of the Qwen/Qwen-7B repository; modeling_qwen2.py, modeling_qwen2_moe.py,
// modeling_qwen3.py, modeling_qwen3_moe.py, modeling_qwen3_next.py, modeling_qwen3_5*.py of transformers v5.
#include <algorithm>

#include "model/config/families.h"
#include "model/config/mixers.h"

namespace gpuwright::model {
namespace {

void apply_qwen_window(const Fields& config, Decoder& decoder) {
  if (!config.flag({"use_sliding_window"}, false)) return;
  const std::int64_t window = config.size_or_zero({"sliding_window"}, 4096, kMaxPositions);
  if (window == 0 || apply_layer_types(config, decoder, window)) return;
  const std::int64_t full = config.size_or_zero({"max_window_layers"}, 28, kMaxLayers);
  for (std::size_t i = static_cast<std::size_t>(full); i < decoder.blocks.size(); ++i) {
    decoder.blocks[i].layer.attention.kind = AttentionKind::sliding;
    decoder.blocks[i].layer.attention.window = window;
  }
}

void add_head_norms(Decoder& decoder) {
  for (Block& block : decoder.blocks) block.q_norm = block.k_norm = block.layer.attention.key_dim;
}

// num_experts routed experts on every decoder_sparse_step-th layer that mlp_only_layers does not name.
void add_experts(const Fields& config, Decoder& decoder, std::int64_t shared_width) {
  const std::int64_t experts = config.size_or_zero({"num_experts", "num_local_experts"}, 0, kMaxExperts);
  if (experts == 0) return;
  const std::int64_t active = config.size({"num_experts_per_tok"}, experts);
  const std::int64_t width = config.required({"moe_intermediate_size"});
  const std::int64_t step = config.size({"decoder_sparse_step"}, 1, kMaxLayers);
  const std::vector<std::int64_t> dense_layers = config.sizes({"mlp_only_layers"}, kMaxLayers);
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    if ((index + 1) % step != 0 || std::find(dense_layers.begin(), dense_layers.end(), index) != dense_layers.end())
      continue;
    Block& block = decoder.blocks[i];
    block.layer.feed_forward = {.width = 0,
                                .gated = true,
                                .experts = experts,
                                .experts_per_token = active,
                                .expert_width = width,
                                .shared_width = shared_width};
    block.dense = false;
    block.shared_gate = shared_width > 0;
  }
}

}  // namespace

// intermediate_size counts both halves of the gated block.
Decoder read_qwen1(const Fields& config) {
  Decoder decoder = llama_like(config);
  const std::int64_t width = config.quotient(config.required({"intermediate_size"}), 2, "intermediate_size / 2");
  Names& names = decoder.names;
  names.embedding = "transformer.wte";
  names.blocks = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.attention = "attn";
  names.qkv = "c_attn";
  names.o = names.down = "c_proj";
  names.gate = "w2";
  names.up = "w1";
  for (Block& block : decoder.blocks) {
    block.norms = {"ln_1", "ln_2"};
    block.qkv_bias = true;
    block.layer.feed_forward.width = width;
  }
  return decoder;
}

Decoder read_qwen2(const Fields& config) {
  Decoder decoder = llama_like(config);
  for (Block& block : decoder.blocks) block.qkv_bias = true;
  apply_qwen_window(config, decoder);
  return decoder;
}

Decoder read_qwen2_moe(const Fields& config) {
  Decoder decoder = read_qwen2(config);
  const bool bias = config.flag({"qkv_bias"}, true);
  for (Block& block : decoder.blocks) block.qkv_bias = bias;
  add_experts(config, decoder, config.size_or_zero({"shared_expert_intermediate_size"}, 0));
  return decoder;
}

Decoder read_qwen3(const Fields& config) {
  Decoder decoder = read_llama(config);
  add_head_norms(decoder);
  apply_qwen_window(config, decoder);
  return decoder;
}

Decoder read_qwen3_moe(const Fields& config) {
  Decoder decoder = read_qwen3(config);
  add_experts(config, decoder, 0);
  return decoder;
}

// Three of four layers are gated delta nets; the fourth is gated attention.
Decoder read_qwen3_5(const Fields& config) {
  Decoder decoder = read_llama(config);
  add_head_norms(decoder);
  const std::vector<std::string> types = config.texts({"layer_types"});
  const std::int64_t interval = config.size({"full_attention_interval"}, 4, kMaxLayers);
  const Recurrent recurrent = gated_delta_net_of(config);
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    block.gated_query = true;
    block.recurrent = "linear_attn";
    block.mixer.conv_bias = false;
    const bool linear =
        i < types.size() ? types[i] == "linear_attention" : (static_cast<std::int64_t>(i) + 1) % interval != 0;
    if (!linear) continue;
    block.layer.attention = {};
    block.layer.recurrent = recurrent;
  }
  add_experts(config, decoder, config.size_or_zero({"shared_expert_intermediate_size"}, 0));

  decoder.predictors = config.size_or_zero({"mtp_num_hidden_layers", "num_nextn_predict_layers"}, 0, 64);
  if (decoder.predictors == 0) return decoder;
  decoder.predictor_prefix = "mtp.layers";
  decoder.predictor = decoder.blocks.back();
  if (decoder.predictor.layer.recurrent.kind != RecurrentKind::none) {
    decoder.predictor.layer.recurrent = {};
    decoder.predictor.layer.attention = attention_of(heads_of(config));
  }
  const std::int64_t hidden = decoder.hidden;
  decoder.predictor_globals = {
      {.name = "mtp.fc.weight", .rows = hidden, .columns = 2 * hidden},
      {.name = "mtp.pre_fc_norm_hidden.weight", .columns = hidden},
      {.name = "mtp.pre_fc_norm_embedding.weight", .columns = hidden},
      {.name = "mtp.norm.weight", .columns = hidden},
  };
  return decoder;
}

Decoder read_qwen3_next(const Fields& config) {
  return read_qwen3_5(config);
}

}  // namespace gpuwright::model

// Mixtures of experts on ordinary attention. Sources: modeling_phimoe.py, modeling_gpt_oss.py, modeling_olmoe.py,
// modeling_granitemoe*.py, modeling_glm4_moe.py, modeling_minimax*.py, modeling_ernie4_5_moe.py,
// modeling_hunyuan_v1_moe.py of transformers v5.
#include "model/config/experts.h"

#include <algorithm>

namespace gpuwright::model {

void set_experts(Block& block, const Experts& experts) {
  block.layer.feed_forward = {.width = 0,
                              .gated = true,
                              .experts = experts.count,
                              .experts_per_token = std::min(experts.active, experts.count),
                              .expert_width = experts.width,
                              .shared_width = experts.shared_width};
  block.dense = false;
}

Decoder read_phimoe(const Fields& config) {
  Decoder decoder = read_mixtral(config);
  decoder.norm_bias = true;
  decoder.head_bias = config.flag({"lm_head_bias"}, false);
  const bool bias = config.flag({"attention_bias"}, false);
  for (Block& block : decoder.blocks) block.qkv_bias = block.o_bias = bias;
  return decoder;
}

// Layers alternate, the first slides. Attention sinks: one learned logit a head.
Decoder read_gpt_oss(const Fields& config) {
  Decoder decoder = llama_like(config);
  const bool bias = config.flag({"attention_bias"}, true);
  const Experts experts{.count = config.size({"num_local_experts", "num_experts"}, 128, kMaxExperts),
                        .active = config.size({"num_experts_per_tok", "experts_per_token"}, 4, kMaxExperts),
                        .width = config.required({"intermediate_size"})};
  decoder.names.router = "mlp.router";
  for (Block& block : decoder.blocks) {
    block.qkv_bias = block.o_bias = bias;
    block.sinks = block.layer.attention.heads;
    set_experts(block, experts);
    block.router_bias = block.expert_bias = true;
  }
  const std::int64_t window = config.size_or_zero({"sliding_window"}, 128, kMaxPositions);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, 2);
  return decoder;
}

Decoder read_olmoe(const Fields& config) {
  Decoder decoder = read_llama(config);
  const Experts experts{.count = config.size({"num_experts", "num_local_experts"}, 64, kMaxExperts),
                        .active = config.size({"num_experts_per_tok"}, 8, kMaxExperts),
                        .width = config.required({"intermediate_size"})};
  for (Block& block : decoder.blocks) {
    block.q_norm = block.layer.attention.heads * block.layer.attention.key_dim;
    block.k_norm = block.layer.attention.kv_heads * block.layer.attention.key_dim;
    set_experts(block, experts);
  }
  return decoder;
}

Decoder read_granite_moe(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.names.router = "block_sparse_moe.router.layer";
  decoder.names.experts = "block_sparse_moe.experts";
  decoder.names.shared = "shared_mlp";
  const Experts experts{.count = config.size({"num_local_experts"}, 8, kMaxExperts),
                        .active = config.size({"num_experts_per_tok"}, 2, kMaxExperts),
                        .width = config.required({"intermediate_size"}),
                        .shared_width = config.size_or_zero({"shared_intermediate_size"}, 0)};
  for (Block& block : decoder.blocks) set_experts(block, experts);
  return decoder;
}

Decoder read_glm4_moe(const Fields& config) {
  Decoder decoder = llama_like(config);
  const bool bias = config.flag({"attention_bias"}, false);
  const bool norms = config.flag({"use_qk_norm"}, false);
  for (Block& block : decoder.blocks) {
    block.qkv_bias = bias;
    if (norms) block.q_norm = block.k_norm = block.layer.attention.key_dim;
  }
  add_deepseek_experts(config, decoder, true);
  add_deepseek_predictors(config, decoder);
  return decoder;
}

// MiniMax-M2: full attention everywhere, norms over all heads together.
Decoder read_minimax_m2(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.names.router = "block_sparse_moe.gate";
  decoder.names.experts = "block_sparse_moe.experts";
  const Experts experts{.count = config.size({"num_local_experts"}, 256, kMaxExperts),
                        .active = config.size({"num_experts_per_tok"}, 8, kMaxExperts),
                        .width = config.required({"intermediate_size"})};
  const bool norms = config.flag({"use_qk_norm"}, true);
  for (Block& block : decoder.blocks) {
    set_experts(block, experts);
    block.correction_bias = experts.count;
    if (!norms) continue;
    block.q_norm = block.layer.attention.heads * block.layer.attention.key_dim;
    block.k_norm = block.layer.attention.kv_heads * block.layer.attention.key_dim;
  }
  return decoder;
}

// MiniMax-01: seven of eight layers are lightning attention, whose state is one key_dim x value_dim matrix a head.
// layer_types (transformers) or attn_type_list (the repository's own: 1 is softmax attention) says which.
Decoder read_minimax(const Fields& config) {
  Decoder decoder = read_mixtral(config);
  const std::vector<std::string> types = config.texts({"layer_types"});
  const std::vector<std::int64_t> numbers = config.sizes({"attn_type_list"}, 1);
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    const bool full = i < types.size()     ? types[i] == "full_attention"
                      : i < numbers.size() ? numbers[i] == 1
                                           : i % 2 == 1;
    if (full) continue;
    const Attention attention = block.layer.attention;
    const std::int64_t inner = attention.heads * attention.key_dim;
    block.layer.attention = {};
    Recurrent& r = block.layer.recurrent;
    r.kind = RecurrentKind::gated_delta_net;
    r.key_heads = r.value_heads = attention.heads;
    r.key_dim = r.value_dim = attention.key_dim;
    r.d_inner = inner;
    r.d_state = attention.key_dim;
    r.n_group = attention.heads;
    block.mixer.standard = false;
    block.extras = {
        {.name = "self_attn.norm.weight", .role = TensorRole::norm, .columns = inner},
        {.name = "self_attn.qkv_proj",
         .role = TensorRole::recurrent,
         .rows = 3 * inner,
         .columns = decoder.hidden,
         .is_linear = true},
        {.name = "self_attn.output_gate",
         .role = TensorRole::recurrent,
         .rows = inner,
         .columns = decoder.hidden,
         .is_linear = true},
        {.name = "self_attn.out_proj",
         .role = TensorRole::recurrent,
         .rows = decoder.hidden,
         .columns = inner,
         .is_linear = true},
    };
  }
  return decoder;
}

Decoder read_ernie_moe(const Fields& config) {
  Decoder decoder = read_ernie(config);
  const auto layers = static_cast<std::int64_t>(decoder.blocks.size());
  const std::int64_t width = config.required({"moe_intermediate_size"});
  const Experts experts{.count = config.size({"moe_num_experts", "num_local_experts"}, 64, kMaxExperts),
                        .active = config.size({"moe_k", "num_experts_per_tok"}, 6, kMaxExperts),
                        .width = width,
                        .shared_width = width * config.size_or_zero({"moe_num_shared_experts"}, 2, 1024)};
  const std::int64_t first = config.size_or_zero({"moe_layer_start_index"}, 1, kMaxLayers);
  const Json* end = config.find({"moe_layer_end_index"});
  const std::int64_t last =
      end && end->as_int() == -1 ? layers - 1 : config.size_or_zero({"moe_layer_end_index"}, layers - 1, kMaxLayers);
  const std::int64_t interval = config.size({"moe_layer_interval"}, 1, kMaxLayers);
  decoder.names.shared = "mlp.shared_experts";
  for (std::int64_t i = first; i < layers && i <= last; ++i) {
    if ((i + 1) % interval != 0) continue;
    Block& block = decoder.blocks[static_cast<std::size_t>(i)];
    set_experts(block, experts);
    block.shared_bias = block.mlp_bias;
    block.correction_bias = experts.count;
  }
  return decoder;
}

Decoder read_hunyuan_moe(const Fields& config) {
  Decoder decoder = read_hunyuan(config);
  decoder.names.router = "mlp.gate.wg";
  decoder.names.shared = "mlp.shared_mlp";
  const auto first_of = [](const std::vector<std::int64_t>& list, std::int64_t fallback) {
    return list.empty() ? fallback : list.front();
  };
  const std::int64_t width = config.required({"intermediate_size"});
  const std::int64_t experts = first_of(config.sizes({"num_experts", "num_local_experts"}, kMaxExperts), 1);
  const std::int64_t shared = first_of(config.sizes({"num_shared_expert"}, 1024), 1);
  const std::int64_t expert_width = first_of(config.sizes({"moe_intermediate_size"}), width);
  const std::int64_t active = first_of(config.sizes({"moe_topk", "num_experts_per_tok"}, kMaxExperts), 1);
  for (Block& block : decoder.blocks)
    if (experts > 0)
      set_experts(block, {.count = experts, .active = active, .width = expert_width, .shared_width = width * shared});
  return decoder;
}

}  // namespace gpuwright::model

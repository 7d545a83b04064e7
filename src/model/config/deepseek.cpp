// DeepSeek MoE, V2, V3, V3.2, Kimi K2 and MiniCPM3: latent attention. Sources: modeling_deepseek.py of
// deepseek-ai/deepseek-moe-16b-base; modeling_deepseek_v2.py, _v3.py, _v32.py, modeling_minicpm3.py of transformers v5;
// the weight lists of deepseek-ai/DeepSeek-V3 (README_WEIGHTS.md) for the prediction layer.
#include "model/config/experts.h"

namespace gpuwright::model {
namespace {

// Queries and keys have a part without and a part with rotary positions; the cache holds the latent and the latter.
Attention latent_attention_of(const Fields& config) {
  Attention attention;
  attention.kind = AttentionKind::latent;
  attention.heads = attention.kv_heads = config.required({"num_attention_heads"}, kMaxHeads);
  attention.rope_dim = config.size({"qk_rope_head_dim"}, 64, kMaxHeads);
  attention.key_dim = config.size({"qk_nope_head_dim"}, 128, kMaxHeads) + attention.rope_dim;
  const std::int64_t hidden = config.required({"hidden_size"});
  attention.value_dim = config.has({"v_head_dim"})
                            ? config.required({"v_head_dim"}, kMaxHeads)
                            : config.quotient(hidden, attention.heads, "hidden_size / num_attention_heads");
  attention.kv_lora_rank = config.required({"kv_lora_rank"});
  attention.q_lora_rank = config.size_or_zero({"q_lora_rank"}, 0);
  return attention;
}

Decoder latent_decoder(const Fields& given) {
  // head_dim of these configs is the rotary part or absent; the widths of heads are in qk_* and v_head_dim.
  const Fields config = given.with_defaults(R"({"head_dim": 64})");
  Decoder decoder = llama_like(config);
  const Attention attention = latent_attention_of(config);
  const bool bias = config.flag({"attention_bias"}, false);
  for (Block& block : decoder.blocks) {
    block.layer.attention = attention;
    block.qkv_bias = block.o_bias = bias;
  }
  return decoder;
}

}  // namespace

void add_deepseek_experts(const Fields& config, Decoder& decoder, bool correction_bias) {
  const std::int64_t count = config.size_or_zero({"n_routed_experts"}, 0, kMaxExperts);
  if (count == 0) return;
  const std::int64_t width = config.required({"moe_intermediate_size"});
  const Experts experts{.count = count,
                        .active = config.size({"num_experts_per_tok"}, 8, kMaxExperts),
                        .width = width,
                        .shared_width = width * config.size_or_zero({"n_shared_experts"}, 0, 1024)};
  const std::int64_t first = config.size_or_zero({"first_k_dense_replace"}, 0, kMaxLayers);
  const std::int64_t step = config.size({"moe_layer_freq"}, 1, kMaxLayers);
  decoder.names.shared = "mlp.shared_experts";
  for (std::size_t i = static_cast<std::size_t>(first); i < decoder.blocks.size(); ++i) {
    if (static_cast<std::int64_t>(i) % step != 0) continue;
    set_experts(decoder.blocks[i], experts);
    if (correction_bias) decoder.blocks[i].correction_bias = count;
  }
}

// A prediction layer is a whole block with its own copy of embedding and head, and a projection of both inputs.
void add_deepseek_predictors(const Fields& config, Decoder& decoder) {
  decoder.predictors = config.size_or_zero({"num_nextn_predict_layers", "num_mtp_layers"}, 0, 64);
  if (decoder.predictors == 0) return;
  const std::int64_t hidden = decoder.hidden;
  decoder.predictor = decoder.blocks.back();
  decoder.predictor.extras = {
      {.name = "embed_tokens.weight", .rows = decoder.vocabulary, .columns = hidden},
      {.name = "enorm.weight", .columns = hidden},
      {.name = "hnorm.weight", .columns = hidden},
      {.name = "eh_proj.weight", .rows = hidden, .columns = 2 * hidden},
      {.name = "shared_head.norm.weight", .columns = hidden},
      {.name = "shared_head.head.weight", .rows = decoder.vocabulary, .columns = hidden},
  };
}

// The first DeepSeek MoE: ordinary attention.
Decoder read_deepseek_moe(const Fields& config) {
  Decoder decoder = read_llama(config);
  add_deepseek_experts(config, decoder, false);
  return decoder;
}

Decoder read_deepseek_v2(const Fields& config) {
  Decoder decoder = latent_decoder(config);
  add_deepseek_experts(config, decoder, config.text({"topk_method"}) == "noaux_tc");
  return decoder;
}

Decoder read_deepseek_v3(const Fields& config) {
  Decoder decoder = latent_decoder(config);
  add_deepseek_experts(config, decoder, true);
  add_deepseek_predictors(config, decoder);
  return decoder;
}

// Sparse attention: an indexer with one shared key a token picks what each query attends to.
Decoder read_deepseek_v32(const Fields& config) {
  Decoder decoder = latent_decoder(config);
  add_deepseek_experts(config, decoder, true);
  const std::int64_t heads = config.size({"index_n_heads"}, 64, kMaxHeads);
  const std::int64_t dim = config.size({"index_head_dim"}, 128, kMaxHeads);
  const std::int64_t hidden = decoder.hidden;
  for (Block& block : decoder.blocks) {
    Attention& attention = block.layer.attention;
    attention.indexer_key_dim = dim;
    block.extras = {
        {.name = "self_attn.indexer.wq_b",
         .role = TensorRole::attention,
         .rows = heads * dim,
         .columns = attention.q_lora_rank,
         .is_linear = true},
        {.name = "self_attn.indexer.wk",
         .role = TensorRole::attention,
         .rows = dim,
         .columns = hidden,
         .is_linear = true},
        {.name = "self_attn.indexer.k_norm", .role = TensorRole::norm, .rows = 2, .columns = dim},
        {.name = "self_attn.indexer.weights_proj.weight",
         .role = TensorRole::attention,
         .rows = heads,
         .columns = hidden},
    };
  }
  const std::vector<Extra> indexer = decoder.blocks.back().extras;
  add_deepseek_predictors(config, decoder);
  if (decoder.predictors > 0)
    decoder.predictor.extras.insert(decoder.predictor.extras.end(), indexer.begin(), indexer.end());
  return decoder;
}

Decoder read_minicpm3(const Fields& config) {
  Decoder decoder = latent_decoder(config);
  decoder.tied = config.flag({"tie_word_embeddings"}, true);
  return decoder;
}

}  // namespace gpuwright::model

// Most decoders are Llama with a few differences. A family's function fills in this description; lay_out() turns it
// into the layers and tensors of a Model. Names of modules are those of the family's own Hugging Face code, so that
// lists of modules (quantisation, LoRA targets) mean the same here and there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/fields.h"
#include "model/config/plan.h"
#include "model/model.h"

namespace gpuwright::model {

struct Names {
  std::string_view embedding = "model.embed_tokens";
  std::string_view positions = "model.embed_positions";
  std::string_view blocks = "model.layers";
  std::string_view final_norm = "model.norm";
  std::string_view head = "lm_head";
  std::string_view attention = "self_attn";
  std::string_view q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj";
  std::string_view qkv;  // one fused module when not empty
  std::string_view mlp = "mlp";
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  std::string_view gate_up;  // one fused module when not empty
  std::string_view router = "mlp.gate";
  std::string_view experts = "mlp.experts";
  std::string_view expert_gate = "gate_proj", expert_up = "up_proj", expert_down = "down_proj";
  std::string_view shared = "mlp.shared_expert";
};

// A tensor of one block that no general rule covers.
struct Extra {
  std::string_view name;
  TensorRole role = TensorRole::other;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  bool is_linear = false;  // quantised like the other linear layers
};

// What the recurrent part of a block has beyond its shape.
struct Mixer {
  bool standard = true;      // false: the block's extras are its tensors
  std::int64_t dt_rank = 0;  // mamba1
  bool conv_bias = true;
  bool projection_bias = false;
  bool inner_norms = false;     // Jamba: norms on dt, B and C
  std::int64_t gated_norm = 0;  // elements of the norm before out_proj
};

struct Block {
  Layer layer;
  std::vector<std::string_view> norms = {"input_layernorm", "post_attention_layernorm"};
  std::string_view recurrent = "mixer";  // module name of the recurrent part
  Mixer mixer;
  // Attention. Biases of q, k and v; of o.
  bool qkv_bias = false;
  bool o_bias = false;
  bool gated_query = false;   // q_proj also makes an output gate of the same size
  bool stores_keys = true;    // false: the layer has no k and v projections of its own (Gemma 3n, 4)
  bool value_is_key = false;  // no v projection: the value is the key (Gemma 4)
  std::int64_t q_norm = 0;    // elements of the norm on queries
  std::int64_t k_norm = 0;
  bool qk_norm_bias = false;
  std::int64_t sinks = 0;
  // Feed-forward
  bool mlp_bias = false;
  bool dense = true;  // false: experts only
  bool router_bias = false;
  bool expert_bias = false;
  bool shared_bias = false;
  std::int64_t expert_input = 0;     // input width of the experts; 0: hidden
  bool shared_gate = false;          // a scalar gate on the shared expert (Qwen2-MoE)
  std::int64_t correction_bias = 0;  // e_score_correction_bias, fp32
  std::vector<Extra> extras;
};

struct Decoder {
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t embedding_rows = 0;   // 0: vocabulary
  std::int64_t embedding_width = 0;  // 0: hidden
  std::int64_t position_rows = 0;    // learned position embeddings
  std::int64_t context = 0;
  bool tied = false;
  bool has_head = true;
  bool head_bias = false;
  bool parallel_block = false;
  bool final_norm = true;
  bool norm_weight = true;  // false: norms have no parameters (OLMo 1)
  bool norm_bias = false;
  Names names;
  std::vector<Block> blocks;
  std::vector<Layer> cross_attention_layers;  // Model::cross_attention_layers
  std::vector<Extra> globals;                 // tensors outside the blocks; full names
  // Layers for multi-token prediction, each one `predictor` with its `predictor_extras`; not among the blocks.
  std::int64_t predictors = 0;
  std::string_view predictor_prefix;  // "mtp.layers"; empty: they continue the numbering of the blocks
  Block predictor;
  std::vector<Extra> predictor_globals;  // once for all of them; full names
};

// Sizes under the names that nearly every family uses. head_dim is hidden / heads when it is not given.
struct Heads {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
};
Heads heads_of(const Fields& config);
Attention attention_of(const Heads& heads, AttentionKind kind = AttentionKind::full, std::int64_t window = 0);

// hidden, vocabulary, context, tying and `layers` equal blocks of full attention and a gated dense feed-forward.
Decoder llama_like(const Fields& config, bool tied_by_default = false);

// Marks the layers that `layer_types` (or a repeating pattern) says are sliding, chunked or linear.
bool apply_layer_types(const Fields& config, Decoder& decoder, std::int64_t window);
void apply_window(Decoder& decoder, std::int64_t window, std::int64_t pattern);  // every pattern-th layer stays full

void lay_out(const Decoder& decoder, Plan& plan, Model& model);
void lay_out_block(const Decoder& decoder, const Block& block, const std::string& prefix, std::int32_t layer,
                   Plan& plan);

}  // namespace gpuwright::model

// The noun of this room: what is to be run, as far as memory and time depend on it. Whatever it was read from (a
// Hugging Face folder, safetensors, GGUF, ONNX, a preset, "7B"), `fit` sees only this.
//
// Layers say what each block keeps per token (attention) or per sequence (recurrent state); tensors say what the
// weights take, each with its own storage format. Sizes are elements or tokens unless the name says bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/dtype.h"

namespace gpuwright::model {

// ---------------------------------------------------------------- layers

enum class AttentionKind : std::uint8_t {
  none,     // this layer keeps no keys and values
  full,     // every position attends to all before it: MHA, GQA, MQA by the head counts
  sliding,  // only the last `window` positions
  chunked,  // only the positions of the same chunk of `window` positions (Llama 4)
  latent,   // MLA: one compressed vector of kv_lora_rank + rope_dim a token (DeepSeek V2, V3)
};

struct Attention {
  AttentionKind kind = AttentionKind::none;
  std::int64_t heads = 0;         // query heads
  std::int64_t kv_heads = 0;      // key/value heads; 1 for MQA
  std::int64_t key_dim = 0;       // per head
  std::int64_t value_dim = 0;     // per head
  std::int64_t window = 0;        // sliding, chunked: positions
  std::int64_t kv_lora_rank = 0;  // latent
  std::int64_t rope_dim = 0;      // latent: the decoupled rotary part of the key
  std::int64_t q_lora_rank = 0;   // latent: 0 when queries are not compressed
  bool causal = true;             // false in encoders, which keep no cache
  // KV sharing (Gemma 3n and 4, cross-layer attention): this layer reads the cache of that layer and stores none.
  std::optional<std::int32_t> shares_cache_of;
  // Sparse attention with an indexer (DeepSeek V3.2) keeps this many key elements a token beside the latent; else 0.
  std::int64_t indexer_key_dim = 0;

  // Elements that one token adds to the cache of this layer (0 for none, shared or non-causal layers).
  std::int64_t cached_elements_per_token() const;
};

enum class RecurrentKind : std::uint8_t { none, mamba1, mamba2, gated_delta_net, rwkv, short_convolution };

// State that does not grow with the context. Shapes follow the reference code of each kind:
//   mamba1            conv (d_inner) x (d_conv-1); ssm d_inner x d_state
//   mamba2            conv (d_inner + 2*n_group*d_state) x (d_conv-1); ssm d_inner x d_state
//                     (d_inner = heads*head_dim)
//   gated_delta_net   conv (2*key_heads*key_dim + value_heads*value_dim) x (d_conv-1);
//                     state value_heads*key_dim*value_dim
//   rwkv              token shift d_inner x (d_conv-1), where d_conv 0 stands for the usual two shifts;
//                     wkv heads*head_dim*head_dim   (d_inner = hidden)
//   short_convolution conv hidden x (d_conv-1)   (LFM2)
struct Recurrent {
  RecurrentKind kind = RecurrentKind::none;
  std::int64_t d_inner = 0;
  std::int64_t d_state = 0;
  std::int64_t n_group = 0;
  std::int64_t d_conv = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t key_heads = 0, key_dim = 0, value_heads = 0, value_dim = 0;

  std::int64_t convolution_elements() const;  // per sequence
  std::int64_t state_elements() const;        // per sequence
};

struct FeedForward {
  std::int64_t width = 0;    // inner size of the dense block; 0 when the layer has none
  bool gated = true;         // SwiGLU/GeGLU: three matrices instead of two
  std::int64_t experts = 0;  // routed experts; 0 for a dense layer
  std::int64_t experts_per_token = 0;
  std::int64_t expert_width = 0;  // inner size of one routed expert
  std::int64_t shared_width = 0;  // inner size of all shared experts together
};

struct Layer {
  Attention attention;  // a hybrid block (Falcon-H1) has both attention and recurrent parts
  Recurrent recurrent;
  FeedForward feed_forward;
};

// ---------------------------------------------------------------- tensors

enum class TensorRole : std::uint8_t {
  token_embedding,
  position_embedding,
  output_head,  // lm_head / output.weight, absent when tied
  norm,
  attention,       // q, k, v, o projections
  attention_kv_a,  // MLA down-projections, replicated under tensor parallelism
  feed_forward,
  expert,  // routed experts (possibly many stacked in one tensor)
  shared_expert,
  router,
  recurrent,  // projections, convolutions and constants of recurrent layers
  encoder,    // encoder of an encoder-decoder, or an encoder-only model's blocks
  vision,     // vision or audio tower and its projector
  multi_token_prediction,
  quantization,  // scales, zero points and indices that travel as tensors of their own
  other,
};

// A tensor, or `copies` equal ones (256 experts of one layer in a synthesised plan).
struct Tensor {
  std::string name;
  TensorRole role = TensorRole::other;
  Dtype dtype = Dtype::unknown;
  std::int32_t layer = -1;   // index into Model::layers; -1 outside the blocks
  std::int64_t rows = 0;     // all dimensions but the innermost, multiplied; GGUF: prod(ne[1:])
  std::int64_t columns = 0;  // innermost dimension; GGUF: ne[0]
  std::int64_t copies = 1;
  std::int64_t weights_per_element = 1;  // packed formats: an int32 of a GPTQ qweight holds 8 weights
  Bytes bytes;                           // of all copies together, as stored
  std::int64_t weights() const { return rows * columns * copies * weights_per_element; }
};

// ---------------------------------------------------------------- the model

enum class Source : std::uint8_t { config, safetensors, gguf, onnx, pytorch_bin, preset, parameter_count };
enum class ModelKind : std::uint8_t { decoder, encoder, encoder_decoder, vision_encoder, dual_encoder, other };

// A vision or audio tower in front of a decoder, or an encoder stack of its own.
struct Encoder {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t feed_forward_width = 0;
  std::int64_t positions = 0;  // tokens or patches it sees at most
};

// What a computation graph (ONNX) says beside its weights.
struct GraphInfo {
  struct Opset {
    std::string domain;  // empty for the standard operators
    std::int64_t version = 0;
  };
  struct Value {
    std::string name;
    std::string element_type;             // "F32"; empty when not told
    std::vector<std::string> dimensions;  // "3", "batch"; "?" for one that is not told
  };
  struct Operator {
    std::string name;  // with its domain where that is not the standard one: "com.microsoft.MatMulNBits"
    std::int64_t nodes = 0;
  };
  std::string name;
  std::int64_t format_version = 0;  // ONNX: ir_version
  std::vector<Opset> opsets;
  std::string producer;  // "pytorch 2.1.0"
  std::vector<Value> inputs, outputs;
  std::vector<Operator> operators;  // most frequent first; those of subgraphs and functions included
  std::int64_t nodes = 0;
  std::int64_t subgraphs = 0;               // bodies of If, Loop and Scan
  std::vector<std::string> external_files;  // that hold weights beside the graph, sorted
};

struct Model {
  std::string name;          // what the user asked for, or what the file calls itself
  std::string architecture;  // "llama", "qwen3moe", "LlamaForCausalLM": as the source writes it
  std::string family;        // normalised key that engine rules use: "llama", "gemma3", "deepseek3", "gpt-oss", ...
  ModelKind kind = ModelKind::decoder;
  Source source = Source::config;

  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t context_length = 0;  // trained positions; 0 when not told
  bool tied_embeddings = false;     // the output head is the embedding matrix
  bool parallel_block = false;      // attention and feed-forward read the same input (GPT-NeoX, Phi, Falcon)
  std::vector<Layer> layers;        // decoder blocks, in order
  std::int64_t multi_token_prediction_layers = 0;  // extra blocks for speculative heads, not in `layers`
  std::vector<Layer> cross_attention_layers;       // encoder-decoder: cross-attention cache of each decoder layer
  std::optional<Encoder> encoder;                  // encoder-decoder and encoder-only models
  std::optional<Encoder> vision;                   // vision or audio tower

  std::vector<Tensor> tensors;     // never empty: read from the file, or laid out from the config
  bool tensors_are_exact = false;  // read from headers, not derived
  std::string weight_format;       // "BF16", "Q4_K_M", "gptq-int4-g128", "fp8-block": for people
  Bytes file_bytes;                // of the files themselves; 0 when there are none

  std::optional<GraphInfo> graph;  // ONNX only

  std::vector<std::string> assumptions;  // what the source did not say and was filled in, one sentence each
  bool upper_bound = false;              // the architecture is unknown: every layer is priced as full attention

  std::int64_t parameters() const;         // logical weights; tied heads once, quantisation tensors not at all
  std::int64_t active_parameters() const;  // used for one token: experts_per_token of experts, no MTP blocks
  Bytes weight_bytes() const;              // all tensors as stored
};

}  // namespace gpuwright::model

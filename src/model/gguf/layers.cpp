#include "model/gguf/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/gguf/blocks.h"

namespace gpuwright::model::gguf {
namespace {

// Far above any model, low enough that a whole model's cache elements stay within 63 bits.
constexpr std::int64_t kMaxBlocks = 1 << 12;
constexpr std::int64_t kMaxHeads = 1 << 14;
constexpr std::int64_t kMaxHeadDimension = 1 << 14;
constexpr std::int64_t kMaxInner = 1 << 24;
constexpr std::int64_t kMaxState = 1 << 20;
constexpr std::int64_t kMaxTaps = 1 << 8;

class LayerBuilder {
 public:
  LayerBuilder(Model& model, const Architecture& architecture, Fields& fields, const std::vector<TensorInfo>& tensors)
      : model_(model), architecture_(architecture), fields_(fields), tensors_(tensors) {}

  Status build() {
    GW_TRY(count_blocks());
    GW_TRY(read_shared_shapes());
    const std::vector<Block> blocks = blocks_of(tensors_, count_);
    model_.layers.reserve(blocks.size());
    for (std::int64_t i = 0; i < count_; ++i) model_.layers.push_back(layer(i, blocks[static_cast<std::size_t>(i)]));
    share_caches();
    if (architecture_.kind == ModelKind::encoder_decoder) add_encoder_and_crossings();
    if (architecture_.kind == ModelKind::encoder) model_.encoder = encoder(count_);
    return fields_.status();
  }

 private:
  Status count_blocks() {
    blocks_in_file_ = fields_.required("block_count");
    const std::int64_t extra = fields_.size("nextn_predict_layers");
    count_ = architecture_.kind == ModelKind::encoder_decoder ? fields_.size("decoder_block_count", blocks_in_file_)
                                                              : blocks_in_file_ - extra;
    model_.multi_token_prediction_layers = extra;
    if (blocks_in_file_ > kMaxBlocks || count_ > kMaxBlocks)
      fields_.fail_on("block_count", fmt::format("is more than {}", kMaxBlocks));
    if (count_ < 1) fields_.fail_on("nextn_predict_layers", "leaves no block");
    return fields_.status();
  }

  std::int64_t limited(std::string_view key, std::int64_t value, std::int64_t most) {
    if (value <= most) return value;
    fields_.fail_on(key, fmt::format("is {}, more than {}", value, most));
    return 0;
  }

  Status read_shared_shapes() {
    const std::int64_t heads = limited("attention.head_count", fields_.size("attention.head_count"), kMaxHeads);
    const std::int64_t head_dim = heads > 0 ? model_.hidden / heads : 0;
    const auto dimension = [&](std::string_view key, std::int64_t fallback) {
      return limited(key, fields_.size(key, fallback), kMaxHeadDimension);
    };
    key_dim_ = dimension("attention.key_length", head_dim);
    value_dim_ = dimension("attention.value_length", head_dim);
    window_key_dim_ = dimension("attention.key_length_swa", key_dim_);
    window_value_dim_ = dimension("attention.value_length_swa", value_dim_);
    kv_lora_rank_ = dimension("attention.kv_lora_rank", 0);
    q_lora_rank_ = dimension("attention.q_lora_rank", 0);
    latent_key_dim_ = dimension("attention.key_length_mla", 0);
    latent_value_dim_ = dimension("attention.value_length_mla", 0);
    indexer_key_dim_ = dimension("attention.indexer.key_length", 0);
    experts_per_token_ = fields_.size("expert_used_count");
    read_window();
    read_state();
    return fields_.status();
  }

  void read_window() {
    using When = WindowRule::When;
    const WindowRule& rule = architecture_.window;
    constexpr std::string_view kKey = "attention.sliding_window";
    const std::int64_t given = fields_.size(kKey);
    period_ = rule.period;
    const Value* pattern = fields_.find("attention.sliding_window_pattern");
    pattern_in_file_ = pattern != nullptr && pattern->is_array;
    if (pattern != nullptr && !pattern->is_array) period_ = fields_.size("attention.sliding_window_pattern", period_);
    switch (rule.when) {
      case When::never:
        // A rule that is not known here, spelled out by the file itself.
        window_ = pattern_in_file_ ? given : 0;
        return;
      case When::always:
        window_ = given > 0 ? given : rule.window;
        break;
      case When::if_given:
        window_ = given;
        return;
      case When::unless_zero:
        window_ = given == 0 && fields_.has(kKey) ? 0 : rule.window;
        return;
      case When::if_64_layers:
        if (count_ == 64) window_ = given > 0 ? given : rule.window;
        return;
      case When::pattern_in_file:
        window_ = given;
        if (!pattern_in_file_) fields_.fail_on("attention.sliding_window_pattern", "is missing");
        break;
    }
    if (window_ == 0) fields_.fail_on(kKey, "is missing");
  }

  void read_state() {
    if (architecture_.recurrent == RecurrentKind::none) return;
    const auto size = [&](std::string_view key, std::int64_t most) { return limited(key, fields_.size(key), most); };
    state_.kind = architecture_.recurrent;
    state_.d_conv = size("ssm.conv_kernel", kMaxTaps);
    state_.d_inner = size("ssm.inner_size", kMaxInner);
    state_.d_state = size("ssm.state_size", kMaxState);
    state_.n_group = size("ssm.group_count", kMaxHeads);
    const std::int64_t rank = size("ssm.time_step_rank", kMaxInner);
    switch (architecture_.recurrent) {
      case RecurrentKind::mamba2:
        state_.heads = rank;
        state_.head_dim = rank > 0 ? state_.d_inner / rank : 0;
        break;
      case RecurrentKind::gated_delta_net:
        read_delta_net(rank);
        break;
      case RecurrentKind::rwkv:
        state_.d_inner = model_.hidden;
        state_.d_conv = limited("token_shift_count", fields_.size("token_shift_count", 2), kMaxTaps) + 1;
        state_.head_dim = limited("wkv.head_size", fields_.required("wkv.head_size"), kMaxHeadDimension);
        state_.heads = state_.head_dim > 0 ? model_.hidden / state_.head_dim : 0;
        break;
      case RecurrentKind::short_convolution:
        state_.d_inner = model_.hidden;
        state_.d_conv = limited("shortconv.l_cache", fields_.required("shortconv.l_cache"), kMaxTaps);
        break;
      case RecurrentKind::mamba1:
      case RecurrentKind::none:
        break;
    }
  }

  // Qwen writes its linear attention in the words of a state-space model; Kimi has keys, values and head counts alike.
  void read_delta_net(std::int64_t rank) {
    if (fields_.has("kda.head_dim")) {
      state_.key_heads = state_.value_heads = fields_.size("attention.head_count");
      state_.key_dim = state_.value_dim = limited("kda.head_dim", fields_.size("kda.head_dim"), kMaxHeadDimension);
      return;
    }
    state_.key_heads = state_.n_group;
    state_.key_dim = limited("ssm.state_size", state_.d_state, kMaxHeadDimension);
    state_.value_heads = limited("ssm.time_step_rank", rank, kMaxHeads);
    state_.value_dim = rank > 0 ? limited("ssm.inner_size", state_.d_inner / rank, kMaxHeadDimension) : 0;
  }

  bool is_windowed(std::int64_t i) const {
    if (window_ == 0) return false;
    if (pattern_in_file_) return fields_.flag_in("attention.sliding_window_pattern", i).value_or(false);
    if (period_ == 0) return true;
    return architecture_.window.dense_first ? i % period_ != 0 : i % period_ < period_ - 1;
  }

  Layer layer(std::int64_t i, const Block& block) {
    Layer result;
    const bool recurrent = architecture_.recurrent != RecurrentKind::none && block.recurrent;
    if (recurrent) result.recurrent = state_;
    if (!recurrent || architecture_.both_in_one_layer) result.attention = attention(i, block);
    result.feed_forward = block.feed_forward;
    if (result.feed_forward.experts > 0) result.feed_forward.experts_per_token = experts_per_token_;
    return result;
  }

  Attention attention(std::int64_t i, const Block& block) {
    Attention result;
    if (block.seen && !block.attention) return result;  // a block of feed-forward alone (Nemotron-H)
    result.heads = limited("attention.head_count", fields_.size_in("attention.head_count", i, 0), kMaxHeads);
    result.kv_heads =
        limited("attention.head_count_kv", fields_.size_in("attention.head_count_kv", i, result.heads), kMaxHeads);
    if (result.heads == 0 || result.kv_heads == 0) {
      if (block.attention) refuse_zero(result.heads == 0 ? "attention.head_count" : "attention.head_count_kv", i);
      return Attention{};
    }
    result.causal = architecture_.keeps_cache && fields_.flag("attention.causal").value_or(true);
    const bool windowed = is_windowed(i);
    result.kind = windowed ? architecture_.window.kind : AttentionKind::full;
    result.window = windowed ? window_ : 0;
    result.key_dim = windowed ? window_key_dim_ : key_dim_;
    result.value_dim = windowed ? window_value_dim_ : value_dim_;
    if (kv_lora_rank_ > 0) compress(result);
    if (result.key_dim == 0 || result.value_dim == 0)
      refuse_zero(result.key_dim == 0 ? "attention.key_length" : "attention.value_length", i);
    compare(i, block, result);
    return result;
  }

  // A block with attention weights has heads of some size: without them its cache would count as nothing.
  void refuse_zero(std::string_view key, std::int64_t i) {
    constexpr std::string_view kWhat = "is missing or 0, but blk.{} has attention weights";
    if (!model_.upper_bound) return fields_.fail_on(key, fmt::format(kWhat, i));
    if (contradicted_) return;
    contradicted_ = true;
    model_.assumptions.push_back(fmt::format("{} is missing or 0: the cache of blk.{} is not counted", key, i));
  }

  // Latent attention needs the up-projections split by head, which converters write since April 2025 together with
  // key_length_mla; from older files llama.cpp keeps full keys and values.
  void compress(Attention& attention) {
    attention.kv_lora_rank = kv_lora_rank_;
    attention.q_lora_rank = q_lora_rank_;
    attention.rope_dim = fields_.size("rope.dimension_count");
    attention.indexer_key_dim = indexer_key_dim_;
    if (latent_key_dim_ == 0) return;
    attention.kind = AttentionKind::latent;
    if (key_dim_ > kv_lora_rank_) attention.rope_dim = key_dim_ - kv_lora_rank_;
    attention.kv_heads = 1;
    attention.key_dim = latent_key_dim_;
    attention.value_dim = latent_value_dim_;
  }

  void compare(std::int64_t i, const Block& block, const Attention& attention) {
    const std::int64_t expected = attention.kv_heads * attention.key_dim;
    if (block.key_rows == 0 || attention.kind == AttentionKind::latent || block.key_rows == expected || contradicted_)
      return;
    contradicted_ = true;
    model_.assumptions.push_back(
        fmt::format("blk.{}.attn_k.weight has {} rows where the metadata ask for {}; the "
                    "metadata were taken for the cache",
                    i, block.key_rows, expected));
  }

  // Gemma 3n and 4: the last blocks read the cache of the last block of their kind that keeps one, a windowed one
  // followed by a full one (llama_model::create_memory).
  void share_caches() {
    std::int64_t keepers = architecture_.cached_layers > 0 ? architecture_.cached_layers : count_;
    if (fields_.has("attention.shared_kv_layers")) keepers = count_ - fields_.size("attention.shared_kv_layers");
    if (keepers >= count_) return;
    if (keepers < 2) return fields_.fail_on("attention.shared_kv_layers", "leaves fewer than two blocks with a cache");
    for (std::int64_t i = keepers; i < count_; ++i) {
      Attention& attention = model_.layers[static_cast<std::size_t>(i)].attention;
      if (attention.kind == AttentionKind::none) continue;
      attention.shares_cache_of = static_cast<std::int32_t>(keepers - (attention.window > 0 ? 2 : 1));
    }
  }

  Encoder encoder(std::int64_t layers) {
    return {.layers = layers,
            .hidden = model_.hidden,
            .heads = fields_.size("attention.head_count"),
            .feed_forward_width = fields_.size("feed_forward_length"),
            .positions = model_.context_length};
  }

  void add_encoder_and_crossings() {
    model_.encoder = encoder(blocks_in_file_);
    model_.cross_attention_layers = model_.layers;
    for (Layer& crossing : model_.cross_attention_layers) crossing.feed_forward = {};
  }

  Model& model_;
  const Architecture& architecture_;
  Fields& fields_;
  const std::vector<TensorInfo>& tensors_;

  std::int64_t blocks_in_file_ = 0;
  std::int64_t count_ = 0;
  std::int64_t key_dim_ = 0, value_dim_ = 0, window_key_dim_ = 0, window_value_dim_ = 0;
  std::int64_t kv_lora_rank_ = 0, q_lora_rank_ = 0, latent_key_dim_ = 0, latent_value_dim_ = 0, indexer_key_dim_ = 0;
  std::int64_t experts_per_token_ = 0;
  std::int64_t window_ = 0, period_ = 0;
  bool pattern_in_file_ = false;
  bool contradicted_ = false;
  Recurrent state_;
};

Encoder tower(Fields& fields, const std::string& prefix) {
  Encoder result{.layers = fields.size(prefix + "block_count"),
                 .hidden = fields.size(prefix + "embedding_length"),
                 .heads = fields.size(prefix + "attention.head_count"),
                 .feed_forward_width = fields.size(prefix + "feed_forward_length")};
  const std::int64_t patch = fields.size(prefix + "patch_size");
  const std::int64_t side = patch > 0 ? fields.size(prefix + "image_size") / patch : 0;
  result.positions = std::min<std::int64_t>(side, 1 << 16) * std::min<std::int64_t>(side, 1 << 16);
  return result;
}

}  // namespace

Status add_layers(Model& model, const Architecture& architecture, Fields& fields,
                  const std::vector<TensorInfo>& tensors) {
  return LayerBuilder(model, architecture, fields, tensors).build();
}

Status add_tower(Model& model, Fields& fields) {
  const bool sees = fields.has("vision.block_count");
  if (sees || fields.has("audio.block_count")) model.vision = tower(fields, sees ? "vision." : "audio.");
  if (sees && fields.has("audio.block_count"))
    model.assumptions.push_back("the file holds an audio tower too, counted in the weights only");
  return fields.status();
}

}  // namespace gpuwright::model::gguf

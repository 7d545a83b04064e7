// Encoder-only models: BERT and its line, vision transformers, and the two-tower models CLIP and SigLIP. Sources:
// modeling_bert.py, modeling_roberta.py, modeling_distilbert.py, modeling_modernbert.py, modeling_vit.py,
// modeling_dinov2.py, modeling_clip.py, modeling_siglip.py of transformers v5; modeling_hf_nomic_bert.py of
// nomic-ai/nomic-bert-2048.
#include <fmt/format.h>

#include <algorithm>

#include "model/config/towers.h"

namespace gpuwright::model {
namespace {

constexpr TensorRole kEncoder = TensorRole::encoder;

// What stands on the encoder, by the name of the class: "BertForMaskedLM" -> "MaskedLM"; "" for the bare model.
std::string task_of(const Fields& config) {
  const std::vector<std::string> architectures = config.texts({"architectures"});
  if (architectures.empty()) return {};
  const std::size_t at = architectures.front().find("For");
  return at == std::string::npos ? std::string() : architectures.front().substr(at + 3);
}

std::int64_t labels_of(const Fields& config) {
  const Fields labels = config.child({"id2label"});
  if (!labels.json().members().empty())
    return std::min<std::int64_t>(static_cast<std::int64_t>(labels.json().members().size()), kMaxWidth);
  return config.size({"num_labels", "_num_labels"}, 2);
}

void dense(Plan& plan, std::string_view name, std::int64_t outputs, std::int64_t inputs, bool bias = true) {
  plan.linear(kEncoder, -1, std::string(name), outputs, inputs, {.bias = bias});
}

Tower text_tower(const Fields& config) {
  Tower tower;
  tower.prefix = "encoder";
  tower.role = kEncoder;
  tower.numbered = true;
  tower.hidden = config.required({"hidden_size", "dim", "n_embd"});
  tower.layers = config.required({"num_hidden_layers", "n_layers", "n_layer"}, kMaxLayers);
  tower.heads = tower.kv_heads = config.required({"num_attention_heads", "n_heads", "n_head"}, kMaxHeads);
  tower.head_dim = config.quotient(tower.hidden, tower.heads, "hidden_size / num_attention_heads");
  tower.width = config.required({"intermediate_size", "hidden_dim", "n_inner"});
  return tower;
}

// Embeddings, blocks and their description; heads are the caller's.
void lay_out_text(const Fields& config, const Tower& tower, std::int64_t positions, std::int64_t types, Plan& plan,
                  Model& model) {
  model.kind = ModelKind::encoder;
  model.hidden = tower.hidden;
  model.vocabulary = config.required({"vocab_size"}, kMaxVocabulary);
  model.context_length = config.size_or_zero({"max_position_embeddings", "n_positions"}, 0, kMaxPositions);
  model.encoder = encoder_of(tower, model.context_length);
  plan.matrix(TensorRole::token_embedding, -1, "embeddings.word_embeddings.weight", model.vocabulary, tower.hidden);
  plan.matrix(TensorRole::position_embedding, -1, "embeddings.position_embeddings.weight", positions, tower.hidden);
  plan.matrix(TensorRole::position_embedding, -1, "embeddings.token_type_embeddings.weight", types, tower.hidden);
  plan.norm(-1, "embeddings.LayerNorm", tower.hidden, tower.norm_bias);
  add_layers(tower, model);
  lay_out_tower(tower, plan);
}

// A transform, a norm and a bias a word; the matrix is the embedding.
void lay_out_word_head(const Tower& tower, bool transform_bias, bool word_bias, Plan& plan, Model& model) {
  dense(plan, "lm_head.dense", tower.hidden, tower.hidden, transform_bias);
  plan.norm(-1, "lm_head.layer_norm", tower.hidden, tower.norm_bias, kEncoder);
  if (word_bias) plan.vector(TensorRole::output_head, -1, "lm_head.bias", model.vocabulary);
  model.tied_embeddings = true;
}

}  // namespace

void read_bert(const Fields& config, Plan& plan, Model& model) {
  const Tower tower = text_tower(config);
  lay_out_text(config, tower, config.size({"max_position_embeddings"}, 512, kMaxWidth),
               config.size({"type_vocab_size"}, 2), plan, model);
  const std::string task = task_of(config);
  const bool words = task == "MaskedLM" || task == "PreTraining";
  if (task != "MaskedLM" && task != "TokenClassification" && task != "QuestionAnswering")
    dense(plan, "pooler.dense", tower.hidden, tower.hidden);
  if (words) lay_out_word_head(tower, true, true, plan, model);
  if (task == "PreTraining") dense(plan, "cls.seq_relationship", 2, tower.hidden);
  if (task.ends_with("Classification")) dense(plan, "classifier", labels_of(config), tower.hidden);
  if (task == "QuestionAnswering") dense(plan, "qa_outputs", 2, tower.hidden);
}

void read_roberta(const Fields& config, Plan& plan, Model& model) {
  const Tower tower = text_tower(config);
  lay_out_text(config, tower, config.size({"max_position_embeddings"}, 514, kMaxWidth),
               config.size({"type_vocab_size"}, 1), plan, model);
  const std::string task = task_of(config);
  if (task.empty()) dense(plan, "pooler.dense", tower.hidden, tower.hidden);
  if (task == "MaskedLM") lay_out_word_head(tower, true, true, plan, model);
  if (task == "SequenceClassification") {
    dense(plan, "classifier.dense", tower.hidden, tower.hidden);
    dense(plan, "classifier.out_proj", labels_of(config), tower.hidden);
  }
  if (task == "TokenClassification") dense(plan, "classifier", labels_of(config), tower.hidden);
}

void read_distilbert(const Fields& config, Plan& plan, Model& model) {
  const Tower tower = text_tower(config);
  lay_out_text(config, tower, config.size({"max_position_embeddings"}, 512, kMaxWidth), 0, plan, model);
  const std::string task = task_of(config);
  if (task == "MaskedLM") lay_out_word_head(tower, true, true, plan, model);
  if (task != "SequenceClassification") return;
  dense(plan, "pre_classifier", tower.hidden, tower.hidden);
  dense(plan, "classifier", labels_of(config), tower.hidden);
}

// Two of three layers look at local_attention positions. The first block has no norm before its attention.
void read_modernbert(const Fields& config, Plan& plan, Model& model) {
  Tower tower = text_tower(config);
  tower.gated = true;
  tower.fused_qkv = true;
  tower.norm_bias = config.flag({"norm_bias"}, false);
  tower.qkv_bias = tower.out_bias = config.flag({"attention_bias"}, false);
  tower.mlp_bias = config.flag({"mlp_bias"}, false);
  tower.outer_norms = 1;
  tower.norms_of_first_block = 1;
  lay_out_text(config, tower, 0, 0, plan, model);
  const std::int64_t window = config.size({"local_attention"}, 128, kMaxPositions);
  const std::int64_t every = config.size({"global_attn_every_n_layers"}, 3, kMaxLayers);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (static_cast<std::int64_t>(i) % every == 0) continue;
    model.layers[i].attention.kind = AttentionKind::sliding;
    model.layers[i].attention.window = window;
  }
  if (task_of(config) == "MaskedLM")
    lay_out_word_head(tower, config.flag({"classifier_bias"}, false), config.flag({"decoder_bias"}, true), plan, model);
}

// Rotary positions, no biases in the blocks, no pooler.
void read_nomic_bert(const Fields& config, Plan& plan, Model& model) {
  Tower tower = text_tower(config);
  tower.gated = true;
  tower.qkv_bias = tower.out_bias = config.flag({"qkv_proj_bias"}, false);
  tower.mlp_bias = config.flag({"mlp_fc1_bias"}, false);
  lay_out_text(config, tower, 0, config.size({"type_vocab_size"}, 2), plan, model);
}

void read_vit(const Fields& config, Plan& plan, Model& model) {
  Tower tower = tower_of(config, "encoder");
  tower.role = kEncoder;
  tower.numbered = true;
  tower.qkv_bias = config.flag({"qkv_bias"}, true);
  const Patches patches = patches_of(config, 224, 16);
  tower.patch_inputs = patches.inputs;
  tower.class_tokens = 1;
  tower.position_rows = patches.count + 1;
  tower.outer_norms = 1;
  lay_out_tower(tower, plan);
  const std::string task = task_of(config);
  if (task.empty()) dense(plan, "pooler.dense", config.size({"pooler_output_size"}, tower.hidden), tower.hidden);
  if (task == "ImageClassification") dense(plan, "classifier", labels_of(config), tower.hidden);
  model.kind = ModelKind::vision_encoder;
  model.hidden = tower.hidden;
  model.context_length = tower.position_rows;
  model.encoder = encoder_of(tower, tower.position_rows);
  add_layers(tower, model);
}

// Layer scales on both branches; the giant one is gated, at two thirds of the width rounded up to 8.
void read_dinov2(const Fields& given, Plan& plan, Model& model) {
  const std::int64_t ratio = given.size({"mlp_ratio"}, 4, 64);
  const bool gated = given.flag({"use_swiglu_ffn"}, false);
  Tower tower = tower_of(given.with_defaults(R"({"intermediate_size": 1})"), "encoder");
  tower.role = kEncoder;
  tower.numbered = true;
  tower.gated = gated;
  tower.width = ratio * tower.hidden;
  if (gated) tower.width = (tower.width * 2 / 3 + 7) / 8 * 8;
  tower.qkv_bias = given.flag({"qkv_bias"}, true);
  tower.extra_per_block = 2 * tower.hidden;
  const Patches patches = patches_of(given, 224, 14);
  tower.patch_inputs = patches.inputs;
  tower.class_tokens = given.flag({"use_mask_token"}, true) ? 2 : 1;
  tower.position_rows = patches.count + 1;
  tower.outer_norms = 1;
  lay_out_tower(tower, plan);
  if (task_of(given) == "ImageClassification") dense(plan, "classifier", labels_of(given), 2 * tower.hidden);
  model.kind = ModelKind::vision_encoder;
  model.hidden = tower.hidden;
  model.context_length = tower.position_rows;
  model.encoder = encoder_of(tower, tower.position_rows);
  add_layers(tower, model);
}

namespace {

// The text half of a two-tower model; `outer_norms` after the blocks.
Tower paired_text_tower(const Fields& text, std::int64_t vocabulary, std::int64_t positions, Plan& plan, Model& model) {
  Tower tower = tower_of(text, "text_model.encoder");
  tower.role = kEncoder;
  tower.numbered = true;
  tower.outer_norms = 1;
  model.kind = ModelKind::dual_encoder;
  model.hidden = tower.hidden;
  model.vocabulary = vocabulary;
  model.context_length = positions;
  plan.matrix(TensorRole::token_embedding, -1, "text_model.embeddings.token_embedding.weight", vocabulary,
              tower.hidden);
  plan.matrix(TensorRole::position_embedding, -1, "text_model.embeddings.position_embedding.weight", positions,
              tower.hidden);
  lay_out_tower(tower, plan);
  add_layers(tower, model);
  model.encoder = encoder_of(tower, positions);
  return tower;
}

}  // namespace

void read_clip(const Fields& config, Plan& plan, Model& model) {
  const Fields text = config.child({"text_config"})
                          .with_defaults(R"({"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12,
                                             "num_attention_heads": 8})");
  const Tower words = paired_text_tower(text, text.size({"vocab_size"}, 49408, kMaxVocabulary),
                                        text.size({"max_position_embeddings"}, 77, kMaxWidth), plan, model);
  std::int64_t positions = 0;
  const Tower images = clip_vision_tower(config.child({"vision_config"}), "vision_model", positions);
  lay_out_tower(images, plan);
  const std::int64_t projection = config.size({"projection_dim"}, 512);
  plan.linear(TensorRole::vision, -1, "visual_projection", projection, images.hidden);
  dense(plan, "text_projection", projection, words.hidden, false);
  plan.vector(TensorRole::other, -1, "logit_scale", 1);
  model.vision = encoder_of(images, positions);
}

void read_siglip(const Fields& config, Plan& plan, Model& model) {
  const Fields text = config.child({"text_config"})
                          .with_defaults(R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                                             "num_attention_heads": 12})");
  const Tower words = paired_text_tower(text, text.size({"vocab_size"}, 32000, kMaxVocabulary),
                                        text.size({"max_position_embeddings"}, 64, kMaxWidth), plan, model);
  dense(plan, "text_model.head", text.size({"projection_size"}, words.hidden), words.hidden);
  std::int64_t positions = 0;
  const Fields vision = config.child({"vision_config"});
  const Tower images = siglip_vision_tower(vision, "vision_model", positions);
  lay_out_tower(images, plan);
  if (vision.flag({"vision_use_head"}, true)) {  // pooling by attention of one learned query
    const std::int64_t h = images.hidden;
    const std::string head = "vision_model.head";
    plan.vector(TensorRole::vision, -1, head + ".probe", h);
    plan.linear(TensorRole::vision, -1, head + ".attention.in_proj", 3 * h, h, {.bias = true});
    plan.linear(TensorRole::vision, -1, head + ".attention.out_proj", h, h, {.bias = true});
    plan.norm(-1, head + ".layernorm", h, true, TensorRole::vision);
    plan.linear(TensorRole::vision, -1, head + ".mlp.fc1", images.width, h, {.bias = true});
    plan.linear(TensorRole::vision, -1, head + ".mlp.fc2", h, images.width, {.bias = true});
  }
  plan.vector(TensorRole::other, -1, "logit_scale_and_bias", 2);
  model.vision = encoder_of(images, positions);
}

}  // namespace gpuwright::model

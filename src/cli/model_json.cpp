// A model description as JSON (schema gpuwright.model/1). Equal neighbouring layers are written once with a count.
#include "base/json.h"
#include "cli/fit_answer.h"
#include "cli/model_layers.h"
#include "model/model.h"

namespace gpuwright::cli {
namespace {

Json attention_json(const model::Attention& attention) {
  if (attention.kind == model::AttentionKind::none) return {};
  Json json;
  json.set("kind", name_of(attention.kind)).set("heads", attention.heads).set("kv_heads", attention.kv_heads);
  json.set("key_dim", attention.key_dim).set("value_dim", attention.value_dim);
  if (attention.window > 0) json.set("window", attention.window);
  if (attention.kind == model::AttentionKind::latent)
    json.set("kv_lora_rank", attention.kv_lora_rank)
        .set("rope_dim", attention.rope_dim)
        .set("q_lora_rank", attention.q_lora_rank);
  if (!attention.causal) json.set("causal", false);
  if (attention.shares_cache_of) json.set("shares_cache_of", std::int64_t{*attention.shares_cache_of});
  return json.set("cached_elements_per_token", attention.cached_elements_per_token());
}

Json recurrent_json(const model::Recurrent& recurrent) {
  if (recurrent.kind == model::RecurrentKind::none) return {};
  Json json;
  json.set("kind", name_of(recurrent.kind)).set("d_conv", recurrent.d_conv);
  return json.set("convolution_elements", recurrent.convolution_elements())
      .set("state_elements", recurrent.state_elements());
}

Json feed_forward_json(const model::FeedForward& block) {
  Json json;
  json.set("width", block.width).set("gated", block.gated);
  if (block.experts > 0)
    json.set("experts", block.experts)
        .set("experts_per_token", block.experts_per_token)
        .set("expert_width", block.expert_width)
        .set("shared_width", block.shared_width);
  return json;
}

Json tower_json(const std::optional<model::Encoder>& tower) {
  if (!tower) return {};
  Json json;
  json.set("layers", tower->layers).set("hidden", tower->hidden).set("heads", tower->heads);
  return json.set("feed_forward_width", tower->feed_forward_width).set("positions", tower->positions);
}

Json layers_json(const model::Model& model) {
  Json list = Json::array();
  for (const LayerGroup& group : layer_groups(model.layers)) {
    Json json;
    Json indices = Json::array();
    for (const std::int64_t index : group.indices) indices.push(index);
    json.set("count", static_cast<std::int64_t>(group.indices.size())).set("layers", std::move(indices));
    json.set("attention", attention_json(group.layer.attention))
        .set("recurrent", recurrent_json(group.layer.recurrent));
    list.push(json.set("feed_forward", feed_forward_json(group.layer.feed_forward)));
  }
  return list;
}

Json weights_json(const model::Model& model) {
  Json list = Json::array();
  for (const WeightGroup& group : weight_groups(model)) {
    Json json;
    json.set("role", group.role).set("dtype", group.dtype).set("tensors", group.tensors);
    list.push(json.set("weights", group.weights).set("bytes", group.bytes.count));
  }
  return list;
}

Json values_json(const std::vector<model::GraphInfo::Value>& values) {
  Json list = Json::array();
  for (const auto& value : values) {
    Json json, dimensions = Json::array();
    for (const std::string& dimension : value.dimensions) dimensions.push(dimension);
    json.set("name", value.name);
    json.set("element_type", value.element_type.empty() ? Json() : Json(value.element_type));
    list.push(json.set("dimensions", std::move(dimensions)));
  }
  return list;
}

Json graph_json(const std::optional<model::GraphInfo>& graph) {
  if (!graph) return {};
  Json json, opsets = Json::array(), operators = Json::array(), files = Json::array();
  for (const auto& opset : graph->opsets) {
    Json entry;
    opsets.push(entry.set("domain", opset.domain).set("version", opset.version));
  }
  for (const auto& kind : graph->operators) {
    Json entry;
    operators.push(entry.set("name", kind.name).set("nodes", kind.nodes));
  }
  for (const std::string& file : graph->external_files) files.push(file);
  json.set("name", graph->name).set("ir_version", graph->format_version).set("opsets", std::move(opsets));
  json.set("producer", graph->producer).set("nodes", graph->nodes).set("subgraphs", graph->subgraphs);
  json.set("inputs", values_json(graph->inputs)).set("outputs", values_json(graph->outputs));
  return json.set("operators", std::move(operators)).set("external_files", std::move(files));
}

}  // namespace

Json to_json(const model::Model& model) {
  Json json;
  json.set("name", model.name).set("architecture", model.architecture).set("family", model.family);
  json.set("kind", name_of(model.kind)).set("source", name_of(model.source));
  json.set("parameters", model.parameters()).set("active_parameters", model.active_parameters());
  json.set("weight_format", model.weight_format).set("weights_bytes", model.weight_bytes().count);
  json.set("weights_are_exact", model.tensors_are_exact);
  json.set("file_bytes", model.file_bytes.count > 0 ? Json(model.file_bytes.count) : Json());
  json.set("hidden", model.hidden).set("vocabulary", model.vocabulary);
  json.set("context_length", model.context_length > 0 ? Json(model.context_length) : Json());
  json.set("tied_embeddings", model.tied_embeddings).set("upper_bound", model.upper_bound);
  json.set("layer_groups", layers_json(model)).set("weights", weights_json(model));
  json.set("encoder", tower_json(model.encoder)).set("vision", tower_json(model.vision));
  json.set("graph", graph_json(model.graph));
  Json assumptions = Json::array();
  for (const std::string& text : model.assumptions) assumptions.push(text);
  return json.set("assumptions", std::move(assumptions));
}

}  // namespace gpuwright::cli

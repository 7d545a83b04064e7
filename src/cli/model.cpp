// gpuwright model: what a model is, as far as memory and time depend on it.
#include "model/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/fit_answer.h"
#include "cli/model_layers.h"
#include "cli/table.h"
#include "fit/kv_cache.h"
#include "model/config.h"
#include "model/load.h"

namespace gpuwright::cli {
namespace {

void print_facts(const model::Model& model, const Console& console) {
  const auto line = [&](std::string_view label, const std::string& value) {
    console.out << fmt::format("{:<13} {}\n", label, printable(value));
  };
  console.out << printable(model.name) << '\n';
  line("architecture", model.family.empty() || model.architecture == model.family
                           ? model.architecture
                           : fmt::format("{} ({})", model.architecture, model.family));
  std::string parameters = in_billions(model.parameters());
  if (model.active_parameters() != model.parameters())
    parameters += fmt::format(", {} active", in_billions(model.active_parameters()));
  line("parameters", parameters);
  line("weights", fmt::format("{} as {}{}", to_string(model.weight_bytes()), model.weight_format,
                              model.tensors_are_exact ? "" : ", computed from the configuration"));
  if (model.file_bytes.count > 0) line("files", fmt::format("{} B", with_thousands(model.file_bytes.count)));
  if (model.context_length > 0) line("context", fmt::format("{} tokens", with_thousands(model.context_length)));
  if (model.vocabulary > 0)
    line("vocabulary", fmt::format("{}{}", with_thousands(model.vocabulary),
                                   model.tied_embeddings ? ", head tied to the embeddings" : ""));
  const Bytes per_token = fit::cache_bytes_per_token(model, model::Dtype::f16, model::Dtype::f16);
  if (per_token.count > 0) line("KV cache", fmt::format("{} a token in 16 bits", to_string(per_token)));
}

std::string opsets(const model::GraphInfo& graph) {
  std::vector<std::string> texts;
  for (const auto& opset : graph.opsets)
    texts.push_back(opset.domain.empty() ? fmt::format("{}", opset.version)
                                         : fmt::format("{} {}", opset.domain, opset.version));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string value_text(const model::GraphInfo::Value& value) {
  std::string text = value.name;
  if (!value.element_type.empty()) text += " " + value.element_type;
  if (!value.dimensions.empty()) text += fmt::format(" [{}]", fmt::join(value.dimensions, ", "));
  return text;
}

// What a computation graph tells beside its weights.
void print_graph(const model::Model& model, const Console& console) {
  if (!model.graph) return;
  constexpr std::size_t kShown = 8;
  const model::GraphInfo& graph = *model.graph;
  const auto line = [&](std::string_view label, const std::string& value) {
    console.out << fmt::format("{:<13} {}\n", label, printable(value));
  };
  line("graph",
       fmt::format("ONNX IR {}, opset {}, {} nodes{}", graph.format_version, opsets(graph), with_thousands(graph.nodes),
                   graph.producer.empty() ? "" : fmt::format(", written by {}", graph.producer)));
  const auto values = [&](std::string_view label, const std::vector<model::GraphInfo::Value>& all) {
    for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i) line(i == 0 ? label : "", value_text(all[i]));
    if (all.size() > kShown) line("", fmt::format("and {} more", all.size() - kShown));
  };
  values("inputs", graph.inputs);
  values("outputs", graph.outputs);
}

void print_layers(const model::Model& model, const Console& console) {
  if (model.layers.empty()) return;
  Table table({{"layers"}, {"what"}});
  for (const LayerGroup& group : layer_groups(model.layers)) {
    std::vector<std::string> parts;
    for (std::string part :
         {describe(group.layer.attention), describe(group.layer.recurrent), describe(group.layer.feed_forward)})
      if (!part.empty()) parts.push_back(std::move(part));
    table.add({index_ranges(group.indices), fmt::format("{}", fmt::join(parts, "; "))});
  }
  console.out << '\n';
  table.print(console);
}

void print_weights(const model::Model& model, const Console& console) {
  Table table(
      {{"weights"}, {"format"}, {"tensors", Align::right}, {"parameters", Align::right}, {"size", Align::right}});
  for (const WeightGroup& group : weight_groups(model))
    table.add({std::string(group.role), std::string(group.dtype), with_thousands(group.tensors),
               with_thousands(group.weights), to_string(group.bytes)});
  console.out << '\n';
  table.print(console);
  for (const std::string& text : model.assumptions) console.out << "note: " << printable(text) << '\n';
}

Result<int> run_show(const Arguments& arguments, const Console& console) {
  model::LoadOptions options;
  options.upper_bound = arguments.has("--upper-bound");
  options.variant = arguments.value("--variant").value_or("");
  const model::Model model = GW_TRY(model::load(arguments.value("MODEL").value_or(""), options));
  if (console.json) {
    Json json;
    json.set("schema", "gpuwright.model/1").set("model", to_json(model));
    console.out << json.dump() << '\n';
    return kDone;
  }
  print_facts(model, console);
  print_graph(model, console);
  print_layers(model, console);
  print_weights(model, console);
  return kDone;
}

Result<int> run_list(const Arguments&, const Console& console) {
  const std::vector<std::string> names = model::preset_names();
  if (console.json) {
    Json json, list = Json::array();
    for (const std::string& name : names) list.push(name);
    json.set("schema", "gpuwright.models/1").set("presets", std::move(list));
    console.out << json.dump() << '\n';
    return kDone;
  }
  for (const std::string& name : names) console.out << name << '\n';
  return kDone;
}

}  // namespace

Command model_show_command() {
  Command command;
  command.name = "model show";
  command.summary = "Describe a model: layers, caches, weights";
  command.description =
      "Prints what gpuwright knows of a model: its parameters, what each layer keeps in memory, and the weights by "
      "role "
      "and storage format. Reads headers only, never the weights.";
  command.arguments = {{"MODEL", "file, folder, hf://org/name, preset or size", true, false, true}};
  Option upper_bound, variant;
  upper_bound.name = "--upper-bound";
  upper_bound.help = "price an unknown architecture as full attention instead of refusing it";
  variant.name = "--variant";
  variant.value = "NAME";
  variant.help = "of a repository with several quantisations, this one";
  command.options = {upper_bound, variant};
  command.examples = {{"gpuwright model show llama-3.1-8b", "a preset"},
                      {"gpuwright model show ./Qwen3-30B-A3B", "a Hugging Face folder"},
                      {"gpuwright model show model-Q4_K_M.gguf --json", "a GGUF file, for programs"}};
  command.run = run_show;
  return command;
}

Command model_list_command() {
  Command command;
  command.name = "model list";
  command.summary = "List the models that are known by name";
  command.description = "Prints the presets: published models whose configuration travels inside gpuwright.";
  command.examples = {{"gpuwright model list", "one name a line"}};
  command.run = run_list;
  return command;
}

}  // namespace gpuwright::cli

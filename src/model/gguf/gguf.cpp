// A GGUF file describes itself: this is where header, layout, names and layers become one Model.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "model/gguf/architecture.h"
#include "model/gguf/fields.h"
#include "model/gguf/layers.h"
#include "model/gguf/names.h"
#include "model/gguf/split.h"
#include "model/gguf/types.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

using gguf::Architecture;
using gguf::Fields;
using gguf::Header;
using gguf::Shards;

tl::unexpected<Error> unsupported(const std::string& file, std::string what, std::string hint) {
  return fail_at(ErrorCode::unsupported, {file, std::nullopt, std::nullopt}, std::move(what), std::move(hint));
}

std::string file_stem(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.size() > 5 && lower(name.substr(name.size() - 5)) == ".gguf") name.resize(name.size() - 5);
  return name;
}

// What llama.cpp prints as the file type; where a file does not say, the type that most of its bytes have.
std::string weight_format(const Header& header, const WeightsFile& weights) {
  const auto file_type = header.integer("general.file_type");
  std::string name = file_type ? gguf::file_type_name(*file_type) : std::string();
  if (!name.empty()) return name;
  std::map<std::string, std::int64_t> bytes_of;
  for (std::size_t i = 0; i < weights.tensors.size(); ++i)
    bytes_of[gguf::type_name(header.tensors[i].type)] += weights.tensors[i].bytes.count;
  const auto most = std::max_element(bytes_of.begin(), bytes_of.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes_of.end() ? std::string() : most->first;
}

// The rows of the embedding matrix are as many as the tokens; a file without tokenizer still has the matrix.
std::int64_t vocabulary(const Header& header, Fields& fields) {
  if (const gguf::Value* tokens = header.find("tokenizer.ggml.tokens"); tokens != nullptr && tokens->is_array)
    return static_cast<std::int64_t>(tokens->count);
  if (const std::int64_t size = fields.size("vocab_size"); size > 0) return size;
  for (const gguf::TensorInfo& tensor : header.tensors)
    if (tensor.name == "token_embd.weight") return tensor.dimensions[1];
  return 0;
}

void add_tensors(Model& model, const WeightsFile& weights) {
  const bool encoder_only = model.kind == ModelKind::encoder;
  const auto layers = static_cast<std::int32_t>(model.layers.size());
  model.tensors.reserve(weights.tensors.size());
  for (const StoredTensor& stored : weights.tensors) {
    const gguf::TensorName name = gguf::parse_name(stored.name);
    Tensor tensor;
    tensor.role = gguf::role_of(name);
    if (name.stack == gguf::Stack::decoder && name.block >= 0) {
      const bool predicts = name.block >= layers && model.multi_token_prediction_layers > 0;
      if (predicts) tensor.role = TensorRole::multi_token_prediction;
      if (name.block < layers) tensor.layer = name.block;
      const bool dense = tensor.role != TensorRole::expert && tensor.role != TensorRole::router;
      if (encoder_only && dense) tensor.role = TensorRole::encoder;
    }
    tensor.name = stored.name;
    tensor.dtype = stored.dtype;
    tensor.rows = stored.rows;
    tensor.columns = stored.columns;
    tensor.bytes = stored.bytes;
    model.tensors.push_back(std::move(tensor));
  }
  model.tensors_are_exact = true;
}

bool has_role(const Model& model, TensorRole role) {
  return std::any_of(model.tensors.begin(), model.tensors.end(), [&](const Tensor& t) { return t.role == role; });
}

// A block whose purpose is not known is priced as if it kept every key and value, and its state beside them.
Architecture priced_from_above(std::string_view name, const Fields& fields) {
  Architecture result{.name = name, .family = name};
  if (fields.has("wkv.head_size")) {
    result.recurrent = RecurrentKind::rwkv;
  } else if (fields.has("shortconv.l_cache")) {
    result.recurrent = RecurrentKind::short_convolution;
  } else if (fields.has("ssm.inner_size")) {
    result.recurrent = fields.has("ssm.group_count") ? RecurrentKind::mamba2 : RecurrentKind::mamba1;
  }
  result.both_in_one_layer = true;
  return result;
}

Result<Architecture> choose(const Header& header, const Fields& fields, const std::string& file,
                            const LoadOptions& options, Model& model) {
  const std::string_view name = header.text("general.architecture");
  if (name.empty())
    return fail_at(ErrorCode::bad_input, {file, std::nullopt, std::nullopt}, "general.architecture is missing");
  if (const Architecture* known = gguf::architecture_named(name)) return *known;
  if (!options.upper_bound)
    return unsupported(file, fmt::format("architecture \"{}\" is not known", name),
                       "--upper-bound prices it as full attention in every layer");
  model.upper_bound = true;
  model.assumptions.push_back(
      fmt::format("architecture \"{}\" is not known: every layer is priced as full attention", name));
  Architecture result = priced_from_above(name, fields);
  if (fields.has("block_count")) return result;
  model.assumptions.push_back("the file describes no layers: only its weights are counted");
  result.kind = ModelKind::other;
  return result;
}

Status refuse_what_is_no_model(const Shards& shards, const std::string& file) {
  const std::string_view type = shards.header.text("general.type");
  if (type == "adapter" || type == "imatrix")
    return unsupported(file,
                       fmt::format("holds {} and no model", type == "adapter" ? "an adapter" : "an importance matrix"),
                       "name the model that it belongs to");
  if (shards.weights.tensors.empty() && shards.header.find("tokenizer.ggml.tokens") == nullptr)
    return fail_at(ErrorCode::bad_input, {file, std::nullopt, std::nullopt}, "holds no tensors",
                   "the file is damaged or was never finished");
  if (shards.weights.tensors.empty())
    return unsupported(file, "holds a vocabulary and no tensors", "name the file with the weights");
  return {};
}

std::string family_of(const Architecture& architecture, Fields& fields) {
  if (architecture.name == "llama" && fields.size("expert_count") > 0) return "mixtral";
  return std::string(architecture.family);
}

Status describe(Model& model, const Architecture& architecture, const Header& header, Fields& fields) {
  model.architecture = std::string(architecture.name);
  model.family = family_of(architecture, fields);
  model.kind = architecture.kind;
  const bool sized = architecture.kind != ModelKind::other && !model.upper_bound;
  model.hidden = sized ? fields.required("embedding_length") : fields.size("embedding_length");
  model.context_length = fields.size("context_length");
  model.vocabulary = vocabulary(header, fields);
  model.parallel_block = fields.flag("use_parallel_residual").value_or(architecture.parallel_block);
  if (architecture.kind != ModelKind::other) return gguf::add_layers(model, architecture, fields, header.tensors);
  if (architecture.name == "clip") return gguf::add_tower(model, fields);
  return fields.status();
}

}  // namespace

Result<Model> read_gguf(const ByteSource& first, const ModelFiles* folder, const LoadOptions& options) {
  Shards shards = GW_TRY(gguf::read_shards(first, folder, options));
  const Header& header = shards.header;
  GW_TRY(refuse_what_is_no_model(shards, first.name()));
  Model model;
  model.source = Source::gguf;
  Fields fields(header, header.text("general.architecture"), first.name());
  const Architecture architecture = GW_TRY(choose(header, fields, first.name(), options, model));
  GW_TRY(describe(model, architecture, header, fields));
  model.name = header.text("general.name");
  if (model.name.empty()) model.name = file_stem(first.name());
  model.weight_format = weight_format(header, shards.weights);
  model.file_bytes = shards.weights.file_bytes;
  add_tensors(model, shards.weights);
  const bool generates = model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder;
  model.tied_embeddings =
      generates && has_role(model, TensorRole::token_embedding) && !has_role(model, TensorRole::output_head);
  return model;
}

}  // namespace gpuwright::model

#include "subject.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "fit/fit.h"
#include "model/config.h"
#include "model/quantize.h"

namespace gpuwright::scorer {
namespace {

std::string_view part_of(const Row& row) {
  return row.settings.text("part").value_or("");
}

Need need_of(const Row& row) {
  const std::string_view component = row.component;
  if (component == "overhead") return Need::nothing;
  if (component == "kv" || component == "kv-recurrent" || component == "recurrent") return Need::cache;
  if ((component == "blocks" || component == "tokens") && row.settings.has("kv_budget")) return Need::cache;
  if (component == "compute") return Need::graph;
  return Need::weights;
}

// "UD-Q4_K_XL" spreads its bits over the tensors by an unpublished rule, about the ordinary Q4_K_M.
std::string base_of_dynamic(std::string_view name) {
  std::string base(name.substr(lower(name).starts_with("ud-") ? 3 : 0));
  if (!base.ends_with("_K_XL")) return base;
  base.resize(base.size() - 3);
  if (base == "Q8_K") return "Q8_0";
  return base == "Q2_K" || base == "Q6_K" ? base : base + "_M";
}

// Names of the table that mean one of with_weight_format's, and the ones that no format can be told from.
Result<std::string> weight_format(const Row& row, Need need) {
  const auto quant = row.settings.text("quant");
  if (!quant) {
    const std::string_view plain =
        row.settings.text("weight_dtype").value_or(row.settings.text("precision").value_or(""));
    // Automatic mixed precision keeps the weights in 32 bits.
    return std::string(plain.ends_with("-amp") ? "fp32" : plain);
  }
  const std::string text(*quant);
  if (text == "bnb-4bit" || text == "torchao-nf4") return std::string("bnb-nf4");
  if (text == "wna16-int4") return std::string("gptq-int4");
  // Which packing is not told, but all that is common (GPTQ, AWQ, compressed-tensors) takes the same within 1 %.
  if (text == "int4") return std::string("awq-int4");
  if (text == "gguf") return fail(ErrorCode::unsupported, "\"gguf\" does not tell the weight format");
  if (row.settings.text("mix") == "dynamic" || lower(text).starts_with("ud-")) {
    if (need == Need::weights)
      return fail(ErrorCode::unsupported,
                  fmt::format("the tensor mix of the dynamic quantisation {} is not told", printable(text)));
    return base_of_dynamic(text);
  }
  if (row.settings.text("mix") == "standard-2023") return text + "@2023";
  // llama.cpp's choice of types changed over time: its build number tells which.
  const auto engine = engine_of(row);
  if (row.settings.text("mix") == "standard" && engine && engine->engine == fit::Engine::ollama)
    return text + "@ollama";
  if (row.settings.text("mix") == "standard" && engine && engine->version.starts_with("b"))
    return fmt::format("{}@{}", text, engine->version);
  return text;
}

// llama.cpp holds the layers for multi-token prediction only while it drafts with them; lines about such runs tell of
// them (mtp_layers).
void leave_out_prediction_layers(const Row& row, model::Model& model) {
  const auto engine = engine_of(row);
  const bool llama = engine && (engine->engine == fit::Engine::llama_cpp || engine->engine == fit::Engine::ollama);
  if (!llama || row.arch.has("mtp_layers") || row.where == "draft" || part_of(row) == "mtp-layer") return;
  model.multi_token_prediction_layers = 0;
  std::erase_if(model.tensors,
                [](const model::Tensor& tensor) { return tensor.role == model::TensorRole::multi_token_prediction; });
}

// llama.cpp has no FP8: what it ran of such a checkpoint was a GGUF file, Q8_0 as well as any where only the cache
// counts.
model::Model in_type_of_engine(const Row& row, model::Model model) {
  const auto engine = engine_of(row);
  const bool llama = engine && (engine->engine == fit::Engine::llama_cpp || engine->engine == fit::Engine::ollama);
  if (!llama || !lower(model.weight_format).starts_with("fp8")) return model;
  auto converted = model::with_weight_format(model, "Q8_0");
  return converted ? *std::move(converted) : model;
}

Result<model::Model> formatted(const Row& row, Need need, model::Model model) {
  const auto format = weight_format(row, need);
  // "fp8" is the checkpoint's own FP8, whatever its scales.
  if (format && !format->empty() && lower(model.weight_format).starts_with(lower(*format))) return model;
  const auto converted = format && !format->empty() ? model::with_weight_format(model, *format)
                         : format                   ? Result<model::Model>(model)
                                                    : Result<model::Model>(tl::unexpected(format.error()));
  // Caches and graphs do not depend on how the weights are stored.
  if (need < Need::weights) return in_type_of_engine(row, converted ? *converted : std::move(model));
  if (converted) return *converted;
  return tl::unexpected(converted.error());
}

// A printed number of window cells tells the micro-batch that made it: cells = window + ubatch, padded.
void take_window_cells(const Row& row, const model::Model& model, fit::Job& job) {
  const auto cells = row.settings.integer("swa_cells");
  if (!cells || !*cells || job.llama.ubatch) return;
  for (const model::Layer& layer : model.layers)
    if (layer.attention.kind == model::AttentionKind::sliding && **cells > layer.attention.window) {
      job.llama.ubatch = **cells - layer.attention.window;
      return;
    }
}

// --fit of llama.cpp: leaves 1 GiB of each GPU free and moves the experts of the first layers to the host until then
// (common/fit.cpp; dense layers, and a context that was given, stay as they are).
Result<std::int64_t> fitted_expert_layers(const model::Model& model, const Scenario& scenario) {
  constexpr Bytes kMargin = {std::int64_t{1} << 30};
  const auto fits = [&](std::int64_t layers) -> Result<bool> {
    Scenario moved = scenario;
    moved.job.llama.cpu_moe_layers = layers;
    const fit::Estimate answer = GW_TRY(fit::estimate(model, moved.job, moved.targets));
    return std::all_of(answer.per_gpu.begin(), answer.per_gpu.end(), [&](const fit::GpuEstimate& gpu) {
      return gpu.peak().total().expected + kMargin <= gpu.usable;
    });
  };
  std::int64_t low = 0, high = std::ssize(model.layers);
  if (GW_TRY(fits(0))) return 0;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (GW_TRY(fits(middle)) ? high : low) = middle;
  }
  return high;
}

Status fit_to_memory(const Row& row, const model::Model& model, Scenario& scenario) {
  if (!GW_TRY(row.settings.flag("fit")).value_or(false) || !scenario.memory_known) return {};
  if (row.settings.has("offload_layers") || row.settings.has("cpu_moe")) return {};
  scenario.job.llama.cpu_moe_layers = GW_TRY(fitted_expert_layers(model, scenario));
  return {};
}

}  // namespace

Result<ResolvedModel> model_of(const Row& row) {
  const Need need = need_of(row);
  auto resolved = resolve_model(row, need);
  if (!resolved && need == Need::nothing) {
    // What an engine holds outside its tensors hardly depends on the model: a small common one stands in.
    return ResolvedModel{GW_TRY(model::model_of_size("1B")), {"the model is not told: a model of 1 B stands in"}};
  }
  if (!resolved) return resolved;
  leave_out_prediction_layers(row, resolved->model);
  resolved->model = GW_TRY(formatted(row, need, std::move(resolved->model)));
  return resolved;
}

Result<model::Model> asked_part(const Row& row, const model::Model& model) {
  const std::string_view part = part_of(row);
  if (part == "mtp-layer" || row.where == "draft") return prediction_layers(row, model);
  if (part == "full-attention") return with_layers_of_kind(model, false);
  if (part == "swa") return with_layers_of_kind(model, true);
  if (part == "repeating-layers") return repeating_layers(model);
  return model;
}

Status adapt(const Row& row, const model::Model& model, Scenario& scenario) {
  const fit::Engine engine = scenario.job.engine;
  if (engine != fit::Engine::llama_cpp && engine != fit::Engine::ollama) return {};
  take_window_cells(row, model, scenario.job);
  return fit_to_memory(row, model, scenario);
}

}  // namespace gpuwright::scorer

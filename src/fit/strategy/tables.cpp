#include "fit/strategy/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include <toml++/toml.h>
#include "base/embedded.h"
#include "fit/strategy/strategy.h"
#include "model/config.h"
#include "model/quantize.h"

namespace gpuwright::fit {
namespace {

Result<toml::table> facts(std::string_view name) {
  try {
    return toml::parse(embedded_data(name).value_or(""), name);
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::internal, fmt::format("data/{}: {}", name, error.description()));
  }
}

// The rows of an array of tables, each with a way to read its text.
std::vector<const toml::table*> rows_of(const toml::table& file, std::string_view key) {
  std::vector<const toml::table*> rows;
  const toml::array* array = file[key].as_array();
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i)
    if (const toml::table* row = array->get(i)->as_table()) rows.push_back(row);
  return rows;
}
std::string text_of(const toml::table& row, std::string_view key) {
  return row[key].value_or(std::string());
}

// ---------------------------------------------------------------- the classic table

constexpr std::int64_t kTokens = 2048;

// Large enough for every cell, and with an A100's overheads: the question is what it takes, not whether it fits.
Target imaginary_gpu() {
  return {"an imaginary GPU", Bytes::from_gib(65536), Bytes::from_gib(65536), "Ampere", false};
}

Result<Range> peak(const Estimate& estimate) {
  if (estimate.per_gpu.empty()) return fail(ErrorCode::internal, "an estimate without GPUs");
  Range range;
  for (const Instant& instant : estimate.per_gpu.front().instants) {
    const Range total = instant.total();
    range = {std::max(range.low, total.low), std::max(range.expected, total.expected),
             std::max(range.high, total.high)};
  }
  return range;
}

struct Setting {
  std::string_view key, words;
};
constexpr Setting kSettings[] = {
    {"fp16-inference", "transformers, batch 1, a prompt of 2,048 tokens"},
    {"fp16-training",
     "Trainer, bf16 autocast with fp32 weights, fused AdamW, batch 1 x 2,048 tokens, full checkpointing"},
    {"lora", "PEFT on a 16-bit base, rank 8 on the default modules, AdamW, batch 1 x 2,048, full checkpointing"},
    {"qlora", "PEFT on an NF4 base with doubly quantised scales, the rest as LoRA"},
};

TrainingJob training_job(std::string_view column) {
  TrainingJob job;
  job.method = column == "lora"    ? TrainingMethod::lora
               : column == "qlora" ? TrainingMethod::qlora
                                   : TrainingMethod::full;
  job.precision = column == "fp16-training" ? Precision::amp_bf16 : Precision::pure_bf16;
  job.optimizer = Optimizer::adamw_fused;
  job.checkpointing = Checkpointing::full;
  job.attention = "sdpa";
  job.sequence = kTokens;
  return job;
}

Result<Range> our_figure(const model::Model& model, std::string_view column) {
  const std::vector<Target> targets = {imaginary_gpu()};
  if (column == "fp16-inference") {
    Job job;
    job.engine = Engine::transformers;
    job.prompt_tokens = kTokens;
    job.new_tokens = 1;
    return peak(GW_TRY(estimate(model, job, targets)));
  }
  const TrainingJob job = training_job(column);
  return peak(GW_TRY(estimate_training(GW_TRY(model_for(model, job.method)), job, targets)));
}

}  // namespace

Result<ClassicTable> classic_table() {
  const toml::table file = GW_TRY(facts("guide_figures.toml"));
  ClassicTable table;
  for (const toml::table* row : rows_of(file, "column")) {
    const std::string key = text_of(*row, "key");
    const auto* setting = std::find_if(std::begin(kSettings), std::end(kSettings),
                                       [&](const Setting& candidate) { return candidate.key == key; });
    if (setting == std::end(kSettings))
      return fail(ErrorCode::internal, fmt::format("data/guide_figures.toml: no column is called \"{}\"", key));
    table.columns.push_back({key, text_of(*row, "title"), std::string(setting->words), text_of(*row, "leaves_out"),
                             text_of(*row, "source")});
  }
  const auto figures = rows_of(file, "figure");
  const auto sizes = rows_of(file, "size");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string preset = text_of(*sizes[i], "preset");
    const model::Model model = GW_TRY(model::preset(preset));
    ClassicTable::Row row{text_of(*sizes[i], "size"), preset, model.parameters(), {}};
    for (const ClassicTable::Column& column : table.columns) {
      const auto figure = std::find_if(figures.begin(), figures.end(), [&](const toml::table* candidate) {
        return text_of(*candidate, "column") == column.key;
      });
      const auto gb = figure == figures.end() ? std::optional<double>() : (**figure)["gb"][i].value<double>();
      if (!gb)
        return fail(ErrorCode::internal,
                    fmt::format("data/guide_figures.toml: no figure of {} for {}", column.key, row.size));
      row.cells.push_back({*gb, GW_TRY(our_figure(model, column.key))});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// ---------------------------------------------------------------- quantisation

const CitedMeasurement* QuantizationTable::Row::first(std::string_view of) const {
  const auto found = std::find_if(measurements.begin(), measurements.end(),
                                  [&](const CitedMeasurement& measurement) { return measurement.of == of; });
  return found == measurements.end() ? nullptr : &*found;
}

Result<QuantizationTable> quantization_table(const model::Model& model) {
  const toml::table file = GW_TRY(facts("quantization.toml"));
  QuantizationTable table{model.name, {}};
  for (const toml::table* format : rows_of(file, "format")) {
    QuantizationTable::Row row;
    row.kind = text_of(*format, "class");
    row.format = text_of(*format, "name");
    const model::Model converted = GW_TRY(model::with_weight_format(model, row.format));
    row.size = converted.weight_bytes();
    row.bits_per_weight = static_cast<double>(row.size.count) * 8 /
                          static_cast<double>(std::max<std::int64_t>(converted.parameters(), 1));
    for (const toml::table* each : rows_of(file, "measurement")) {
      if (text_of(*each, "format") != row.format) continue;
      const auto baseline = (*each)["baseline"].value<double>(), value = (*each)["value"].value<double>();
      CitedMeasurement measurement{text_of(*each, "of"),
                                   text_of(*each, "metric"),
                                   text_of(*each, "model"),
                                   baseline.value_or(0),
                                   value.value_or(0),
                                   text_of(*each, "unit"),
                                   text_of(*each, "better") == "lower",
                                   text_of(*each, "conditions"),
                                   text_of(*each, "source")};
      if (!baseline || !value || *baseline <= 0 || measurement.source.empty())
        return fail(ErrorCode::internal, "data/quantization.toml: a measurement needs baseline, value and source");
      row.measurements.push_back(std::move(measurement));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace gpuwright::fit

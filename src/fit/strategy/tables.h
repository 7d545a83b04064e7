// Two tables that people know from guides, in honest numbers: what models of the usual sizes take, and what
// quantisation costs. Figures of others come from data/guide_figures.toml and data/quantization.toml with their
// sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fit/estimate.h"
#include "model/model.h"

namespace gpuwright::fit {

struct ClassicTable {
  struct Column {
    std::string key;         // "fp16-training"
    std::string title;       // "FP16 training"
    std::string settings;    // of our figure
    std::string leaves_out;  // by the guides
    std::string source;      // of the guides' figure
  };
  struct Cell {
    double guide_gb = 0;  // 10^9 bytes
    Range ours;           // peak of one imaginary GPU that is large enough
  };
  struct Row {
    std::string size;   // "7B"
    std::string model;  // "llama-2-7b"
    std::int64_t parameters = 0;
    std::vector<Cell> cells;  // one a column
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};
Result<ClassicTable> classic_table();

struct CitedMeasurement {
  std::string of;      // quality, decode, prefill
  std::string metric;  // "perplexity of wikitext-2"
  std::string model;
  double baseline = 0, value = 0;  // the 16-bit value of the same source, and this format's
  std::string unit;
  bool lower_is_better = false;
  std::string conditions;
  std::string source;
};

struct QuantizationTable {
  struct Row {
    std::string kind;    // "INT4"
    std::string format;  // "Q4_K_M"
    Bytes size;          // of the asked model in this format
    double bits_per_weight = 0;
    std::vector<CitedMeasurement> measurements;  // of others, on their models

    // The first of its kind; nullptr where nothing is known.
    const CitedMeasurement* first(std::string_view of) const;
  };
  std::string model;
  std::vector<Row> rows;
};
// Only a model in a plain format can be converted; others give unsupported.
Result<QuantizationTable> quantization_table(const model::Model& model);

}  // namespace gpuwright::fit

#include "cli/fit_table.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/fit_request.h"
#include "cli/style.h"
#include "cli/table.h"
#include "fit/strategy/tables.h"
#include "model/load.h"

namespace gpuwright::cli {
namespace {

// ---------------------------------------------------------------- the classic table

std::string gb(Bytes bytes) {
  return bytes.gb() < 99.95 ? fmt::format("{:.1f}", bytes.gb()) : fmt::format("{:.0f}", bytes.gb());
}

Json classic_json(const fit::ClassicTable& table) {
  Json json, columns = Json::array(), rows = Json::array();
  json.set("schema", "gpuwright.fit_table/1").set("table", "classic");
  for (const auto& column : table.columns) {
    Json each;
    each.set("key", column.key).set("title", column.title).set("settings", column.settings);
    columns.push(each.set("guides_leave_out", column.leaves_out).set("guide_source", column.source));
  }
  for (const auto& row : table.rows) {
    Json each, cells = Json::array();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const auto& cell = row.cells[i];
      Json one;
      one.set("column", table.columns[i].key).set("guide_gb", cell.guide_gb);
      one.set("low_bytes", cell.ours.low.count).set("expected_bytes", cell.ours.expected.count);
      cells.push(one.set("high_bytes", cell.ours.high.count));
    }
    each.set("size", row.size).set("model", row.model).set("parameters", row.parameters);
    rows.push(each.set("cells", std::move(cells)));
  }
  return json.set("columns", std::move(columns)).set("rows", std::move(rows));
}

void print_classic(const fit::ClassicTable& table, const Console& console) {
  console.out << wrap(
                     "GB of GPU memory (1 GB = 10^9 bytes): what we expect, from low to high, and what the usual "
                     "guides say.",
                     console.width)
              << '\n';
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto& column = table.columns[i];
    print_heading(console, column.title);
    Table rows({{"size"},
                {"model"},
                {"expected", Align::right},
                {"low to high", Align::right},
                {"guides", Align::right},
                {"of ours", Align::right}},
               2);
    for (const auto& row : table.rows) {
      const auto& cell = row.cells[i];
      const double share = cell.guide_gb / cell.ours.expected.gb();
      rows.add({row.size,
                fmt::format("{} ({})", row.model, in_billions(row.parameters)),
                gb(cell.ours.expected),
                fmt::format("{} to {}", gb(cell.ours.low), gb(cell.ours.high)),
                fmt::format("{:.0f}", cell.guide_gb),
                {fmt::format("{:.0f} %", share * 100), share < 0.9 ? Tone::warning : Tone::plain}});
    }
    rows.print(console);
    for (const std::string& text :
         {"ours: " + column.settings, "the guides leave out " + column.leaves_out, "their source: " + column.source})
      console.out << paint(console, Tone::dim, wrap("  " + text, console.width, 4)) << '\n';
  }
}

// ---------------------------------------------------------------- quantisation

Json quantization_json(const fit::QuantizationTable& table) {
  Json json, rows = Json::array();
  json.set("schema", "gpuwright.fit_table/1").set("table", "quantization").set("model", table.model);
  for (const auto& row : table.rows) {
    Json each, measurements = Json::array();
    for (const fit::CitedMeasurement& measured : row.measurements) {
      Json one;
      one.set("of", measured.of).set("metric", measured.metric).set("model", measured.model);
      one.set("baseline", measured.baseline).set("value", measured.value).set("unit", measured.unit);
      one.set("better", measured.lower_is_better ? "lower" : "higher").set("conditions", measured.conditions);
      measurements.push(one.set("source", measured.source));
    }
    each.set("kind", row.kind).set("format", row.format).set("size_bytes", row.size.count);
    each.set("bits_per_weight", row.bits_per_weight);
    rows.push(each.set("measurements", std::move(measurements)));
  }
  return json.set("rows", std::move(rows));
}

// Sources are told once each, below the table, and named there by number.
class Sources {
 public:
  std::string note(const fit::CitedMeasurement& measured) {
    const std::string text = fmt::format("{}, {}{}{}: {}", measured.metric, measured.model,
                                         measured.conditions.empty() ? "" : ", ", measured.conditions, measured.source);
    for (std::size_t i = 0; i < texts_.size(); ++i)
      if (texts_[i] == text) return fmt::format("[{}]", i + 1);
    texts_.push_back(text);
    return fmt::format("[{}]", texts_.size());
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

std::string cell(const fit::CitedMeasurement* measured, Sources& sources) {
  if (measured == nullptr) return "";
  const std::string mark = sources.note(*measured);
  if (measured->of == "quality")
    return fmt::format("{:.{}f}{} (16 bit: {:.{}f}{}) {}", measured->value, measured->value < 10 ? 2 : 1,
                       measured->unit, measured->baseline, measured->value < 10 ? 2 : 1, measured->unit, mark);
  return fmt::format("{:.2f}x {}", measured->value / measured->baseline, mark);
}

void print_quantization(const fit::QuantizationTable& table, const Console& console) {
  console.out << paint(console, Tone::heading, printable(table.model)) << '\n';
  console.out << wrap(
                     "Sizes are computed for this model. Quality and speed are what the sources measured on theirs; "
                     "speeds are relative to 16 bit. An empty cell: nothing with a source.",
                     console.width)
              << "\n\n";
  Sources sources;
  Table rows({{"class"},
              {"format"},
              {"size", Align::right},
              {"bits/weight", Align::right},
              {"quality"},
              {"decode"},
              {"prefill"}},
             2);
  for (const auto& row : table.rows)
    rows.add({row.kind, row.format, to_string(row.size), fmt::format("{:.2f}", row.bits_per_weight),
              cell(row.first("quality"), sources), cell(row.first("decode"), sources),
              cell(row.first("prefill"), sources)});
  rows.print(console);
  console.out << '\n';
  for (std::size_t i = 0; i < sources.texts().size(); ++i)
    console.out << paint(console, Tone::dim,
                         wrap(fmt::format("  [{}] {}", i + 1, sources.texts()[i]), console.width, 6))
                << '\n';
}

}  // namespace

std::vector<Option> table_options() {
  return {{.name = "--table",
           .value = "WHICH",
           .help = "what models of the usual sizes take, beside the guides' figures; or what quantisation costs",
           .choices = {"classic", "quantization"},
           .optional_value = true,
           .group = "Question"}};
}

bool wants_table(const Arguments& arguments) {
  return arguments.has("--table");
}

Result<int> run_fit_table(const Arguments& arguments, const Console& console) {
  GW_TRY(only_beside(arguments, "--table", {}));
  const auto models = arguments.values("MODEL");
  if (arguments.value("--table") == "quantization") {
    if (models.size() > 1) return fail(ErrorCode::bad_input, "--table quantization takes one model");
    const model::Model model = GW_TRY(model::load(models.empty() ? "llama-3.1-8b" : models.front()));
    const fit::QuantizationTable table = GW_TRY(fit::quantization_table(model));
    if (console.json)
      console.out << quantization_json(table).dump() << '\n';
    else
      print_quantization(table, console);
    return kDone;
  }
  if (!models.empty()) return fail(ErrorCode::bad_input, "--table classic takes no model", "its sizes are its own");
  const fit::ClassicTable table = GW_TRY(fit::classic_table());
  if (console.json)
    console.out << classic_json(table).dump() << '\n';
  else
    print_classic(table, console);
  return kDone;
}

}  // namespace gpuwright::cli

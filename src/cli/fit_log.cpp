#include "cli/fit_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/file.h"
#include "base/text.h"
#include "cli/fit_answer.h"
#include "cli/fit_request.h"
#include "cli/fit_train.h"
#include "cli/style.h"
#include "cli/table.h"
#include "fit/learn/calibration.h"
#include "fit/learn/compare.h"

namespace gpuwright::cli {
namespace {

using fit::Agreement;

struct LogAnswer {
  fit::MemoryLog log;
  LogRequest words;
  FitRequest request;
  fit::Comparison comparison;
  std::vector<std::string> notes;
  std::optional<std::vector<fit::Correction>> learnt;  // with --calibrate
};

Result<fit::MemoryLog> read_log(const std::string& path) {
  if (path == "-") return fit::read_memory_log(std::cin, "standard input");
  std::error_code ignored;
  if (std::filesystem::is_fifo(path, ignored)) {  // fit --from-log <(journalctl -u vllm)
    std::ifstream pipe(path);
    return fit::read_memory_log(pipe, path);
  }
  const auto file = GW_TRY(open_file(path));
  return fit::read_memory_log(*file);
}

// The sizes that the driver told in the log, over those of the catalogue.
void take_sizes(const fit::LogRun& run, std::vector<fit::Target>& targets) {
  for (std::size_t i = 0; i < targets.size(); ++i)
    for (const fit::LogGpu& gpu : run.gpus) {
      if (gpu.number != static_cast<int>(i) && run.gpus.size() > 1) continue;
      if (gpu.total) targets[i].total = targets[i].free = *gpu.total;
      if (gpu.free) targets[i].free = *gpu.free;
    }
}

std::string today() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
}

Result<fit::Estimate> estimate_of(const FitRequest& request, const catalog::Catalog& catalog) {
  const FitItem& item = request.items.front();
  if (item.training) return GW_TRY(answer_training(request, catalog)).estimate;
  return fit::estimate(item.model, item.job, request.targets);
}

Result<std::vector<fit::Correction>> calibrate(const LogAnswer& answer, const FitItem& item,
                                               const catalog::Catalog& catalog) {
  const std::string& gpu = answer.request.targets.front().name;
  const bool same = std::all_of(answer.request.targets.begin(), answer.request.targets.end(),
                                [&](const fit::Target& target) { return target.name == gpu; });
  if (!same || !catalog.find(gpu))
    return fail(ErrorCode::bad_input,
                same ? fmt::format("\"{}\" is no name of a GPU", gpu) : "the GPUs are of several kinds",
                "a correction is for one kind of GPU: name it with --gpu");
  fit::Job plain = item.job;
  plain.corrections.clear();
  const fit::Estimate estimate = GW_TRY(fit::estimate(item.model, plain, answer.request.targets));
  const std::string path = fit::calibration_path();
  auto known = GW_TRY(fit::load_corrections(path));
  std::vector<fit::Correction> learnt = fit::corrections_from(fit::compare(answer.log.run, estimate, plain.engine),
                                                              plain.engine, gpu, today(), answer.log.name);
  fit::merge(known, learnt);
  if (!learnt.empty()) GW_TRY(fit::save_corrections(known, path));
  return learnt;
}

Result<LogAnswer> answer_log(const Arguments& arguments, const catalog::Catalog& catalog) {
  LogAnswer answer;
  answer.log = GW_TRY(read_log(*arguments.value("--from-log")));
  if (!answer.log.found())
    return fail(ErrorCode::bad_input,
                fmt::format("{}: none of its {} lines tells of memory", answer.log.name, answer.log.lines),
                fmt::format("looked for {}", fmt::join(fit::memory_lines_known(), "; ")));
  const fit::LogProgram program = answer.log.run.program;
  const bool serves =
      program == fit::LogProgram::llama_cpp || program == fit::LogProgram::ollama || program == fit::LogProgram::vllm;
  if (serves && wants_training(arguments))
    return fail(ErrorCode::bad_input,
                fmt::format("{} is a log of {}, which serves", answer.log.name, fit::name_of(program)),
                "leave --train out");
  answer.words = GW_TRY(with_log(arguments, answer.log.run, catalog));
  answer.request = GW_TRY(read_fit_request(answer.words.arguments, catalog));
  if (answer.request.items.size() != 1)
    return fail(ErrorCode::bad_input, "--from-log takes one model", "the log tells of one run");
  if (!arguments.has("--gpu") && !arguments.has("--measure")) take_sizes(answer.log.run, answer.request.targets);
  const FitItem& item = answer.request.items.front();
  const fit::Estimate estimate = GW_TRY(estimate_of(answer.request, catalog));
  // Trainers are torch programs, which take no share beforehand.
  answer.comparison =
      fit::compare(answer.log.run, estimate, item.training ? fit::Engine::transformers : item.job.engine);
  answer.notes = answer.words.notes;
  answer.notes.insert(answer.notes.end(), answer.comparison.notes.begin(), answer.comparison.notes.end());
  answer.notes.insert(answer.notes.end(), answer.log.run.remarks.begin(), answer.log.run.remarks.end());
  answer.notes.insert(answer.notes.end(), estimate.notes.begin(), estimate.notes.end());
  if (answer.log.runs > 1)
    answer.notes.push_back(
        fmt::format("The log holds {} loads; this is the one with the most weights.", answer.log.runs));
  if (answer.log.cut_lines > 0)
    answer.notes.push_back(fmt::format("{} lines were longer than is read of a line.", answer.log.cut_lines));
  if (arguments.has("--calibrate") && item.training)
    return fail(ErrorCode::unsupported, "--calibrate learns from serving, not from training", "leave it out");
  if (arguments.has("--calibrate")) answer.learnt = GW_TRY(calibrate(answer, item, catalog));
  return answer;
}

// ---------------------------------------------------------------- text

std::string amount(const fit::Compared& row, double value) {
  if (!row.bytes) return with_thousands(static_cast<std::int64_t>(value));
  const Bytes bytes{static_cast<std::int64_t>(value)};
  return bytes < Bytes{} ? "-" + to_string(Bytes{} - bytes) : to_string(bytes);
}

std::string measured_text(const fit::Compared& row) {
  if (!row.bytes && row.value() != static_cast<double>(static_cast<std::int64_t>(row.value())))
    return fmt::format("{:.2f}", row.value());
  return (row.measured.at_least ? "at least " : row.measured.others ? "at most " : "") + amount(row, row.value());
}

Cell verdict_cell(const fit::Compared& row) {
  switch (row.agreement) {
    case Agreement::inside:
      return {"inside", Tone::good};
    case Agreement::near:
      return {"near", Tone::good};
    case Agreement::possible:
      return {"possible", Tone::dim};
    case Agreement::differs:
      return {"differs", Tone::bad};
  }
  return {""};
}

void print_rows(const LogAnswer& answer, const Console& console) {
  Table table({{"Where"},
               {"Part", Align::left, true},
               {"predicted", Align::right},
               {"low to high", Align::right},
               {"measured", Align::right},
               {"off by", Align::right},
               {""},
               {"line", Align::right}});
  for (const fit::Compared& row : answer.comparison.rows) {
    const auto error = row.error();
    const bool exact = row.low == row.high;
    table.add({row.where.empty() ? "cache" : row.where, row.what, amount(row, row.expected),
               exact ? std::string() : amount(row, row.low) + " to " + amount(row, row.high), measured_text(row),
               error && row.agreement != Agreement::possible ? fmt::format("{:+.1f} %", 100 * *error) : "",
               verdict_cell(row), fmt::format("{}", row.measured.line)});
  }
  table.print(console);
}

std::string command_text(const LogAnswer& answer) {
  std::string text = "gpuwright fit";
  for (const auto& [option, value] : answer.words.words) {
    if (option != "MODEL") text += " " + option;
    if (!value.empty()) text += " " + value;
  }
  return text;
}

void print_learnt(const LogAnswer& answer, const Console& console) {
  if (!answer.learnt) return;
  console.out << '\n';
  if (answer.learnt->empty()) {
    console.out << wrap(
                       "nothing to correct: what a run can teach (compute buffer, activations, allocator, runtime) was "
                       "predicted, was not measured, or is off by more than a correction may be",
                       console.width, 2)
                << '\n';
    return;
  }
  for (const fit::Correction& correction : *answer.learnt)
    console.out << wrap(fmt::format("kept: {} of {} on {}: {} (in {})", fit::label_of(correction.kind),
                                    fit::name_of(correction.engine), correction.gpu, fit::describe(correction),
                                    fit::calibration_path()),
                        console.width, 2)
                << '\n';
}

void print_answer(const LogAnswer& answer, const Console& console) {
  const fit::LogRun& run = answer.log.run;
  console.out << paint(console, Tone::heading,
                       printable(fmt::format("{}: {}{}, {} lines", answer.log.name, fit::name_of(run.program),
                                             run.version.empty() ? "" : " " + run.version,
                                             with_thousands(answer.log.lines))))
              << '\n';
  if (!answer.words.words.empty())
    console.out << wrap("  the log says: " + printable(command_text(answer)), console.width, 4) << '\n';
  console.out << '\n';
  print_rows(answer, console);
  console.out << '\n';
  const auto off = std::count_if(answer.comparison.rows.begin(), answer.comparison.rows.end(),
                                 [](const fit::Compared& row) { return row.agreement == Agreement::differs; });
  const bool only_bounds = std::all_of(answer.comparison.rows.begin(), answer.comparison.rows.end(),
                                       [](const fit::Compared& row) { return row.agreement == Agreement::possible; });
  if (off == 0)
    console.out << paint(console, Tone::good,
                         only_bounds ? "the log tells bounds only; none speaks against the prediction"
                                     : "the run and the prediction agree")
                << '\n';
  else
    console.out << paint(console, Tone::bad,
                         fmt::format("{} of {} figures lie more than {:.0f} % outside the prediction", off,
                                     answer.comparison.rows.size(), 100 * fit::kTolerated))
                << '\n';
  print_learnt(answer, console);
  if (!answer.notes.empty()) console.out << '\n';
  for (const std::string& note : answer.notes)
    console.out << paint(console, Tone::dim, wrap("note: " + printable(note), console.width, 6)) << '\n';
}

// ---------------------------------------------------------------- JSON

Json number_json(const fit::Compared& row, double value) {
  return row.measured.what == fit::Measurement::What::capacity && !row.bytes ? Json(value)
                                                                             : Json(static_cast<std::int64_t>(value));
}

Json row_json(const fit::Compared& row) {
  using What = fit::Measurement::What;
  const fit::Measurement& measured = row.measured;
  Json json;
  json.set("where", row.where.empty() ? Json() : Json(row.where)).set("what", row.what);
  json.set("kind", measured.what == What::component ? Json(fit::json_key(measured.kind)) : Json());
  json.set("meter", measured.what == What::total ? Json(fit::name_of(measured.meter)) : Json());
  json.set("unit", row.bytes ? "bytes" : "count");
  json.set("low", number_json(row, row.low)).set("expected", number_json(row, row.expected));
  json.set("high", number_json(row, row.high)).set("measured", number_json(row, row.value()));
  json.set("bound", measured.at_least ? Json("at_least") : measured.others ? Json("at_most") : Json());
  json.set("error", row.error()).set("agreement", fit::name_of(row.agreement));
  return json.set("line", measured.line).set("text", measured.text);
}

Json correction_json(const fit::Correction& correction) {
  Json json;
  json.set("engine", fit::name_of(correction.engine)).set("gpu", correction.gpu);
  json.set("component", fit::json_key(correction.kind));
  json.set("ratio", correction.offset == Bytes{} ? Json(correction.ratio) : Json());
  json.set("offset_bytes", correction.offset == Bytes{} ? Json() : Json(correction.offset.count));
  return json.set("date", correction.date).set("source", correction.source);
}

Json corrections_json(const std::vector<fit::Correction>& corrections) {
  Json list = Json::array();
  for (const fit::Correction& correction : corrections) list.push(correction_json(correction));
  return list;
}

Json to_json(const LogAnswer& answer) {
  Json log, words = Json::array(), rows = Json::array(), notes = Json::array(), json;
  log.set("name", answer.log.name).set("lines", answer.log.lines).set("cut_lines", answer.log.cut_lines);
  log.set("runs", answer.log.runs).set("program", fit::name_of(answer.log.run.program));
  log.set("version", answer.log.run.version.empty() ? Json() : Json(answer.log.run.version));
  for (const auto& [option, value] : answer.words.words) {
    Json word;
    words.push(word.set("option", option).set("value", value.empty() ? Json() : Json(value)));
  }
  for (const fit::Compared& row : answer.comparison.rows) rows.push(row_json(row));
  for (const std::string& note : answer.notes) notes.push(note);
  json.set("schema", "gpuwright.fit-log/1").set("log", std::move(log)).set("settings", std::move(words));
  json.set("model", cli::to_json(answer.request.items.front().model));
  json.set("components", std::move(rows)).set("agrees", !answer.comparison.differs());
  json.set("learnt", answer.learnt ? corrections_json(*answer.learnt) : Json());
  return json.set("notes", std::move(notes));
}

// ---------------------------------------------------------------- corrections

Result<int> show_corrections(const Console& console) {
  const std::string path = fit::calibration_path();
  const auto corrections = GW_TRY(fit::load_corrections(path));
  if (console.json) {
    Json json;
    json.set("schema", "gpuwright.fit-calibration/1").set("file", path);
    console.out << json.set("corrections", corrections_json(corrections)).dump() << '\n';
    return kDone;
  }
  if (corrections.empty()) {
    console.out << "no corrections; fit --from-log FILE --calibrate keeps some\n";
    return kDone;
  }
  console.out << paint(console, Tone::heading, printable(path)) << '\n';
  Table table({{"", Align::right},
               {"Engine"},
               {"GPU"},
               {"Part"},
               {"correction", Align::right},
               {"date"},
               {"learnt from", Align::left, true}});
  for (std::size_t i = 0; i < corrections.size(); ++i) {
    const fit::Correction& row = corrections[i];
    table.add({fmt::format("{}", i + 1), fit::name_of(row.engine), row.gpu, fit::label_of(row.kind), fit::describe(row),
               row.date, row.source});
  }
  table.print(console);
  return kDone;
}

Result<int> forget(const std::string& which, const Console& console) {
  const std::string path = fit::calibration_path();
  auto corrections = GW_TRY(fit::load_corrections(path));
  const auto number = to_integer(which);
  const auto count = static_cast<std::int64_t>(corrections.size());
  if (which != "all" && (!number || *number < 1 || *number > count))
    return fail(ErrorCode::bad_input, fmt::format("--forget {}: there are {} corrections", which, count),
                "write a number that --calibration lists, or all");
  if (which == "all")
    corrections.clear();
  else
    corrections.erase(corrections.begin() + (*number - 1));
  if (count > 0) GW_TRY(fit::save_corrections(corrections, path));
  return show_corrections(console);
}

}  // namespace

std::vector<Option> learn_options() {
  const auto option = [](std::string name, std::string value, std::string help, std::string group) {
    Option result;
    result.name = std::move(name);
    result.value = std::move(value);
    result.help = std::move(help);
    result.group = std::move(group);
    return result;
  };
  const std::string learn = "Learn from a run";
  return {
      option("--measure", "", "the GPUs of this machine, with the memory that is free now (same as --gpu here)",
             "Where"),
      option(
          "--from-log", "FILE",
          "compare the prediction with a log of llama.cpp, ollama, vLLM, torch or nvidia-smi; model and settings are "
          "the log's own where not given (-: standard input)",
          learn),
      option("--calibrate", "", "keep what the log shows as a correction for this engine and GPU", learn),
      option("--calibration", "", "list the corrections that are kept", learn),
      option("--forget", "N|all", "drop correction N of that list", learn),
  };
}

bool asks_to_learn(const Arguments& arguments) {
  return arguments.has("--from-log") || arguments.has("--calibrate") || arguments.has("--calibration") ||
         arguments.has("--forget");
}

Result<int> run_fit_log(const Arguments& arguments, const Console& console, const catalog::Catalog& catalog) {
  if (const auto which = arguments.value("--forget")) {
    GW_TRY(only_beside(arguments, "--forget", {}));
    return forget(*which, console);
  }
  if (arguments.has("--calibration")) {
    GW_TRY(only_beside(arguments, "--calibration", {}));
    return show_corrections(console);
  }
  if (!arguments.has("--from-log"))
    return fail(ErrorCode::bad_input, "--calibrate needs a log", "gpuwright fit --from-log FILE --calibrate");
  GW_TRY(
      refuse_beside(arguments, "--from-log",
                    {"--emit", "--out", "--force", "--max", "--smallest-gpu", "--strategy", "--strict", "--explain"}));
  const LogAnswer answer = GW_TRY(answer_log(arguments, catalog));
  if (console.json)
    console.out << to_json(answer).dump() << '\n';
  else
    print_answer(answer, console);
  return answer.comparison.differs() ? kAnswerIsNo : kDone;
}

}  // namespace gpuwright::cli

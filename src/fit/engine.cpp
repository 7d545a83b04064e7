#include "fit/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "base/embedded.h"
#include "base/text.h"
#include "fit/engines/engines.h"

namespace gpuwright::fit {
namespace {

struct EngineName {
  Engine engine;
  std::string_view name;       // as people type it
  std::string_view file_name;  // data/engine_<file_name>.toml
};
constexpr std::array<EngineName, 5> kEngines = {{
    {Engine::llama_cpp, "llama.cpp", "llama_cpp"},
    {Engine::ollama, "ollama", "llama_cpp"},
    {Engine::vllm, "vllm", "vllm"},
    {Engine::sglang, "sglang", "sglang"},
    {Engine::transformers, "transformers", "transformers"},
}};

const EngineName& row_of(Engine engine) {
  return *std::find_if(kEngines.begin(), kEngines.end(), [&](const EngineName& row) { return row.engine == engine; });
}

// The numbers of a version in order; letters, dots and dashes separate them ("b4477" -> 4477).
std::vector<std::int64_t> version_numbers(std::string_view version) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < version.size();) {
    std::size_t end = at;
    while (end < version.size() && version[end] >= '0' && version[end] <= '9') ++end;
    if (end > at) numbers.push_back(to_integer(version.substr(at, std::min<std::size_t>(end - at, 18))).value_or(0));
    at = end + 1;
  }
  return numbers;
}

struct ConstantRow {
  std::string name, since, architecture;
  Constant value;
};

struct ConstantFile {
  std::string_view file_name;
  std::vector<ConstantRow> rows;
};

Result<std::vector<ConstantRow>> read_constants(const std::string& file) {
  const auto text = embedded_data(file);
  if (!text) return fail(ErrorCode::internal, fmt::format("data/{} is not built in", file));
  const auto parsed = [&]() -> Result<toml::table> {
    try {
      return toml::parse(*text, file);
    } catch (const toml::parse_error& error) {
      return fail_at(ErrorCode::internal, {file, error.source().begin.line, std::nullopt},
                     std::string(error.description()));
    }
  }();
  if (!parsed) return tl::unexpected(parsed.error());
  std::vector<ConstantRow> rows;
  const toml::array* constants = (*parsed)["constant"].as_array();
  if (constants == nullptr) return rows;
  for (const toml::node& node : *constants) {
    const toml::table* row = node.as_table();
    if (row == nullptr) continue;
    const auto text_of = [&](std::string_view key) { return (*row)[key].value_or(std::string()); };
    const auto low = (*row)["low"].value<double>(), high = (*row)["high"].value<double>(),
               expected = (*row)["expected"].value<double>();
    if (!low || !expected || !high || *low > *expected || *expected > *high || text_of("source").empty())
      return fail_at(ErrorCode::internal, {file, node.source().begin.line, std::nullopt},
                     "a constant needs low <= expected <= high and a source");
    rows.push_back(
        {text_of("name"), text_of("since"), text_of("architecture"), {*low, *expected, *high, text_of("source")}});
  }
  return rows;
}

// Read once, on first use.
Result<const std::vector<ConstantRow>*> constants_of(Engine engine) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<ConstantFile>> files;
  const std::string_view file_name = row_of(engine).file_name;
  const std::lock_guard lock(mutex);
  for (const auto& file : files)
    if (file->file_name == file_name) return &file->rows;
  auto rows = GW_TRY(read_constants(fmt::format("engine_{}.toml", file_name)));
  files.push_back(std::make_unique<ConstantFile>(ConstantFile{file_name, std::move(rows)}));
  return &files.back()->rows;
}

Result<std::vector<std::pair<std::string, Engine>>> aliases() {
  std::vector<std::pair<std::string, Engine>> found;
  for (const EngineName& row : kEngines) found.emplace_back(row.name, row.engine);
  try {
    const toml::table file = toml::parse(embedded_data("engines.toml").value_or(""), std::string_view("engines.toml"));
    const toml::array* rows = file["alias"].as_array();
    for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
      const toml::table* row = rows->get(i)->as_table();
      if (row == nullptr) continue;
      const std::string engine = (*row)["engine"].value_or(std::string());
      for (const EngineName& known : kEngines)
        if (known.name == engine) found.emplace_back((*row)["name"].value_or(std::string()), known.engine);
    }
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::internal, std::string(error.description()));
  }
  return found;
}

}  // namespace

std::string_view name_of(Engine engine) {
  return row_of(engine).name;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineName& row : kEngines) names.emplace_back(row.name);
  return names;
}

Result<EngineChoice> engine_named(std::string_view text) {
  const auto at = text.find('@');
  const std::string wanted = lower(trim(text.substr(0, at)));
  const std::string version(at == std::string_view::npos ? "" : trim(text.substr(at + 1)));
  if (at != std::string_view::npos && version_numbers(version).empty())
    return fail(ErrorCode::bad_input, fmt::format("\"{}\" names no version of {}", text, wanted),
                "write numbers: vllm@0.21, llama.cpp@b6500");
  const auto known = GW_TRY(aliases());
  std::vector<std::string> names;
  for (const auto& [name, engine] : known) {
    if (lower(name) == wanted) return EngineChoice{engine, version};
    names.push_back(name);
  }
  if (const auto nearest = nearest_name(wanted, names))
    return fail(ErrorCode::not_found, fmt::format("no engine is called \"{}\"", wanted),
                fmt::format("did you mean {}?", *nearest));
  return fail(ErrorCode::not_found, fmt::format("no engine is called \"{}\"", wanted),
              fmt::format("engines: {}", fmt::join(engine_names(), ", ")));
}

bool version_at_least(std::string_view version, std::string_view wanted) {
  if (version.empty() || wanted.empty()) return true;
  const auto have = version_numbers(version), want = version_numbers(wanted);
  for (std::size_t i = 0; i < std::max(have.size(), want.size()); ++i) {
    const std::int64_t a = i < have.size() ? have[i] : 0, b = i < want.size() ? want[i] : 0;
    if (a != b) return a > b;
  }
  return true;
}

Result<Constant> constant(Engine engine, std::string_view name, std::string_view version,
                          std::string_view architecture) {
  const auto* rows = GW_TRY(constants_of(engine));
  const ConstantRow* best = nullptr;
  for (const ConstantRow& row : *rows) {
    if (row.name != name || !version_at_least(version, row.since)) continue;
    if (!starts_with_ignoring_case(architecture, row.architecture)) continue;
    const bool better = best == nullptr || (best->architecture.empty() && !row.architecture.empty()) ||
                        (best->architecture.empty() == row.architecture.empty() && !row.since.empty() &&
                         (best->since.empty() || version_at_least(row.since, best->since)));
    if (better) best = &row;
  }
  if (best == nullptr)
    return fail(ErrorCode::internal,
                fmt::format("data/engine_{}.toml has no constant \"{}\"", row_of(engine).file_name, name));
  return best->value;
}

// Engine models register here as they are added to fit/engines/.
const EngineModel* engine_model(Engine engine) {
  switch (engine) {
    case Engine::llama_cpp:
    case Engine::ollama:
      return &llama_cpp_engine();
    case Engine::vllm:
      return &vllm_engine();
    case Engine::sglang:
      return &sglang_engine();
    case Engine::transformers:
      return &transformers_engine();
    default:
      return nullptr;
  }
}

}  // namespace gpuwright::fit

#include "catalog/architecture.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/embedded.h"

namespace gpuwright::catalog {
namespace {

class Reader {
 public:
  Reader(std::string_view origin, const toml::table& row) : origin_(origin), row_(row) {}

  tl::unexpected<Error> wrong(const toml::node& node, std::string what) const {
    return fail_at(ErrorCode::bad_input, {std::string(origin_), node.source().begin.line, {}}, std::move(what));
  }
  Result<std::string> text(std::string_view key) const {
    const auto value = row_[key].value_exact<std::string>();
    if (!value || value->empty()) return wrong(node_of(key), fmt::format("{} has to be a text", key));
    return *value;
  }
  Result<std::optional<std::string>> optional_text(std::string_view key) const {
    if (!row_.contains(key)) return std::optional<std::string>();
    return std::optional(GW_TRY(text(key)));
  }
  Result<std::vector<std::string>> texts(std::string_view key) const {
    std::vector<std::string> values;
    if (!row_.contains(key)) return values;
    const toml::array* array = row_[key].as_array();
    if (array == nullptr) return wrong(node_of(key), fmt::format("{} has to be a list of texts", key));
    for (const toml::node& item : *array) {
      const auto value = item.value_exact<std::string>();
      if (!value) return wrong(item, fmt::format("{} has to be a list of texts", key));
      values.push_back(*value);
    }
    return values;
  }
  Result<int> year() const {
    const auto value = row_["year"].value_exact<std::int64_t>();
    if (!value || *value < 1990 || *value > 2100) return wrong(node_of("year"), "year has to be a year");
    return static_cast<int>(*value);
  }

 private:
  const toml::node& node_of(std::string_view key) const {
    const toml::node* node = row_.get(key);
    return node != nullptr ? *node : static_cast<const toml::node&>(row_);
  }

  std::string_view origin_;
  const toml::table& row_;
};

Result<Architecture> read_architecture(const Reader& reader, const toml::table& row) {
  Architecture result;
  result.vendor = GW_TRY(reader.text("vendor"));
  result.name = GW_TRY(reader.text("name"));
  result.year = GW_TRY(reader.year());
  result.compute_capabilities = GW_TRY(reader.texts("compute_capabilities"));
  result.chips = GW_TRY(reader.texts("chips"));
  result.process = GW_TRY(reader.text("process"));
  result.memory = GW_TRY(reader.text("memory"));
  result.data_types = GW_TRY(reader.texts("data_types"));
  result.brought = GW_TRY(reader.texts("brought"));
  result.first_cuda = GW_TRY(reader.optional_text("first_cuda"));
  result.last_cuda = GW_TRY(reader.optional_text("last_cuda"));
  result.sources = GW_TRY(reader.texts("sources"));
  result.verified = row["verified"].value_or(true);
  return result;
}

}  // namespace

Result<std::vector<Architecture>> architectures_from_toml(std::string_view text, std::string_view origin) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::bad_input, {std::string(origin), error.source().begin.line, {}},
                   std::string(error.description()));
  }
  std::vector<Architecture> result;
  const toml::array* rows = root["architecture"].as_array();
  if (rows == nullptr) return result;
  for (const toml::node& node : *rows) {
    const toml::table* row = node.as_table();
    if (row == nullptr) return Reader(origin, root).wrong(node, "every architecture has to be a table");
    result.push_back(GW_TRY(read_architecture(Reader(origin, *row), *row)));
  }
  return result;
}

Result<std::vector<Architecture>> load_architectures() {
  const auto builtin = embedded_data("architectures.toml");
  if (!builtin) return fail(ErrorCode::internal, "the table of architectures was not built in");
  return architectures_from_toml(*builtin, "architectures.toml (built in)");
}

}  // namespace gpuwright::catalog

// The parameter counts of Hugging Face transformers, taken on the meta device by tests/oracle/transformers_counts.py,
// against the tensor plans laid out here: equal to the last weight.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/config.h"

namespace gpuwright::model {
namespace {

const std::string kOracle = std::string(GPUWRIGHT_SOURCE_DIR) + "/tests/oracle/";

struct Expected {
  std::string id;
  std::int64_t parameters = 0;
  bool tied = false;
};

std::vector<Expected> expected_counts() {
  std::vector<Expected> rows;
  const auto text = read_file(kOracle + "parameter_counts.tsv", 1 << 20);
  EXPECT_TRUE(text) << text.error().message();
  const std::string_view table = text ? std::string_view(*text) : std::string_view();
  for (const std::string_view line : split(table, '\n')) {
    const auto cells = split(line, '\t');
    if (cells.size() != 5 || cells[0] == "id") continue;
    rows.push_back({std::string(cells[0]), to_integer(cells[3]).value_or(-1), cells[4] == "1"});
  }
  return rows;
}

std::vector<std::pair<std::string, Json>> family_cases() {
  std::vector<std::pair<std::string, Json>> cases;
  const auto text = read_file(kOracle + "family_cases.json", 1 << 22);
  const auto json = text ? parse_json(*text, "family_cases.json") : tl::unexpected(text.error());
  EXPECT_TRUE(json) << json.error().message();
  if (!json) return cases;
  for (const Json& row : json->items()) cases.emplace_back(*row.find("id")->as_string(), *row.find("config"));
  return cases;
}

// transformers does not build the layers for multi-token prediction that checkpoints carry.
std::int64_t parameters_without_prediction_heads(const Model& model) {
  std::int64_t count = model.parameters();
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == TensorRole::multi_token_prediction) count -= tensor.weights();
  return count;
}

// transformers v5 ties the head of every T5, also where tie_word_embeddings is false and the checkpoint (T5 v1.1, Flan,
// mT5) holds a head of its own.
std::int64_t head_that_transformers_ties(const Model& model, const Expected& row) {
  const bool untied_t5 = model.family == "t5" && !model.tied_embeddings && row.tied;
  return untied_t5 ? model.vocabulary * model.hidden : 0;
}

TEST(Oracle, EveryPresetAndFamilyHasTheParametersThatTransformersBuilds) {
  const auto cases = family_cases();
  std::size_t compared = 0;
  for (const Expected& row : expected_counts()) {
    Result<Model> model = preset(row.id);
    for (const auto& [id, config] : cases)
      if (id == row.id) model = model_from_config(config, id);
    if (!model) {
      ADD_FAILURE() << row.id << ": " << model.error().message();
      continue;
    }
    ++compared;
    const std::int64_t count = parameters_without_prediction_heads(*model) - head_that_transformers_ties(*model, row);
    EXPECT_EQ(count, row.parameters) << row.id << " differs by " << count - row.parameters;
    if (model->kind == ModelKind::decoder) {
      EXPECT_EQ(model->tied_embeddings, row.tied) << row.id;
    }
  }
  EXPECT_GT(compared, 400u);
}

}  // namespace
}  // namespace gpuwright::model

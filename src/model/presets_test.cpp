#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "model/config.h"

namespace gpuwright::model {
namespace {

Model model_named(std::string_view name) {
  auto model = preset(name);
  EXPECT_TRUE(model) << name << ": " << model.error().message();
  return model ? std::move(*model) : Model{};
}

// "8.03B" stands for everything that rounds to it.
struct Published {
  double low, high;
};
Published published(std::string_view text) {
  const double unit = text.ends_with('B') ? 1e9 : 1e6;
  const std::string_view digits = text.substr(0, text.size() - 1);
  const std::size_t point = digits.find('.');
  const double step =
      point == std::string_view::npos ? 1 : std::pow(10, -static_cast<double>(digits.size() - point - 1));
  const double value = to_number(digits).value_or(0);
  return {(value - step * 0.51) * unit, (value + step * 0.51) * unit};
}

// Oracle: the counts that model cards and papers publish.
TEST(Presets, AddUpToPublishedParameterCounts) {
  const auto facts = preset_facts();
  ASSERT_GT(facts.size(), 80u);
  for (const PresetFacts& row : facts) {
    const Model model = model_named(row.id);
    EXPECT_FALSE(row.source.empty()) << row.id;
    if (row.published_parameters.empty()) continue;
    const Published expected = published(row.published_parameters);
    const auto count = static_cast<double>(model.parameters());
    EXPECT_TRUE(count >= expected.low && count <= expected.high)
        << row.id << " has " << model.parameters() << " parameters, published are " << row.published_parameters;
  }
}

TEST(Presets, AreFoundByWhatPeopleType) {
  for (const std::string_view name : {"llama-3.1-8b", "Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", "llama3.1:8b",
                                      "Llama 3.1 8B", "meta-llama/Meta-Llama-3.1-8B-Instruct"})
    EXPECT_EQ(model_named(name).name, "llama-3.1-8b") << name;
  EXPECT_EQ(model_named("qwen2.5-7b-instruct").name, "qwen2.5-7b");
  EXPECT_EQ(model_named("google/gemma-3-27b-it").name, "gemma-3-27b");
}

TEST(Presets, UnknownNamesAreNotFoundAndNearOnesSuggested) {
  const auto model = preset("llama-3.1-9b");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::not_found);
  EXPECT_THAT(model.error().hint, testing::HasSubstr("llama-3.1-8b"));
  EXPECT_FALSE(preset(""));
  EXPECT_FALSE(preset(std::string(100'000, 'a')));
}

TEST(Presets, NamesTooShortToTellListTheCandidates) {
  for (const char* name : {"whisper", "bert", "openai/whisper"}) {
    const auto model = preset(name);
    ASSERT_FALSE(model) << name;
    EXPECT_EQ(model.error().code, ErrorCode::bad_input);
    EXPECT_THAT(model.error().hint, testing::HasSubstr("-base, ")) << name;
    EXPECT_THAT(model.error().hint, testing::HasSubstr("-large")) << name;
  }
  EXPECT_EQ(model_named("whisper-base").name, "whisper-base");
  EXPECT_EQ(model_named("mixtral").name, "mixtral-8x7b");
  EXPECT_EQ(model_named("bge-large").name, "bge-large-en-v1.5");
  EXPECT_EQ(model_named("BAAI/bge-base-en-v1.5").name, "bge-base-en-v1.5");
  EXPECT_EQ(model_named("bge-m3").name, "bge-m3");
}

TEST(ModelOfSize, HasThatManyParametersAndSaysWhatItAssumed) {
  for (const auto& [text, wanted] :
       {std::pair{"7B", 7e9}, {"1.1b", 1.1e9}, {"350M", 350e6}, {"70B", 70e9}, {"405B", 405e9}}) {
    const auto model = model_of_size(text);
    ASSERT_TRUE(model) << text << model.error().message();
    EXPECT_NEAR(static_cast<double>(model->parameters()), wanted, wanted * 0.02) << text;
    EXPECT_EQ(model->source, Source::parameter_count);
    EXPECT_FALSE(model->assumptions.empty());
  }
  for (const std::string_view text : {"", "B", "7", "x7B", "-7B", "nanB", "1e300B", "0B", "7BB"})
    EXPECT_FALSE(model_of_size(text)) << text;
}

}  // namespace
}  // namespace gpuwright::model

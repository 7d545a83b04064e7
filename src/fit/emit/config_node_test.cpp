// Right values: what PyYAML 6.0.4 (safe_load) and Python's json give for the same texts.
#include "fit/emit/config_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/quote.h"
#include "fit/emit/shell_words.h"

namespace gpuwright::fit {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto node = parse_config(text, "f.yaml");
  return node ? "no error" : node.error().message();
}

TEST(ConfigNode, BlockYaml) {
  const auto root = parse_config(
      "---\n# head\na: 1  # one\n'b c': \"x: \\u00e9 \\\"q\\\"\"\nlist:\n- one\n- 'it''s'\nnested:\n  deep:\n    k: "
      "1.0e-05\n"
      "  flow: [1, \"two\", {x: y}]\nmaps:\n  - name: p\n    size: 2\n  - name: q\nnothing:\nurl: http://h:80/#x\n",
      "f.yaml");
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_EQ(root->find("a")->as_int(), 1);
  EXPECT_EQ(root->find("b c")->as_string(), "x: é \"q\"");
  EXPECT_EQ(root->find("list")->items.at(1).text, "it's");
  EXPECT_EQ(root->find("nested")->find("deep")->find("k")->as_double(), 1e-5);
  EXPECT_EQ(root->find("nested")->find("flow")->items.at(2).find("x")->text, "y");
  EXPECT_EQ(root->find("maps")->items.at(0).find("size")->as_int(), 2);
  EXPECT_EQ(root->find("maps")->items.at(1).find("name")->text, "q");
  EXPECT_TRUE(root->find("nothing")->is_null());
  EXPECT_EQ(root->find("url")->text, "http://h:80/#x");
  EXPECT_EQ(root->find("url")->line, 17);
}

TEST(ConfigNode, JsonKnowsItsLines) {
  const auto root = parse_config("{\n\t\"a\": {\"b\": [1,\n 5e8]},\n \"s\": \"\\ud83d\\ude00\\n\"\n}", "f.json");
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_EQ(root->find("a")->find("b")->items.at(1).as_int(), 500'000'000);
  EXPECT_EQ(root->find("a")->find("b")->items.at(1).line, 3);
  EXPECT_EQ(root->find("s")->text, "\xF0\x9F\x98\x80\n");
}

TEST(ConfigNode, RefusesWhatItWouldGuess) {
  EXPECT_THAT(error_of("a: &x 1\n"), testing::AllOf(HasSubstr("f.yaml:1:"), HasSubstr("anchor")));
  EXPECT_THAT(error_of("a: |\n  text\n"), HasSubstr("block text"));
  EXPECT_THAT(error_of("a: 1\na: 2\n"), testing::AllOf(HasSubstr("f.yaml:2:"), HasSubstr("'a' stands twice")));
  EXPECT_THAT(error_of("a:\n\tb: 1\n"), HasSubstr("tab"));
  EXPECT_THAT(error_of("a: 1\n   b: 2\n"), HasSubstr("indented more"));
  EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("second document"));
  EXPECT_THAT(error_of("{\"a\": 1,}"), HasSubstr("f.yaml"));
  EXPECT_THAT(error_of("{\"a\": 1, \"a\": 2}"), HasSubstr("stands twice"));
  EXPECT_THAT(error_of("a: [1, 2\n"), HasSubstr("']' is missing"));
  EXPECT_THAT(error_of("just words\n"), HasSubstr("a key and a colon"));
  EXPECT_THAT(error_of("a: " + std::string(100, '[')), HasSubstr("nested too deeply"));
}

TEST(Quote, YamlReadsBackAsTheSameText) {
  for (const std::string text : {"true", "1e3", "no", "a: b", "#x", "'", "\"", "\\", "- a", "", "é", "null", "*x"}) {
    const std::string yaml = yaml_from(Json::object().set("k", text));
    const auto root = parse_config(yaml, "f.yaml");
    ASSERT_TRUE(root) << yaml;
    EXPECT_EQ(root->find("k")->as_string(), text);
    EXPECT_TRUE(root->find("k")->quoted);
  }
}

// YAML 1.1 floats need a point and a signed exponent (PyYAML's resolver).
TEST(Quote, NumbersStayNumbers) {
  EXPECT_EQ(number_with_point(1e-5), "1.0e-05");
  EXPECT_EQ(number_with_point(0.0002), "0.0002");
  EXPECT_EQ(number_with_point(1e20), "1.0e+20");
  EXPECT_EQ(python_from(Json::object().set("a", Json(Json::Array{true, nullptr, "x'y"}))),
            "{\"a\": [True, None, \"x'y\"]}");
}

TEST(Quote, ShellWordsReadBack) {
  for (const std::string text : {"plain", "it's", "a b", "$HOME", "`id`", "", "\"", "\\", "a;b", "*", "é", "a\nb"}) {
    const auto words = shell_words("x " + shell_word(text), "command");
    ASSERT_TRUE(words) << words.error().message();
    ASSERT_EQ(words->size(), 2u);
    EXPECT_EQ(words->back().text, text);
  }
}

}  // namespace
}  // namespace gpuwright::fit

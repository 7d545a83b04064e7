#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpuwright {
namespace {

TEST(Json, KeepsOrderAndKinds) {
  const auto json = parse_json(R"({"b": 1, "a": [true, null, 2.5, "x"], "n": 4096.0})", "t");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->members()[0].first, "b");
  EXPECT_EQ(json->find("n")->as_int(), 4096);
  EXPECT_EQ(json->find("a")->items().size(), 4u);
  EXPECT_EQ(json->find("a")->items()[2].as_double(), 2.5);
  EXPECT_EQ(json->find("zz"), nullptr);
}

TEST(Json, ReadsWhatPythonWrites) {
  const auto json = parse_json(R"({"a": NaN, "b": [Infinity, -Infinity], "c": "NaN \" Infinity"})", "t");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_TRUE(json->find("a")->is_null());
  EXPECT_EQ(json->find("b")->items().size(), 2u);
  EXPECT_EQ(json->find("c")->as_string(), "NaN \" Infinity");
}

TEST(Json, RefusesTooDeepTooLongAndBroken) {
  EXPECT_FALSE(parse_json(std::string(1000, '['), "t"));
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']'), "t"));
  EXPECT_FALSE(parse_json("[1,2", "t"));
  EXPECT_FALSE(parse_json("", "t"));
  EXPECT_FALSE(parse_json("[1,2,3]", "t", {.max_bytes = 4}));
  EXPECT_FALSE(parse_json("[1,2,3,4,5]", "t", {.max_values = 3}));
  EXPECT_FALSE(parse_json("{\"a\": \"\xff\"}", "t"));
}

TEST(Json, WritesValidTextWhateverTheStringsHold) {
  Json json;
  json.set("a", "tab\tquote\"back\\").set("b", std::string("\xff\x1b[31m")).set("c", 0.5).set("d", std::nan(""));
  const std::string text = json.dump(0);
  EXPECT_TRUE(parse_json(text, "t")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("\"d\": null"), std::string::npos);
}

}  // namespace
}  // namespace gpuwright

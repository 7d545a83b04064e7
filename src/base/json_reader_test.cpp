#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace gpuwright {
namespace {

bool skips(std::string text) {
  JsonReader reader(text);
  return reader.skip() && reader.at_end();
}

std::string read_string(std::string text) {
  JsonReader reader(text);
  std::string_view value;
  return reader.string(value) && reader.at_end() ? std::string(value) : std::string("refused");
}

TEST(JsonReader, WalksThroughObjectsAndArrays) {
  std::string text = R"( {"a" : [1, -2 ,3], "b":{}, "c":[], "d":"x", "e":9223372036854775807} )";
  JsonReader reader(text);
  std::string walked;
  ASSERT_TRUE(reader.begin_object());
  for (std::string_view key; reader.next_member(key);) {
    walked += key;
    std::int64_t number = 0;
    std::string_view value;
    if (reader.begin_array()) {
      while (reader.next_item() && reader.integer(number)) walked += std::to_string(number);
    } else if (reader.string(value)) {
      walked += value;
    } else if (reader.integer(number)) {
      walked += std::to_string(number);
    } else {
      EXPECT_TRUE(reader.skip());
    }
  }
  EXPECT_TRUE(reader.at_end()) << reader.reason();
  EXPECT_EQ(walked, "a1-23bcdxe9223372036854775807");
}

// RFC 8259, and the cases of JSONTestSuite (Nicolas Seriot, 2016) that readers most often get wrong.
TEST(JsonReader, TakesWhatTheGrammarAllows) {
  for (const char* text :
       {"{}", "[]", " [ ] ", "[1]", "[0]", "[-0]", "[1.5e+10]", "[1E-2]", "[true,false,null]", "\"\"", "[[],[[]],{}]",
        "{\"\":0}", "{\"a\":1,\"a\":2}", "\"\\u00e9\"", "\"\xc3\xa9\"", "[1e-400]"})
    EXPECT_TRUE(skips(text)) << text;
}

TEST(JsonReader, RefusesWhatTheGrammarForbids) {
  for (const char* text : {"",
                           " ",
                           "[",
                           "]",
                           "{",
                           "}",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[1,,2]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{'a':1}",
                           "{\"a\" 1}",
                           "{\"a\":1 \"b\":2}",
                           "[01]",
                           "[-]",
                           "[+1]",
                           "[.5]",
                           "[1.]",
                           "[1e]",
                           "[1e+]",
                           "[0x1]",
                           "[NaN]",
                           "[Infinity]",
                           "[tru]",
                           "[True]",
                           "[truefalse]",
                           "[1]]",
                           "[1]x",
                           "\"a",
                           "\"a\nb\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\\",
                           "\"\xff\"",
                           "\"\xc3\"",
                           "\"\xed\xa0\x80\"",
                           "[1e400]",
                           "\xef\xbb\xbf[]",
                           "[1}",
                           "{\"a\":1]"})
    EXPECT_FALSE(skips(text)) << text;
}

TEST(JsonReader, ResolvesEscapes) {
  EXPECT_EQ(read_string(R"("plain")"), "plain");
  EXPECT_EQ(read_string(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(read_string(R"("a\u0041\u00e9\u20ac\ud83d\ude00z")"), "aA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");
  EXPECT_EQ(read_string(R"("long enough for a word, \u0041 and more")"), "long enough for a word, A and more");
  EXPECT_EQ(read_string(R"("\u0000")"), std::string(1, '\0'));
}

// Eight bytes are looked at together, so each place of a special character among them is tried.
TEST(JsonReader, FindsTheEndOfAStringAtEveryPlace) {
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string plain(length, 'n');
    EXPECT_EQ(read_string("\"" + plain + "\""), plain);
    EXPECT_EQ(read_string("\"" + plain + "\\n\""), plain + "\n");
    EXPECT_EQ(read_string("\"" + plain + "\x1f\""), "refused");
    EXPECT_EQ(read_string("\"" + plain + "\xff\""), "refused");
    EXPECT_EQ(read_string("\"" + plain), "refused");
    EXPECT_EQ(read_string("\"" + plain + "\xc3\xa9\x7f!\""), plain + "\xc3\xa9\x7f!");
  }
}

TEST(JsonReader, ReadsWholeNumbersExactlyOrNotAtAll) {
  const auto integer = [](std::string text) -> std::optional<std::int64_t> {
    JsonReader reader(text);
    std::int64_t value = 0;
    return reader.integer(value) ? std::optional(value) : std::nullopt;
  };
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer("0"), 0);
  for (const char* other : {"9223372036854775808", "-9223372036854775809", "18446744073709551616", "1.0", "1e3", "01",
                            "-", "", "\"1\"", "null", "99999999999999999999999"})
    EXPECT_EQ(integer(other), std::nullopt) << other;
}

TEST(JsonReader, ReadsDoubles) {
  const auto number = [](std::string text) {
    JsonReader reader(text);
    double value = -1;
    return reader.number(value) ? value : -1;
  };
  EXPECT_EQ(number("0.1"), 0.1);
  EXPECT_EQ(number("18446744073709551615"), 18446744073709551615.0);
  EXPECT_EQ(number("1e-400"), 0);
  EXPECT_EQ(number("1e400"), -1);
}

TEST(JsonReader, StopsAtTheFirstFailureAndTellsWhere) {
  std::string text = R"({"a":1,"b" 2,"c":3})";
  JsonReader reader(text);
  ASSERT_TRUE(reader.begin_object());
  std::string seen;
  for (std::string_view key; reader.next_member(key); reader.skip()) seen += key;
  EXPECT_EQ(seen, "a");
  EXPECT_STREQ(reader.reason(), "':' is missing");
  EXPECT_EQ(reader.position(), text.find("2"));
  EXPECT_FALSE(reader.skip());
}

TEST(JsonReader, IsNotLedTooDeep) {
  EXPECT_TRUE(skips(std::string(63, '[') + std::string(63, ']')));
  EXPECT_FALSE(skips(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace gpuwright

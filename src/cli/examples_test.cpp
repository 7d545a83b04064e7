// What the help pages show must run: an example that fails as wrong words or input (2) or as a fault (4) is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/command.h"

namespace gpuwright::cli {
namespace {

// As a shell splits it, with quotes.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  char quote = 0;
  bool open = false;
  for (const char c : line) {
    const bool blank = c == ' ' && quote == 0;
    if (!blank && !open) words.emplace_back();
    open = !blank;
    if (quote != 0 ? c == quote : c == '\'' || c == '"')
      quote = quote != 0 ? '\0' : c;
    else if (!blank)
      words.back() += c;
  }
  return words;
}

// Files, folders and repositories that the reader has, shell around the command, and what goes on until it is ended.
bool needs_more_than_itself(const std::string& command) {
  constexpr std::string_view kSigns[] = {
      ".gwr", "--watch", "--stream", "--wait", ".gguf", ".onnx", ".safetensors", ".json ", ".log", ".txt",
      "./",   "/ ",      "hf://",    "https:", " | ",   " > ",   " < ",          "$(",     "&&"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](std::string_view sign) { return command.find(sign) != std::string::npos; });
}

TEST(Examples, OfEveryCommandRun) {
  int tried = 0;
  for (const Command& command : commands())
    for (const Example& example : command.examples) {
      std::vector<std::string> words = words_of(example.command);
      if (command.hidden || words.front() != "gpuwright" || needs_more_than_itself(example.command)) continue;
      words.erase(words.begin());
      std::ostringstream out, err;
      const int code = run(words, {out, err});
      EXPECT_TRUE(code != kUsage && code != kInternal) << example.command << ": " << code << ' ' << err.str();
      ++tried;
    }
  EXPECT_GE(tried, 10);
}

}  // namespace
}  // namespace gpuwright::cli

#include "cli/explain_fit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/fit_ask.h"
#include "cli/parse.h"

namespace gpuwright::cli {
namespace {

explain::Explanation out_of_memory() {
  explain::Explanation explanation;
  Finding finding;
  finding.id = finding.kind = "oom.vram";
  explanation.findings.push_back(finding);
  return explanation;
}

// The words of a command as they were typed; it quotes none, as no value in these tests needs it.
std::vector<std::string> words_of(std::string_view command) {
  std::vector<std::string> words;
  for (const std::string_view word : split(command, ' ')) words.emplace_back(word);
  words.erase(words.begin());  // gpuwright
  return words;
}

class OutOfMemoryAdvice : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = catalog::Catalog::load();
    ASSERT_TRUE(loaded);
    catalog_ = std::move(*loaded);
  }

  // Asks about the job; gives how many answers promise to fit. Each is tried.
  int promises_of(const std::string& words) {
    std::ostringstream out, err;
    const Console console{out, err};
    explain::Explanation explanation = out_of_memory();
    const Status status = add_answers_of_fit(words, "-", catalog_, explanation, console);
    EXPECT_TRUE(status) << words << ": " << (status ? "" : status.error().message());
    int promises = 0;
    for (const Fix& fix : explanation.findings.front().fixes) {
      if (!fix.text.starts_with("This fits")) continue;
      ++promises;
      if (!fix.commands.empty()) try_it(words, fix.commands.front());
    }
    return promises;
  }

 private:
  void try_it(const std::string& words, const std::string& command) {
    auto parsed = parse(words_of(command), commands());
    ASSERT_TRUE(parsed) << command;
    const auto asked = ask_fit(parsed->arguments, catalog_);
    ASSERT_TRUE(asked) << command;
    EXPECT_EQ(asked->answer.estimate.verdict(), fit::Verdict::fits) << words << " -> " << command;
    if (asked->answer.solution) {
      // The found length, without the search.
      Arguments plain = parsed->arguments;
      plain.remove("--max");
      plain.remove("--context");
      plain.add("--context", fmt::format("{}", asked->answer.solution->value));
      const auto again = ask_fit(plain, catalog_);
      ASSERT_TRUE(again) << command;
      EXPECT_EQ(again->answer.estimate.verdict(), fit::Verdict::fits) << words << " -> " << command;
    }
  }

  catalog::Catalog catalog_;
};

TEST_F(OutOfMemoryAdvice, ForTrainingAlwaysFits) {
  int promises = 0;
  for (const char* model : {"llama-3.2-1b", "qwen2.5-7b", "llama-3.1-8b", "mistral-7b"})
    for (const char* gpu : {"3060", "4090", "a100-sxm4-80gb"})
      for (const char* method : {"full", "lora", "qlora"})
        for (const int batch : {1, 8, 32})
          promises +=
              promises_of(fmt::format("{} --train {} --gpu {} --batch {} --sequence 4096", model, method, gpu, batch));
  EXPECT_GT(promises, 40);
}

TEST_F(OutOfMemoryAdvice, ForServingAlwaysFits) {
  int promises = 0;
  for (const char* model : {"llama-3.1-8b", "qwen2.5-7b", "qwen3-30b-a3b"})
    for (const char* gpu : {"3060", "4090", "a100-sxm4-80gb"})
      for (const char* engine : {"llama.cpp --format Q4_K_M", "vllm", "transformers"})
        for (const int context : {8192, 32768})
          promises += promises_of(fmt::format("{} --engine {} --gpu {} --context {}", model, engine, gpu, context));
  EXPECT_GT(promises, 10);
}

}  // namespace
}  // namespace gpuwright::cli

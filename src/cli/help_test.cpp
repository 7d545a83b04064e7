#include "cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/text.h"
#include "cli/chinese.h"
#include "cli/generate.h"

namespace gpuwright::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Command sample() {
  Command command;
  command.name = "fit";
  command.summary = "Will it fit";
  command.description = "First paragraph.\n\n.not a request, and a back\\slash";
  command.arguments = {{"MODEL", "the model", true, true}};
  command.options = {{.name = "--meter",
                      .short_name = "-m",
                      .value = "WHICH",
                      .help = "what is counted",
                      .choices = {"device", "tensor"},
                      .default_text = "device",
                      .repeated = true}};
  command.examples = {{"gpuwright fit x", "an example"}};
  return command;
}

TEST(Help, SaysWhatTheDefinitionSays) {
  std::ostringstream out;
  std::ostringstream err;
  print_command_help({out, err}, sample());
  EXPECT_THAT(out.str(), HasSubstr("Usage: gpuwright fit MODEL... [OPTIONS]"));
  EXPECT_THAT(out.str(), HasSubstr("-m, --meter WHICH"));
  EXPECT_THAT(option_help(sample().options[0]),
              "what is counted: device, tensor; may be given several times (default: device)");
}

TEST(Help, LinesStayWithinTheTerminal) {
  for (int width : {60, 80, 200}) {
    for (Language language : {Language::english, Language::chinese}) {
      std::ostringstream out;
      std::ostringstream err;
      Console console{out, err};
      console.width = width;
      console.language = language;
      print_overview(console, commands());
      std::istringstream lines(out.str());
      for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(Help, JsonHoldsTheDefinition) {
  const Json json = help_json(sample());
  EXPECT_EQ(json.find("usage")->as_string(), "gpuwright fit MODEL... [OPTIONS]");
  EXPECT_EQ(json.find("options")->items()[0].find("choices")->items().size(), 2U);
}

TEST(Help, ChineseCoversTheCommandsAndTheirOptions) {
  const auto chinese_of = [](std::string_view text) { return in_language(Language::chinese, text); };
  for (const Option& option : global_options()) EXPECT_NE(chinese_of(option.help), option.help);
  int untranslated = 0;
  for (const Command& command : commands())
    if (!command.hidden && chinese_of(command.summary) == command.summary) ++untranslated;
  EXPECT_EQ(untranslated, 0) << "add the summary to chinese.cpp";
}

TEST(Help, FitIsWhollyChinese) {
  const auto expect_chinese = [](std::string_view text) {
    EXPECT_NE(in_language(Language::chinese, text), text) << "add it to chinese.cpp";
  };
  for (const Command& command : commands()) {
    if (command.name != "fit") continue;
    expect_chinese(command.description);
    for (const Argument& argument : command.arguments) expect_chinese(argument.help);
    for (const Option& option : command.options) expect_chinese(option.help);
    for (const Example& example : command.examples) expect_chinese(example.what);
    for (const std::string& note : command.exit_notes) expect_chinese(note);
  }
}

// A translation is filled with the same values as the English text.
TEST(Help, TranslationsKeepThePlaces) {
  const auto places = [](std::string_view text) {
    std::multiset<std::string> found;
    for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1))
      found.insert(std::string(text.substr(at, text.find('}', at) - at + 1)));
    return found;
  };
  for (const Translation& translation : chinese())
    EXPECT_EQ(places(translation.other), places(translation.english)) << translation.english;
}

TEST(Help, NoTextIsTranslatedTwice) {
  std::set<std::string_view> seen;
  for (const Translation& translation : chinese())
    EXPECT_TRUE(seen.insert(translation.english).second) << translation.english;
}

TEST(Man, TextCannotBeTakenForRequests) {
  const std::string page = man_page(sample());
  EXPECT_THAT(page, StartsWith(".TH \"GPUWRIGHT\\-FIT\" 1 \""));
  EXPECT_THAT(page, HasSubstr("\n\\&.not a request, and a back\\eslash\n"));
  EXPECT_THAT(page, Not(HasSubstr("\n\n")));
}

TEST(Completion, NamesOptionsAndChoices) {
  const std::string bash = bash_completion({sample()});
  EXPECT_THAT(bash, HasSubstr("--meter | -m) wants_value=1 choices='device tensor' ;;"));
  const std::string zsh = zsh_completion({sample()});
  EXPECT_THAT(zsh, HasSubstr("'*--meter=[what is counted]:WHICH:(device tensor)'"));
}

}  // namespace
}  // namespace gpuwright::cli

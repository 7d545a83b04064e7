#include "cli/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuwright::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<Command> sample() {
  Command fit;
  fit.name = "fit";
  fit.arguments = {{"MODEL", "the model", true, false, true}};
  fit.options = {{.name = "--gpu", .value = "NAME", .repeated = true},
                 {.name = "--context", .short_name = "-c", .value = "TOKENS", .aliases = {"--ctx-size"}},
                 {.name = "--explain", .short_name = "-e"},
                 {.name = "--quiet", .short_name = "-q"},
                 {.name = "--meter", .value = "WHICH", .choices = {"device", "tensor"}},
                 {.name = "--simulate", .value = "SCENARIO", .choices = {"one", "two"}, .optional_value = true},
                 {.name = "--watch", .value = "SECONDS", .optional_value = true, .accepts = is_number}};
  Command gpus;
  gpus.name = "gpus";
  Command show;
  show.name = "gpus show";
  show.arguments = {{"GPU", "which", true, false}};
  Command compare;
  compare.name = "gpus compare";
  compare.arguments = {{"A", "first", true, false}, {"B", "the others", true, true}};
  Command model_show;
  model_show.name = "model show";
  model_show.arguments = {{"FILE", "file", true, true}};
  Command search;
  search.name = "search";
  search.arguments = {{"FROM", "several", true, true}, {"TO", "one", true, false}};
  return {fit, gpus, show, compare, model_show, search};
}

const std::vector<Command>& sample_commands() {
  static const std::vector<Command> kCommands = sample();
  return kCommands;
}

Invocation parsed(const std::vector<std::string>& words) {
  auto invocation = parse(words, sample_commands());
  EXPECT_TRUE(invocation) << (invocation ? "" : invocation.error().message());
  return invocation ? *invocation : Invocation{};
}

std::string refusal(const std::vector<std::string>& words) {
  const auto invocation = parse(words, sample_commands());
  if (invocation) return "accepted";
  EXPECT_EQ(invocation.error().code, ErrorCode::bad_input);
  return invocation.error().message();
}

TEST(Parse, AnOptionalValueIsTakenWhenItIsAccepted) {
  const auto with = parsed({"fit", "--watch", "2", "m.gguf"});
  EXPECT_EQ(with.arguments.value("--watch"), "2");
  const auto without = parsed({"fit", "--watch", "m.gguf"});
  EXPECT_TRUE(without.arguments.has("--watch"));
  EXPECT_FALSE(without.arguments.value("--watch").has_value());
  EXPECT_EQ(without.arguments.value("MODEL"), "m.gguf");
  EXPECT_THAT(refusal({"fit", "--watch=often", "m.gguf"}), HasSubstr("--watch takes SECONDS, not 'often'"));
}

TEST(Parse, OptionsStandAnywhereInEveryGnuForm) {
  const auto invocation = parsed({"fit", "--gpu", "4090", "m.gguf", "--gpu=h100 sxm", "-c8192", "-e"});
  EXPECT_EQ(invocation.command->name, "fit");
  EXPECT_THAT(invocation.arguments.values("--gpu"), ElementsAre("4090", "h100 sxm"));
  EXPECT_EQ(invocation.arguments.value("MODEL"), "m.gguf");
  EXPECT_EQ(invocation.arguments.value("--context"), "8192");
  EXPECT_TRUE(invocation.arguments.has("--explain"));
  EXPECT_FALSE(invocation.arguments.has("--quiet"));
  EXPECT_EQ(parsed({"fit", "m", "-c=5"}).arguments.value("--context"), "5");
  EXPECT_EQ(parsed({"fit", "m", "-c", "5"}).arguments.value("--context"), "5");
  EXPECT_EQ(parsed({"fit", "m", "-eqc", "5"}).arguments.value("--context"), "5");
  EXPECT_TRUE(parsed({"fit", "m", "-eq"}).arguments.has("--quiet"));
}

TEST(Parse, TheEnginesOwnWordsAreUnderstood) {
  EXPECT_EQ(parsed({"fit", "m", "--ctx-size", "8k"}).arguments.integer("--context", 1, 1 << 20), 8192);
}

TEST(Parse, ALongNameBehindOneDashIsASlip) {
  const auto invocation = parse({"fit", "m", "-context", "8192"}, sample_commands());
  ASSERT_FALSE(invocation);
  EXPECT_THAT(invocation.error().hint, HasSubstr("--context"));
}

TEST(Parse, TheLastOfASingleOptionCounts) {
  EXPECT_EQ(parsed({"fit", "m", "-c", "1", "--context=2"}).arguments.value("--context"), "2");
}

TEST(Parse, NegativeNumbersAreValuesAndNotOptions) {
  EXPECT_EQ(parsed({"fit", "m", "--context", "-5"}).arguments.value("--context"), "-5");
  EXPECT_EQ(parsed({"fit", "m", "-c-5"}).arguments.value("--context"), "-5");
  EXPECT_EQ(parsed({"fit", "-.5"}).arguments.value("MODEL"), "-.5");
  EXPECT_EQ(parsed({"fit", "-"}).arguments.value("MODEL"), "-");
}

TEST(Parse, ADashBeforeAValueIsNoOptionWhereNoneIsCalledSo) {
  EXPECT_EQ(parsed({"fit", "m", "--gpu", "-bandwidth"}).arguments.value("--gpu"), "-bandwidth");
  EXPECT_THAT(refusal({"fit", "m", "--gpu", "-c5"}), HasSubstr("--gpu needs a value: NAME"));
  EXPECT_THAT(refusal({"fit", "m", "--gpu", "-h"}), HasSubstr("--gpu needs a value: NAME"));
}

TEST(Parse, TwoDashesEndTheOptions) {
  EXPECT_EQ(parsed({"fit", "--", "--gpu"}).arguments.value("MODEL"), "--gpu");
  EXPECT_FALSE(has_flag({"fit", "--", "--json"}, "--json"));
  EXPECT_TRUE(has_flag({"fit", "--json", "--"}, "--json"));
}

TEST(Parse, GlobalOptionsStandBeforeOrAfterTheCommandOrInside) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--json", "--lang", "zh", "gpus", "show", "4090"},
                                                                 {"gpus", "--json", "show", "--lang=zh", "4090"},
                                                                 {"gpus", "show", "4090", "--lang", "zh", "--json"}}) {
    const auto invocation = parsed(words);
    ASSERT_TRUE(invocation.command);
    EXPECT_EQ(invocation.command->name, "gpus show");
    EXPECT_TRUE(invocation.arguments.has("--json"));
    EXPECT_EQ(invocation.arguments.value("--lang"), "zh");
    EXPECT_EQ(invocation.arguments.value("GPU"), "4090");
  }
}

TEST(Parse, TheLongestCommandNameWins) {
  EXPECT_EQ(parsed({"gpus"}).command->name, "gpus");
  EXPECT_EQ(parsed({"gpus", "show", "show"}).arguments.value("GPU"), "show");
}

TEST(Parse, RepeatedArgumentsLeaveWordsForTheOnesAfterThem) {
  EXPECT_THAT(parsed({"gpus", "compare", "a", "b", "c"}).arguments.values("B"), ElementsAre("b", "c"));
  const auto invocation = parsed({"search", "a", "b", "c"});
  EXPECT_THAT(invocation.arguments.values("FROM"), ElementsAre("a", "b"));
  EXPECT_THAT(invocation.arguments.values("TO"), ElementsAre("c"));
}

TEST(Parse, OptionalValuesAreTakenFromTheChoicesOnly) {
  EXPECT_EQ(parsed({"fit", "--simulate", "two", "m"}).arguments.value("--simulate"), "two");
  const auto invocation = parsed({"fit", "--simulate", "m"});
  EXPECT_TRUE(invocation.arguments.has("--simulate"));
  EXPECT_EQ(invocation.arguments.value("--simulate"), std::nullopt);
  EXPECT_EQ(invocation.arguments.value("MODEL"), "m");
}

TEST(Parse, NoWordsAreNoCommand) {
  EXPECT_EQ(parsed({}).command, nullptr);
  EXPECT_EQ(parsed({"--json"}).command, nullptr);
}

TEST(Parse, HelpNeedsNoArguments) {
  EXPECT_TRUE(parsed({"fit", "--help"}).arguments.has("--help"));
  EXPECT_EQ(parsed({"model", "--help"}).topic, "model");
}

TEST(Parse, MistypedWordsAreRefusedWithTheNearestOne) {
  EXPECT_THAT(refusal({"fti", "m"}), HasSubstr("no command 'fti' (did you mean 'fit'?)"));
  EXPECT_THAT(refusal({"gpus", "shwo"}), HasSubstr("did you mean 'gpus show'?"));
  EXPECT_THAT(refusal({"fit", "m", "--contxt", "5"}), HasSubstr("did you mean '--context'?"));
  EXPECT_THAT(refusal({"fit", "m", "--jsn"}), HasSubstr("did you mean '--json'?"));
  EXPECT_THAT(refusal({"fit", "m", "--meter", "devise"}), HasSubstr("did you mean 'device'?"));
  EXPECT_THAT(refusal({"model"}), HasSubstr("beginning of several commands"));
  EXPECT_THAT(refusal({"--gpu", "4090", "fit", "m"}), HasSubstr("stand after"));
}

TEST(Parse, MissingAndSurplusWordsAreNamed) {
  EXPECT_THAT(refusal({"fit"}), HasSubstr("fit needs MODEL"));
  EXPECT_THAT(refusal({"gpus", "compare", "a"}), HasSubstr("gpus compare needs B"));
  EXPECT_THAT(refusal({"fit", "m", "n"}), HasSubstr("no use for 'n'"));
  EXPECT_THAT(refusal({"fit", "m", "--context"}), HasSubstr("--context needs a value: TOKENS"));
  EXPECT_THAT(refusal({"fit", "m", "--context="}), HasSubstr("--context needs a value: TOKENS"));
  EXPECT_THAT(refusal({"fit", "m", "--context", "--explain"}), HasSubstr("begins with a dash"));
  EXPECT_THAT(refusal({"fit", "m", "--explain=yes"}), HasSubstr("takes no value"));
}

TEST(Arguments, NumbersAreCheckedAgainstTheirRange) {
  Arguments arguments;
  arguments.add("--context", "4096");
  arguments.add("--reserve", "0.25");
  arguments.add("--bad", "12x");
  EXPECT_EQ(arguments.integer("--context", 1, 1 << 20).value(), 4096);
  EXPECT_EQ(arguments.integer("--absent", 1, 2).value(), std::nullopt);
  EXPECT_EQ(arguments.number("--reserve", 0, 1).value(), 0.25);
  EXPECT_THAT(arguments.integer("--context", 1, 100).error().message(),
              HasSubstr("--context takes a whole number from 1 to 100, not 4096"));
  EXPECT_THAT(arguments.integer("--bad", 1, 100).error().message(), HasSubstr("not '12x'"));
}

TEST(Parse, HiddenCommandsRunButAreNotOffered) {
  Command hidden;
  hidden.name = "generate";
  hidden.hidden = true;
  const std::vector<Command> commands = {hidden};
  EXPECT_TRUE(parse({"generate"}, commands));
  EXPECT_THAT(parse({"genrate"}, commands).error().message(), testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(commands_below("generate", commands), IsEmpty());
}

}  // namespace
}  // namespace gpuwright::cli

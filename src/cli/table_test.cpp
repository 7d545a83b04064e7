#include "cli/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"

namespace gpuwright::cli {
namespace {

struct Printed {
  std::ostringstream out;
  std::ostringstream err;
  Console console{out, err};
};

std::vector<std::string> lines_of(const Printed& printed) {
  std::vector<std::string> lines;
  std::istringstream text(printed.out.str());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(Table, AlignsByTerminalColumns) {
  Printed printed;
  Table table({{"name"}, {"vram", Align::right}});
  table.add({"显卡", "8 GiB"});
  table.add({"RTX 4090", "23.5 GiB"});
  table.print(printed.console);
  EXPECT_EQ(printed.out.str(),
            "name          vram\n"
            "显卡         8 GiB\n"
            "RTX 4090  23.5 GiB\n");
}

TEST(Table, CutsOnlyShrinkingColumnsAndOnlyOnATerminal) {
  Table table({{"id"}, {"note", Align::left, true}});
  table.add({"a", std::string(50, 'n')});
  Printed narrow;
  narrow.console.width = 20;
  narrow.console.unicode = true;
  table.print(narrow.console);
  EXPECT_EQ(lines_of(narrow)[1], "a   " + std::string(15, 'n') + "…");
  Printed wide;
  wide.console.width = 20;
  wide.console.wide = true;
  table.print(wide.console);
  EXPECT_EQ(lines_of(wide)[1], "a   " + std::string(50, 'n'));
}

TEST(Table, LeavesOutWhatIsExpendableWhenItIsTooWide) {
  Table table({{"id"}, {"much", Align::right, false, 2}, {"more", Align::right, false, 1}, {"name"}});
  table.add({"a", "1", "2", "n"});
  Printed printed;
  printed.console.width = 15;
  table.print(printed.console);
  EXPECT_EQ(printed.out.str(), "id  more  name\na      2  n\n");
}

TEST(Table, ASpanningCellRunsOverTheColumnsThatFollow) {
  Table table({{"id", Align::right}, {"n", Align::right}, {"m"}});
  table.add({"1", "2", "3"});
  table.add_spanning({"2", "lost: it fell off the bus"});
  Printed printed;
  table.print(printed.console);
  EXPECT_EQ(printed.out.str(), "id  n  m\n 1  2  3\n 2  lost: it fell off the bus\n");
  Printed narrow;
  narrow.console.width = 16;
  table.print(narrow.console);
  EXPECT_EQ(lines_of(narrow)[2], " 2  lost: it ...");
}

TEST(Table, ThatIsTooWidePrintsBlocks) {
  Table table({{"GPU"}, {"usable", Align::right}, {"needed", Align::right}}, 2);
  table.add({"RTX 4090", "23.64 GiB", "17.60 GiB"});
  Printed narrow;
  narrow.console.width = 24;
  table.print(narrow.console);
  EXPECT_EQ(narrow.out.str(),
            "  RTX 4090\n"
            "    usable  23.64 GiB\n"
            "    needed  17.60 GiB\n");
}

TEST(Table, ShowsControlCharactersInsteadOfSendingThem) {
  Printed printed;
  Table table({{""}});
  table.add({"\033[2Jevil"});
  table.print(printed.console);
  EXPECT_EQ(printed.out.str(), "\\x1b[2Jevil\n");
}

TEST(Table, PaintsOnlyWhenTheConsoleShowsColours) {
  Printed printed;
  printed.console.color = true;
  Table table({{""}, {""}});
  table.add({{"yes", Tone::good}, "x"});
  table.print(printed.console);
  EXPECT_EQ(printed.out.str(), "\033[32myes\033[0m  x\n");
}

TEST(Shorten, CountsColumnsNotBytes) {
  EXPECT_EQ(shorten("显卡显卡", 8, true), "显卡显卡");
  EXPECT_EQ(shorten("显卡显卡", 7, true), "显卡显…");
  EXPECT_EQ(shorten("abcdefgh", 6, false), "abc...");
}

TEST(Bar, SharesAreProportionalAndFillTheLine) {
  Printed printed;
  printed.console.width = 44;  // 40 columns of bar
  print_bar(printed.console, {{"weights", 20, "20 GiB"}, {"KV cache", 10, "10 GiB"}}, 40.0, "10 GiB");
  EXPECT_EQ(printed.out.str(),
            "  ####################==========..........\n"
            "  # weights   20 GiB  50.0 %\n"
            "  = KV cache  10 GiB  25.0 %\n"
            "  . free      10 GiB  25.0 %\n");
}

TEST(Bar, MarksWhereTheMemoryEnds) {
  Printed printed;
  printed.console.width = 24;
  print_bar(printed.console, {{"weights", 15, "15 GiB"}, {"KV cache", 5, "5 GiB"}}, 10.0);
  EXPECT_EQ(lines_of(printed).front(), "  ##########|####=====");
  EXPECT_EQ(lines_of(printed).back(), "  | here the memory ends");
}

TEST(Bar, SmallPartsStayVisibleAndEmptyOnesAreLeftOut) {
  Printed printed;
  printed.console.width = 44;
  printed.console.unicode = true;
  print_bar(printed.console, {{"weights", 1000, "a"}, {"tiny", 1, "b"}, {"none", 0, "c"}});
  EXPECT_EQ(display_width(lines_of(printed)[0]), 42);
  EXPECT_NE(lines_of(printed)[0].find("▓"), std::string::npos);
  EXPECT_EQ(lines_of(printed).size(), 3U);
}

TEST(Wrap, BreaksAtSpacesAndInsideChineseText) {
  EXPECT_EQ(wrap("one two three", 7, 0), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(wrap("显存够不够", 6, 0), "显存够\n不够");
  EXPECT_EQ(wrap("a\n\nb", 10, 0), "a\n\nb");
  EXPECT_EQ(wrap("see vllm/model_executor/layers", 14, 0), "see\nvllm/model_\nexecutor/\nlayers");
  EXPECT_EQ(wrap("unbreakablelongword x", 5, 0), "unbreakablelongword\nx");
}

}  // namespace
}  // namespace gpuwright::cli

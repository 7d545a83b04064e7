// Tables and bars for people. Widths are counted in terminal columns, so Chinese text and block characters line up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/style.h"

namespace gpuwright::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  bool shrinks = false;  // cut (with "…") when the table is wider than the terminal
  // Columns of the highest number are left out first when even the shrunk table is too wide; 0 always stays.
  int expendable = 0;
  int least = 8;  // what a shrinking column keeps
};

struct Cell {
  std::string text;
  Tone tone = Tone::plain;

  Cell(std::string cell_text, Tone cell_tone = Tone::plain) : text(std::move(cell_text)), tone(cell_tone) {}
  Cell(std::string_view cell_text, Tone cell_tone = Tone::plain) : text(cell_text), tone(cell_tone) {}
  Cell(const char* cell_text, Tone cell_tone = Tone::plain) : text(cell_text), tone(cell_tone) {}
};

// A table that stays wider than the terminal, and has nothing expendable, prints each row as a block: its first cell,
// and below it "title  cell". Rows may be shorter than the header. Titles may all be empty: then no header line is
// printed. Text of cells is made printable() on the way out, so names that come from files may be put in as they are.
class Table {
 public:
  explicit Table(std::vector<Column> columns, int indent = 0) : columns_(std::move(columns)), indent_(indent) {}
  void add(std::vector<Cell> cells) { rows_.push_back({std::move(cells), false}); }
  // The last of the cells runs over all columns that follow it, cut where the table ends.
  void add_spanning(std::vector<Cell> cells) { rows_.push_back({std::move(cells), true}); }
  bool empty() const { return rows_.empty(); }
  void print(const Console& console) const;

 private:
  struct Row {
    std::vector<Cell> cells;
    bool spans = false;
  };
  std::vector<int> natural_widths() const;
  std::vector<int> widths(const Console& console) const;
  bool prints_blocks(const Console& console, const std::vector<int>& widths) const;
  void print_blocks(const Console& console) const;
  void print_row(const Console& console, const Row& row, const std::vector<int>& widths) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  int indent_;
};

// The text cut to `width` columns with an ellipsis at its end ("…", or "..." where the locale is not UTF-8).
std::string shorten(std::string_view text, int width, bool unicode);

struct Part {
  std::string label;
  double amount = 0;  // not negative; parts of 0 are left out of bar and legend
  std::string text;   // the amount for people: "14.96 GiB"
};

// One horizontal bar of the parts, with a legend below that says label, text and share of the whole. With a capacity
// the rest of it is shown as free space; when the parts exceed it a mark shows where the capacity ends.
void print_bar(const Console& console, const std::vector<Part>& parts, std::optional<double> capacity = {},
               std::string_view free_text = {});

}  // namespace gpuwright::cli

#include "cli/table.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace gpuwright::cli {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 8;  // nothing is cut to less

std::string spaces(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

}  // namespace

std::string shorten(std::string_view text, int width, bool unicode) {
  if (display_width(text) <= width) return std::string(text);
  const std::string ellipsis = unicode ? "…" : "...";
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    std::string longer = kept + std::string(text.substr(at, end - at));
    if (display_width(longer) + display_width(ellipsis) > width) break;
    kept = std::move(longer);
    at = end;
  }
  return kept + ellipsis;
}

std::vector<int> Table::natural_widths() const {
  std::vector<int> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    int width = display_width(columns_[i].title);
    for (const Row& row : rows_) {
      const std::size_t own = row.spans ? row.cells.size() - 1 : row.cells.size();
      if (i < own) width = std::max(width, display_width(printable(row.cells[i].text)));
    }
    widths.push_back(width);
  }
  return widths;
}

// A width below 0 says that the column is left out.
std::vector<int> Table::widths(const Console& console) const {
  std::vector<int> widths = natural_widths();
  if (console.wide) return widths;
  const auto excess_at = [&](const auto& width_of) {
    int total = indent_ - kGap;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (widths[i] >= 0) total += width_of(i) + kGap;
    return total - console.width;
  };
  const auto least = [&](std::size_t i) {
    return columns_[i].shrinks ? std::min(widths[i], columns_[i].least) : widths[i];
  };
  while (excess_at(least) > 0) {
    std::size_t drop = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (widths[i] >= 0 && columns_[i].expendable > 0 &&
          (drop == columns_.size() || columns_[i].expendable >= columns_[drop].expendable))
        drop = i;
    if (drop == columns_.size()) break;
    widths[drop] = -1;
  }
  int excess = excess_at([&](std::size_t i) { return widths[i]; });
  // Down to what the columns should keep; where that is not enough, down to what can just be read.
  for (const bool keeps : {true, false})
    while (excess > 0) {
      std::size_t widest = columns_.size();
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if (columns_[i].shrinks && widths[i] > (keeps ? columns_[i].least : kNarrowest) &&
            (widest == columns_.size() || widths[i] > widths[widest]))
          widest = i;
      if (widest == columns_.size()) break;
      --widths[widest];
      --excess;
    }
  return widths;
}

void Table::print_row(const Console& console, const Row& row, const std::vector<int>& widths) const {
  std::string line = spaces(indent_);
  int column = indent_, pending = 0;  // pending: spaces that come before the next cell
  for (std::size_t i = 0; i < row.cells.size() && i < columns_.size(); ++i) {
    const bool runs_on = row.spans && i + 1 == row.cells.size();
    if (widths[i] < 0 && !runs_on) continue;
    const int room = runs_on && !console.wide ? std::max(console.width - column - pending, kNarrowest) : widths[i];
    const std::string content = printable(row.cells[i].text);
    const std::string text = runs_on && console.wide ? content : shorten(content, room, console.unicode);
    const int padding = std::max(widths[i] - display_width(text), 0);
    const bool right = columns_[i].align == Align::right && !runs_on;
    line += spaces(pending + (right ? padding : 0)) + paint(console, row.cells[i].tone, text);
    column += pending + std::max(widths[i], display_width(text));
    pending = kGap + (right ? 0 : padding);
    column -= right ? 0 : padding;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  console.out << line << '\n';
}

bool Table::prints_blocks(const Console& console, const std::vector<int>& widths) const {
  if (console.wide) return false;
  for (const Column& column : columns_)
    if (column.expendable > 0) return false;
  for (const Row& row : rows_)
    if (row.spans) return false;
  return std::accumulate(widths.begin(), widths.end(), indent_) + kGap * (std::ssize(columns_) - 1) > console.width;
}

void Table::print_blocks(const Console& console) const {
  int title_width = 0;
  for (std::size_t i = 1; i < columns_.size(); ++i)
    title_width = std::max(title_width, display_width(columns_[i].title));
  const int hanging = indent_ + kGap + (title_width > 0 ? title_width + kGap : 0);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size() && i < columns_.size(); ++i) {
      const Cell& cell = row.cells[i];
      if (i > 0 && cell.text.empty()) continue;
      std::string line = spaces(i == 0 ? indent_ : indent_ + kGap);
      if (i > 0 && title_width > 0)
        line += columns_[i].title + spaces(title_width - display_width(columns_[i].title) + kGap);
      line += wrap(printable(cell.text), console.width, i == 0 ? indent_ + kGap : hanging);
      console.out << paint(console, cell.tone, line) << '\n';
    }
  }
}

void Table::print(const Console& console) const {
  const std::vector<int> column_widths = widths(console);
  if (prints_blocks(console, column_widths)) return print_blocks(console);
  Row titles;
  for (const Column& column : columns_) titles.cells.emplace_back(column.title, Tone::heading);
  const bool titled = std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.title.empty(); });
  if (titled) print_row(console, titles, column_widths);
  for (const Row& row : rows_) print_row(console, row, column_widths);
}

}  // namespace gpuwright::cli

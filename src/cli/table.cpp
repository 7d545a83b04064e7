#include "cli/table.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace gpuwright::cli {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 8;  // a shrinking column keeps this much

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

std::vector<int> Table::widths(const Console& console) const {
  std::vector<int> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    int width = display_width(columns_[i].title);
    for (const auto& row : rows_)
      if (i < row.size()) width = std::max(width, display_width(printable(row[i].text)));
    widths.push_back(width);
  }
  if (console.wide) return widths;
  int excess = std::accumulate(widths.begin(), widths.end(), indent_) + kGap * (static_cast<int>(columns_.size()) - 1) -
               console.width;
  while (excess > 0) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].shrinks && widths[i] > kNarrowest && (widest == columns_.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == columns_.size()) break;
    --widths[widest];
    --excess;
  }
  return widths;
}

void Table::print_row(const Console& console, const std::vector<Cell>& cells, const std::vector<int>& widths) const {
  std::string line = spaces(indent_);
  for (std::size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
    const std::string text = shorten(printable(cells[i].text), widths[i], console.unicode);
    const int padding = widths[i] - display_width(text);
    const bool last = i + 1 == std::min(cells.size(), columns_.size());
    if (i > 0) line += spaces(kGap);
    if (columns_[i].align == Align::right) line += spaces(padding);
    line += paint(console, cells[i].tone, text);
    if (columns_[i].align == Align::left && !last) line += spaces(padding);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  console.out << line << '\n';
}

void Table::print(const Console& console) const {
  const std::vector<int> column_widths = widths(console);
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Tone::heading);
  const bool titled = std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.title.empty(); });
  if (titled) print_row(console, titles, column_widths);
  for (const auto& row : rows_) print_row(console, row, column_widths);
}

}  // namespace gpuwright::cli

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

struct Fill {
  const char* unicode;
  char ascii;
  const char* color;
};

// Told apart without colour too: on paper, in a log, by people who do not see red and green as different.
constexpr std::array<Fill, 8> kFills = {{{"█", '#', "34"},
                                         {"▓", '=', "33"},
                                         {"▒", '+', "36"},
                                         {"▚", 'x', "35"},
                                         {"▤", 'o', "32"},
                                         {"░", '-', "31"},
                                         {"▥", '%', "94"},
                                         {"▨", '*', "95"}}};
constexpr Fill kFree = {"·", '.', "2"};
constexpr Fill kLimit = {"│", '|', "1"};
constexpr int kWidest = 72;

std::string draw(const Console& console, const Fill& fill, std::int64_t columns) {
  std::string text;
  for (std::int64_t i = 0; i < columns; ++i)
    text += console.unicode ? std::string(fill.unicode) : std::string(1, fill.ascii);
  if (!console.color || text.empty()) return text;
  return fmt::format("\033[{}m{}\033[0m", fill.color, text);
}

// Shares `columns` out so that they sum exactly, no part is off by more than one, and the smallest part stays visible
// (largest remainders first: Hamilton's method).
std::vector<std::int64_t> share_out(const std::vector<double>& amounts, std::int64_t columns) {
  double total = 0;
  for (double amount : amounts) total += amount;
  std::vector<std::int64_t> shares(amounts.size(), 0);
  if (total <= 0) return shares;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t left = columns;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    const double exact = amounts[i] / total * static_cast<double>(columns);
    shares[i] = static_cast<std::int64_t>(exact);
    left -= shares[i];
    remainders.emplace_back(exact - std::floor(exact), i);
  }
  std::sort(remainders.begin(), remainders.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; left > 0 && i < remainders.size(); ++i, --left) ++shares[remainders[i].second];
  for (std::int64_t& share : shares) {
    if (share > 0) continue;
    const auto largest = std::max_element(shares.begin(), shares.end());
    if (*largest < 2) break;
    --*largest;
    share = 1;
  }
  return shares;
}

struct LegendLine {
  Fill fill;
  std::string label;
  std::string text;
  double share;
};

void print_legend(const Console& console, const std::vector<LegendLine>& lines) {
  int label_width = 0;
  int text_width = 0;
  for (const LegendLine& line : lines) {
    label_width = std::max(label_width, display_width(line.label));
    text_width = std::max(text_width, display_width(line.text));
  }
  const auto pad = [](int columns) { return std::string(static_cast<std::size_t>(columns), ' '); };
  for (const LegendLine& line : lines)
    console.out << "  " << draw(console, line.fill, 1) << ' ' << line.label
                << pad(label_width - display_width(line.label) + 2 + text_width - display_width(line.text)) << line.text
                << fmt::format("  {:4.1f} %\n", line.share * 100);
}

}  // namespace

void print_bar(const Console& console, const std::vector<Part>& all_parts, std::optional<double> capacity,
               std::string_view free_text) {
  std::vector<double> amounts;
  std::vector<LegendLine> legend;
  double used = 0;
  for (const Part& part : all_parts) {
    if (part.amount <= 0) continue;
    legend.push_back(
        {kFills[amounts.size() % kFills.size()], printable(part.label), printable(part.text), part.amount});
    amounts.push_back(part.amount);
    used += part.amount;
  }
  const double whole = std::max(used, capacity.value_or(used));
  if (whole <= 0) return;
  if (whole > used) {
    amounts.push_back(whole - used);
    legend.push_back({kFree, std::string(say(console, "free")), printable(free_text), whole - used});
  }
  for (LegendLine& line : legend) line.share /= whole;

  const std::int64_t columns = std::clamp(console.width - 4, 10, kWidest);
  const bool over = capacity && used > *capacity;
  const auto limit = over ? static_cast<std::int64_t>(*capacity / whole * static_cast<double>(columns)) : -1;
  const auto shares = share_out(amounts, columns);
  console.out << "  ";
  std::int64_t drawn = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::int64_t end = drawn + shares[i];
    const bool cut = limit >= drawn && limit < end;
    console.out << draw(console, legend[i].fill, cut ? limit - drawn : shares[i]);
    if (cut) console.out << draw(console, kLimit, 1) << draw(console, legend[i].fill, end - limit - 1);
    drawn = end;
  }
  console.out << '\n';
  print_legend(console, legend);
  if (over) console.out << "  " << draw(console, kLimit, 1) << ' ' << say(console, "here the memory ends") << '\n';
}

}  // namespace gpuwright::cli

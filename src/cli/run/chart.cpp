#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "cli/live/values.h"
#include "cli/run/run_report.h"
#include "cli/style.h"

namespace gpuwright::cli {
namespace {

constexpr int kLines = 5, kWidest = 64, kLabel = 10;
constexpr std::array<const char*, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// The most of each column's time; a column in which nothing was read is as the one before it.
std::vector<double> columns_of(const std::vector<Curve::Point>& points, double seconds, int columns) {
  std::vector<double> most(static_cast<std::size_t>(columns), -1);
  for (const Curve::Point& point : points) {
    const double share = seconds > 0 ? point.seconds / seconds : 0;
    const int column = std::clamp(static_cast<int>(share * columns), 0, columns - 1);
    double& value = most[static_cast<std::size_t>(column)];
    value = std::max(value, static_cast<double>(point.size.count));
  }
  double before = 0;
  for (double& value : most) before = value = value < 0 ? before : value;
  return most;
}

std::string cell(double share, int line, bool unicode) {
  // How many eighths of this line, counted from below, are filled.
  const double eighths = (share * kLines - line) * 8;
  if (!unicode) return eighths >= 4 ? "#" : " ";
  return kBlocks[static_cast<std::size_t>(std::clamp(std::lround(eighths), 0l, 8l))];
}

}  // namespace

void print_memory_chart(const WatchedGpu& gpu, double seconds, const Console& console) {
  const auto points = gpu.memory.whole();
  const Bytes top = gpu.gpu.memory_total.value_or(gpu.memory.peak().size);
  if (points.empty() || top.count <= 0) return;
  const int columns = std::clamp(console.width - kLabel - 4, 10, kWidest);
  const std::vector<double> most = columns_of(points, seconds, columns);
  for (int line = kLines - 1; line >= 0; --line) {
    const std::string label = line == kLines - 1 ? memory_text(top) : "";
    std::string drawn;
    for (const double value : most) drawn += cell(value / static_cast<double>(top.count), line, console.unicode);
    const std::size_t end = drawn.find_last_not_of(' ');
    drawn.resize(end == std::string::npos ? 0 : end + 1);
    console.out << fmt::format("{:>{}} {}", label, kLabel, console.unicode ? "│" : "|")
                << paint(console, Tone::good, drawn) << '\n';
  }
  std::string axis;
  for (int i = 0; i < columns; ++i) axis += console.unicode ? "─" : "-";
  console.out << fmt::format("{:>{}} {}{}\n", "0", kLabel, console.unicode ? "└" : "+", axis);
  const std::string end = duration_text(seconds);
  console.out << fmt::format("{:{}}0s{:>{}}\n", "", kLabel + 2, end, columns - 2);
}

}  // namespace gpuwright::cli

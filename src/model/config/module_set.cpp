// Lists of modules in quantization_config come in three dialects. Exact paths are kept in a hash set and looked up by
// every run of whole path components of the asked module; the few patterns are matched as globs, in linear time, so
// that a hostile pattern cannot cost more than its length.
#include <algorithm>

#include "model/config/quantization.h"

namespace gpuwright::model {
namespace {

constexpr std::size_t kMaxGlobs = 256;
constexpr std::size_t kMaxComponents = 16;

// Checkpoints of vision-language models put the decoder under "language_model", ours and others' do not.
std::string_view without_root(std::string_view module) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view root : {"model.", "language_model.", "transformer."})
      if (module.starts_with(root)) module.remove_prefix(root.size()), again = true;
  }
  return module;
}

// Matches `*` (anything) and `?` (one character), with backtracking to the last star only.
bool glob_matches(std::string_view glob, std::string_view text) {
  std::size_t g = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && (glob[g] == '?' || (glob[g] == text[t] && glob[g] != '*'))) {
      ++g, ++t;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++, resume = t;
    } else if (star != std::string_view::npos) {
      g = star + 1, t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

// The regular expressions that recipes use are paths with `.*`, `\.` and `\d+`; unanchored ends match anything.
std::string glob_of_regex(std::string_view regex) {
  std::string glob;
  if (regex.starts_with('^')) regex.remove_prefix(1);
  const bool anchored = regex.ends_with('$');
  if (anchored) regex.remove_suffix(1);
  for (std::size_t i = 0; i < regex.size(); ++i) {
    const bool repeated = i + 1 < regex.size() && (regex[i + 1] == '*' || regex[i + 1] == '+');
    if (regex[i] == '\\' && i + 1 < regex.size()) {
      const bool digit = regex[++i] == 'd';
      if (digit) {
        glob += '*';
        if (i + 1 < regex.size() && regex[i + 1] == '+') ++i;
      } else {
        glob += regex[i];
      }
    } else if (repeated) {
      glob += '*';
      ++i;
    } else {
      glob += regex[i] == '.' ? '?' : regex[i];
    }
  }
  if (!anchored) glob += '*';
  return glob;
}

// "a(b|c)d" -> "abd", "acd"; one level, as recipes use it.
std::vector<std::string> alternatives(std::string_view regex) {
  const std::size_t open = regex.find('('), close = regex.find(')', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {std::string(regex)};
  std::vector<std::string> results;
  std::string_view inner = regex.substr(open + 1, close - open - 1);
  if (inner.starts_with("?:")) inner.remove_prefix(2);
  while (results.size() < kMaxGlobs) {
    const std::size_t bar = inner.find('|');
    results.push_back(std::string(regex.substr(0, open)) + std::string(inner.substr(0, bar)) +
                      std::string(regex.substr(close + 1)));
    if (bar == std::string_view::npos) break;
    inner.remove_prefix(bar + 1);
  }
  return results;
}

}  // namespace

void ModuleSet::add(std::string_view pattern) {
  if (pattern.size() > 512) return;
  if (pattern.starts_with("re:")) {
    for (const std::string& one : alternatives(pattern.substr(3)))
      if (globs_.size() < kMaxGlobs) globs_.push_back(glob_of_regex(one));
  } else if (pattern.find('*') != std::string_view::npos) {
    if (globs_.size() >= kMaxGlobs) return;
    globs_.emplace_back(pattern);
    globs_.emplace_back(std::string(pattern) + ".*");
  } else {
    const std::string_view name = without_root(pattern);
    exact_.emplace(name.empty() ? pattern : name);
  }
}

bool ModuleSet::contains(std::string_view module) const {
  if (empty()) return false;
  if (!exact_.empty()) {
    const std::string_view name = without_root(module);
    std::vector<std::size_t> starts = {0};
    for (std::size_t i = 0; i < name.size() && starts.size() < kMaxComponents; ++i)
      if (name[i] == '.') starts.push_back(i + 1);
    for (std::size_t from = 0; from < starts.size(); ++from)
      for (std::size_t to = from + 1; to <= starts.size(); ++to) {
        const std::size_t end = to < starts.size() ? starts[to] - 1 : name.size();
        if (exact_.contains(std::string(name.substr(starts[from], end - starts[from])))) return true;
      }
  }
  return std::any_of(globs_.begin(), globs_.end(), [&](const std::string& glob) { return glob_matches(glob, module); });
}

}  // namespace gpuwright::model

// The search is a single pass of one automaton (RE2) over blocks of raw text for any anchor of any pattern. Where none
// is found, no line is ever cut; around a hit the patterns of that anchor are tried on a few lines. So an uneventful
// log costs one automaton step a byte, whatever the number of rules.
#include "explain/scanner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace gpuwright::explain {
namespace {

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kLookahead = 32 << 10;   // text after a hit that its patterns may need
constexpr std::size_t kLongestLine = 4 << 10;  // a longer line is read in pieces of this size around what is found
constexpr std::size_t kLongestAnchor = 64;
constexpr std::size_t kWrapped = 60;           // bytes that a line has at least where it may have been wrapped
constexpr std::size_t kShown = 1024;           // bytes of a line that evidence shows
constexpr std::size_t kMostSightings = 8;      // kept of one symptom
constexpr std::int64_t kManyAttempts = 2'000;  // from here on a pattern looks at one hit in 64 only

bool is_line_end(char c) {
  return c == '\n' || c == '\r';
}

std::string as_read(Reading reading, std::string text) {
  switch (reading) {
    case Reading::mebibytes:
      return text + "MiB";
    case Reading::gibibytes:
      return text + "GiB";
    case Reading::cudnn:
      return normalise(FactType::cudnn, text).value_or(text);
    case Reading::cuda:
      return normalise(FactType::cuda, text).value_or(text);
    case Reading::nvidia:
      return "10de:" + text;
    case Reading::numpy:
      return "numpy:" + text;
    case Reading::lower_case:
      return lower(text);
    case Reading::python_tag:
      return text.size() > 1 ? text.substr(0, 1) + "." + text.substr(1) : text;
    case Reading::package: {
      const std::size_t sign = text.find_first_of("=-", text.find_first_of("0123456789") - 1);
      const std::size_t name_end = text.find_last_not_of(" =-", sign);
      const std::size_t version = text.find_first_not_of(" =-", sign);
      if (name_end == std::string::npos || version == std::string::npos) return text;
      return text.substr(0, name_end + 1) + ":" + text.substr(version);
    }
    case Reading::plain:
      break;
  }
  return text;
}

// "xid_{xid}" with what was captured as xid.
std::string with_captures(const std::string& name, const Regex& regex, const std::vector<re2::StringPiece>& groups) {
  const std::size_t open = name.find('{'), close = name.find('}');
  if (open == std::string::npos || close == std::string::npos) return name;
  const std::string_view fact = std::string_view(name).substr(open + 1, close - open - 1);
  for (const Capture& capture : regex.captures) {
    const re2::StringPiece piece = groups[static_cast<std::size_t>(capture.group)];
    if (capture.fact->name == fact && piece.data() != nullptr)
      return name.substr(0, open) + std::string(piece.data(), piece.size()) + name.substr(close + 1);
  }
  return name;
}

// Eight bytes at a time, as every byte of every log passes here: a byte that is a line end leaves a 1 in its place
// (H. S. Warren, "Hacker's Delight", 6-1), the places are added up over at most 255 words, then with one another.
std::int64_t line_ends_in(std::string_view text) {
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7f, kEnds = 0x0a0a0a0a0a0a0a0a, kOnes = 0x0001000100010001;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::int64_t count = 0;
  while (text.size() >= kWord) {
    const std::size_t words = std::min<std::size_t>(text.size() / kWord, 255);
    std::uint64_t places = 0;
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + i * kWord, kWord);
      word ^= kEnds;
      places += ~(((word & kLow) + kLow) | word | kLow) >> 7;
    }
    const std::uint64_t pairs = (places & 0x00ff00ff00ff00ff) + (places >> 8 & 0x00ff00ff00ff00ff);
    count += static_cast<std::int64_t>(pairs * kOnes >> 48);
    text.remove_prefix(words * kWord);
  }
  return count + std::count(text.begin(), text.end(), '\n');
}

}  // namespace

void Cleaner::clean(std::string_view bytes, std::string& onto) {
  const auto plain = [&](char c) { return bytes.find(c) == std::string_view::npos; };
  if (!escapes_.inside() && !carriage_return_ && plain('\x1b') && plain('\r') && plain('\0')) {
    onto += bytes;
    return;
  }
  for (const char c : bytes) {
    zeros_ += c == '\0' ? 1 : 0;
    controls_ += (c > 0 && c < '\b') || (c > '\r' && c < '\x1b') || (c > '\x1b' && c < ' ') ? 1 : 0;
    if (std::exchange(carriage_return_, false) && c != '\n') onto += '\r';
    if (escapes_.takes(c)) continue;
    if (c == '\r')
      carriage_return_ = true;
    else if (c != '\0')
      onto += c;
  }
}

void Cleaner::finish(std::string& onto) {
  if (std::exchange(carriage_return_, false)) onto += '\r';
  escapes_ = {};
}

Scanner::Scanner(const RuleBook& book) : book_(book), progress_(book.patterns().size()) {}

void Scanner::begin(const std::string& source) {
  source_ = source;
  buffer_.clear();
  scan_from_ = counted_to_ = 0;
  buffer_offset_ = counted_lines_ = 0;
  for (Progress& progress : progress_) progress.last_start = -1;
}

void Scanner::feed(std::string_view bytes) {
  scan_.bytes += static_cast<std::int64_t>(bytes.size());
  while (!bytes.empty()) {
    const std::size_t room = std::min(bytes.size(), kBlock);
    cleaner_.clean(bytes.substr(0, room), buffer_);
    bytes.remove_prefix(room);
    if (buffer_.size() >= kBlock) process(false);
  }
}

void Scanner::end() {
  cleaner_.finish(buffer_);
  scan_.zeros = cleaner_.zeros();
  scan_.controls = cleaner_.controls();
  process(true);
  if (!buffer_.empty()) scan_.lines += line_number(buffer_.size()) - (buffer_.back() == '\n' ? 1 : 0);
}

std::int64_t Scanner::line_number(std::size_t at) {
  if (at > counted_to_) {
    counted_lines_ += line_ends_in(std::string_view(buffer_).substr(counted_to_, at - counted_to_));
    counted_to_ = at;
    return counted_lines_ + 1;
  }
  return counted_lines_ - line_ends_in(std::string_view(buffer_).substr(at, counted_to_ - at)) + 1;
}

Scanner::Line Scanner::line_around(std::size_t at) const {
  std::size_t begin = at;
  while (begin > 0 && at - begin < kLongestLine && !is_line_end(buffer_[begin - 1])) --begin;
  std::size_t end = at;
  while (end < buffer_.size() && end - at < kLongestLine && !is_line_end(buffer_[end])) ++end;
  return {begin, end};
}

void Scanner::process(bool final) {
  const std::size_t limit = final ? buffer_.size() : buffer_.size() - std::min(buffer_.size(), kLookahead);
  std::size_t at = scan_from_;
  re2::StringPiece hit;
  while (at < limit && book_.anchors().any->Match(buffer_, at, buffer_.size(), re2::RE2::UNANCHORED, &hit, 1)) {
    const auto found = static_cast<std::size_t>(hit.data() - buffer_.data());
    if (found >= limit) break;
    const Line line = line_around(found);
    read_hit(line, found + hit.size());
    at = std::max(line.end, found + hit.size());
  }
  scan_from_ = std::max(limit, std::min(at, buffer_.size()));
  if (final) return;
  const std::size_t keep = scan_from_ - std::min(scan_from_, kLookahead);
  static_cast<void>(line_number(keep));
  if (counted_to_ > keep) {  // the count may be ahead, at the last hit
    counted_lines_ = line_number(keep) - 1;
    counted_to_ = keep;
  }
  buffer_.erase(0, keep);
  buffer_offset_ += static_cast<std::int64_t>(keep);
  scan_from_ -= keep;
  counted_to_ = 0;
}

void Scanner::read_hit(Line line, std::size_t hit_end) {
  std::vector<std::size_t> patterns;
  add_patterns_in({line.begin, std::max(line.end, hit_end)}, patterns);
  // An anchor may begin on this line and end on the next.
  std::size_t at = line.end - std::min(line.end - line.begin, kLongestAnchor);
  const std::size_t limit = std::min(line.end + kLongestAnchor, buffer_.size());
  re2::StringPiece hit;
  while (at < line.end && book_.anchors().any->Match(buffer_, at, limit, re2::RE2::UNANCHORED, &hit, 1)) {
    const auto begin = static_cast<std::size_t>(hit.data() - buffer_.data());
    if (begin < line.end && begin + hit.size() > line.end) add_patterns_in({begin, begin + hit.size()}, patterns);
    at = begin + 1;
  }
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  for (const std::size_t index : patterns) {
    const std::int64_t attempts = ++progress_[index].attempts;
    if (attempts > kManyAttempts && attempts % 64 != 0) continue;
    try_pattern(index, line);
  }
}

void Scanner::add_patterns_in(Line text, std::vector<std::size_t>& patterns) const {
  std::vector<int> numbers;
  if (!book_.anchors().each->Match(re2::StringPiece(buffer_.data() + text.begin, text.end - text.begin), &numbers))
    return;
  for (const int number : numbers) patterns.push_back(book_.anchors().pattern[static_cast<std::size_t>(number)]);
}

void Scanner::try_pattern(std::size_t index, Line line) {
  const Pattern& pattern = book_.patterns()[index];
  if (match_window(index, window_around(line, pattern.before, pattern.after), std::nullopt)) return;
  // A message that was wrapped: its lines are long, and are read as one.
  Line joined = line;
  const auto long_enough = [](Line one) { return one.end - one.begin >= kWrapped; };
  if (line.begin > 0)
    if (const Line before = line_around(line.begin - 1); long_enough(before)) joined.begin = before.begin;
  if (long_enough(line)) joined.end = window_around(line, 0, 3).end;
  if (joined.begin != line.begin || joined.end != line.end) match_window(index, joined, line);
}

Scanner::Line Scanner::window_around(Line line, int before, int after) const {
  Line window = line;
  for (int i = 0; i < before && window.begin > 0; ++i) window.begin = line_around(window.begin - 1).begin;
  for (int i = 0; i < after && window.end < buffer_.size(); ++i) window.end = line_around(window.end + 1).end;
  window.end = std::min(window.end, buffer_.size());
  return window;
}

// Tries the regexes on a window; with `wrapped` its lines are joined, and only a match over that line counts. True when
// one matched, if only where it did before.
bool Scanner::match_window(std::size_t index, Line window, std::optional<Line> wrapped) {
  const Pattern& pattern = book_.patterns()[index];
  std::string text = buffer_.substr(window.begin, window.end - window.begin);
  for (char& c : text)
    if (is_line_end(c)) c = wrapped ? ' ' : '\n';
  if (pattern.unless && re2::RE2::PartialMatch(text, *pattern.unless)) return true;

  Progress& progress = progress_[index];
  const std::int64_t window_offset = buffer_offset_ + static_cast<std::int64_t>(window.begin);
  std::int64_t last_start = progress.last_start;
  bool matched = false;
  for (const Regex& regex : pattern.regexes) {
    std::vector<re2::StringPiece> groups(static_cast<std::size_t>(regex.re->NumberOfCapturingGroups()) + 1);
    std::size_t at = 0;
    while (at <= text.size() && regex.re->Match(text, at, text.size(), re2::RE2::UNANCHORED, groups.data(),
                                                static_cast<int>(groups.size()))) {
      const auto start = static_cast<std::size_t>(groups[0].data() - text.data());
      const std::size_t place = window.begin + start;
      at = start + std::max<std::size_t>(groups[0].size(), 1);
      if (wrapped && (place >= wrapped->end || place + groups[0].size() <= wrapped->begin)) continue;
      matched = true;
      const std::int64_t position = window_offset + static_cast<std::int64_t>(start);
      if (position <= progress.last_start) continue;
      last_start = std::max(last_start, position);
      // A regex that begins with a line end means the line behind it.
      const std::size_t shown_at = place + (groups[0].size() > 1 && is_line_end(buffer_[place]) ? 1 : 0);
      const Line shown = line_around(shown_at);
      accept(index, regex, groups,
             std::string_view(buffer_).substr(shown.begin, std::min(shown.end - shown.begin, kShown)),
             line_number(shown_at));
    }
  }
  progress.last_start = last_start;
  return matched;
}

void Scanner::accept(std::size_t index, const Regex& regex, const std::vector<re2::StringPiece>& groups,
                     std::string_view line, std::int64_t number) {
  const Pattern& pattern = book_.patterns()[index];
  std::vector<const FactKind*> known;  // lists of which only one message may speak
  for (const Capture& capture : regex.captures)
    if (capture.fact->once && scan_.facts.find(capture.fact->name) != nullptr) known.push_back(capture.fact);
  for (const Capture& capture : regex.captures) {
    const re2::StringPiece piece = groups[static_cast<std::size_t>(capture.group)];
    if (piece.data() == nullptr) continue;
    const std::string text = as_read(capture.reading, std::string(piece.data(), piece.size()));
    if (std::find(known.begin(), known.end(), capture.fact) != known.end()) continue;
    if (!capture.fact->list || capture.fact->type == FactType::held_by) {
      if (auto value = normalise(capture.fact->type, text))
        scan_.facts.add(*capture.fact, std::move(*value), capture.reading == Reading::mebibytes);
      continue;
    }
    // A list in one place: "sm_50 sm_60 sm_70", "5.0, 6.0".
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find_first_of(" ,;\n'\"", at), text.size());
      if (end > at)
        if (auto value = normalise(capture.fact->type, std::string_view(text).substr(at, end - at)))
          scan_.facts.add(*capture.fact, std::move(*value));
      at = end + 1;
    }
  }
  for (const auto& [kind, value] : pattern.set) scan_.facts.add(*kind, value);

  for (const std::string& name : pattern.symptoms) {
    Symptom& symptom = scan_.symptoms[with_captures(name, regex, groups)];
    if (symptom.count == 0) symptom.first = ++order_;
    if (symptom.last_line == number && symptom.last_source == source_) continue;
    symptom.last_line = number;
    symptom.last_source = source_;
    ++symptom.count;
    if (symptom.sightings.size() < kMostSightings) symptom.sightings.push_back({source_, number, std::string(line), 1});
  }
}

}  // namespace gpuwright::explain

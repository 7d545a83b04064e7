// Reads logs of any size and any bytes once, and gathers what the patterns of a rule book see in them: symptoms with
// their first lines, and facts. Linear in time; memory is bounded by a block of text and a number of sightings.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/escapes.h"
#include "base/finding.h"
#include "base/rules/facts.h"
#include "explain/rules.h"

namespace gpuwright::explain {

struct Symptom {
  std::vector<Evidence> sightings;  // the first few
  std::int64_t count = 0;           // lines
  std::int64_t last_line = 0;       // of the last sighting, as a line counts once
  std::string last_source = {};
  std::int64_t first = 0;  // order among all sightings of all symptoms, from 1
};

struct Scan {
  Facts facts;
  std::map<std::string, Symptom, std::less<>> symptoms;
  std::int64_t lines = 0, bytes = 0;
  std::int64_t zeros = 0, controls = 0;  // bytes that are NUL, and control characters that no text holds
};

// Removes terminal escapes, NULs and the CR of CR LF from text that comes in pieces.
// A lone CR, with which progress bars go back, stays.
class Cleaner {
 public:
  void clean(std::string_view bytes, std::string& onto);
  void finish(std::string& onto);
  // Seen in pieces that hold a NUL, a CR or an escape.
  std::int64_t zeros() const { return zeros_; }
  std::int64_t controls() const { return controls_; }

 private:
  std::int64_t zeros_ = 0, controls_ = 0;
  EscapeFilter escapes_;
  bool carriage_return_ = false;  // one that came last, and may be followed by LF
};

class Scanner {
 public:
  explicit Scanner(const RuleBook& book);  // the book must outlive the scanner

  // One log after the other: a folder of logs is one incident.
  void begin(const std::string& source);
  void feed(std::string_view bytes);
  // Takes note of what was fed so far, as if it were the end: for logs that still grow.
  void look() { process(true); }
  void end();
  const Scan& scan() const { return scan_; }

 private:
  struct Line {
    std::size_t begin = 0, end = 0;
  };
  void process(bool final);
  Line line_around(std::size_t at) const;
  void read_hit(Line line, std::size_t hit_end);
  void add_patterns_in(Line text, std::vector<std::size_t>& patterns) const;
  void try_pattern(std::size_t index, Line line);
  Line window_around(Line line, int before, int after) const;
  bool match_window(std::size_t index, Line window, std::optional<Line> wrapped);
  void accept(std::size_t index, const Regex& regex, const std::vector<re2::StringPiece>& groups, std::string_view line,
              std::int64_t number);
  std::int64_t line_number(std::size_t at);

  const RuleBook& book_;
  struct Progress {
    std::int64_t last_start = -1;  // in bytes of the source: a match is taken once
    std::int64_t attempts = 0;
  };
  std::vector<Progress> progress_;

  Cleaner cleaner_;
  std::string source_, buffer_;
  std::size_t scan_from_ = 0;       // what of the buffer is done
  std::int64_t buffer_offset_ = 0;  // of the buffer's begin in the source
  std::size_t counted_to_ = 0;      // line numbers are counted as far as this
  std::int64_t counted_lines_ = 0;  // line ends before counted_to_
  std::int64_t order_ = 0;
  Scan scan_;
};

}  // namespace gpuwright::explain

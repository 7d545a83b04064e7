// Facts: typed values taken from log lines. Messages print the same thing in many forms ("11040", "11.4", "cu114"); a
// fact has one. The vocabulary is data (data/errors.toml, [[fact]]): a pattern that captures any other name is refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwright {

enum class FactType : std::uint8_t {
  bytes,       // "60.00 MiB", "163840 kB", "9637888"; units are powers of 1024, as these programs mean them
  integer,     // "1,800,000", "0x1f"
  number,      // "0.9", "3.5e-4"
  text,        // as printed, spaces trimmed
  lower_text,  // lower case, for addresses
  version,     // "2.7.0+cu124"
  cuda,        // "11040" and "118" are 11.4 and 11.8
  cudnn,       // "8907" is 8.9.7, "91002" 9.10.2, "(8, 7, 0)" 8.7.0
  capability,  // "sm_121a" is 12.1
  place,       // "/opt/a/b/Loss.cu line=12" is "Loss.cu:12"
  held_by,     // "12 has 618.00 MiB" is "12:648019968"
};
std::optional<FactType> fact_type_named(std::string_view name);

struct FactKind {
  std::string name;
  FactType type = FactType::text;
  bool list = false;
  bool repeats = false;  // of a list: equal values stand as often as they were seen
  bool once = false;     // of a list: only what the first message gives
};

// The value in its one form; nothing when the text is none of that type (too large, not a number).
std::optional<std::string> normalise(FactType type, std::string_view text);
bool is_number(FactType type);

// -1, 0, 1 for dotted versions, part by part as numbers ("12.10" > "12.9"); what follows a "+" or "-" is left out.
int compare_versions(std::string_view left, std::string_view right);

struct Fact {
  const FactKind* kind = nullptr;
  std::vector<std::string> items;  // normalised; one unless kind->list
  bool rounded = false;            // printed with fewer digits than another message may give
};

// The facts of an incident by name. The first value of a fact stands, but an exact one takes the place of a rounded
// one; a list gathers different values in order.
class Facts {
 public:
  void add(const FactKind& kind, std::string value, bool rounded = false);
  const Fact* find(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;  // items joined by commas
  const std::vector<Fact>& all() const { return facts_; }

 private:
  static constexpr std::size_t kMostItems = 256;
  std::vector<Fact> facts_;
};

}  // namespace gpuwright

// data/errors.toml as a book of rules. Patterns say what a program's message looks like and what it tells (facts,
// symptoms); rules say what a set of symptoms and facts means. Adding either needs no C++.
//
// [[fact]]     name, type (facts.h), list, repeats
// [[pattern]]  id       unique; also the symptom, unless `symptom` names one or several
//                       A name may hold a fact: "xid_{xid}"
//              anchors  short literal texts, of which every match holds at least one: what the log is searched for
//              regex    one or several (RE2). A space also matches a line break, so that a message that is wrapped is
//                       still found; "." does not. Named groups are facts ("(?P<tried_bytes>...)"); a suffix "__2" is
//                       left out, as one name may stand only once in a regex; "__mib",
//                       "__gib", "__cudnn", "__lower", "__tag" and "__package" tell
//                       how it is to be read (Reading)
//              before, after   how many lines before and after the anchor's may take part (0 and 2)
//              set      facts that follow from the message itself: { backend = "hip" }
//              unless   a regex: no match where it holds within the same lines
//              case     false: capitals do not matter
// [[computed]] fact, value (expression.h), when
// [[rule]]     kind, scope, severity, when (expression.h), title and cause with {facts} in them, each in "en" and "zh",
//              evidence (symptoms shown; else those in `when`), confidence, hedge (said when it is not sure)
//              group            of the rules of one group only the first that holds speaks
//              dropped_if       kinds ("oom.*") beside which this is no news
//              consequence_of   kinds that explain this one
//              fixes            [{en, zh, commands, reboot, safe, url, when}]
// [[xid]]      (xid.toml) becomes a rule "xid.N" on the symptom "xid_N"
// [[benign]]   pattern: its lines are harmless; en, zh
#pragma once

#include <re2/re2.h>
#include <re2/set.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/result.h"
#include "base/rules/expression.h"
#include "base/rules/facts.h"
#include "base/rules/words.h"

namespace gpuwright::explain {

// How the text of a capture is brought into the form that its fact expects.
enum class Reading : std::uint8_t {
  plain,
  mebibytes,   // a bare number of MiB
  gibibytes,   // of GiB
  cudnn,       // "8907", "(8, 7, 0)"
  cuda,        // "12010"
  lower_case,  // "cuDNN" as "cudnn"
  python_tag,  // "310" is 3.10
  nvidia,      // a device id as "10de:2b85"
  numpy,       // "2.0" as "numpy:2.0"
  package,     // "torch==2.7", "flash_attn-2.6.3" are "torch:2.7", "flash_attn:2.6.3"
};

// A named group of a regex, and the fact that it gives.
struct Capture {
  int group = 0;
  const FactKind* fact = nullptr;
  Reading reading = Reading::plain;
};

struct Regex {
  std::unique_ptr<re2::RE2> re;
  std::vector<Capture> captures;
};

struct Pattern {
  std::string id;
  std::vector<std::string> symptoms;
  std::vector<std::string> anchors;
  std::vector<Regex> regexes;
  std::unique_ptr<re2::RE2> unless;
  int before = 0, after = 2;
  std::vector<std::pair<const FactKind*, std::string>> set;
};

struct Computed {
  const FactKind* fact = nullptr;
  Expression value, when;
};

struct RuleFix {
  Words text;
  std::vector<std::string> commands;
  bool reboot = false, safe = false;
  std::string url;
  Expression when;
};

struct Rule {
  std::string kind, group;
  Scope scope = Scope::none;
  Severity severity = Severity::info;
  double confidence = 0.9;
  Expression when;
  std::vector<std::string> evidence;  // symptoms
  std::vector<std::string> dropped_if, consequence_of;
  Words title, cause, hedge;
  std::vector<RuleFix> fixes;
};

// The anchors of all patterns, compiled for searching.
struct AnchorIndex {
  std::unique_ptr<re2::RE2> any;        // any of them
  std::unique_ptr<re2::RE2::Set> each;  // which of them
  std::vector<std::size_t> pattern;     // by number in `each`
};

class RuleBook {
 public:
  // The built-in rules with ~/.config/gpuwright/errors.toml after them.
  // Own rules that are faulty are left out, as a note says: the built-in ones serve nevertheless.
  static Result<RuleBook> load();
  const std::vector<std::string>& notes() const { return notes_; }
  // An error names the file, the row and what is wrong with it.
  static Result<RuleBook> from_toml(std::string_view text, const std::string& name);

  const FactKind* fact(std::string_view name) const;
  const std::vector<Pattern>& patterns() const { return patterns_; }
  const AnchorIndex& anchors() const { return anchors_; }
  const std::vector<Computed>& computed() const { return computed_; }
  const std::vector<Rule>& rules() const { return rules_; }
  const std::map<std::string, Words, std::less<>>& benign() const { return benign_; }  // by symptom
  // What the rules say that cannot be right: unknown names in conditions, patterns that no rule uses, rules without
  // a Chinese text. One line each.
  std::vector<std::string> lint() const;

 private:
  friend class RuleFile;
  std::vector<std::unique_ptr<FactKind>> facts_;
  Status add(std::string_view text, const std::string& name);
  void index_anchors();

  std::vector<Pattern> patterns_;
  AnchorIndex anchors_;
  std::vector<Computed> computed_;
  std::vector<Rule> rules_;
  std::map<std::string, Words, std::less<>> benign_;
  std::vector<std::string> notes_;
};

}  // namespace gpuwright::explain

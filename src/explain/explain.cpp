#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rules/template.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwright::explain {
namespace {

bool kind_matches(std::string_view pattern, std::string_view kind) {
  if (pattern.ends_with('*')) return kind.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == kind;
}

struct Candidate {
  const Rule* rule = nullptr;
  std::int64_t first = 0;  // order of its first evidence
  bool dropped = false;
  bool consequence = false;
};

class Judge {
 public:
  Judge(const RuleBook& book, const Scan& scan, const ExplainOptions& options)
      : book_(book), scan_(scan), options_(options), facts_(scan.facts) {
    scene_.facts = &facts_;
    scene_.first_line = [this](std::string_view name) { return order_of(name); };
    scene_.times = [this](std::string_view name) {
      const auto symptom = scan_.symptoms.find(name);
      return symptom == scan_.symptoms.end() ? 0 : symptom->second.count;
    };
    scene_.lookup = options_.lookup;
    scene_.found = [this](std::string_view kind) {
      return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
        return !candidate.dropped && kind_matches(kind, candidate.rule->kind);
      });
    };
  }

  Explanation judge() {
    compute_facts();
    collect();
    weigh();
    Explanation explanation;
    explanation.lines = scan_.lines;
    explanation.bytes = scan_.bytes;
    for (const Candidate& candidate : candidates_)
      if (!candidate.dropped) explanation.findings.push_back(finding(candidate));
    for (const Fact& fact : facts_.all()) explanation.facts.push_back(value_of(fact));
    gather_benign(explanation);
    if (explanation.findings.empty()) explanation.findings.push_back(nothing_found(explanation));
    return explanation;
  }

 private:
  std::int64_t order_of(std::string_view name) const {
    const auto symptom = scan_.symptoms.find(name);
    return symptom == scan_.symptoms.end() ? 0 : symptom->second.first;
  }

  void compute_facts() {
    for (const Computed& computed : book_.computed()) {
      if (facts_.find(computed.fact->name) != nullptr || !computed.when.holds(scene_)) continue;
      const Value value = computed.value.evaluate(scene_);
      if (const double* number = std::get_if<double>(&value)) {
        if (*number < 0 || *number > 9e18) continue;
        facts_.add(*computed.fact, computed.fact->type == FactType::number
                                       ? fmt::format("{}", *number)
                                       : fmt::format("{}", static_cast<std::int64_t>(*number + 0.5)));
      } else if (const std::string* text = std::get_if<std::string>(&value)) {
        facts_.add(*computed.fact, *text);
      } else if (const Version* version = std::get_if<Version>(&value)) {
        facts_.add(*computed.fact, version->text);
      }
    }
  }

  // Of each group the first rule that holds.
  void collect() {
    std::vector<std::string_view> decided;
    for (const Rule& rule : book_.rules()) {
      if (!rule.group.empty() && std::find(decided.begin(), decided.end(), rule.group) != decided.end()) continue;
      if (!rule.when.holds(scene_)) continue;
      if (!rule.group.empty()) decided.emplace_back(rule.group);
      Candidate candidate{&rule, 0, false, false};
      for (const std::string& name : rule.evidence) {
        const std::int64_t order = order_of(name);
        if (order > 0 && (candidate.first == 0 || order < candidate.first)) candidate.first = order;
      }
      candidates_.push_back(candidate);
    }
  }

  bool beside(const Candidate& self, const std::vector<std::string>& kinds) const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& other) {
      return &other != &self && !other.dropped && other.rule->kind != self.rule->kind &&
             std::any_of(kinds.begin(), kinds.end(),
                         [&](const std::string& kind) { return kind_matches(kind, other.rule->kind); });
    });
  }

  void weigh() {
    for (Candidate& candidate : candidates_) candidate.dropped = beside(candidate, candidate.rule->dropped_if);
    for (Candidate& candidate : candidates_) candidate.consequence = beside(candidate, candidate.rule->consequence_of);
    keep_a_cause();
    const auto rank = [](const Candidate& candidate) {
      if (candidate.rule->severity < Severity::warning) return 2;
      return candidate.consequence ? 1 : 0;
    };
    std::stable_sort(candidates_.begin(), candidates_.end(), [&](const Candidate& a, const Candidate& b) {
      if (rank(a) != rank(b)) return rank(a) < rank(b);
      return a.first < b.first;
    });
  }

  // Findings that only explain each other have no cause: the first of them is taken for it.
  void keep_a_cause() {
    Candidate* first = nullptr;
    for (Candidate& candidate : candidates_) {
      if (candidate.dropped) continue;
      if (!candidate.consequence) return;
      if (first == nullptr || candidate.first < first->first) first = &candidate;
    }
    if (first != nullptr) first->consequence = false;
  }

  FactValue value_of(const Fact& fact) const {
    return {fact.kind->name, fact.items, is_number(fact.kind->type), fact.kind->list};
  }

  // A line that shows two symptoms is shown once.
  static void add_evidence(Evidence evidence, Finding& finding) {
    for (Evidence& shown : finding.evidence)
      if (shown.line == evidence.line && shown.source == evidence.source) {
        shown.count = std::max(shown.count, evidence.count);
        return;
      }
    finding.evidence.push_back(std::move(evidence));
  }

  Finding finding(const Candidate& candidate) const {
    const Rule& rule = *candidate.rule;
    Finding finding;
    finding.id = finding.kind = rule.kind;
    finding.scope = rule.scope;
    finding.severity = rule.severity;
    finding.role = candidate.consequence ? Role::consequence : Role::cause;
    finding.confidence = rule.confidence;
    finding.title = filled(rule.title.in(options_.language), facts_);
    finding.cause = filled(rule.cause.in(options_.language), facts_);
    if (const std::string& hedge = rule.hedge.in(options_.language); !hedge.empty())
      finding.cause += " " + filled(hedge, facts_);
    for (const std::string& name : rule.evidence) {
      const auto symptom = scan_.symptoms.find(name);
      if (symptom == scan_.symptoms.end()) continue;
      Evidence evidence = symptom->second.sightings.front();
      evidence.count = symptom->second.count;
      add_evidence(std::move(evidence), finding);
    }
    for (const RuleFix& fix : rule.fixes) {
      if (!fix.when.holds(scene_)) continue;
      Fix filled_in{filled(fix.text.in(options_.language), facts_), {}, fix.reboot, fix.safe, fix.url};
      for (const std::string& command : fix.commands) filled_in.commands.push_back(filled_command(command, facts_));
      finding.fixes.push_back(std::move(filled_in));
    }
    return finding;
  }

  void gather_benign(Explanation& explanation) const {
    for (const auto& [name, words] : book_.benign()) {
      const auto symptom = scan_.symptoms.find(name);
      if (symptom == scan_.symptoms.end()) continue;
      explanation.benign.push_back(
          {words.in(options_.language), {symptom->second.sightings.front()}, symptom->second.count});
    }
  }

  // Programs, images, zeros, one endless line: not what anything could be judged by.
  bool holds_no_log() const {
    const std::int64_t text = scan_.bytes - scan_.zeros;
    constexpr std::int64_t kLongestText = 64 << 10;  // without one line end
    return text <= 0 || scan_.controls * 50 > text || (scan_.lines <= 1 && text > kLongestText);
  }

  // Nobody knows what it is, or nothing is wrong: said, never guessed.
  Finding nothing_found(const Explanation& explanation) const {
    const bool chinese = options_.language == "zh";
    Finding finding;
    if (scan_.bytes > 0 && holds_no_log()) {
      finding.id = finding.kind = "unknown";
      finding.confidence = 0;
      finding.title = chinese ? "这不是文本日志" : "This is not a log";
      finding.cause = chinese ? "内容是二进制数据、零字节或没有换行的长串，无法据此判断。"
                              : "It holds binary data, zeros or one endless line: there is nothing to judge by.";
      return finding;
    }
    const auto alarm = scan_.symptoms.find("alarm");
    if (alarm != scan_.symptoms.end()) {
      finding.id = finding.kind = "unknown";
      finding.severity = Severity::info;
      finding.confidence = 0;
      finding.title = chinese ? "无法从日志判断" : "Cannot tell from this log";
      finding.cause = chinese ? "日志显示有失败，但没有一条规则能从文字中看出原因。"
                              : "Something failed, but nothing in the text shows why.";
      // The first exception, not what passes it on; else the last alarm.
      const auto exception = scan_.symptoms.find("exception_said");
      finding.evidence.push_back(exception != scan_.symptoms.end() ? exception->second.sightings.front()
                                                                   : alarm->second.sightings.back());
      return finding;
    }
    if (scan_.bytes == 0) {
      finding.id = finding.kind = "unknown";
      finding.title = chinese ? "日志是空的" : "The log is empty";
      finding.cause = chinese ? "没有可读的内容。" : "There is nothing to read.";
      return finding;
    }
    finding.id = finding.kind = explanation.benign.empty() ? "healthy" : "benign";
    finding.severity = Severity::benign;
    finding.title = chinese ? "未发现问题" : "Nothing is wrong here";
    finding.cause = chinese ? "没有失败，也没有警报。" : "No failure and no alarming line was found.";
    return finding;
  }

  const RuleBook& book_;
  const Scan& scan_;
  const ExplainOptions& options_;
  Facts facts_;
  Scene scene_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Explanation explain(const RuleBook& book, const Scan& scan, const ExplainOptions& options) {
  return Judge(book, scan, options).judge();
}

std::string verdict(const Explanation& explanation) {
  std::vector<std::string_view> kinds;
  const bool serious = std::any_of(
      explanation.findings.begin(), explanation.findings.end(),
      [](const Finding& finding) { return finding.role == Role::cause && finding.severity >= Severity::warning; });
  for (const Finding& finding : explanation.findings)
    if (finding.role == Role::cause &&
        (!serious || finding.severity >= Severity::warning || finding.kind == "not_gpu.user_interrupt"))
      kinds.push_back(finding.kind);
  return fmt::format("{}", fmt::join(kinds, "+"));
}

}  // namespace gpuwright::explain

#include "explain/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include <toml++/toml.h>

#include "base/embedded.h"
#include "base/file.h"

namespace gpuwright::explain {
namespace {
constexpr std::int64_t kLargestXid = 255;

// The anchor as a regex: blanks may be line breaks.
std::string anchor_regex(const std::string& anchor) {
  std::string regex;
  for (const char c : anchor) {
    if (c == ' ')
      regex += "[ \\t\\r\\n]+";
    else
      regex += re2::RE2::QuoteMeta(re2::StringPiece(&c, 1));
  }
  return regex;
}

re2::RE2::Options search_options() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_case_sensitive(false);
  options.set_log_errors(false);
  options.set_max_mem(64 << 20);
  return options;
}

}  // namespace

// Reads one file into the book.
class RuleFile {
 public:
  RuleFile(RuleBook& book, const std::string& name) : book_(book), name_(name) {}

  Status read(const toml::table& file) {
    GW_TRY(each(file, "fact", [&](const toml::table& row) { return fact(row); }));
    GW_TRY(each(file, "pattern", [&](const toml::table& row) { return pattern(row); }));
    GW_TRY(each(file, "computed", [&](const toml::table& row) { return computed(row); }));
    GW_TRY(each(file, "rule", [&](const toml::table& row) { return rule(row); }));
    GW_TRY(each(file, "xid", [&](const toml::table& row) { return xid(row); }));
    return each(file, "benign", [&](const toml::table& row) { return benign(row); });
  }

 private:
  tl::unexpected<Error> wrong(const toml::table& row, std::string what) const {
    return fail_at(ErrorCode::bad_input, {name_, row.source().begin.line, std::nullopt}, std::move(what));
  }
  template <class Reader>
  Status each(const toml::table& file, std::string_view key, Reader read_row) {
    const toml::array* rows = file[key].as_array();
    for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
      const toml::table* row = rows->get(i)->as_table();
      if (row == nullptr)
        return fail_at(ErrorCode::bad_input, {name_, {}, {}}, fmt::format("[[{}]] is not a table", key));
      GW_TRY(read_row(*row));
    }
    return {};
  }
  static std::string text(const toml::table& row, std::string_view key) { return row[key].value_or(std::string()); }
  // A text, or an array of texts.
  static std::vector<std::string> texts(const toml::table& row, std::string_view key) {
    std::vector<std::string> all;
    if (const auto one = row[key].value<std::string>()) all.push_back(*one);
    const toml::array* array = row[key].as_array();
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i)
      if (const auto item = array->get(i)->value<std::string>()) all.push_back(*item);
    return all;
  }
  static Words words(const toml::table& row, std::string_view key) {
    if (const auto one = row[key].value<std::string>()) return {*one, ""};
    if (const toml::table* table = row[key].as_table()) return {text(*table, "en"), text(*table, "zh")};
    return {};
  }
  Result<Expression> expression(const toml::table& row, std::string_view key) const {
    Result<Expression> parsed = Expression::parse(text(row, key));
    if (!parsed) return wrong(row, fmt::format("{}: {}", key, parsed.error().what));
    return parsed;
  }

  Status fact(const toml::table& row) {
    const auto type = fact_type_named(text(row, "type"));
    if (!type) return wrong(row, fmt::format("there is no type \"{}\"", text(row, "type")));
    for (const std::string& fact_name : texts(row, "name")) {
      if (book_.fact(fact_name) != nullptr) return wrong(row, fmt::format("the fact \"{}\" stands twice", fact_name));
      book_.facts_.push_back(std::make_unique<FactKind>(FactKind{
          fact_name, *type, row["list"].value_or(false), row["repeats"].value_or(false), row["once"].value_or(false)}));
    }
    return {};
  }

  // A space of the source matches any run of blanks and line breaks.
  static std::string with_flexible_spaces(std::string_view source) {
    std::string regex;
    bool in_class = false;
    for (std::size_t i = 0; i < source.size(); ++i) {
      const char c = source[i];
      if (c == '\\' && i + 1 < source.size()) {
        regex += c;
        regex += source[++i];
        continue;
      }
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      if (c != ' ' || in_class) {
        regex += c;
        continue;
      }
      const bool counted =
          i + 1 < source.size() && std::string_view("*+?{").find(source[i + 1]) != std::string_view::npos;
      regex += counted ? "[ \\t\\n]" : "[ \\t\\n]+";
    }
    return regex;
  }
  static std::unique_ptr<re2::RE2> compile(const std::string& source, bool ignore_case) {
    re2::RE2::Options options;
    options.set_encoding(re2::RE2::Options::EncodingLatin1);  // logs hold any bytes
    options.set_log_errors(false);
    options.set_case_sensitive(!ignore_case);
    options.set_max_mem(4 << 20);
    return std::make_unique<re2::RE2>(with_flexible_spaces(source), options);
  }

  static Reading reading_named(std::string_view suffix) {
    if (suffix == "__mib") return Reading::mebibytes;
    if (suffix == "__gib") return Reading::gibibytes;
    if (suffix == "__cudnn") return Reading::cudnn;
    if (suffix == "__cuda") return Reading::cuda;
    if (suffix == "__nvidia") return Reading::nvidia;
    if (suffix == "__numpy") return Reading::numpy;
    if (suffix == "__lower") return Reading::lower_case;
    if (suffix == "__tag") return Reading::python_tag;
    if (suffix == "__package") return Reading::package;
    return Reading::plain;
  }

  Result<Regex> regex(const toml::table& row, const std::string& source, bool ignore_case) {
    Regex regex{compile(source, ignore_case), {}};
    if (!regex.re->ok()) return wrong(row, fmt::format("regex: {}", regex.re->error()));
    for (const auto& [name, group] : regex.re->NamedCapturingGroups()) {
      const FactKind* kind = book_.fact(std::string_view(name).substr(0, name.find("__")));
      if (kind == nullptr) return wrong(row, fmt::format("the regex captures \"{}\", which is no fact", name));
      regex.captures.push_back({group, kind, reading_named(std::string_view(name).substr(kind->name.size()))});
    }
    std::sort(regex.captures.begin(), regex.captures.end(),
              [](const Capture& a, const Capture& b) { return a.group < b.group; });
    return regex;
  }

  Status pattern(const toml::table& row) {
    Pattern pattern;
    pattern.id = text(row, "id");
    pattern.symptoms = texts(row, "symptom");
    if (pattern.symptoms.empty()) pattern.symptoms.push_back(pattern.id);
    pattern.anchors = texts(row, "anchors");
    pattern.before = row["before"].value_or(0);
    pattern.after = row["after"].value_or(2);
    if (pattern.id.empty()) return wrong(row, "a pattern needs an id");
    if (pattern.anchors.empty()) return wrong(row, fmt::format("pattern {}: needs anchors", pattern.id));
    if (pattern.before < 0 || pattern.before > 8 || pattern.after < 0 || pattern.after > 16)
      return wrong(row, fmt::format("pattern {}: before is 0 to 8, after 0 to 16", pattern.id));
    const bool ignore_case = !row["case"].value_or(true);
    for (const std::string& source : texts(row, "regex"))
      pattern.regexes.push_back(GW_TRY(regex(row, source, ignore_case)));
    if (pattern.regexes.empty()) return wrong(row, fmt::format("pattern {}: needs a regex", pattern.id));
    if (const std::string source = text(row, "unless"); !source.empty()) {
      pattern.unless = compile(source, ignore_case);
      if (!pattern.unless->ok()) return wrong(row, fmt::format("unless: {}", pattern.unless->error()));
    }
    if (const toml::table* set = row["set"].as_table())
      for (const auto& [key, value] : *set) {
        const FactKind* kind = book_.fact(key.str());
        if (kind == nullptr) return wrong(row, fmt::format("\"{}\" is no fact", key.str()));
        const auto normal = normalise(kind->type, value.value_or(std::string()));
        if (!normal) return wrong(row, fmt::format("{}: not a value of its type", key.str()));
        pattern.set.emplace_back(kind, *normal);
      }
    book_.patterns_.push_back(std::move(pattern));
    return {};
  }

  Status computed(const toml::table& row) {
    const FactKind* kind = book_.fact(text(row, "fact"));
    if (kind == nullptr) return wrong(row, fmt::format("\"{}\" is no fact", text(row, "fact")));
    Computed computed{kind, GW_TRY(expression(row, "value")), GW_TRY(expression(row, "when"))};
    book_.computed_.push_back(std::move(computed));
    return {};
  }

  Result<RuleFix> fix(const toml::table& row) const {
    RuleFix fix;
    fix.text = {text(row, "en"), text(row, "zh")};
    fix.commands = texts(row, "commands");
    fix.reboot = row["reboot"].value_or(false);
    fix.safe = row["safe"].value_or(false);
    fix.url = text(row, "url");
    fix.when = GW_TRY(expression(row, "when"));
    return fix;
  }

  Status rule(const toml::table& row) {
    Rule rule;
    rule.kind = text(row, "kind");
    rule.group = text(row, "group");
    const auto scope = scope_named(text(row, "scope"));
    const auto severity = severity_named(text(row, "severity"));
    if (rule.kind.empty() || !scope || !severity) return wrong(row, "a rule needs kind, scope and severity");
    rule.scope = *scope;
    rule.severity = *severity;
    rule.confidence = row["confidence"].value_or(0.9);
    rule.when = GW_TRY(expression(row, "when"));
    if (rule.when.empty()) return wrong(row, fmt::format("rule {}: needs a condition", rule.kind));
    rule.evidence = texts(row, "evidence");
    if (rule.evidence.empty()) rule.evidence.assign(rule.when.names().begin(), rule.when.names().end());
    rule.dropped_if = texts(row, "dropped_if");
    rule.consequence_of = texts(row, "consequence_of");
    rule.title = words(row, "title");
    rule.cause = words(row, "cause");
    rule.hedge = words(row, "hedge");
    const toml::array* fixes = row["fixes"].as_array();
    for (std::size_t i = 0; fixes != nullptr && i < fixes->size(); ++i)
      if (const toml::table* table = fixes->get(i)->as_table()) rule.fixes.push_back(GW_TRY(fix(*table)));
    book_.rules_.push_back(std::move(rule));
    return {};
  }

  // One number's rule; the row of code 0 gives one to every number that has none yet, so it stands last.
  Status xid(const toml::table& row) {
    const std::int64_t code = row["code"].value_or(std::int64_t{-1});
    const auto scope = scope_named(text(row, "scope"));
    const auto severity = severity_named(text(row, "severity"));
    if (code < 0 || code > kLargestXid || !scope || !severity)
      return wrong(row, "an xid needs code, scope and severity");
    if (code > 0) return add_xid(row, code, *scope, *severity);
    for (std::int64_t other = 1; other <= kLargestXid; ++other) {
      const std::string kind = fmt::format("xid.{}", other);
      const bool known =
          std::any_of(book_.rules_.begin(), book_.rules_.end(), [&](const Rule& rule) { return rule.kind == kind; });
      if (!known) GW_TRY(add_xid(row, other, *scope, *severity));
    }
    return {};
  }

  Status add_xid(const toml::table& row, std::int64_t code, Scope scope, Severity severity) {
    Rule rule;
    rule.kind = fmt::format("xid.{}", code);
    rule.scope = scope;
    rule.severity = severity;
    const std::string symptom = fmt::format("xid_{}", code);
    rule.when = GW_TRY(Expression::parse(symptom));
    rule.evidence = {symptom};
    for (const std::string& other : texts(row, "follows"))
      rule.consequence_of.push_back("xid." + (other == "any" ? "*" : other));
    rule.title = {fmt::format("Xid {}: {}", code, text(row, "en")), fmt::format("Xid {}：{}", code, text(row, "zh"))};
    rule.cause = {"The kernel's driver reported it[ for GPU {pci_address}].",
                  "由内核驱动报告[（GPU {pci_address}）]。"};
    RuleFix fix;
    fix.text = {text(row, "action_en"), text(row, "action_zh")};
    fix.url = "https://docs.nvidia.com/deploy/xid-errors/";
    rule.fixes.push_back(std::move(fix));
    book_.rules_.push_back(std::move(rule));
    return {};
  }

  Status benign(const toml::table& row) {
    const std::string symptom = text(row, "pattern");
    if (symptom.empty()) return wrong(row, "a benign row needs a pattern");
    book_.benign_[symptom] = {text(row, "en"), text(row, "zh")};
    return {};
  }

  RuleBook& book_;
  const std::string& name_;
};

void RuleBook::index_anchors() {
  anchors_ = {};
  anchors_.each = std::make_unique<re2::RE2::Set>(search_options(), re2::RE2::UNANCHORED);
  std::string any;
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    for (const std::string& anchor : patterns_[i].anchors) {
      const std::string regex = anchor_regex(anchor);
      any += (any.empty() ? "" : "|") + regex;
      anchors_.each->Add(regex, nullptr);
      anchors_.pattern.push_back(i);
    }
  anchors_.each->Compile();
  anchors_.any = std::make_unique<re2::RE2>(any, search_options());
}

const FactKind* RuleBook::fact(std::string_view name) const {
  for (const auto& kind : facts_)
    if (kind->name == name) return kind.get();
  return nullptr;
}

Status RuleBook::add(std::string_view text, const std::string& name) {
  try {
    return RuleFile(*this, name).read(toml::parse(text, name));
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::bad_input, {name, error.source().begin.line, std::nullopt},
                   std::string(error.description()));
  }
}

Result<RuleBook> RuleBook::from_toml(std::string_view text, const std::string& name) {
  RuleBook book;
  GW_TRY(book.add(text, name));
  book.index_anchors();
  return book;
}

namespace {

Status add_built_in(const std::function<Status(std::string_view, const char*)>& add) {
  for (const char* part :
       {"errors.toml", "errors_oom.toml", "errors_driver.toml", "errors_library.toml", "errors_cluster.toml",
        "errors_kernel.toml", "errors_run.toml", "errors_job.toml", "errors_program.toml", "xid.toml"})
    if (const auto text = embedded_data(part)) GW_TRY(add(*text, part));
  return {};
}

}  // namespace

Result<RuleBook> RuleBook::load() {
  const auto built_in = [](RuleBook& book) {
    return add_built_in([&](std::string_view text, const char* part) { return book.add(text, part); });
  };
  RuleBook book;
  GW_TRY(built_in(book));
  const std::string own = config_directory() + "/errors.toml";
  if (!config_directory().empty() && path_exists(own)) {
    const auto text = read_file(own, 4 << 20);
    const Status added = text ? book.add(*text, own) : Status(tl::unexpected(text.error()));
    if (!added) {
      // What was read of it before the fault must not stay.
      book = RuleBook();
      GW_TRY(built_in(book));
      book.notes_.push_back(fmt::format("{}; your own rules are left out", added.error().message()));
    }
  }
  book.index_anchors();
  return book;
}

std::vector<std::string> RuleBook::lint() const {
  std::vector<std::string> faults;
  std::set<std::string> symptoms, used;
  for (const Pattern& pattern : patterns_) {
    for (const std::string& symptom : pattern.symptoms) {
      if (symptom.find('{') != std::string::npos) continue;
      symptoms.insert(symptom);
      if (fact(symptom) != nullptr) faults.push_back(fmt::format("\"{}\" is a symptom and a fact", symptom));
    }
    for (const std::string& anchor : pattern.anchors)
      if (anchor.size() < 3 || anchor.size() > 64)
        faults.push_back(fmt::format("pattern {}: the anchor \"{}\" is not of 3 to 64 characters", pattern.id, anchor));
  }
  const auto check = [&](const Expression& expression, const std::string& owner) {
    for (const std::string& name : expression.names()) {
      used.insert(name);
      if (!symptoms.contains(name) && fact(name) == nullptr && !name.starts_with("xid_"))
        faults.push_back(fmt::format("{}: \"{}\" is neither a symptom nor a fact", owner, name));
    }
  };
  for (const Computed& computed : computed_) {
    check(computed.value, "computed " + computed.fact->name);
    check(computed.when, "computed " + computed.fact->name);
  }
  for (const Rule& rule : rules_) {
    check(rule.when, "rule " + rule.kind);
    for (const RuleFix& fix : rule.fixes) check(fix.when, "rule " + rule.kind);
    used.insert(rule.evidence.begin(), rule.evidence.end());
    if (rule.cause.en.empty() || rule.title.en.empty())
      faults.push_back(fmt::format("rule {}: no title or cause", rule.kind));
    if (rule.cause.zh.empty() || rule.title.zh.empty())
      faults.push_back(fmt::format("rule {}: no Chinese title or cause", rule.kind));
  }
  for (const auto& [symptom, words] : benign_) {
    used.insert(symptom);
    if (!symptoms.contains(symptom)) faults.push_back(fmt::format("benign {}: there is no such pattern", symptom));
    if (words.zh.empty()) faults.push_back(fmt::format("benign {}: no Chinese text", symptom));
  }
  for (const Pattern& pattern : patterns_) {
    const bool gives_facts = !pattern.set.empty() || std::any_of(pattern.regexes.begin(), pattern.regexes.end(),
                                                                 [](const Regex& r) { return !r.captures.empty(); });
    const bool is_used = std::any_of(pattern.symptoms.begin(), pattern.symptoms.end(),
                                     [&](const std::string& symptom) { return used.contains(symptom); });
    if (!gives_facts && !is_used && pattern.id != "alarm" && pattern.id != "exception_said")
      faults.push_back(fmt::format("pattern {}: no rule uses it", pattern.id));
  }
  return faults;
}

}  // namespace gpuwright::explain

#include "cli/explain_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

constexpr int kIndent = 4;

Json to_json(const Evidence& evidence) {
  return Json()
      .set("source", evidence.source)
      .set("line", evidence.line)
      .set("text", evidence.text)
      .set("count", evidence.count);
}

Tone tone_of(const Finding& finding) {
  if (finding.role == Role::consequence) return Tone::dim;
  switch (finding.severity) {
    case Severity::fatal:
      return Tone::bad;
    case Severity::warning:
      return Tone::warning;
    default:
      return Tone::good;
  }
}

std::string place_of(const Evidence& evidence, bool several_files) {
  std::string place = several_files ? evidence.source + ":" : "";
  place += fmt::format("{}", evidence.line);
  return place;
}

void print_evidence(const Finding& finding, bool several_files, const Console& console) {
  for (const Evidence& evidence : finding.evidence) {
    std::string text = printable(trim(evidence.text));
    const bool chinese = console.language == Language::chinese;
    const std::string place =
        fmt::format(fmt::runtime(chinese ? "    第 {} 行：" : "    line {}: "), place_of(evidence, several_files));
    const std::string times = evidence.count > 1 ? fmt::format(fmt::runtime(chinese ? "（{} 次）" : "  ({} times)"),
                                                               with_thousands(evidence.count))
                                                 : "";
    if (!console.wide)
      text = shorten(text, std::max(20, console.width - display_width(place) - display_width(times)), console.unicode);
    console.out << paint(console, Tone::dim, place) << text << paint(console, Tone::dim, times) << '\n';
  }
}

void print_fixes(const Finding& finding, const Console& console) {
  int number = 0;
  for (const Fix& fix : finding.fixes) {
    std::string text = fmt::format("    {}. {}", ++number, fix.text);
    if (fix.reboot) text += console.language == Language::chinese ? "（需要重启）" : " (needs a restart)";
    console.out << wrap(text, console.width, 7) << '\n';
    for (const std::string& command : fix.commands)
      console.out << "         " << paint(console, Tone::name, printable(command)) << '\n';
    if (!fix.url.empty()) console.out << "         " << fix.url << '\n';
  }
}

void print_finding(const Finding& finding, bool several_files, const Console& console) {
  const bool chinese = console.language == Language::chinese;
  std::string head = finding.title;
  if (finding.role == Role::consequence) head = (chinese ? "其后果：" : "In consequence: ") + head;
  console.out << paint(console, tone_of(finding), wrap(head, console.width, 2)) << '\n';
  if (finding.role == Role::cause) console.out << wrap("    " + finding.cause, console.width, kIndent) << '\n';
  print_evidence(finding, several_files, console);
  if (finding.role == Role::cause) print_fixes(finding, console);
  if (finding.kind == "unknown" || finding.kind == "healthy" || finding.kind == "benign") return;
  console.out << paint(console, Tone::dim,
                       fmt::format("    {} ({}, {}{})", finding.kind, to_string(finding.severity),
                                   to_string(finding.scope), finding.confidence < 0.75 ? ", not certain" : ""))
              << '\n';
}

// What a training run prints at every step: --json has it.
bool is_series(const FactValue& fact) {
  return fact.name == "loss" || fact.name == "grad_norm";
}

// Of long lists the first few: --json has them all.
std::string for_people(const FactValue& fact) {
  constexpr std::size_t kMostShown = 12;
  if (fact.name.ends_with("_bytes") && fact.items.size() == 1)
    return to_string(Bytes{to_integer(fact.items.front()).value_or(0)});
  if (fact.items.size() <= kMostShown) return printable(fmt::format("{}", fmt::join(fact.items, ", ")));
  const auto end = fact.items.begin() + kMostShown;
  return printable(fmt::format("{}, ... ({} in all)", fmt::join(fact.items.begin(), end, ", "), fact.items.size()));
}

}  // namespace

Json to_json(const FactValue& fact) {
  const auto value = [&](const std::string& item) -> Json {
    if (!fact.number) return item;
    if (const auto whole = to_integer(item)) return *whole;
    return to_number(item).value_or(0);
  };
  if (!fact.list) return value(fact.items.front());
  Json list = Json::array();
  for (const std::string& item : fact.items) list.push(value(item));
  return list;
}

bool is_bad(const explain::Explanation& explanation) {
  return std::any_of(explanation.findings.begin(), explanation.findings.end(), [](const Finding& finding) {
    return finding.severity >= Severity::warning || finding.kind == "unknown";
  });
}

Json to_json(const Finding& finding) {
  Json evidence = Json::array(), fixes = Json::array();
  for (const Evidence& one : finding.evidence) evidence.push(to_json(one));
  for (const Fix& fix : finding.fixes) {
    Json commands = Json::array();
    for (const std::string& command : fix.commands) commands.push(command);
    fixes.push(Json()
                   .set("text", fix.text)
                   .set("commands", std::move(commands))
                   .set("reboot", fix.reboot)
                   .set("safe", fix.safe)
                   .set("url", fix.url.empty() ? Json() : Json(fix.url)));
  }
  return Json()
      .set("id", finding.id)
      .set("kind", finding.kind)
      .set("scope", to_string(finding.scope))
      .set("severity", to_string(finding.severity))
      .set("role", finding.role == Role::cause ? "cause" : "consequence")
      .set("confidence", finding.confidence)
      .set("title", finding.title)
      .set("cause", finding.cause)
      .set("evidence", std::move(evidence))
      .set("fixes", std::move(fixes));
}

Json to_json(const explain::Explanation& explanation, const explain::LogInput& input) {
  Json files = Json::array(), findings = Json::array(), facts = Json::object(), benign = Json::array(),
       notes = Json::array();
  for (const std::string& file : input.files) files.push(file);
  for (const std::string& note : input.notes) notes.push(note);
  for (const Finding& finding : explanation.findings) findings.push(to_json(finding));
  for (const FactValue& fact : explanation.facts) facts.set(fact.name, to_json(fact));
  for (const explain::Benign& line : explanation.benign)
    benign.push(Json().set("text", line.text).set("count", line.count).set("evidence", to_json(line.evidence.front())));
  return Json()
      .set("schema", "gpuwright.explain/1")
      .set("verdict", explain::verdict(explanation))
      .set("files", std::move(files))
      .set("lines", explanation.lines)
      .set("bytes", explanation.bytes)
      .set("findings", std::move(findings))
      .set("facts", std::move(facts))
      .set("benign", std::move(benign))
      .set("notes", std::move(notes));
}

void print_explanation(const explain::Explanation& explanation, const explain::LogInput& input,
                       const Console& console) {
  const bool chinese = console.language == Language::chinese;
  for (const std::string& note : input.notes) console.err << "gpuwright: " << printable(note) << '\n';
  for (const Finding& finding : explanation.findings) {
    if (&finding != &explanation.findings.front()) console.out << '\n';
    print_finding(finding, input.files.size() > 1, console);
  }
  if (!explanation.benign.empty()) {
    print_heading(console, chinese ? "无害的行" : "Harmless lines");
    for (const explain::Benign& line : explanation.benign)
      console.out << wrap(fmt::format(fmt::runtime(chinese ? "  第 {} 行{}：{}" : "  line {}{}: {}"),
                                      line.evidence.front().line,
                                      line.count > 1 ? fmt::format(fmt::runtime(chinese ? "（{} 次）" : " ({} times)"),
                                                                   with_thousands(line.count))
                                                     : "",
                                      line.text),
                          console.width, kIndent)
                  << '\n';
  }
  if (std::all_of(explanation.facts.begin(), explanation.facts.end(), is_series)) return;
  print_heading(console, chinese ? "日志中的事实" : "Facts in the log");
  Table table({{""}, {"", Align::left, true}}, 2);
  for (const FactValue& fact : explanation.facts)
    if (!is_series(fact)) table.add({fact.name, for_people(fact)});
  table.print(console);
}

}  // namespace gpuwright::cli

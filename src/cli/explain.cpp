// gpuwright explain: a failing log in; cause, evidence and the change out.
#include "explain/explain.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/stream.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "cli/commands.h"
#include "cli/explain_answer.h"
#include "cli/explain_fit.h"
#include "cli/style.h"
#include "explain/input.h"
#include "explain/lookup.h"

namespace gpuwright::cli {
namespace {

int list_rules(const explain::RuleBook& book, const Console& console) {
  const std::string language = console.language == Language::chinese ? "zh" : "en";
  Json list = Json::array();
  std::string last;
  for (const explain::Rule& rule : book.rules()) {
    if (console.json) {
      list.push(Json()
                    .set("kind", rule.kind)
                    .set("scope", to_string(rule.scope))
                    .set("severity", to_string(rule.severity))
                    .set("title", rule.title.in(language)));
      continue;
    }
    // Numbers without a row of their own say the same.
    if (rule.kind.starts_with("xid.") && rule.title.en.find("not known here") != std::string::npos) continue;
    console.out << fmt::format("{:<28} {:<9} {:<8} ", rule.kind, to_string(rule.scope), to_string(rule.severity))
                << rule.title.in(language) << '\n';
  }
  if (console.json)
    console.out << Json().set("schema", "gpuwright.explain-rules/1").set("rules", std::move(list)).dump() << '\n';
  return kDone;
}

int lint_rules(const explain::RuleBook& book, const Console& console) {
  const std::vector<std::string> faults = book.lint();
  for (const std::string& fault : faults) console.out << printable(fault) << '\n';
  console.out << fmt::format("{} patterns, {} rules: {}\n", book.patterns().size(), book.rules().size(),
                             faults.empty() ? "nothing to complain about" : fmt::format("{} faults", faults.size()));
  return faults.empty() ? kDone : kAnswerIsNo;
}

volatile sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  interrupted = 1;
}

// Progress on a terminal, for logs that take a while.
explain::Progress progress_to(const Console& console) {
  if (!console.terminal) return [](std::int64_t, std::int64_t) { return !interrupted; };
  const auto begin = std::chrono::steady_clock::now();
  return [&console, begin, last = begin](std::int64_t read, std::int64_t size) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - begin > std::chrono::seconds(1) && now - last > std::chrono::milliseconds(200)) {
      last = now;
      console.err << fmt::format("\r{} read{}", to_string(Bytes{read}),
                                 size > 0 ? fmt::format(", {} %", 100 * read / size) : "")
                  << "\x1b[K" << std::flush;
    }
    return !interrupted;
  };
}

// A file that grows may be cut to nothing or replaced by another of its name (logrotate): then it is read anew.
class Followed {
 public:
  explicit Followed(const std::string& path) : path_(path) { note(); }
  bool regular() const { return regular_; }
  bool replaced(std::int64_t read) {
    struct stat now = {};
    if (!regular_ || stat(path_.c_str(), &now) != 0) return false;
    return now.st_ino != inode_ || now.st_dev != device_ || now.st_size < read;
  }
  void note() {
    struct stat now = {};
    regular_ = path_ != "-" && stat(path_.c_str(), &now) == 0 && S_ISREG(now.st_mode);
    inode_ = now.st_ino;
    device_ = now.st_dev;
  }

 private:
  std::string path_;
  bool regular_ = false;
  ino_t inode_ = 0;
  dev_t device_ = 0;
};

// --follow: reads what is appended, and answers whenever the findings change, until Ctrl-C.
Result<int> follow(const std::string& path, const explain::RuleBook& book, const explain::ExplainOptions& options,
                   const Console& console) {
  Followed file(path);
  InputStream stream = GW_TRY(InputStream::open(path));
  auto scanner = std::make_unique<explain::Scanner>(book);
  scanner->begin(path);
  std::string piece(256 << 10, '\0'), last;
  const explain::LogInput input{{path}, {}};
  while (!interrupted) {
    const std::size_t count = GW_TRY(stream.read(piece.data(), piece.size()));
    if (count > 0) {
      scanner->feed(std::string_view(piece.data(), count));
      continue;
    }
    scanner->look();
    const explain::Explanation explanation = explain::explain(book, scanner->scan(), options);
    if (std::string now = explain::verdict(explanation); now != last && explanation.bytes > 0) {
      last = std::move(now);
      if (console.json)
        console.out << to_json(explanation, input).dump(0) << '\n' << std::flush;
      else
        print_explanation(explanation, input, console);
      console.out.flush();
    }
    if (!file.regular() && stream.size() == 0) break;  // a pipe that has ended
    if (file.replaced(stream.bytes_read())) {
      auto again = InputStream::open(path);
      if (again) {
        console.err << "gpuwright: " << printable(path) << ": a new file or one that was cut; reading it anew\n";
        stream = std::move(*again);
        scanner = std::make_unique<explain::Scanner>(book);
        scanner->begin(path);
        file.note();
        last.clear();
        continue;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return interrupted ? 128 + SIGINT : kDone;
}

Result<int> run_explain(const Arguments& arguments, const Console& console) {
  const explain::RuleBook book = GW_TRY(explain::RuleBook::load());
  for (const std::string& note : book.notes()) console.err << "gpuwright: " << printable(note) << '\n';
  if (arguments.has("--list")) return list_rules(book, console);
  if (arguments.has("--lint-rules")) return book.notes().empty() ? lint_rules(book, console) : kAnswerIsNo;
  const std::string path = arguments.value("LOG").value_or("-");
  explain::ExplainOptions options;
  options.language = console.language == Language::chinese ? "zh" : "en";
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  options.lookup = explain::lookup_in(catalog);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  if (arguments.has("--follow")) return follow(path, book, options, console);

  explain::Scanner scanner(book);
  const explain::LogInput input = GW_TRY(explain::read_logs(path, scanner, progress_to(console)));
  if (console.terminal) console.err << "\r\x1b[K" << std::flush;
  explain::Explanation explanation = explain::explain(book, scanner.scan(), options);
  GW_TRY(add_answers_of_fit(arguments.value("--fit").value_or(""), path, catalog, explanation, console));
  if (console.json)
    console.out << to_json(explanation, input).dump() << '\n';
  else
    print_explanation(explanation, input, console);
  if (interrupted) return 128 + SIGINT;
  return is_bad(explanation) ? kAnswerIsNo : kDone;
}

}  // namespace

Command explain_command() {
  Command command;
  command.name = "explain";
  command.summary = "Why did it fail, and what exactly to change";
  command.description =
      "Reads the log of a run that failed (training, serving, a build, a container, a cluster, the kernel) and tells "
      "the "
      "cause, the lines that show it, and the change that helps. Causes come before their consequences; lines that "
      "only look alarming are named as harmless. When the text does not show a cause, that is the answer.\n\n"
      "Logs of any size are read once, also compressed ones (gzip). The files of a folder, one a rank, are taken as "
      "one "
      "incident. The rules are data: ~/.config/gpuwright/errors.toml adds to them.";
  command.arguments = {{"LOG", "file, folder of files, or - for standard input (the default)", false, false, true}};
  command.options = {
      {"--fit", "", "WORDS",
       "the job in the words of gpuwright fit (model, settings, GPU), for what the log itself does not tell: what "
       "ran out of memory is answered with settings that fit"},
      {"--follow", "-f", "", "go on reading what is appended, and answer when the findings change"},
      {"--list", "", "", "list what can be found"},
      {"--lint-rules", "", "", "check the rules, one's own included, for mistakes"},
  };
  command.examples = {
      {"gpuwright explain train.log", "why a run failed"},
      {"gpuwright explain train.log --fit 'qwen2.5-7b --train lora --batch 8 --sequence 4096'",
       "out of memory: what the job needs, and what fits"},
      {"sudo dmesg -T | gpuwright explain", "what the kernel says of the GPUs"},
      {"gpuwright explain logs/ --json", "a folder of per-rank logs, for a program"},
      {"kubectl describe pod trainer | gpuwright explain --lang zh", "a pod that does not start, in Chinese"},
  };
  command.exit_notes = {"0  nothing is wrong", "1  a finding of warning or above, or a failure that cannot be told"};
  command.run = run_explain;
  return command;
}

}  // namespace gpuwright::cli

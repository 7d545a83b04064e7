// A command of gpuwright is data: its words, options, examples and exit codes are declared once, and --help, the man
// page, the shell completions and the parser all come from that declaration.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/language.h"

namespace gpuwright::cli {

// Exit codes, the same for every command.
enum ExitCode : int {
  kDone = 0,
  kAnswerIsNo = 1,  // does not fit; a finding of warning or above
  kUsage = 2,       // wrong words or bad input
  kMissing = 3,     // something needed is missing or unreachable
  kInternal = 4,
};
int exit_code_for(ErrorCode code);

struct Option {
  std::string name = {};        // "--context"
  std::string short_name = {};  // "-c", or empty
  std::string value = {};       // "TOKENS"; empty for a flag
  std::string help = {};
  std::vector<std::string> choices = {};  // completed and checked when not empty
  std::string default_text = {};          // shown in help; empty when there is none
  bool repeated = false;
  bool optional_value = false;  // --simulate [SCENARIO]
  std::string group = {};       // heading in --help; empty = "Options"
  // Other long names for the same thing: what the engines call it, so that a server's own words are understood.
  std::vector<std::string> aliases = {};
  // Values beside `choices` that are good, too. Of an option whose value is optional (--watch [SECONDS]) a following
  // word is its value when it is one of the choices or accepted here.
  bool (*accepts)(std::string_view) = nullptr;
};

struct Argument {
  std::string name = {};  // "MODEL"
  std::string help = {};
  bool required = true;
  bool repeated = false;
  bool is_file = false;  // completes file names
};

struct Example {
  std::string command = {};  // "gpuwright fit llama-3.1-8b --gpu 4090"
  std::string what = {};
};

// What the user wrote, by option name ("--context") or argument name ("MODEL").
class Arguments {
 public:
  bool has(std::string_view name) const;
  std::optional<std::string> value(std::string_view name) const;  // the last one given
  std::vector<std::string> values(std::string_view name) const;
  // bad_input naming the option when the text is no whole number within [low, high]. "8k" is 8192, as in "128k
  // context".
  Result<std::optional<std::int64_t>> integer(std::string_view name, std::int64_t low, std::int64_t high) const;
  Result<std::optional<double>> number(std::string_view name, double low, double high) const;

  void add(std::string_view name, std::string value);
  void mark(std::string_view name);  // given, without a value
  void remove(std::string_view name);

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// Where answers go. Commands never touch std::cout themselves, so that tests can read what they print.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool color = false;     // out is a terminal, NO_COLOR is not set, no --no-color
  bool terminal = false;  // err is a terminal: progress may be shown there
  int width = 80;         // columns of out
  bool json = false;      // --json
  bool wide = false;      // out is a file or a pipe: tables may run over `width` instead of being cut
  bool unicode = false;   // the locale is UTF-8: block characters may be used
  Language language = Language::english;
  bool screen = false;  // out is a terminal that can be redrawn in place (base/screen.h)
};

struct Command {
  std::string name;         // "gpus"; "gpus show" for a subcommand
  std::string summary;      // one line, no full stop
  std::string description;  // paragraphs
  std::vector<Argument> arguments;
  std::vector<Option> options;
  std::vector<Example> examples;
  std::vector<std::string> exit_notes;  // what 0 and 1 mean here, when it is more than the usual
  // Prints the answer and gives the exit code; an error is printed by the caller as "gpuwright: ...".
  std::function<Result<int>(const Arguments&, const Console&)> run;
  bool hidden = false;  // not listed: for building and packaging
  // The first word that is no option begins a command line of somebody else: options behind it are not ours.
  bool takes_command_line = false;
  int own_failure = 0;  // exit code of every error, where the usual ones would be taken for the command line's own
};

// Every command, in the order of the help page. A new command is one file with a function `Command x_command()` and
// a line in commands.cpp.
const std::vector<Command>& commands();

// What every command takes, before or after its name: --json, --no-color, --lang, --help, --version.
const std::vector<Option>& global_options();

std::string_view version();       // "0.1.0"
std::string_view version_date();  // "2026-11-30"

// The whole program but for main's streams: finds the command, runs it, and prints its error, if any, as
// "gpuwright: ..." on err and, with --json, as an object of schema gpuwright.error/1 on out.
int run(const std::vector<std::string>& words, const Console& console);

}  // namespace gpuwright::cli

// Options of a command line, each with the place it stands at, for the readers of `vllm serve` and `llama-server`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fit/emit/read.h"
#include "fit/emit/shell_words.h"

namespace gpuwright::fit {

struct CommandOption {
  std::string name;                  // as written, "-" and "--" included; empty for a word that is no option
  std::optional<std::string> value;  // of --name=value only
  std::int64_t line = 1;
};

// Walks the words; the caller asks for the value of an option that has one.
class CommandReader {
 public:
  CommandReader(std::vector<ShellWord> words, std::string file) : words_(std::move(words)), file_(std::move(file)) {}

  std::optional<CommandOption> next();
  Result<std::string> value(const CommandOption& option);
  Result<std::int64_t> integer(const CommandOption& option, std::int64_t least, std::int64_t most);
  Result<double> number(const CommandOption& option, double least, double most);
  // The next word when it is no option; not consumed unless `accepted`.
  const std::string* peek() const { return at_ < words_.size() ? &words_[at_].text : nullptr; }
  void skip() { ++at_; }
  // An option that is not known: noted, and the word behind it is taken for its value unless it is an option itself.
  void note_unknown(const CommandOption& option, std::vector<ConfigNote>& notes);
  tl::unexpected<Error> fault(const CommandOption& option, std::string_view what, std::string hint = {}) const;

 private:
  std::vector<ShellWord> words_;
  std::string file_;
  std::size_t at_ = 0;
};

bool looks_like_option(std::string_view word);

// Words behind "vllm serve" and "llama-server".
Status read_vllm(CommandReader& words, Job& job, ReadConfig& into);
Status read_llama_server(CommandReader& words, Job& job, ReadConfig& into);

// Whether the text is a command line of either; then the reading.
Result<std::optional<ReadConfig>> read_command(const ConfigText& text, const Job& base);

}  // namespace gpuwright::fit

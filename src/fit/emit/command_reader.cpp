#include "fit/emit/command_reader.h"

#include <fmt/format.h>

#include <cctype>

#include "base/text.h"

namespace gpuwright::fit {
namespace {

enum class Program : std::uint8_t { none, vllm, llama_server };

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

// NAME=value before the command sets a variable for it.
bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == word.npos) return false;
  for (const char letter : word.substr(0, equals))
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '_') return false;
  return true;
}

// How many words name the program; 0 when they name none that is read. vLLM's image runs `vllm serve` on what stands
// behind it.
std::pair<Program, std::size_t> program_of(const std::vector<ShellWord>& words, std::size_t at) {
  const auto word = [&](std::size_t index) {
    return at + index < words.size() ? std::string_view(words[at + index].text) : "";
  };
  const std::string_view name = base_name(word(0));
  if (name == "vllm" && word(1) == "serve") return {Program::vllm, 2};
  if (name == "llama-server" || name == "llama-cli") return {Program::llama_server, 1};
  const bool python = name.substr(0, 6) == "python" && word(1) == "-m";
  if (python && word(2) == "vllm.entrypoints.openai.api_server") return {Program::vllm, 3};
  if (name == "docker" || name == "podman")
    for (std::size_t i = at; i < words.size(); ++i)
      if (words[i].text.find("vllm/vllm-openai") != std::string::npos) return {Program::vllm, i - at + 1};
  return {Program::none, 0};
}

// Cheap: most configuration files are no commands, and are not to be refused for a '$'.
bool may_be_command(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  return head.find("vllm") != head.npos || head.find("llama-server") != head.npos ||
         head.find("llama-cli") != head.npos;
}

// Of a script, the command that is read: the first line that runs one of the programs, with the lines that continue it.
// The lines before it are never looked into.
struct Excerpt {
  std::string_view text;
  std::int64_t lines_before = 0;
};
bool runs_program(std::string_view line) {
  const std::string_view content = trim(line);
  if (content.empty() || content.front() == '#') return false;
  const auto words = split(content, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = base_name(words[i]);
    if (name == "llama-server" || name == "llama-cli" || name == "docker" || name == "podman") return true;
    if (name == "vllm" && i + 1 < words.size() && words[i + 1] == "serve") return true;
    if (name.substr(0, 6) == "python" && content.find("vllm.entrypoints") != content.npos) return true;
    if (!is_assignment(words[i]) && words[i] != "exec" && words[i] != "env" && words[i] != "nohup") return false;
  }
  return false;
}

std::optional<Excerpt> command_in(std::string_view text) {
  std::size_t at = 0;
  for (std::int64_t line = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (runs_program(text.substr(at, end - at))) return Excerpt{text.substr(at), line};
    at = end + 1;
  }
  return std::nullopt;
}

bool starts_as_file(std::string_view text) {
  const std::string_view body = trim(text);
  if (body.empty() || body.front() == '{') return true;
  for (const std::string_view line : split(body, '\n')) {
    const std::string_view content = trim(line);
    if (content.empty() || content.front() == '#') continue;
    const std::string_view first = content.substr(0, content.find(' '));
    return content == "---" || first.back() == ':';
  }
  return true;
}

}  // namespace

bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && !to_number(word);
}

std::optional<CommandOption> CommandReader::next() {
  if (at_ >= words_.size()) return std::nullopt;
  const ShellWord& word = words_[at_++];
  CommandOption option;
  option.line = word.line;
  if (!looks_like_option(word.text)) {
    option.value = word.text;
    return option;
  }
  const std::size_t equals = word.text.find('=');
  option.name = word.text.substr(0, equals);
  if (equals != std::string::npos) option.value = word.text.substr(equals + 1);
  return option;
}

tl::unexpected<Error> CommandReader::fault(const CommandOption& option, std::string_view what, std::string hint) const {
  return fail_at(ErrorCode::bad_input, {file_, option.line, std::nullopt}, fmt::format("{} {}", option.name, what),
                 std::move(hint));
}

Result<std::string> CommandReader::value(const CommandOption& option) {
  if (option.value) return *option.value;
  if (at_ >= words_.size() || looks_like_option(words_[at_].text)) return fault(option, "has no value");
  return words_[at_++].text;
}

Result<std::int64_t> CommandReader::integer(const CommandOption& option, std::int64_t least, std::int64_t most) {
  const std::string text = GW_TRY(value(option));
  const auto number = to_integer(text);
  if (!number || *number < least || *number > most)
    return fault(option, fmt::format("'{}' is not a whole number from {} to {}", text, least, most));
  return *number;
}

Result<double> CommandReader::number(const CommandOption& option, double least, double most) {
  const std::string text = GW_TRY(value(option));
  const auto number = to_number(text);
  if (!number || *number < least || *number > most)
    return fault(option, fmt::format("'{}' is not a number from {} to {}", text, least, most));
  return *number;
}

void CommandReader::note_unknown(const CommandOption& option, std::vector<ConfigNote>& notes) {
  notes.push_back({file_, option.line, option.name, "is not known here; it was not used"});
  if (!option.value && at_ < words_.size() && !looks_like_option(words_[at_].text)) ++at_;
}

Result<std::optional<ReadConfig>> read_command(const ConfigText& text, const Job& base) {
  if (!may_be_command(text.text) || starts_as_file(text.text)) return std::nullopt;
  const auto excerpt = command_in(text.text);
  if (!excerpt) return std::nullopt;
  std::vector<ShellWord> words = GW_TRY(shell_words(excerpt->text, text.name, excerpt->lines_before + 1));
  ReadConfig made;
  std::size_t at = 0;
  while (at < words.size() && (is_assignment(words[at].text) || words[at].text == "exec" || words[at].text == "env" ||
                               words[at].text == "nohup")) {
    if (is_assignment(words[at].text))
      made.notes.push_back({text.name, words[at].line, words[at].text.substr(0, words[at].text.find('=')),
                            "is set for the command; it was not used"});
    ++at;
  }
  const auto [program, length] = program_of(words, at);
  if (program == Program::none) return std::nullopt;
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at + length));
  CommandReader reader(std::move(words), text.name);
  Job job = base;
  made.formats.push_back(program == Program::vllm ? ConfigFormat::vllm : ConfigFormat::llama_cpp);
  if (program == Program::vllm)
    GW_TRY(read_vllm(reader, job, made));
  else
    GW_TRY(read_llama_server(reader, job, made));
  made.serving = job;
  return std::optional<ReadConfig>(std::move(made));
}

}  // namespace gpuwright::fit

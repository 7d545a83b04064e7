#include "fit/emit/shell_words.h"

#include <fmt/format.h>

namespace gpuwright::fit {
namespace {

constexpr std::size_t kLongest = 64 << 10;
constexpr std::size_t kMostWords = 1'000;

class Splitter {
 public:
  Splitter(std::string_view text, std::string_view name, std::int64_t line) : text_(text), name_(name), line_(line) {}

  Result<std::vector<ShellWord>> words() {
    while (!ended()) {
      const char letter = text_[at_];
      if (letter == '\n') {
        if (!words_.empty()) break;
        ++line_;
        ++at_;
      } else if (letter == ' ' || letter == '\t' || letter == '\r') {
        ++at_;
      } else if (letter == '\\' && continues_line()) {
        skip_line_end();
      } else if (letter == '#') {
        while (!ended() && text_[at_] != '\n') ++at_;
      } else if (!words_.empty() && leads_elsewhere()) {
        break;
      } else {
        if (words_.size() == kMostWords) return fault("the command has too many words");
        words_.push_back({GW_TRY(word()), line_});
      }
    }
    return std::move(words_);
  }

 private:
  bool ended() const { return at_ >= text_.size(); }
  tl::unexpected<Error> fault(std::string what, std::string hint = {}) const {
    return fail_at(ErrorCode::bad_input, {std::string(name_), line_, std::nullopt}, std::move(what), std::move(hint));
  }
  tl::unexpected<Error> needs_shell(char letter) const {
    return fault(fmt::format("'{}' is for a shell, and the command is only read, never run", letter),
                 "write the value itself, or put it in single quotes");
  }

  // "> log", "2>&1", "| tee log", "&": where output goes, or that the shell does not wait. The arguments end there.
  bool leads_elsewhere() const {
    const std::size_t sign = text_[at_] >= '0' && text_[at_] <= '9' ? at_ + 1 : at_;
    if (sign >= text_.size()) return false;
    return text_[sign] == '>' || (sign == at_ && (text_[at_] == '|' || text_[at_] == '&'));
  }

  bool continues_line() const { return text_.substr(at_, 2) == "\\\n" || text_.substr(at_, 3) == "\\\r\n"; }
  void skip_line_end() {
    at_ += text_[at_ + 1] == '\r' ? 3 : 2;
    ++line_;
  }

  Result<std::string> word() {
    std::string made;
    while (!ended()) {
      const char letter = text_[at_];
      if (letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r') break;
      if (std::string_view("$`;|&<>()").find(letter) != std::string_view::npos) return needs_shell(letter);
      if (letter == '\'') {
        GW_TRY(single_quoted(made));
      } else if (letter == '"') {
        GW_TRY(double_quoted(made));
      } else if (letter == '\\') {
        if (continues_line()) {
          skip_line_end();
          continue;
        }
        if (++at_ >= text_.size()) return fault("the command ends in a backslash");
        made += text_[at_++];
      } else {
        made += letter;
        ++at_;
      }
    }
    return made;
  }

  void take(std::string& made) {
    if (text_[at_] == '\n') ++line_;
    made += text_[at_++];
  }

  Status single_quoted(std::string& made) {
    for (++at_; !ended() && text_[at_] != '\'';) take(made);
    if (ended()) return fault("a closing ' is missing");
    ++at_;
    return {};
  }

  Status double_quoted(std::string& made) {
    for (++at_; !ended() && text_[at_] != '"';) {
      const char letter = text_[at_];
      if (letter == '$' || letter == '`') return needs_shell(letter);
      const bool escape = letter == '\\' && at_ + 1 < text_.size() &&
                          std::string_view("\"\\$`\n").find(text_[at_ + 1]) != std::string_view::npos;
      if (escape) ++at_;
      if (escape && text_[at_] == '\n') {
        ++line_;
        ++at_;
      } else {
        take(made);
      }
    }
    if (ended()) return fault("a closing \" is missing");
    ++at_;
    return {};
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::int64_t line_;
  std::vector<ShellWord> words_;
};

}  // namespace

Result<std::vector<ShellWord>> shell_words(std::string_view text, std::string_view name, std::int64_t first_line) {
  if (text.size() > kLongest)
    return fail_at(ErrorCode::bad_input, {std::string(name), std::nullopt, std::nullopt},
                   "the command is longer than 64 KiB");
  return Splitter(text, name, first_line).words();
}

}  // namespace gpuwright::fit

#include "cli/parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gpuwright::cli {
namespace {

bool is_option_word(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const char next = word[1] == '.' && word.size() > 2 ? word[2] : word[1];
  return next < '0' || next > '9';
}

const Option* option_named(std::string_view name, const Command* command) {
  const auto is_it = [&](const Option& option) {
    return option.name == name || option.short_name == name ||
           std::find(option.aliases.begin(), option.aliases.end(), name) != option.aliases.end();
  };
  if (command) {
    const auto own = std::find_if(command->options.begin(), command->options.end(), is_it);
    if (own != command->options.end()) return &*own;
  }
  const auto& globals = global_options();
  const auto global = std::find_if(globals.begin(), globals.end(), is_it);
  return global == globals.end() ? nullptr : &*global;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(word, names);
  return nearest ? fmt::format("did you mean '{}'?", *nearest) : std::string();
}

std::string help_hint(const Command* command) {
  return command ? fmt::format("see 'gpuwright {} --help'", command->name) : "see 'gpuwright --help'";
}

tl::unexpected<Error> usage(std::string what, std::string hint) {
  return fail(ErrorCode::bad_input, std::move(what), std::move(hint));
}

tl::unexpected<Error> unknown_option(std::string_view name, const Command* command) {
  std::vector<std::string> names;
  for (const Option& option : global_options()) names.push_back(option.name);
  if (command)
    for (const Option& option : command->options) {
      names.push_back(option.name);
      names.insert(names.end(), option.aliases.begin(), option.aliases.end());
    }
  // "-gpu" is a slip for "--gpu", whatever else "-g" would mean.
  const bool one_dash = name.size() > 2 && name[1] != '-' && contains(names, "-" + std::string(name));
  std::string hint = one_dash ? fmt::format("did you mean '-{}'?", name) : did_you_mean(name, names);
  if (hint.empty()) hint = command ? help_hint(command) : "a command's options stand after its name";
  const std::string owner = command ? command->name + " has no option" : "no global option";
  return usage(fmt::format("{} '{}'", owner, name), std::move(hint));
}

Status add_checked(Arguments& arguments, const Option& option, std::string value) {
  if (value.empty()) return usage(fmt::format("{} needs a value: {}", option.name, option.value), option.help);
  const auto& choices = option.choices;
  const bool accepted = option.accepts && option.accepts(value);
  if (option.optional_value && choices.empty() && option.accepts && !accepted)
    return usage(fmt::format("{} takes {}, not '{}'", option.name, option.value, value), option.help);
  if (!choices.empty() && !contains(choices, value) && !accepted) {
    std::string hint = did_you_mean(value, choices);
    return usage(fmt::format("{} takes {}, not '{}'", option.name, fmt::join(choices, ", "), value), std::move(hint));
  }
  arguments.add(option.name, std::move(value));
  return {};
}

// Reads the words that are left when the command's name is taken out.
class Reader {
 public:
  Reader(std::vector<std::string> words, const Command* command) : words_(std::move(words)), command_(command) {}

  Status read_all() {
    bool only_plain = false;
    while (at_ < words_.size()) {
      const std::string word = words_[at_++];
      if (only_plain || !is_option_word(word)) {
        plain_.push_back(word);
        only_plain = only_plain || (command_ && command_->takes_command_line);
      } else if (word == "--") {
        only_plain = true;
      } else if (word[1] == '-') {
        GW_TRY(read_long(word));
      } else {
        GW_TRY(read_short(word));
      }
    }
    return {};
  }

  Arguments take_arguments() { return std::move(arguments_); }
  const std::vector<std::string>& plain_words() const { return plain_; }

 private:
  Status read_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Option* option = option_named(name, command_);
    if (!option) return unknown_option(name, command_);
    if (equals == std::string::npos) return read_value(*option);
    if (option->value.empty()) return usage(fmt::format("{} takes no value", name), help_hint(command_));
    return add_checked(arguments_, *option, word.substr(equals + 1));
  }

  // -j, -c8192, -c=8192, -c 8192, and several flags in one word: -qj.
  Status read_short(const std::string& word) {
    if (word.size() > 2 && option_named("-" + word.substr(0, word.find('=')), command_))
      return unknown_option(word.substr(0, word.find('=')), command_);
    for (std::size_t letter = 1; letter < word.size(); ++letter) {
      const std::string name = std::string("-") + word[letter];
      const Option* option = option_named(name, command_);
      if (!option) return unknown_option(letter == 1 ? word : name, command_);
      std::string rest = word.substr(letter + 1);
      if (option->value.empty())
        arguments_.mark(option->name);
      else if (rest.empty())
        return read_value(*option);
      else
        return add_checked(arguments_, *option, rest[0] == '=' ? rest.substr(1) : rest);
    }
    return {};
  }

  // "-bandwidth" may be what --sort wants; "--json" and the -c of -c8 are options.
  bool may_be_value(const std::string& word) const {
    return !is_option_word(word) || (word[1] != '-' && !option_named(word.substr(0, 2), command_));
  }

  Status read_value(const Option& option) {
    const bool follows = at_ < words_.size() && may_be_value(words_[at_]);
    const bool chosen = follows && (contains(option.choices, words_[at_]) ||
                                    (option.optional_value && option.accepts && option.accepts(words_[at_])));
    if (option.value.empty() || (option.optional_value && !chosen)) {
      arguments_.mark(option.name);
      return {};
    }
    if (follows) return add_checked(arguments_, option, words_[at_++]);
    std::string hint = help_hint(command_);
    if (at_ < words_.size() && words_[at_] != "--")
      hint = fmt::format("'{0}' begins with a dash: write {1}={0} if it is the value", words_[at_], option.name);
    return usage(fmt::format("{} needs a value: {}", option.name, option.value), std::move(hint));
  }

  std::vector<std::string> words_;
  const Command* command_;
  Arguments arguments_;
  std::vector<std::string> plain_;
  std::size_t at_ = 0;
};

// Where the plain words stand before the first option that is not a global one.
std::vector<std::size_t> leading_plain_words(const std::vector<std::string>& words) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (!is_option_word(words[at])) {
      places.push_back(at);
      continue;
    }
    const std::size_t equals = words[at].find('=');
    const Option* option = option_named(words[at].substr(0, equals), nullptr);
    if (!option) break;
    if (!option->value.empty() && equals == std::string::npos) ++at;
  }
  return places;
}

bool is_group(std::string_view name, const std::vector<Command>& commands) {
  const std::string prefix = std::string(name) + " ";
  return std::any_of(commands.begin(), commands.end(),
                     [&](const Command& command) { return command.name.compare(0, prefix.size(), prefix) == 0; });
}

// Gives the words to the command's arguments in order; a repeated argument takes all that later ones can spare.
Status assign(const Command& command, const std::vector<std::string>& words, Arguments& arguments) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const Argument& argument = command.arguments[i];
    const auto later = command.arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto needed = static_cast<std::size_t>(
        std::count_if(later, command.arguments.end(), [](const Argument& other) { return other.required; }));
    const std::size_t left = words.size() - at;
    const std::size_t least = argument.required && left > 0 ? 1 : 0;
    const std::size_t spare = left > needed ? left - needed : least;
    const std::size_t wanted = argument.repeated ? spare : std::min<std::size_t>(spare, 1);
    if (wanted == 0 && argument.required)
      return usage(fmt::format("{} needs {}", command.name, argument.name), help_hint(&command));
    for (std::size_t n = 0; n < wanted; ++n) arguments.add(argument.name, words[at++]);
  }
  if (at < words.size())
    return usage(fmt::format("{} has no use for '{}'", command.name, words[at]), help_hint(&command));
  return {};
}

}  // namespace

bool has_flag(const std::vector<std::string>& words, std::string_view name, std::string_view short_name) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, [&](const std::string& word) {
    return word == name || (!short_name.empty() && word == short_name);
  });
}

const Command* command_meant(const std::vector<std::string>& words, const std::vector<Command>& commands) {
  const auto places = leading_plain_words(words);
  return places.empty() ? nullptr : find_command(words[places.front()], commands);
}

const Command* find_command(std::string_view name, const std::vector<Command>& commands) {
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const Command& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

std::vector<const Command*> commands_below(std::string_view topic, const std::vector<Command>& commands) {
  std::vector<const Command*> result;
  for (const Command& command : commands) {
    const bool below = command.name.size() > topic.size() && command.name[topic.size()] == ' ';
    if (!command.hidden && command.name.substr(0, topic.size()) == topic && (below || command.name == topic))
      result.push_back(&command);
  }
  return result;
}

tl::unexpected<Error> unknown_command(std::string_view name, const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands)
    if (!command.hidden) names.push_back(command.name);
  std::string hint = did_you_mean(name, names);
  const std::string_view group = name.substr(0, name.find(' '));
  if (hint.empty()) hint = group != name ? fmt::format("see 'gpuwright help {}'", group) : help_hint(nullptr);
  return usage(fmt::format("there is no command '{}'", name), std::move(hint));
}

Result<Invocation> parse(const std::vector<std::string>& words, const std::vector<Command>& commands) {
  Invocation invocation;
  const auto places = leading_plain_words(words);
  std::vector<std::string> left = words;
  std::string& name = invocation.topic;
  std::size_t taken = 0;
  while (taken < places.size()) {
    const std::string longer = (name.empty() ? "" : name + " ") + words[places[taken]];
    const Command* found = find_command(longer, commands);
    if (!found && !is_group(longer, commands)) break;
    name = longer;
    invocation.command = found;
    ++taken;
  }
  const bool word_is_unused = taken < places.size() && (!invocation.command || invocation.command->arguments.empty());
  if (word_is_unused && (taken == 0 || is_group(name, commands)))
    return unknown_command((name.empty() ? "" : name + " ") + words[places[taken]], commands);
  const bool asks = has_flag(words, "--help", "-h") || has_flag(words, "--version");
  if (!invocation.command && taken > 0 && !asks)
    return usage(fmt::format("'{}' is the beginning of several commands", name), help_hint(nullptr));
  for (std::size_t i = taken; i > 0; --i) left.erase(left.begin() + static_cast<std::ptrdiff_t>(places[i - 1]));

  Reader reader(std::move(left), invocation.command);
  GW_TRY(reader.read_all());
  invocation.arguments = reader.take_arguments();
  const bool help = invocation.arguments.has("--help") || invocation.arguments.has("--version");
  if (invocation.command && !help) GW_TRY(assign(*invocation.command, reader.plain_words(), invocation.arguments));
  return invocation;
}

}  // namespace gpuwright::cli

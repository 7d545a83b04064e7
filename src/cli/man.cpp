// Man pages in the man(7) macros, which every man program reads. Text is escaped so that no line of it can be taken for
// a request and dashes stay the dashes that people type.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/generate.h"
#include "cli/help.h"

namespace gpuwright::cli {
namespace {

std::string escape(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

// Text of paragraphs: a line that opens with a dot or a quote would be a request.
std::string paragraph(std::string_view text) {
  std::string result;
  for (std::string_view line : split(text, '\n')) {
    if (line.empty()) {
      result += ".PP\n";
      continue;
    }
    if (line[0] == '.' || line[0] == '\'') result += "\\&";
    result += escape(line) + "\n";
  }
  return result;
}

// An argument of a macro.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : escape(text)) result += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return result + "\"";
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string title(std::string_view name, std::string_view summary) {
  std::string upper(name);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return fmt::format(".TH {} 1 \"{}\" \"gpuwright {}\" \"gpuwright manual\"\n.SH NAME\n{} \\- {}\n", quoted(upper),
                     version_date(), version(), escape(name), escape(summary));
}

std::string options_section(std::string_view heading, const std::vector<Option>& options, std::string_view group) {
  std::string text = fmt::format(".SH {}\n", quoted(heading));
  for (const Option& option : options) {
    if (option.group != group) continue;
    text += ".TP\n.B " + escape(option_words(option)) + "\n" + paragraph(option_help(option));
  }
  return text;
}

std::string upper_words(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

std::string examples_section(const std::vector<Example>& examples) {
  std::string text = ".SH EXAMPLES\n";
  for (const Example& example : examples) text += ".TP\n.B " + escape(example.command) + "\n" + paragraph(example.what);
  return text;
}

std::string exit_section(const std::vector<std::string>& lines) {
  std::string text = ".SH \"EXIT STATUS\"\n";
  for (const std::string& line : lines) {
    const std::size_t space = line.find(' ');
    text += ".TP\n.B " + escape(line.substr(0, space)) + "\n" +
            paragraph(space == std::string::npos ? "" : trim(std::string_view(line).substr(space)));
  }
  return text;
}

}  // namespace

std::string man_page(const Command& command) {
  std::string page = title("gpuwright-" + dashed(command.name), command.summary);
  page += ".SH SYNOPSIS\n.B " + escape(usage_line(command)) + "\n";
  page += ".SH DESCRIPTION\n" + paragraph(command.description.empty() ? command.summary : command.description);
  if (!command.arguments.empty()) page += ".SH ARGUMENTS\n";
  for (const Argument& argument : command.arguments)
    page += ".TP\n.I " + escape(argument.name) + "\n" + paragraph(argument.help);
  for (const std::string& group : option_groups(command))
    page += options_section(group.empty() ? "OPTIONS" : upper_words(group), command.options, group);
  page += options_section("OPTIONS OF EVERY COMMAND", global_options(), "");
  if (!command.examples.empty()) page += examples_section(command.examples);
  page += exit_section(exit_code_lines(command));
  page += ".SH \"SEE ALSO\"\n.BR gpuwright (1)\n";
  return page;
}

std::string man_page_of_program(const std::vector<Command>& commands) {
  std::string page = title("gpuwright", "one toolset for GPU work in deep learning");
  page += ".SH SYNOPSIS\n.B gpuwright\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n";
  page += paragraph(
      "gpuwright answers questions about GPUs and the models that run on them. It needs no GPU, no network and no "
      "server: what it knows of GPUs and engines is inside the program, and a model's own files say the rest.");
  page += ".SH COMMANDS\n";
  for (const Command& command : commands)
    if (!command.hidden)
      page += ".TP\n.B " + escape(command.name) + "\n" + paragraph(command.summary + "; see") + ".BR " +
              escape("gpuwright-" + dashed(command.name)) + " (1)\n";
  page += options_section("OPTIONS OF EVERY COMMAND", global_options(), "");
  page += exit_section({"0 done", "1 the answer is no: it does not fit, or something was found",
                        "2 the words of the command or its input are wrong",
                        "3 something needed is missing or unreachable, or the answer could not be written",
                        "4 a fault of gpuwright itself"});
  page += ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nwhen set and not empty, no colours are used\n";
  page += ".TP\n.B COLUMNS\nhow wide the output may be, where the terminal does not tell\n";
  page += ".TP\n.BR LC_ALL , \" LC_CTYPE\" , \" LANG\"\nblock characters are used where they name UTF\\-8\n";
  return page;
}

}  // namespace gpuwright::cli

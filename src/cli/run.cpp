// The dispatcher: words in, exit code out.
#include <fmt/format.h>

#include <exception>

#include "cli/about.h"
#include "cli/command.h"
#include "cli/parse.h"

namespace gpuwright::cli {
namespace {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_input:
      return "bad_input";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

Json to_json(const Error& error) {
  Json where;
  if (!error.where.file.empty()) {
    where = Json::object();
    where.set("file", error.where.file);
    where.set("line", error.where.line);
    where.set("byte", error.where.byte);
  }
  Json answer = Json::object();
  answer.set("schema", "gpuwright.error/1");
  answer.set("code", name_of(error.code));
  answer.set("what", error.what);
  answer.set("where", std::move(where));
  answer.set("hint", error.hint.empty() ? Json() : Json(error.hint));
  return answer;
}

int report(const Error& error, const Console& console) {
  console.out.flush();
  console.err << "gpuwright: " << error.message() << '\n';
  if (console.json) console.out << to_json(error).dump() << '\n';
  return exit_code_for(error.code);
}

Console with_globals(Console console, const Arguments& arguments) {
  if (arguments.has("--json")) console.json = true;
  if (arguments.has("--no-color") || console.json) console.color = false;
  if (const auto text = arguments.value("--lang"))
    if (const auto language = parse_language(*text)) console.language = *language;
  return console;
}

Result<int> dispatch(const std::vector<std::string>& words, const Console& console) {
  const Invocation invocation = GW_TRY(parse(words, commands()));
  const Console adjusted = with_globals(console, invocation.arguments);
  const std::string topic = invocation.command ? invocation.command->name : invocation.topic;
  if (invocation.arguments.has("--help")) return show_help(topic, adjusted);
  if (invocation.arguments.has("--version")) {
    show_version(adjusted);
    return kDone;
  }
  if (!invocation.command) return show_help("", adjusted);
  return invocation.command->run(invocation.arguments, adjusted);
}

Result<int> dispatch_catching(const std::vector<std::string>& words, const Console& console) {
  try {
    return dispatch(words, console);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::unavailable, "out of memory");
  } catch (const std::exception& exception) {
    return fail(ErrorCode::internal, fmt::format("an internal fault: {}", exception.what()),
                "please report it with the command that you ran");
  }
}

}  // namespace

int exit_code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_input:
    case ErrorCode::not_found:
    case ErrorCode::unsupported:
      return kUsage;
    case ErrorCode::unavailable:
      return kMissing;
    case ErrorCode::internal:
      return kInternal;
  }
  return kInternal;
}

int run(const std::vector<std::string>& words, const Console& console) {
  const Result<int> code = dispatch_catching(words, console);
  if (code) return *code;
  Console adjusted = console;
  adjusted.json = console.json || has_flag(words, "--json");
  const int usual = report(code.error(), adjusted);
  const Command* meant = command_meant(words, commands());
  return meant && meant->own_failure != 0 ? meant->own_failure : usual;
}

}  // namespace gpuwright::cli

// The program: hands its words and streams to the command line of cli/.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "base/screen.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/command.h"

namespace {

using gpuwright::cli::Console;

Console console_of_process(std::ostream& out, std::ostream& err) {
  Console console{out, err};
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const bool out_is_terminal = gpuwright::is_terminal(1);
  console.color = out_is_terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  console.terminal = gpuwright::is_terminal(2);
  console.screen = gpuwright::Screen::possible();
  console.unicode = gpuwright::locale_is_utf8();
  const auto columns = gpuwright::to_integer(environment("COLUMNS"));
  const auto width = out_is_terminal ? gpuwright::terminal_width(1) : std::nullopt;
  if (width)
    console.width = *width;
  else if (columns && *columns >= 20 && *columns <= 1000)
    console.width = static_cast<int>(*columns);
  else
    console.wide = !out_is_terminal;
  return console;
}

// A reader that went away (`| head`) asked for no more: nothing to report, but not success either.
int report_failed_write(int error, std::ostream& err) {
  if (error != EPIPE) err << "gpuwright: the answer could not be written: " << std::strerror(error) << '\n';
  return gpuwright::cli::kMissing;
}

}  // namespace

int main(int argc, char** argv) {
  gpuwright::occupy_standard_descriptors();
  gpuwright::DescriptorBuffer out_buffer(1);
  gpuwright::DescriptorBuffer err_buffer(2);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  err.setf(std::ios::unitbuf);
  const int code = gpuwright::cli::run({argv + 1, argv + argc}, console_of_process(out, err));
  out.flush();
  return out_buffer.error() != 0 ? report_failed_write(out_buffer.error(), err) : code;
}

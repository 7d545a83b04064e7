#include "cli/fit_emit.h"

#include <fmt/format.h>

#include "base/file.h"

namespace gpuwright::cli {
namespace {

std::string path_in(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.back() == '/' ? directory + name : directory + "/" + name;
}

}  // namespace

Status write_emission(const fit::Emission& emission, const std::string& directory, bool force) {
  if (!is_directory(directory))
    return fail(ErrorCode::not_found, fmt::format("{} is no folder", directory), "make it first, or name another");
  for (const fit::EmittedFile& file : emission.files) {
    const std::string path = path_in(directory, file.name);
    if (!force && path_exists(path))
      return fail(ErrorCode::bad_input, fmt::format("{} is there already, and nothing was written", path),
                  "--force replaces it");
  }
  for (const fit::EmittedFile& file : emission.files)
    GW_TRY(write_file_atomically(path_in(directory, file.name), file.contents));
  return {};
}

void print_emission(const fit::Emission& emission, const std::string& directory, const Console& console) {
  const char* bold = console.color ? "\x1b[1m" : "";
  const char* plain = console.color ? "\x1b[0m" : "";
  for (const fit::EmittedFile& file : emission.files) {
    if (directory.empty())
      console.out << bold << "# " << file.name << plain << '\n' << file.contents << '\n';
    else
      console.out << "wrote " << path_in(directory, file.name) << '\n';
  }
  console.out << bold << "# run" << plain << '\n' << emission.command;
  for (const std::string& note : emission.notes) console.out << "# " << note << '\n';
}

Json to_json(const fit::Emission& emission) {
  Json files = Json::array();
  for (const fit::EmittedFile& file : emission.files)
    files.push(Json::object().set("name", file.name).set("contents", file.contents));
  Json notes = Json::array();
  for (const std::string& note : emission.notes) notes.push(note);
  return Json::object().set("files", files).set("command", emission.command).set("notes", notes);
}

}  // namespace gpuwright::cli

// Inside of Host, for its own files.
#pragma once

#include <sys/stat.h>

#include "doctor/host.h"

namespace gpuwright::doctor {

// Where a path leads. error is errno, and then the rest says how far one came.
struct Place {
  std::string path;  // on that machine, links resolved
  std::string real;  // here
  struct stat status {};
  int error = 0;
};

struct Host::State {
  std::string root;  // empty: this machine
  Json captured;
  std::optional<std::map<std::string, std::string, std::less<>>> environment;
  std::optional<std::string> kernel_release, machine;
  std::optional<std::int64_t> user;
  std::optional<std::vector<std::int64_t>> groups;
  std::string working_directory = "/";
  std::optional<std::map<std::string, Node, std::less<>>> nodes;  // captured: what a folder cannot hold
  std::map<std::string, Space, std::less<>> spaces;
  std::map<std::string, Limit, std::less<>> limits;
  mutable std::optional<std::vector<std::string>> processes;
  mutable bool processes_read = false, log_read = false;
  mutable std::optional<KernelLog> log;
  mutable std::map<std::string, Seen, std::less<>> seen;

  Place locate(std::string_view path, bool follow_last) const;
  Place look(std::string_view path, bool follow_last) const {
    Place place = locate(path, follow_last);
    remember(path, place);
    return place;
  }
  void remember(std::string_view path, const Place& place) const;
  void read_this_machine();
  Status read_captured();
  void add_captured_names(std::string_view folder, std::vector<std::string>& names) const;

 private:
  Place locate_here(const std::string& path, bool follow_last) const;
};

}  // namespace gpuwright::doctor

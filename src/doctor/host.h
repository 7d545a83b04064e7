// A machine as its files tell of it: this one, or one whose files were captured under a folder. Paths are those of that
// machine ("/proc/modules"). Links are resolved inside the root, so that none leads out of a captured one; a FIFO, a
// loop of links or an endless file harms nobody: a read opens without waiting, takes regular files only, and at most so
// many bytes. What no file holds (the environment, limits, device nodes) is asked of the system, or stands in
// <root>/gpuwright-host.json (docs/doctor.md has its format). What is not told there is unknown, never a finding.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/result.h"
#include "base/units.h"

namespace gpuwright::doctor {

inline constexpr std::size_t kMostTextBytes = 64 << 10;

// Of a device node or file.
struct Node {
  bool is_device = false;
  unsigned mode = 0;  // permission bits
  std::int64_t owner = 0, group = 0;
  std::int64_t major = 0, minor = 0;
};

struct Space {
  Bytes total, free;
};

// A limit of this process. Nothing in `value`: unlimited.
struct Limit {
  std::optional<std::int64_t> value;
};

enum class Access : std::uint8_t { present, absent, forbidden, unreadable };

// Not thread-safe: it remembers what was looked at.
class Host {
 public:
  // "" and "/" are this machine. An error where the root is no folder or its gpuwright-host.json is wrong.
  static Result<Host> open(const std::string& root);
  ~Host();
  Host(Host&&) noexcept;
  Host& operator=(Host&&) noexcept;

  bool is_live() const;
  const std::string& root() const;

  Access access(std::string_view path) const;
  bool exists(std::string_view path) const { return access(path) == Access::present; }
  bool is_directory(std::string_view path) const;
  // The first bytes of a regular file; nothing where it cannot be read (access() tells why).
  std::optional<std::string> text(std::string_view path, std::size_t most = kMostTextBytes) const;
  // As text, trimmed, for files that hold one value. An empty one is nothing.
  std::optional<std::string> value(std::string_view path) const;
  std::optional<std::int64_t> integer(std::string_view path) const;  // decimal, or hexadecimal with 0x
  std::optional<std::int64_t> size(std::string_view path) const;     // of a regular file
  // Sorted; empty where it cannot be listed. Names that could not stand in a path are left out.
  std::vector<std::string> names(std::string_view path, std::size_t most = 4096) const;
  std::optional<std::string> link(std::string_view path) const;       // the target as written, of a link only
  std::optional<std::string> link_name(std::string_view path) const;  // its last component
  // Where a path leads once links are resolved, as a path of that machine; nothing where that does not exist.
  std::optional<std::string> resolve(std::string_view path) const;
  // A regular file, for readers that take bytes here and there.
  Result<std::unique_ptr<ByteSource>> bytes(std::string_view path) const;

  // From here on: what no file holds.

  // Whether the environment of the one who has the problem is known: without it a missing variable says nothing.
  bool environment_known() const;
  std::optional<std::string> variable(std::string_view name) const;
  const std::map<std::string, std::string, std::less<>>& environment() const;
  std::optional<std::string> kernel_release() const;  // uname -r
  std::optional<std::string> machine() const;         // uname -m
  std::optional<std::int64_t> user() const;           // its number
  std::optional<std::vector<std::int64_t>> groups() const;
  std::string working_directory() const;  // "/" where unknown
  std::optional<Node> node(std::string_view path) const;
  std::optional<Space> space(std::string_view path) const;  // of the file system there
  std::optional<Limit> limit(std::string_view name) const;  // "memlock", "nofile", "as", "stack"
  // Names of the processes that run (/proc/PID/comm), sorted, each once.
  std::optional<std::vector<std::string>> processes() const;
  // Lines of the kernel's log, oldest first: dmesg's buffer, else /var/log/kern.log, messages or dmesg. Nothing
  // where none may be read.
  struct KernelLog {
    std::string source;  // "/dev/kmsg"
    std::vector<std::string> lines;
  };
  const std::optional<KernelLog>& kernel_log() const;
  // A member of gpuwright-host.json; null on this machine.
  const Json* captured(std::string_view name) const;

  // What was looked at so far, for a bundle: paths with what was there.
  enum class Seen : std::uint8_t { absent, file, folder, link, device, forbidden };
  const std::map<std::string, Seen, std::less<>>& looked_at() const;

 private:
  struct State;
  explicit Host(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpuwright::doctor

// A host as one text file: what a bundle is, and what the tests' hosts are. Easy to read, to compare and to edit.
//
//   base: ubuntu-4090.txt           (first lines; another such file beside this one, laid under it)
//   == /proc/modules                a file; its text follows, up to the next "== "
//   nvidia 1 2 - Live 0x0
//   == /sys/bus/pci/devices/0000:01:00.0/driver -> ../../../bus/pci/drivers/nvidia     a link
//   == /dev/shm/                    an empty folder
//   == /etc/fstab !                 what the base has there is not here: a file, or a folder with all in it
//   == /sys/bus/pci/devices/0000:01:00.0/config (hex)       bytes that are no text, as hexadecimal digits
//   == /gpuwright-host.json +       members that are added to the base's, or replace them
//
// A line of a text that begins with "== " or "\" has a "\" before it. Lines before the first "== " that begin with "#"
// are comments.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwright::doctor {

struct ArchiveEntry {
  enum class Kind : std::uint8_t { file, folder, link } kind = Kind::file;
  std::string text;  // contents, or the link's target
};
using Archive = std::map<std::string, ArchiveEntry, std::less<>>;  // by path on the host

Result<Archive> read_archive(const std::string& file);
Result<Archive> parse_archive(std::string_view text);  // one that stands on no base
std::string archive_text(const Archive& archive);

// A folder under the temporary one that holds an archive's files, until the object goes.
class UnpackedHost {
 public:
  // Nothing is ever written outside of the folder: links are made last, and no path may lead through one.
  static Result<UnpackedHost> unpack(const Archive& archive);
  ~UnpackedHost();
  UnpackedHost(UnpackedHost&& other) noexcept;
  UnpackedHost& operator=(UnpackedHost&&) = delete;
  const std::string& root() const { return root_; }

 private:
  explicit UnpackedHost(std::string root) : root_(std::move(root)) {}
  std::string root_;
};

}  // namespace gpuwright::doctor

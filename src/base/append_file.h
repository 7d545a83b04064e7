// A file that grows at its end and is whole after every step: an append that fails leaves it as it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwright {

// Not thread-safe. Locked against a second AppendFile, in this program or another, as long as it lives.
class AppendFile {
 public:
  enum class Mode { open_or_make, must_be_new };
  // unavailable when another one holds it or the system refuses; bad_input when it is no regular file.
  static Result<AppendFile> open(const std::string& path, Mode mode);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  std::int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  void renamed(std::string path) { path_ = std::move(path); }

  // All of the bytes or none: when the disk is full, what was written of them is taken back.
  Status append(std::string_view bytes);
  // Leaves the first `size` bytes.
  Status cut(std::int64_t size);
  // Returns when what was appended is on the disk.
  Status sync();

 private:
  AppendFile(int descriptor, std::int64_t size, std::string path)
      : descriptor_(descriptor), size_(size), path_(std::move(path)) {}

  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::string path_;
};

// What is called `from` is called `to` in one step, whatever had that name before.
Status rename_file(const std::string& from, const std::string& to);
// Gives the file a second name, replacing nothing; where the file system has no links, the first name goes.
Status link_file(const std::string& from, const std::string& to);
// No error when there is none.
Status remove_file(const std::string& path);

}  // namespace gpuwright

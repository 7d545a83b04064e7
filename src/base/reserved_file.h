// A file that will be written at the end of something long: what would keep it from being written is found at the
// beginning, and its place on the disk is taken.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwright {

// Not thread-safe. Until it is written the file is as it was, or is not there.
class ReservedFile {
 public:
  // Devices and pipes are opened. bad_input for a folder or one that is not there, unavailable when the system refuses
  // (no right, no room).
  static Result<ReservedFile> open(const std::string& path);
  ReservedFile(ReservedFile&& other) noexcept;
  ReservedFile& operator=(ReservedFile&&) = delete;
  ~ReservedFile();

  // Once. A regular file gets all of it or stays as it was.
  Status write(std::string_view contents);

 private:
  ReservedFile(std::string path, std::string temporary, int descriptor)
      : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

  std::string path_, temporary_;  // temporary: empty when the file is no regular one
  int descriptor_ = -1;
};

}  // namespace gpuwright

#include "base/reserved_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace gpuwright {
namespace {

constexpr std::size_t kRoom = 256 << 10;

tl::unexpected<Error> failure(const std::string& path, int number) {
  const ErrorCode code =
      number == ENOENT || number == ENOTDIR || number == EISDIR ? ErrorCode::bad_input : ErrorCode::unavailable;
  const char* hint = number == ENOENT   ? "the folder is not there"
                     : number == ENXIO  ? "nobody reads from this pipe"
                     : number == ENOSPC ? "the disk is full"
                                        : "";
  return fail_at(code, {path, {}, {}}, std::string("cannot be written: ") + std::strerror(number), hint);
}

int put(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) return errno;
  }
  return 0;
}

// Written and taken back: file systems that promise room without having it are many.
int take_room(int descriptor) {
  const std::string nothing(kRoom, ' ');
  if (const int number = put(descriptor, nothing); number != 0) return number;
  if (::fsync(descriptor) != 0) return errno;
  return ::lseek(descriptor, 0, SEEK_SET) == 0 ? 0 : errno;
}

// A blank before a JSON text is nothing.
Result<int> open_device(const std::string& path, const struct stat& about) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return failure(path, errno);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  const int number = S_ISCHR(about.st_mode) && ::isatty(descriptor) == 0 ? put(descriptor, "\n") : 0;
  if (number == 0) return descriptor;
  ::close(descriptor);
  return failure(path, number);
}

}  // namespace

Result<ReservedFile> ReservedFile::open(const std::string& path) {
  struct stat about {};
  const bool there = ::stat(path.c_str(), &about) == 0;
  if (there && S_ISDIR(about.st_mode)) return failure(path, EISDIR);
  if (there && !S_ISREG(about.st_mode)) return ReservedFile(path, "", GW_TRY(open_device(path, about)));
  if (there && ::access(path.c_str(), W_OK) != 0) return failure(path, errno);
  std::string temporary = path + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) return failure(path, errno);
  ReservedFile file(path, temporary, descriptor);
  if (const int number = take_room(descriptor); number != 0) return failure(path, number);
  return file;
}

ReservedFile::ReservedFile(ReservedFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

ReservedFile::~ReservedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status ReservedFile::write(std::string_view contents) {
  int number = put(descriptor_, contents);
  if (!temporary_.empty()) {
    // The reserved blanks behind the contents go; rights are those that a new file would have.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (number == 0 && ::ftruncate(descriptor_, static_cast<off_t>(contents.size())) != 0) number = errno;
    if (number == 0 && (::fchmod(descriptor_, 0666 & ~mask) != 0 || ::fsync(descriptor_) != 0)) number = errno;
    if (number == 0 && ::rename(temporary_.c_str(), path_.c_str()) == 0)
      temporary_.clear();
    else if (number == 0)
      number = errno;
  }
  if (number == 0) return {};
  return failure(path_, number);
}

}  // namespace gpuwright

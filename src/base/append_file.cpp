#include "base/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

namespace gpuwright {
namespace {

tl::unexpected<Error> refusal(ErrorCode code, const std::string& path, std::string what, std::string hint = {}) {
  return fail_at(code, {path, std::nullopt, std::nullopt}, std::move(what), std::move(hint));
}
tl::unexpected<Error> system_failure(const std::string& path, std::string_view doing) {
  const int number = errno;
  const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  return refusal(number == ENOENT || number == ENOTDIR ? ErrorCode::not_found : ErrorCode::unavailable, path,
                 fmt::format("cannot {}: {}", doing, std::strerror(number)), full ? "make room on the disk" : "");
}

}  // namespace

Result<AppendFile> AppendFile::open(const std::string& path, Mode mode) {
  // O_NONBLOCK: a FIFO must not hang the program; it is refused just below.
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | (mode == Mode::must_be_new ? O_EXCL : 0);
  const int descriptor = ::open(path.c_str(), flags, 0644);
  if (descriptor < 0) return system_failure(path, "open");
  AppendFile file(descriptor, 0, path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return system_failure(path, "open");
  if (!S_ISREG(status.st_mode)) return refusal(ErrorCode::bad_input, path, "not a regular file");
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_failure(path, "lock");
    return refusal(ErrorCode::unavailable, path, "another program is writing to it", "choose another file");
  }
  if (::fstat(descriptor, &status) != 0) return system_failure(path, "open");
  file.size_ = status.st_size;
  return file;
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_), path_(std::move(other.path_)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status AppendFile::append(std::string_view bytes) {
  std::int64_t at = size_;
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data(), bytes.size(), at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      if (put == 0) errno = ENOSPC;
      auto failure = system_failure(path_, "write");
      // Where this fails, too, the bytes beyond size_ are overwritten by the next append.
      static_cast<void>(::ftruncate(descriptor_, size_) == 0);
      return failure;
    }
    at += put;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  size_ = at;
  return {};
}

Status AppendFile::cut(std::int64_t size) {
  if (::ftruncate(descriptor_, size) != 0) return system_failure(path_, "shorten");
  size_ = size;
  return {};
}

Status AppendFile::sync() {
  if (::fdatasync(descriptor_) != 0) return system_failure(path_, "write");
  return {};
}

Status rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_failure(from, fmt::format("rename to {}", to));
  return {};
}

Status link_file(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) return rename_file(from, to);
  return system_failure(from, fmt::format("name it {}", to));
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_failure(path, "remove");
  return {};
}

}  // namespace gpuwright

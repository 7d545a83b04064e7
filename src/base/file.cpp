#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace gpuwright {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> system_failure(const std::string& path, std::string_view doing, int number) {
  const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::not_found : ErrorCode::unavailable;
  return fail_at(code, {path, std::nullopt, std::nullopt}, fmt::format("cannot {}: {}", doing, std::strerror(number)));
}

// What cannot be written is never the fault of the words: a folder that is missing, full or not ours.
tl::unexpected<Error> write_failure(const std::string& path, int number) {
  return fail_at(ErrorCode::unavailable, {path, std::nullopt, std::nullopt},
                 fmt::format("cannot write: {}", std::strerror(number)));
}

class LocalFile : public ByteSource {
 public:
  LocalFile(int descriptor, std::int64_t size, std::string name)
      : descriptor_(descriptor), size_(size), name_(std::move(name)) {}
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() override { ::close(descriptor_); }

  std::int64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  Result<std::size_t> read_at(std::int64_t offset, std::span<std::byte> into) const override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got =
          ::pread(descriptor_, into.data() + done, into.size() - done, offset + static_cast<std::int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_failure(name_, "read", errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  int descriptor_;
  std::int64_t size_;
  std::string name_;
};

class MemoryBytes : public ByteSource {
 public:
  MemoryBytes(std::string bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(bytes_.size()); }
  const std::string& name() const override { return name_; }

  Result<std::size_t> read_at(std::int64_t offset, std::span<std::byte> into) const override {
    if (offset < 0 || offset >= size()) return 0;
    const std::size_t count = std::min(into.size(), bytes_.size() - static_cast<std::size_t>(offset));
    if (count > 0) std::memcpy(into.data(), bytes_.data() + offset, count);
    return count;
  }

 private:
  std::string bytes_;
  std::string name_;
};

std::string home_relative(const char* variable, const char* fallback) {
  if (const char* directory = std::getenv(variable); directory && *directory == '/')
    return std::string(directory) + "/gpuwright";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + fallback + "/gpuwright";
  return {};
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
  // O_NONBLOCK: a FIFO in a model folder must not hang the reader; it is refused just below.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_failure(path, "open", errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail_at(ErrorCode::bad_input, {path, std::nullopt, std::nullopt}, "not a regular file");
  }
  return std::make_unique<LocalFile>(descriptor, status.st_size, path);
}

std::unique_ptr<ByteSource> bytes_in_memory(std::string bytes, std::string name) {
  return std::make_unique<MemoryBytes>(std::move(bytes), std::move(name));
}

Result<std::string> read_whole(const ByteSource& source, std::int64_t max_bytes) {
  if (source.size() > max_bytes)
    return fail_at(
        ErrorCode::bad_input, {source.name(), std::nullopt, std::nullopt},
        fmt::format("{} bytes long, more than the {} that are read of such a file", source.size(), max_bytes));
  std::string bytes(static_cast<std::size_t>(source.size()), '\0');
  const std::size_t got = GW_TRY(source.read_at(0, std::as_writable_bytes(std::span(bytes))));
  bytes.resize(got);
  return bytes;
}

Result<std::string> read_file(const std::string& path, std::int64_t max_bytes) {
  const auto source = GW_TRY(open_file(path));
  return read_whole(*source, max_bytes);
}

Status write_file_atomically(const std::string& path, std::string_view contents) {
  std::string temporary = path + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) return write_failure(path, errno);
  int number = 0;
  for (std::size_t done = 0; done < contents.size() && number == 0;) {
    const ssize_t put = ::write(descriptor, contents.data() + done, contents.size() - done);
    if (put > 0) done += static_cast<std::size_t>(put);
    if (put < 0 && errno != EINTR) number = errno;
  }
  if (number == 0 && (::fchmod(descriptor, 0644) != 0 || ::fsync(descriptor) != 0)) number = errno;
  if (::close(descriptor) != 0 && number == 0) number = errno;
  if (number == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) number = errno;
  if (number == 0) return {};
  ::unlink(temporary.c_str());
  return write_failure(path, number);
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Status check_path(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return {};
  const int number = errno;
  if (number != ENOENT && number != ENOTDIR) return system_failure(path, "reach", number);
  const bool link = number == ENOENT && ::lstat(path.c_str(), &status) == 0;
  return fail_at(ErrorCode::not_found, {path, std::nullopt, std::nullopt},
                 link ? "a symbolic link to something that is not there" : "no such file or folder");
}

std::string real_name(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return path;
  return real.has_filename() ? real.filename().string() : real.string();
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) return system_failure(path, "list", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

std::string config_directory() {
  return home_relative("XDG_CONFIG_HOME", "/.config");
}
std::string cache_directory() {
  return home_relative("XDG_CACHE_HOME", "/.cache");
}

}  // namespace gpuwright

#include "cli/run/spill.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace gpuwright::cli {
namespace {

constexpr std::int64_t kMost = std::int64_t{4} << 30;  // of the file

}  // namespace

Spill::~Spill() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Spill::open() {
  if (std::exchange(tried_, true)) return descriptor_ >= 0;
  const char* chosen = std::getenv("TMPDIR");
  for (const std::string folder : {chosen != nullptr ? chosen : "/var/tmp", "/var/tmp", "/tmp"}) {
    std::string name = folder + "/gpuwright-run.XXXXXX";
    descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ < 0) continue;
    ::unlink(name.c_str());
    return true;
  }
  return false;
}

bool Spill::add(std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (!open() || written_ + size > kMost) return false;
  std::int64_t at = written_;
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  written_ += size;
  return true;
}

bool Spill::take(std::string& into, std::size_t most) {
  into.resize(static_cast<std::size_t>(std::min<std::int64_t>(size(), static_cast<std::int64_t>(most))));
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t count =
        ::pread(descriptor_, into.data() + done, into.size() - done, read_ + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  const bool whole = done == into.size();
  read_ += static_cast<std::int64_t>(into.size());
  into.resize(done);
  if (!empty()) return whole;
  // The room is given back at once.
  read_ = written_ = 0;
  return ::ftruncate(descriptor_, 0) == 0 && whole;
}

}  // namespace gpuwright::cli

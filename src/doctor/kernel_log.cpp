// The kernel's log: of this machine its ring buffer, where it may be read; else the files that syslog daemons keep.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "doctor/host_state.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostLines = 20000;
constexpr std::int64_t kMostFileBytes = 4 << 20;  // the end of a file that is larger

// A record of /dev/kmsg: "6,3973,1234567,-;NVRM: Xid (PCI:0000:01:00): 79, ..." and lines of fields behind it.
std::optional<std::string> message_of(std::string_view record) {
  const std::size_t semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  const std::string_view rest = record.substr(semicolon + 1);
  return std::string(rest.substr(0, rest.find('\n')));
}

std::optional<std::vector<std::string>> ring_buffer() {
  const int descriptor = ::open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  std::vector<std::string> lines;
  std::array<char, 8192> record;
  while (lines.size() < kMostLines) {
    const ssize_t got = ::read(descriptor, record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // overwritten while we read
    if (got <= 0) break;
    if (auto message = message_of({record.data(), static_cast<std::size_t>(got)})) lines.push_back(std::move(*message));
  }
  const bool refused = lines.empty() && errno != EAGAIN;
  ::close(descriptor);
  if (refused) return std::nullopt;
  return lines;
}

// The last lines of a file.
std::optional<std::vector<std::string>> end_of_file(const Host& host, std::string_view path) {
  const auto file = host.bytes(path);
  if (!file) return std::nullopt;
  const std::int64_t size = (*file)->size();
  const std::int64_t from = std::max<std::int64_t>(0, size - kMostFileBytes);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  const auto got = (*file)->read_at(from, std::as_writable_bytes(std::span(text)));
  if (!got) return std::nullopt;
  text.resize(*got);
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) lines.emplace_back(line.substr(0, 1024));
  // Of the boot that lasts: an older one's troubles may be over.
  const auto boot = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return line.find("Linux version ") != std::string::npos;
  });
  if (boot != lines.rend()) lines.erase(lines.begin(), boot.base() - 1);
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kMostLines));
  return lines;
}

}  // namespace

const std::optional<Host::KernelLog>& Host::kernel_log() const {
  if (state_->log || state_->log_read) return state_->log;
  state_->log_read = true;
  if (is_live())
    if (auto lines = ring_buffer()) state_->log = KernelLog{"/dev/kmsg", std::move(*lines)};
  for (const char* path : {"/var/log/kern.log", "/var/log/messages", "/var/log/dmesg"}) {
    if (state_->log) break;
    if (auto lines = end_of_file(*this, path)) state_->log = KernelLog{path, std::move(*lines)};
  }
  return state_->log;
}

}  // namespace gpuwright::doctor

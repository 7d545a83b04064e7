#include "base/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/text.h"

namespace gpuwright {

bool is_terminal(int descriptor) {
  return isatty(descriptor) == 1;
}

std::optional<int> terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    const std::string locale = lower(value);
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free descriptor is this one. Input reads nothing useful, outputs refuse to be written.
    if (open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) == -1) return;
  }
}

DescriptorBuffer::DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

DescriptorBuffer::~DescriptorBuffer() {
  DescriptorBuffer::sync();
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type character) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(character, traits_type::eof())) sputc(traits_type::to_char_type(character));
  return traits_type::not_eof(character);
}

int DescriptorBuffer::sync() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const ssize_t written = write(descriptor_, from, static_cast<std::size_t>(pptr() - from));
    if (written >= 0)
      from += written;
    else if (errno != EINTR)
      error_ = errno;
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0 ? 0 : -1;
}

bool is_in_foreground() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::tcgetpgrp(descriptor) == ::getpgrp()) return true;
  return false;
}

CookedLines::CookedLines(int descriptor) : descriptor_(descriptor) {
  termios mode{};
  if (::tcgetattr(descriptor, &mode) != 0) return;
  if ((mode.c_oflag & (OPOST | ONLCR)) == (OPOST | ONLCR)) return;
  before_ = mode;
  mode.c_oflag |= OPOST | ONLCR;
  ::tcsetattr(descriptor, TCSADRAIN, &mode);
}

CookedLines::~CookedLines() {
  if (before_) ::tcsetattr(descriptor_, TCSADRAIN, &*before_);
}

}  // namespace gpuwright

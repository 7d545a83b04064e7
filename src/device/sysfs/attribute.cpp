#include "device/sysfs/attribute.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/text.h"

namespace gpuwright::device {
namespace {

class Descriptor {
 public:
  // O_NONBLOCK: neither a FIFO without a writer nor a device may hold us up.
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

template <class Unit>
Reading<Unit> scaled(const std::string& path, double unit) {
  const auto number = read_integer(path);
  if (!number) return number.why();
  return plausible(Unit{static_cast<double>(*number) * unit});
}

}  // namespace

FileText read_start(const std::string& path, std::size_t most) {
  FileText file;
  const Descriptor descriptor(path);
  if (descriptor.number() < 0) {
    file.error = errno;
    return file;
  }
  struct stat status {};
  if (::fstat(descriptor.number(), &status) != 0 || !S_ISREG(status.st_mode)) {
    file.error = EISDIR;
    return file;
  }
  std::array<char, 4096> piece;
  while (true) {
    const std::size_t want = std::min(piece.size(), most + 1 - file.text.size());
    const ssize_t got = ::read(descriptor.number(), piece.data(), want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) file.error = errno;
    if (got <= 0) break;
    file.text.append(piece.data(), static_cast<std::size_t>(got));
    if (file.text.size() > most) {
      file.text.resize(most);
      file.whole = false;
      break;
    }
  }
  if (file.error != 0) file.text.clear();
  return file;
}

Why why_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EOPNOTSUPP:
    case EINVAL:
    case EISDIR:
    case ENOSYS:
      return Why::not_supported;
    case EACCES:
    case EPERM:
      return Why::no_permission;
    case EBUSY:
    case EAGAIN:
    case ENODATA:
    case ETIMEDOUT:
      return Why::no_data;
    case ENODEV:
    case ENXIO:
      return Why::lost;
    default:
      return Why::failed;
  }
}

Reading<std::string> read_attribute(const std::string& path) {
  const FileText file = read_start(path, kMostAttributeBytes);
  if (!file) return why_of(file.error);
  if (!file.whole) return Why::implausible;
  const std::string_view text = trim(file.text);
  if (text.empty()) return Why::no_data;
  return std::string(text);
}

Reading<std::int64_t> read_integer(const std::string& path) {
  const auto text = read_attribute(path);
  if (!text) return text.why();
  if (text->starts_with("0x")) {
    std::int64_t value = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data() + 2, end, value, 16);
    if (error == std::errc() && stop == end && value >= 0) return value;
    return Why::implausible;
  }
  const auto value = to_integer(*text);
  if (!value) return Why::implausible;
  return *value;
}

Reading<std::int64_t> read_count(const std::string& path, std::int64_t max) {
  const auto number = read_integer(path);
  if (!number) return number.why();
  if (*number < 0 || *number > max) return Why::implausible;
  return *number;
}

Reading<Bytes> read_bytes(const std::string& path) {
  const auto number = read_count(path);
  if (!number) return number.why();
  return Bytes{*number};
}

Reading<Watts> read_watts(const std::string& path, double unit) {
  return scaled<Watts>(path, unit);
}
Reading<Celsius> read_celsius(const std::string& path, double unit) {
  return scaled<Celsius>(path, unit);
}
Reading<Hertz> read_hertz(const std::string& path, double unit) {
  return scaled<Hertz>(path, unit);
}
Reading<Ratio> read_ratio(const std::string& path, double full) {
  const auto number = read_integer(path);
  if (!number) return number.why();
  return plausible(Ratio{static_cast<double>(*number) / full});
}

Reading<Watts> plausible(Watts watts) {
  constexpr double kMost = 20000;
  if (!(watts.value >= 0 && watts.value <= kMost)) return Why::implausible;
  return watts;
}

Reading<Celsius> plausible(Celsius celsius) {
  constexpr double kLeast = -60, kMost = 250;
  if (!(celsius.value >= kLeast && celsius.value <= kMost)) return Why::implausible;
  return celsius;
}

Reading<Hertz> plausible(Hertz hertz) {
  constexpr double kMost = 1e11;
  if (!(hertz.value >= 0 && hertz.value <= kMost)) return Why::implausible;
  return hertz;
}

Reading<Ratio> plausible(Ratio ratio) {
  constexpr double kSlack = 1.05;  // clocks of counters and of samples differ a little
  if (!(ratio.value >= 0 && ratio.value <= kSlack)) return Why::implausible;
  return Ratio{std::min(ratio.value, 1.0)};
}

Reading<std::string> read_link(const std::string& path) {
  std::array<char, 4096> target;
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return why_of(errno);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

Reading<std::string> read_link_name(const std::string& path) {
  auto target = read_link(path);
  if (!target) return target.why();
  return target->substr(target->rfind('/') + 1);
}

std::vector<std::string> names_in(const std::string& path, std::size_t most) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (!directory) return names;
  while (names.size() < most) {
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<int> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (name.empty() || name.front() == '-' || error != std::errc() || end != name.data() + name.size())
    return std::nullopt;
  return value;
}

std::vector<std::string> numbered_in(const std::string& path, std::string_view prefix, std::size_t most) {
  std::vector<std::string> names = names_in(path, most);
  std::erase_if(names, [&](const std::string& name) { return !number_after(name, prefix); });
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return *number_after(a, prefix) < *number_after(b, prefix);
  });
  return names;
}

std::string_view value_of_line(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.empty() || (line.front() != ':' && line.front() != ' ' && line.front() != '\t' && line.front() != '='))
      continue;
    return trim(line.substr(1));
  }
  return {};
}

}  // namespace gpuwright::device

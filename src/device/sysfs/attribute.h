// Files of sysfs and procfs, which belong to a stranger: they may be FIFOs, loops of links, endless or missing. A read
// opens without waiting, takes regular files only, and at most so many bytes; what is not told has its reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "device/reading.h"
#include "device/snapshot.h"

namespace gpuwright::device {

inline constexpr std::size_t kMostAttributeBytes = 4096;  // sysfs gives at most a page
inline constexpr std::size_t kMostProcBytes = 64 << 10;

struct FileText {
  std::string text;  // the first bytes, as many as were asked for
  int error = 0;     // errno; EISDIR for what is no regular file
  bool whole = true;
  explicit operator bool() const { return error == 0; }
};
FileText read_start(const std::string& path, std::size_t most = kMostProcBytes);

// Why a file gave no value: ENOENT and EOPNOTSUPP are not_supported, EACCES and EPERM no_permission, EBUSY, EAGAIN and
// ENODATA no_data, ENODEV and ENXIO lost.
Why why_of(int error);

// One attribute, trimmed. An empty one is no_data.
Reading<std::string> read_attribute(const std::string& path);
// Decimal, or hexadecimal with 0x. implausible where something else stands there.
Reading<std::int64_t> read_integer(const std::string& path);
// An unsigned number of one attribute, within 0..max, else implausible.
Reading<std::int64_t> read_count(const std::string& path, std::int64_t max = INT64_MAX);
Reading<Bytes> read_bytes(const std::string& path);
// The number times `unit`, e.g. 1e-6 for microwatts.
Reading<Watts> read_watts(const std::string& path, double unit);
Reading<Celsius> read_celsius(const std::string& path, double unit);
Reading<Hertz> read_hertz(const std::string& path, double unit);
Reading<Ratio> read_ratio(const std::string& path, double full);  // the number / full

// Values as devices can have them; implausible for what no device can mean (sentinels, overflows).
Reading<Watts> plausible(Watts watts);
Reading<Celsius> plausible(Celsius celsius);
Reading<Hertz> plausible(Hertz hertz);
Reading<Ratio> plausible(Ratio ratio);  // 0..1; up to 1.05 counts as 1

// The last component of the link's target, which is not followed: "amdgpu" of device/driver.
Reading<std::string> read_link_name(const std::string& path);
Reading<std::string> read_link(const std::string& path);

// Names in a directory, sorted, at most so many. Empty where it cannot be listed.
std::vector<std::string> names_in(const std::string& path, std::size_t most = 4096);
// Of names_in, those that are `prefix` and a decimal number, by that number: card0, card1, card10.
std::vector<std::string> numbered_in(const std::string& path, std::string_view prefix, std::size_t most = 4096);
// "17" of "17", "card17" with the prefix "card"; nothing when something else stands there or it exceeds 31 bits.
std::optional<int> number_after(std::string_view name, std::string_view prefix);

// The value of "key: value" or "key value" lines, trimmed; empty when the key is missing.
std::string_view value_of_line(std::string_view text, std::string_view key);

}  // namespace gpuwright::device

// Looking for lines in the kernel's log.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/check.h"
#include "doctor/host.h"

namespace gpuwright::doctor {

// The first line that holds all of the parts, with how many there are; nothing where the log has none or is not known.
std::optional<Evidence> find_in_log(const Host& host, std::initializer_list<std::string_view> parts);

// An Xid: NVIDIA's driver tells of a fault by "NVRM: Xid (PCI:0000:01:00): 79, pid=..., ...".
struct XidLine {
  int code = 0;
  std::string address;  // "0000:01:00"
  Evidence evidence;    // count: how often this code came for this GPU
};
std::vector<XidLine> xids_in_log(const Host& host);
std::optional<XidLine> xid_in(std::string_view line);

}  // namespace gpuwright::doctor

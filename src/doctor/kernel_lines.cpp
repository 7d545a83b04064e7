#include "doctor/kernel_lines.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace gpuwright::doctor {

std::optional<Evidence> find_in_log(const Host& host, std::initializer_list<std::string_view> parts) {
  const auto& log = host.kernel_log();
  if (!log) return std::nullopt;
  std::optional<Evidence> found;
  for (std::size_t i = 0; i < log->lines.size(); ++i) {
    const std::string& line = log->lines[i];
    if (!std::all_of(parts.begin(), parts.end(), [&](auto part) { return line.find(part) != std::string::npos; }))
      continue;
    if (found)
      ++found->count;
    else
      found = Evidence{log->source, static_cast<std::int64_t>(i) + 1, line, 1};
  }
  return found;
}

std::optional<XidLine> xid_in(std::string_view line) {
  const std::size_t begin = line.find("NVRM: Xid (");
  if (begin == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(begin + 11);
  if (rest.starts_with("PCI:")) rest.remove_prefix(4);
  const std::size_t close = rest.find(')');
  if (close == std::string_view::npos) return std::nullopt;
  XidLine xid;
  const std::string_view inside = rest.substr(0, close);
  xid.address = inside.substr(0, inside.find_first_not_of("0123456789abcdefABCDEF:."));
  rest = rest.substr(close + 1);
  if (!rest.starts_with(": ")) return std::nullopt;
  rest.remove_prefix(2);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), xid.code);
  if (error != std::errc() || xid.code <= 0 || xid.code > 999) return std::nullopt;
  return xid;
}

std::vector<XidLine> xids_in_log(const Host& host) {
  std::vector<XidLine> xids;
  const auto& log = host.kernel_log();
  if (!log) return xids;
  for (std::size_t i = 0; i < log->lines.size(); ++i) {
    auto xid = xid_in(log->lines[i]);
    if (!xid) continue;
    const auto known = std::find_if(xids.begin(), xids.end(), [&](const XidLine& one) {
      return one.code == xid->code && one.address == xid->address;
    });
    if (known != xids.end()) {
      ++known->evidence.count;
      continue;
    }
    xid->evidence = {log->source, static_cast<std::int64_t>(i) + 1, log->lines[i], 1};
    xids.push_back(std::move(*xid));
  }
  return xids;
}

}  // namespace gpuwright::doctor

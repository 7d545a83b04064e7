#include "device/process/users.h"

#include <pwd.h>

#include <array>
#include <vector>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostPasswdBytes = 1 << 20;

std::string name_from_system(std::uint32_t uid, CallWatch& watch) {
  if (watch.forbidden("process", -1)) return {};
  watch.enter("process", -1, "getpwuid_r");
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  watch.leave();
  return error == 0 && found != nullptr && found->pw_name != nullptr ? std::string(found->pw_name) : std::string();
}

}  // namespace

std::map<std::uint32_t, std::string> parse_passwd(std::string_view text) {
  std::map<std::uint32_t, std::string> names;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() < 4 || fields[0].empty()) continue;
    const auto uid = to_integer(fields[2]);
    if (uid && *uid >= 0 && *uid <= UINT32_MAX) names.emplace(static_cast<std::uint32_t>(*uid), fields[0]);
  }
  return names;
}

void Users::read_passwd() {
  passwd_read_ = true;
  const FileText file = read_start(root_ + "/etc/passwd", kMostPasswdBytes);
  if (file) names_ = parse_passwd(file.text);
}

const std::string& Users::name_of(std::uint32_t uid, CallWatch& watch) {
  if (!passwd_read_) read_passwd();
  if (const auto known = names_.find(uid); known != names_.end()) return known->second;
  std::string name = root_.empty() ? name_from_system(uid, watch) : std::string();
  if (name.empty()) name = std::to_string(uid);
  return names_.emplace(uid, std::move(name)).first->second;
}

}  // namespace gpuwright::device

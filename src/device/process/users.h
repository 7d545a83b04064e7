// Names of users. Of a captured tree they stand in its /etc/passwd; of this machine the system's name service knows
// them, too (LDAP, SSSD), which may take its time: `watch` is told.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "device/source.h"

namespace gpuwright::device {

class Users {
 public:
  explicit Users(std::string root) : root_(std::move(root)) {}
  // The number as text where it has no name. Asks once a user.
  const std::string& name_of(std::uint32_t uid, CallWatch& watch);

 private:
  void read_passwd();

  std::string root_;
  bool passwd_read_ = false;
  std::map<std::uint32_t, std::string> names_;
};

// "name:x:1000:..." lines; the first of a uid counts, as for getpwuid.
std::map<std::uint32_t, std::string> parse_passwd(std::string_view text);

}  // namespace gpuwright::device

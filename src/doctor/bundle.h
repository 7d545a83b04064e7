// A machine to send to somebody: the files that the checks looked at, and what no file holds, as an Archive that
// doctor --root reads again. What names people, machines or secrets is replaced; docs/doctor.md lists how, and
// bundle_test.cpp holds it to that.
#pragma once

#include <string>
#include <string_view>

#include "doctor/archive.h"
#include "doctor/machine.h"

namespace gpuwright::doctor {

// Names that are to be replaced, wherever they stand.
struct Secrets {
  std::string user;      // "ada": becomes "user"
  std::string hostname;  // "gpu01.example.org": becomes "host"
};

// Addresses (IPv4, IPv6, MAC, mail), UUIDs of GPUs (each by its own number), the names above, and what follows a word
// like password or token.
std::string redacted(std::string_view text, const Secrets& secrets);

// After the checks have run.
Archive bundle(const Machine& machine);

}  // namespace gpuwright::doctor

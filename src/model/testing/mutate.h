// Damage for files: what disks, networks and people do to headers.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace gpuwright::model::testing {

// One to eight changes: flipped bits, bytes, numbers of 4 or 8 bytes overwritten with values from the edges (also near
// 2^63), pieces cut out, doubled or moved, and a cut end.
std::string mutated(std::string bytes, std::mt19937_64& random);

// Resident memory of this process in bytes.
std::int64_t resident_bytes();

}  // namespace gpuwright::model::testing

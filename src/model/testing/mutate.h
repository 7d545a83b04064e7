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
// Processor time of this process so far: a bound on it holds on a busy machine too.
double processor_seconds();
// How much more time a sanitized build may take than a plain one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSlowdown = 20;
#else
inline constexpr double kSlowdown = 1;
#endif

}  // namespace gpuwright::model::testing

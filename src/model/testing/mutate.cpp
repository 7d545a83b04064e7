#include "model/testing/mutate.h"

#include <unistd.h>
#include <ctime>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace gpuwright::model::testing {
namespace {

constexpr std::uint64_t kEdges[] = {0,
                                    1,
                                    0x7f,
                                    0xff,
                                    0xffff,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x100000000,
                                    0x7fffffffffffffff,
                                    0x7ffffffffffffff0,
                                    0x8000000000000000,
                                    0xffffffffffffffff};

void change(std::string& bytes, std::mt19937_64& random) {
  if (bytes.empty()) return;
  const std::size_t at = random() % bytes.size();
  const std::size_t length = std::min<std::size_t>(1 + random() % 64, bytes.size() - at);
  switch (random() % 8) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2:
    case 3: {
      const std::uint64_t edge = kEdges[random() % std::size(kEdges)];
      std::memcpy(&bytes[at], &edge, std::min<std::size_t>(random() % 2 ? 8 : 4, bytes.size() - at));
      break;
    }
    case 4:
      bytes.erase(at, length);
      break;
    case 5:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 6:
      bytes.insert(random() % bytes.size(), bytes.substr(at, length));
      break;
    case 7:
      if (random() % 4 == 0) bytes.resize(at);
      break;
  }
}

}  // namespace

std::string mutated(std::string bytes, std::mt19937_64& random) {
  const std::uint64_t changes = 1 + random() % 8;
  for (std::uint64_t i = 0; i < changes; ++i) change(bytes, random);
  return bytes;
}

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace gpuwright::model::testing

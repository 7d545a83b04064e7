// Eight bytes a step by eight tables (M. Kounavis and F. Berry, "A Systematic Approach to Building High Performance
// Software-Based CRC Generators", 2005): a recording of hours is checked at about the speed at which it is read.
#include "base/crc32c.h"

#include <array>
#include <cstddef>

namespace gpuwright {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;
constexpr std::size_t kStep = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kStep>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) ? kPolynomial : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t table = 1; table < kStep; ++table)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t sum = tables[table - 1][byte];
      tables[table][byte] = (sum >> 8) ^ tables[0][sum & 0xFF];
    }
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
  const auto at = [&bytes](std::size_t index) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[index]));
  };
  std::uint32_t sum = ~before;
  std::size_t done = 0;
  for (; done + kStep <= bytes.size(); done += kStep) {
    sum ^= at(done) | at(done + 1) << 8 | at(done + 2) << 16 | at(done + 3) << 24;
    sum = kTables[7][sum & 0xFF] ^ kTables[6][(sum >> 8) & 0xFF] ^ kTables[5][(sum >> 16) & 0xFF] ^
          kTables[4][sum >> 24] ^ kTables[3][at(done + 4)] ^ kTables[2][at(done + 5)] ^ kTables[1][at(done + 6)] ^
          kTables[0][at(done + 7)];
  }
  for (; done < bytes.size(); ++done) sum = (sum >> 8) ^ kTables[0][(sum ^ at(done)) & 0xFF];
  return ~sum;
}

}  // namespace gpuwright

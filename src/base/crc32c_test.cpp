#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuwright {
namespace {

// RFC 3720, appendix B.4 (there printed with the least significant byte first).
TEST(Crc32c, TheExamplesOfTheStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string up, down;
  for (int i = 0; i < 32; ++i) up.push_back(static_cast<char>(i)), down.push_back(static_cast<char>(31 - i));
  EXPECT_EQ(crc32c(up), 0x46DD794Eu);
  EXPECT_EQ(crc32c(down), 0x113FDB5Cu);
}

// The check value of CRC-32C in Ross Williams' catalogue of parameters ("123456789").
TEST(Crc32c, PartsAddUpToTheWhole) {
  const std::string_view text = "123456789";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), 0xE3069283u) << cut;
  EXPECT_EQ(crc32c(""), 0u);
}

}  // namespace
}  // namespace gpuwright

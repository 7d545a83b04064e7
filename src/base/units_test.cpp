#include "base/units.h"

#include <gtest/gtest.h>

namespace gpuwright {
namespace {

TEST(Bytes, ReadsTheUnitsPeopleWrite) {
  EXPECT_EQ(parse_bytes("24GiB")->count, 25769803776);
  EXPECT_EQ(parse_bytes("24 GB")->count, 24000000000);
  EXPECT_EQ(parse_bytes("512m")->count, 536870912);
  EXPECT_EQ(parse_bytes("1.5k")->count, 1536);
  EXPECT_EQ(parse_bytes("1073741824")->count, 1073741824);
}

TEST(Bytes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "GiB", "-1", "nan", "inf", "1e30", "12 parsecs", "5gibi", "1 2"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(Bytes, ShowsFourDigitsAtMost) {
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Bytes::from_gib(17.236)), "17.24 GiB");
  EXPECT_EQ(to_string(Bytes::from_mib(512)), "512 MiB");
  EXPECT_EQ(to_string(Bytes{-1048576}), "-1.00 MiB");
}

TEST(CheckedArithmetic, RefusesOverflowAndNegatives) {
  EXPECT_EQ(checked_multiply(3, 4), 12);
  EXPECT_FALSE(checked_multiply(INT64_MAX / 2, 3));
  EXPECT_FALSE(checked_multiply(-1, 3));
  EXPECT_FALSE(checked_add(INT64_MAX, 1));
}

}  // namespace
}  // namespace gpuwright

#include "base/embedded.h"

#include <gtest/gtest.h>

namespace gpuwright {
namespace {

TEST(Embedded, UnknownNamesGiveNothing) {
  EXPECT_FALSE(embedded_data("no-such-file.toml"));
}

}  // namespace
}  // namespace gpuwright

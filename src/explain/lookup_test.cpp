#include "explain/lookup.h"

#include <gtest/gtest.h>

namespace gpuwright::explain {
namespace {

// The right values: NVIDIA's CUDA release notes (minimum drivers), PyTorch's RELEASE.md and wheels (architectures).
TEST(Lookup, AnswersFromTheTables) {
  const auto catalog = catalog::Catalog::load();
  ASSERT_TRUE(catalog);
  const auto ask = lookup_in(*catalog);
  EXPECT_EQ(ask("capability", "RTX 5090"), "12.0");
  EXPECT_EQ(ask("driver_for", "12.8"), "525.60.13");
  EXPECT_EQ(ask("driver_for", "13.0"), "580.65.06");
  EXPECT_EQ(ask("first_torch_for", "12.0"), "2.7");
  EXPECT_EQ(ask("torch_tag_for", "6.1"), "cu126");
  EXPECT_EQ(ask("torch_tag_for", "3.0"), std::nullopt);
  EXPECT_EQ(ask("no_such_question", "12.0"), std::nullopt);
}

}  // namespace
}  // namespace gpuwright::explain

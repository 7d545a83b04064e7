#include "fit/engine.h"

#include <gtest/gtest.h>

namespace gpuwright::fit {
namespace {

TEST(EngineNamed, TakesVersionsAndAliases) {
  EXPECT_EQ(engine_named("vllm@0.21")->engine, Engine::vllm);
  EXPECT_EQ(engine_named("vllm@0.21")->version, "0.21");
  EXPECT_EQ(engine_named("llama-server")->engine, Engine::llama_cpp);
  EXPECT_EQ(engine_named("LLAMA.CPP")->engine, Engine::llama_cpp);
  for (const char* text : {"vllm@", "vllm@abc", "vllm@."}) {
    ASSERT_FALSE(engine_named(text)) << text;
    EXPECT_EQ(engine_named(text).error().code, ErrorCode::bad_input);
  }
  const auto unknown = engine_named("vlm");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().hint, "did you mean vllm?");
}

TEST(VersionAtLeast, ComparesNumberByNumber) {
  EXPECT_TRUE(version_at_least("0.21", "0.9.2"));
  EXPECT_FALSE(version_at_least("0.9.2", "0.21"));
  EXPECT_TRUE(version_at_least("b5000", "b4477"));
  EXPECT_TRUE(version_at_least("0.21.0", "0.21"));
  EXPECT_TRUE(version_at_least("", "0.21")) << "an empty version is the newest";
  EXPECT_TRUE(version_at_least("v99999999999999999999999", "1"));
}

}  // namespace
}  // namespace gpuwright::fit

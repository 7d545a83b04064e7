#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/catalog.h"

namespace gpuwright::catalog {
namespace {

using ::testing::HasSubstr;

Accelerator ada_card() {
  Accelerator gpu;
  gpu.id = "rtx-4090-24gb";
  gpu.vendor = "NVIDIA";
  gpu.name = "GeForce RTX 4090";
  gpu.family = "consumer";
  gpu.architecture = "Ada Lovelace";
  gpu.memory_type = "GDDR6X";
  gpu.nominal_memory = Bytes::from_gib(24);
  gpu.usable_memory = Bytes::from_mib(24210);
  gpu.memory_bandwidth_gb_per_second = 1008;
  gpu.throughput.fp8_tflops = 330.3;
  gpu.throughput.fp4_tflops = 0.0;
  gpu.compute_capability = "8.9";
  gpu.first_cuda = "11.8";
  gpu.board_power = Watts{450};
  gpu.launch_price = Money{1'599'000'000, "USD"};
  return gpu;
}

bool matches(std::string_view text) {
  const auto filter = Filter::parse(text);
  if (!filter) {
    ADD_FAILURE() << text << ": " << filter.error().message();
    return false;
  }
  return filter->matches(ada_card());
}

std::string error_of(std::string_view text) {
  const auto filter = Filter::parse(text);
  return filter ? "no error" : filter.error().message();
}

TEST(Filter, ComparesNumbersWithUnits) {
  EXPECT_TRUE(matches("vram>=24"));
  EXPECT_FALSE(matches("vram>24"));
  EXPECT_TRUE(matches("vram = 24GiB"));
  EXPECT_TRUE(matches("vram<= 24 gb"));
  EXPECT_TRUE(matches("vram=24576mib"));
  EXPECT_TRUE(matches("usable<23.7"));
  EXPECT_TRUE(matches("tdp<=450W"));
  EXPECT_TRUE(matches("tdp<0.5kW"));
  EXPECT_TRUE(matches("bandwidth>1TB/s"));
  EXPECT_TRUE(matches("fp8>0.3 pflops"));
  EXPECT_TRUE(matches("price<$1600"));
  EXPECT_TRUE(matches("price!=1600"));
}

TEST(Filter, ComparesTextIgnoringCaseByWholeOrByWord) {
  EXPECT_TRUE(matches("arch=ada"));
  EXPECT_TRUE(matches("arch='ada lovelace'"));
  EXPECT_FALSE(matches("arch=love"));
  EXPECT_TRUE(matches("arch~love"));
  EXPECT_TRUE(matches("vendor=nvidia"));
  EXPECT_TRUE(matches("vendor!=amd"));
  EXPECT_FALSE(matches("name!=4090"));
  EXPECT_TRUE(matches("name~\"rtx 40\""));
}

TEST(Filter, ComparesVersionsByPieces) {
  EXPECT_TRUE(matches("cc>=8.0"));
  EXPECT_FALSE(matches("cc>=10.0"));
  EXPECT_TRUE(matches("cc<10"));
  EXPECT_FALSE(matches("cc=gfx942"));
  EXPECT_TRUE(matches("cc!=gfx942"));
  EXPECT_TRUE(matches("cuda=12.8"));
  EXPECT_TRUE(matches("cuda=13.0"));
  EXPECT_FALSE(matches("cuda=11.7"));
}

TEST(Filter, JoinsWithTheUsualPrecedence) {
  EXPECT_TRUE(matches("vendor=amd and vram>100 or arch=ada"));
  EXPECT_FALSE(matches("vendor=amd and (vram>100 or arch=ada)"));
  EXPECT_TRUE(matches("not vendor=amd AND NOT (tdp>500 OR fp4>0)"));
  EXPECT_TRUE(matches("!(vendor=amd) && (tdp>500 || fp8>0)"));
  EXPECT_FALSE(matches("unified"));
  EXPECT_TRUE(matches("unified=no and mig=no"));
}

TEST(Filter, UnknownSatisfiesNeitherAComparisonNorItsOpposite) {
  EXPECT_FALSE(matches("bf16>0"));
  EXPECT_FALSE(matches("bf16=0"));
  EXPECT_FALSE(matches("bf16!=0"));
  EXPECT_FALSE(matches("not bf16>0"));
  EXPECT_TRUE(matches("bf16>0 or vram=24"));
  EXPECT_FALSE(matches("bf16>0 and vram=24"));
  EXPECT_TRUE(matches("not (bf16>0 and vram=1)"));
}

TEST(Filter, ErrorsSayWhereAndWhatInstead) {
  EXPECT_THAT(error_of("vrm>=24"), testing::AllOf(HasSubstr("vrm"), HasSubstr("did you mean vram?")));
  EXPECT_THAT(error_of(""), HasSubstr("a field is needed"));
  EXPECT_THAT(error_of("vram"), HasSubstr("operator"));
  EXPECT_THAT(error_of("vram>="), HasSubstr("value is needed"));
  EXPECT_THAT(error_of("vram>=lots"), HasSubstr("no number"));
  EXPECT_THAT(error_of("vram>=24W"), HasSubstr("no unit of vram"));
  EXPECT_THAT(error_of("arch>ada"), HasSubstr("text"));
  EXPECT_THAT(error_of("vram~24"), HasSubstr("no text"));
  EXPECT_THAT(error_of("cuda>12"), HasSubstr("="));
  EXPECT_THAT(error_of("cuda=new"), HasSubstr("no version"));
  EXPECT_THAT(error_of("(vram>1"), HasSubstr("closing parenthesis"));
  EXPECT_THAT(error_of("vram>1 vram<2"), HasSubstr("should end"));
  EXPECT_THAT(error_of("name='x"), HasSubstr("quote"));
  EXPECT_THAT(error_of("unified=maybe"), HasSubstr("yes or no"));
  EXPECT_THAT(error_of(std::string(1000, '(') + "vram>1"), HasSubstr("too deeply"));
  EXPECT_THAT(error_of(std::string(5000, ' ')), HasSubstr("too long"));
}

TEST(Sort, PutsUnknownLastInBothDirections) {
  Accelerator a = ada_card(), b = ada_card(), c = ada_card();
  a.board_power = Watts{100};
  b.board_power.reset();
  c.board_power = Watts{300};
  std::vector<const Accelerator*> list{&b, &c, &a};
  ASSERT_TRUE(sort_by(list, "tdp"));
  EXPECT_THAT(list, testing::ElementsAre(&a, &c, &b));
  ASSERT_TRUE(sort_by(list, "-tdp"));
  EXPECT_THAT(list, testing::ElementsAre(&c, &a, &b));
  EXPECT_FALSE(sort_by(list, "watt"));
}

}  // namespace
}  // namespace gpuwright::catalog

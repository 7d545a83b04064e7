#include "fit/strategy/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "model/config.h"

namespace gpuwright::fit {
namespace {

const ClassicTable::Cell& cell(const ClassicTable& table, std::size_t row, std::string_view column) {
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].key == column) return table.rows[row].cells[i];
  throw std::out_of_range("no such column");
}

TEST(ClassicTable, HasTheGuidesFiguresBesideOurs) {
  const auto table = classic_table();
  ASSERT_TRUE(table) << table.error().message();
  ASSERT_EQ(table->rows.size(), 4U);
  EXPECT_EQ(table->rows[3].size, "70B");
  EXPECT_DOUBLE_EQ(cell(*table, 3, "fp16-inference").guide_gb, 140);
  EXPECT_DOUBLE_EQ(cell(*table, 2, "fp16-training").guide_gb, 272);
  EXPECT_DOUBLE_EQ(cell(*table, 1, "lora").guide_gb, 32);
  EXPECT_DOUBLE_EQ(cell(*table, 0, "qlora").guide_gb, 5);
  for (const auto& column : table->columns) EXPECT_FALSE(column.leaves_out.empty() || column.source.empty());
  for (const auto& row : table->rows)
    for (const auto& each : row.cells) {
      EXPECT_LE(each.ours.low, each.ours.expected);
      EXPECT_LE(each.ours.expected, each.ours.high);
    }
}

// Mixed precision keeps 18 bytes of each parameter under Trainer: 6 of weights, 4 of gradients, 8 of AdamW
// (transformers docs, model_memory_anatomy). The rest is activations, logits and overheads.
TEST(ClassicTable, MixedPrecisionKeeps18BytesAParameter) {
  const auto table = classic_table();
  ASSERT_TRUE(table);
  for (std::size_t row = 0; row < 4; ++row) {
    const double bytes = static_cast<double>(cell(*table, row, "fp16-training").ours.expected.count);
    const double each = bytes / static_cast<double>(table->rows[row].parameters);
    EXPECT_GT(each, 17.5) << table->rows[row].size;
    EXPECT_LT(each, 20.5) << table->rows[row].size;
  }
}

// litgpt's table: Llama 2 7B and 13B, LoRA r=8, bf16-true, no checkpointing, 1.3k tokens: 21.30 and 38.12 GB
// (tutorials/resource-tables.md@8641822). With checkpointing it must be less, and more than the weights.
TEST(ClassicTable, LoraLiesBetweenWeightsAndMeasurementsWithoutCheckpointing) {
  const auto table = classic_table();
  ASSERT_TRUE(table);
  EXPECT_LT(cell(*table, 0, "lora").ours.expected.gb(), 21.30);
  EXPECT_GT(cell(*table, 0, "lora").ours.expected.gb(), 6.738 * 2);
  EXPECT_LT(cell(*table, 1, "lora").ours.expected.gb(), 38.12);
  EXPECT_GT(cell(*table, 1, "lora").ours.expected.gb(), 13.016 * 2);
}

// Sizes in GiB and bits a weight of Llama 3.1 8B: tools/quantize/README.md of llama.cpp@311c2c9.
TEST(QuantizationTable, SizesAreThoseOfLlamaCpp) {
  const auto table = quantization_table(*model::preset("llama-3.1-8b"));
  ASSERT_TRUE(table) << table.error().message();
  const auto row = [&](std::string_view format) {
    return std::find_if(table->rows.begin(), table->rows.end(),
                        [&](const auto& each) { return each.format == format; });
  };
  EXPECT_NEAR(row("F16")->size.gib(), 14.96, 0.01);
  EXPECT_NEAR(row("Q8_0")->size.gib(), 7.95, 0.01);
  EXPECT_NEAR(row("Q4_K_M")->size.gib(), 4.58, 0.01);
  EXPECT_NEAR(row("Q4_K_M")->bits_per_weight, 4.8944, 0.005);
}

TEST(QuantizationTable, IsEmptyWhereNothingIsSourced) {
  const auto table = quantization_table(*model::preset("llama-3.1-8b"));
  ASSERT_TRUE(table);
  int empty = 0;
  for (const auto& row : table->rows) {
    empty += row.measurements.empty();
    for (const CitedMeasurement& measured : row.measurements) {
      EXPECT_FALSE(measured.source.empty());
      EXPECT_THAT(measured.of, ::testing::AnyOf("quality", "decode", "prefill"));
    }
    if (row.format == "F16") {
      EXPECT_DOUBLE_EQ(row.first("decode")->value, row.first("decode")->baseline);
    }
  }
  EXPECT_GT(empty, 0);
}

TEST(QuantizationTable, RefusesAModelThatIsQuantisedAlready) {
  const auto packed = quantization_table(*model::preset("gpt-oss-20b"));
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace gpuwright::fit

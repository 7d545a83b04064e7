#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "model/testing/onnx_builder.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::onnx::external_tensor;
using testing::onnx::Message;
using testing::onnx::small_model;
using testing::onnx::tensor;

class Folder : public ModelFiles {
 public:
  explicit Folder(std::map<std::string, std::size_t> sizes) : sizes_(std::move(sizes)) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<std::string>> list() const override { return std::vector<std::string>{}; }
  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    opened.push_back(file);
    const auto found = sizes_.find(file);
    if (found == sizes_.end()) return fail(ErrorCode::not_found, file + " is not there");
    return bytes_in_memory(std::string(found->second, '\0'), file);
  }
  mutable std::vector<std::string> opened;

 private:
  std::map<std::string, std::size_t> sizes_;
  std::string name_ = "folder";
};

Result<Model> read(std::string bytes, const ModelFiles* folder = nullptr) {
  return read_onnx(*bytes_in_memory(std::move(bytes), "dir/net.onnx"), folder, {});
}
std::string with(const Message& initializer) {
  return testing::onnx::model(Message().bytes(2, "g").message(5, initializer)).str();
}
std::string complaint(std::string bytes, const ModelFiles* folder = nullptr) {
  const auto model = read(std::move(bytes), folder);
  return model ? "it was read" : model.error().message();
}

TEST(Onnx, ReadsEveryPlaceThatHoldsATensor) {
  const auto model = read(small_model());
  ASSERT_TRUE(model) << model.error().message();
  std::vector<std::string> names;
  for (const Tensor& tensor : model->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("in.branch", "shape", "weight", "half", "scalar", "four", "typed", "sparse",
                                 "sparse.indices"));
  // 6 + 2 + 32 + 7 + 1 + 9 + 3 + 5; positions of sparse values are no parameters
  EXPECT_EQ(model->parameters(), 65);
  EXPECT_EQ(model->weight_bytes().count, 24 + 16 + 128 + 14 + 8 + 5 + 12 + 20 + 40);
  EXPECT_EQ(model->kind, ModelKind::other);
  EXPECT_EQ(model->source, Source::onnx);
  EXPECT_TRUE(model->layers.empty());
  EXPECT_EQ(model->name, "net");
  EXPECT_EQ(model->weight_format, "F32");
}

TEST(Onnx, TellsTheGraph) {
  const auto model = read(small_model());
  ASSERT_TRUE(model && model->graph);
  const GraphInfo& graph = *model->graph;
  EXPECT_EQ(graph.name, "tiny");
  EXPECT_EQ(graph.format_version, 8);
  EXPECT_EQ(graph.producer, "writer 1.0");
  ASSERT_EQ(graph.opsets.size(), 1u);
  EXPECT_EQ(graph.opsets[0].version, 17);
  ASSERT_EQ(graph.inputs.size(), 1u);  // "weight" is an initialiser, as files of IR 3 list them
  EXPECT_EQ(graph.inputs[0].element_type, "F32");
  EXPECT_THAT(graph.inputs[0].dimensions, ElementsAre("batch", "3", "?", "224"));
  EXPECT_THAT(graph.outputs[0].dimensions, ElementsAre("batch", "1000"));
  EXPECT_EQ(graph.nodes, 6);
  EXPECT_EQ(graph.subgraphs, 1);
  EXPECT_EQ(graph.operators.front().name, "Add");
  EXPECT_EQ(graph.operators.front().nodes, 2);
  EXPECT_EQ(graph.operators.back().name, "com.microsoft.MatMulNBits");
}

// Bits of each TensorProto.DataType: comments of the enum in onnx/onnx.in.proto. Bytes of 15 elements.
TEST(Onnx, KnowsEveryElementType) {
  const std::map<int, std::size_t> bytes_of_15 = {
      {1, 60},   {2, 15},  {3, 15},   {4, 30},   {5, 30},   {6, 60},  {7, 120}, {9, 15},  {10, 30},
      {11, 120}, {12, 60}, {13, 120}, {14, 120}, {15, 240}, {16, 30}, {17, 15}, {18, 15}, {19, 15},
      {20, 15},  {21, 8},  {22, 8},   {23, 8},   {24, 15},  {25, 4},  {26, 4}};
  for (const auto& [type, bytes] : bytes_of_15) {
    const auto model = read(with(tensor("t", type, {3, 5}, bytes)));
    ASSERT_TRUE(model) << type << ": " << model.error().message();
    EXPECT_EQ(model->weight_bytes().count, static_cast<std::int64_t>(bytes)) << type;
    EXPECT_FALSE(read(with(tensor("t", type, {3, 5}, bytes + 1)))) << type;
  }
  const auto unknown = read(with(tensor("t", 99, {3, 5}, 77)));
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->weight_bytes().count, 77);
}

TEST(Onnx, FindsExternalDataAndCountsItsFiles) {
  const Folder folder({{"net.data", 200}, {"sub/more.bin", 64}});
  Message graph;
  graph.message(5, external_tensor("a", 1, {4, 8}, "net.data", "0", "128"))
      .message(5, external_tensor("b", 1, {16}, "net.data", "128", ""))
      .message(5, external_tensor("c", 1, {16}, "sub/more.bin", "0", "64"));
  const std::string bytes = testing::onnx::model(graph).str();
  const auto model = read(bytes, &folder);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->weight_bytes().count, 128 + 64 + 64);
  EXPECT_EQ(model->file_bytes.count, static_cast<std::int64_t>(bytes.size() + 264));
  EXPECT_THAT(model->graph->external_files, ElementsAre("net.data", "sub/more.bin"));
  EXPECT_EQ(folder.opened.size(), 2u);  // each once
  EXPECT_THAT(complaint(bytes), HasSubstr("came alone"));
}

TEST(Onnx, RefusesExternalDataOutsideTheFolder) {
  const Folder folder({{"net.data", 200}});
  for (const std::string_view location : {"/etc/passwd", "../secret", "a/../../b", "", "a\\b", "a//b"}) {
    EXPECT_THAT(complaint(with(external_tensor("a", 1, {4}, location, "0", "16")), &folder), HasSubstr("not a file in"))
        << location;
  }
  EXPECT_TRUE(folder.opened.empty());
  EXPECT_THAT(complaint(with(external_tensor("a", 1, {4}, "absent.bin", "0", "16")), &folder), HasSubstr("absent.bin"));
  EXPECT_THAT(complaint(with(external_tensor("a", 1, {4}, "net.data", "190", "16")), &folder),
              HasSubstr("which has 200"));
  EXPECT_THAT(complaint(with(external_tensor("a", 1, {4}, "net.data", "0", "17")), &folder), HasSubstr("asks for 16"));
  EXPECT_THAT(complaint(with(external_tensor("a", 1, {4}, "net.data", "-4", "16")), &folder), HasSubstr("offset"));
  EXPECT_THAT(complaint(with(external_tensor("a", 1, {4}, "net.data", "9223372036854775807", "16")), &folder),
              HasSubstr("needs 16 bytes"));
}

TEST(Onnx, SaysWhenWeightsWereStripped) {
  Message stripped;
  stripped.packed(1, {10, 10}).number(2, 1).bytes(8, "w");
  const auto model = read(with(stripped));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->weight_bytes().count, 400);
  EXPECT_THAT(model->assumptions, ElementsAre(HasSubstr("no data")));
}

TEST(Onnx, RefusesNonsense) {
  EXPECT_THAT(complaint(""), HasSubstr("is this an ONNX model?"));
  EXPECT_THAT(complaint("{\"this\": \"is JSON\"}"), HasSubstr("is this an ONNX model?"));
  EXPECT_THAT(complaint(with(tensor("t", 1, {1ull << 62, 8}, 4))), HasSubstr("63 bits"));
  EXPECT_THAT(complaint(with(tensor("t", 1, {~0ull}, 4))), HasSubstr("dimension of -1"));
  EXPECT_THAT(complaint(with(Message().packed(1, {1ull << 40}).number(2, 1).bytes(4, "1234"))),
              HasSubstr("elements at most"));
  Message many;
  for (int i = 0; i < 5; ++i) many.message(5, Message().packed(1, {1ull << 61}).number(2, 26));
  EXPECT_THAT(complaint(testing::onnx::model(many).str()), HasSubstr("together"));
  EXPECT_FALSE(read(Message().tag(7, 2).varint(1ull << 60).str()));
  EXPECT_FALSE(read(Message().tag(7, 3).str()));
}

TEST(Onnx, RefusesFilesCutOffAnywhere) {
  // The graph comes before the operator sets, so a cut behind it leaves a whole model.
  const std::string bytes = small_model();
  for (std::size_t length = 0; length + 8 < bytes.size(); length += 3)
    EXPECT_FALSE(read(bytes.substr(0, length))) << length;
}

std::string nested(int depth) {
  Message graph;
  for (int i = 0; i < depth; ++i) {
    Message attribute;
    attribute.message(6, graph);
    graph = Message().message(1, Message().bytes(4, "If").message(5, attribute));
  }
  return testing::onnx::model(graph).str();
}

TEST(Onnx, FollowsSubgraphsButNotForEver) {
  const auto model = read(nested(10));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->graph->subgraphs, 10);
  EXPECT_THAT(complaint(nested(5000)), HasSubstr("nested"));
}

// Only the description is read: the source would notice anybody who asks for the weights.
class Guarded : public ByteSource {
 public:
  Guarded(std::string head, std::int64_t weights, std::string tail)
      : head_(std::move(head)), tail_(std::move(tail)), weights_(weights) {}
  std::int64_t size() const override { return head_size() + weights_ + static_cast<std::int64_t>(tail_.size()); }
  const std::string& name() const override { return name_; }
  Result<std::size_t> read_at(std::int64_t offset, std::span<std::byte> into) const override {
    fetched += static_cast<std::int64_t>(into.size());
    std::size_t i = 0;
    for (; i < into.size() && offset + static_cast<std::int64_t>(i) < size(); ++i)
      into[i] = static_cast<std::byte>(at(offset + static_cast<std::int64_t>(i)));
    return i;
  }
  mutable std::int64_t fetched = 0;

 private:
  std::int64_t head_size() const { return static_cast<std::int64_t>(head_.size()); }
  char at(std::int64_t offset) const {
    if (offset < head_size()) return head_[static_cast<std::size_t>(offset)];
    if (offset < head_size() + weights_) return '\0';
    return tail_[static_cast<std::size_t>(offset - head_size() - weights_)];
  }
  std::string head_, tail_, name_ = "big.onnx";
  std::int64_t weights_;
};

TEST(Onnx, JumpsOverWeightsOfAnySize) {
  constexpr std::int64_t kWeights = std::int64_t{3} << 30;
  const std::uint64_t elements = kWeights / 4;
  Message head;
  head.packed(1, {elements}).number(2, 1).bytes(8, "w").tag(9, 2).varint(kWeights);
  const std::uint64_t tensor_bytes = head.str().size() + kWeights;
  const std::string last = Message().message(5, tensor("last", 1, {4}, 16)).str();
  Message graph;
  graph.tag(5, 2).varint(tensor_bytes).append(head.str());
  const std::uint64_t graph_bytes = graph.str().size() + kWeights + last.size();
  Message file;
  file.number(1, 8).tag(7, 2).varint(graph_bytes).append(graph.str());
  const Guarded source(file.str(), kWeights, last);
  const auto model = read_onnx(source, nullptr, {});
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->weight_bytes().count, kWeights + 16);
  EXPECT_LT(source.fetched, 1 << 17);
}

}  // namespace
}  // namespace gpuwright::model

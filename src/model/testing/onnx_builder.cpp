#include "model/testing/onnx_builder.h"

#include <algorithm>
#include <cctype>

namespace gpuwright::model::testing::onnx {

Message& Message::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes_.push_back(static_cast<char>(value));
  return *this;
}
Message& Message::tag(std::uint32_t field, std::uint32_t wire) {
  return varint(std::uint64_t{field} << 3 | wire);
}
Message& Message::append(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}
Message& Message::number(std::uint32_t field, std::uint64_t value) {
  return tag(field, 0).varint(value);
}
Message& Message::bytes(std::uint32_t field, std::string_view value) {
  return tag(field, 2).varint(value.size()).append(value);
}
Message& Message::packed(std::uint32_t field, const std::vector<std::uint64_t>& values) {
  Message inner;
  for (const std::uint64_t value : values) inner.varint(value);
  return message(field, inner);
}

namespace {

Message shaped(std::string_view name, std::int64_t type, const std::vector<std::uint64_t>& dimensions) {
  Message result;
  return result.packed(1, dimensions).number(2, static_cast<std::uint64_t>(type)).bytes(8, name);
}

Message entry(std::string_view key, std::string_view text) {
  Message result;
  return result.bytes(1, key).bytes(2, text);
}

}  // namespace

Message tensor(std::string_view name, std::int64_t type, const std::vector<std::uint64_t>& dimensions,
               std::size_t raw_bytes) {
  return shaped(name, type, dimensions).bytes(9, std::string(raw_bytes, '\0'));
}

Message external_tensor(std::string_view name, std::int64_t type, const std::vector<std::uint64_t>& dimensions,
                        std::string_view location, std::string_view offset, std::string_view length) {
  Message result = shaped(name, type, dimensions);
  result.message(13, entry("location", location)).message(13, entry("offset", offset));
  if (!length.empty()) result.message(13, entry("length", length));
  return result.number(14, 1);
}

Message node(std::string_view op, std::string_view output, const std::vector<Message>& attributes,
             std::string_view domain) {
  Message result;
  result.bytes(1, "x").bytes(2, output).bytes(4, op);
  for (const Message& attribute : attributes) result.message(5, attribute);
  if (!domain.empty()) result.bytes(7, domain);
  return result;
}

Message value(std::string_view name, std::int64_t type, const std::vector<std::string>& dimensions) {
  Message shape;
  for (const std::string& text : dimensions) {
    const bool digits =
        !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
    Message dimension;
    if (digits) dimension.number(1, std::stoull(text));
    if (!digits && !text.empty()) dimension.bytes(2, text);
    shape.message(1, dimension);
  }
  Message tensor_type;
  tensor_type.number(1, static_cast<std::uint64_t>(type)).message(2, shape);
  Message result;
  return result.bytes(1, name).message(2, Message().message(1, tensor_type));
}

Message model(const Message& graph) {
  Message result;
  return result.number(1, 8)
      .bytes(2, "writer")
      .bytes(3, "1.0")
      .message(7, graph)
      .message(8, Message().bytes(1, "").number(2, 17));
}

std::string small_model() {
  const Message branch = Message()
                             .message(1, node("Add", "y"))
                             .message(1, node("Mul", "z"))
                             .message(5, tensor("in.branch", 1, {2, 3}, 24));
  const Message branches = Message().bytes(1, "then_branch").message(6, branch);
  const Message constant = Message().bytes(1, "value").message(5, tensor("", 7, {2}, 16));
  Message sparse;
  sparse.message(1, tensor("sparse", 1, {5}, 20)).message(2, tensor("", 7, {5}, 40)).packed(3, {100});
  Message typed;
  typed.packed(1, {3}).number(2, 1).bytes(8, "typed").bytes(4, std::string(12, '\0'));
  Message graph;
  graph.bytes(2, "tiny")
      .message(1, node("If", "out", {branches}))
      .message(1, node("Constant", "shape", {constant}))
      .message(1, node("MatMulNBits", "q", {}, "com.microsoft"))
      .message(1, node("Add", "sum"))
      .message(5, tensor("weight", 1, {4, 8}, 128))
      .message(5, tensor("half", 10, {7}, 14))
      .message(5, tensor("scalar", 11, {}, 8))
      .message(5, tensor("four", 22, {3, 3}, 5))
      .message(5, typed)
      .message(15, sparse)
      .message(11, value("x", 1, {"batch", "3", "", "224"}))
      .message(11, value("weight", 1, {"4", "8"}))
      .message(12, value("out", 1, {"batch", "1000"}));
  return model(graph).str();
}

}  // namespace gpuwright::model::testing::onnx

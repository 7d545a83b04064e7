// Writes small ONNX files for tests, field by field, independent of the reader: field numbers from onnx/onnx.in.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwright::model::testing::onnx {

// One Protocol Buffers message as bytes; nested ones are written by giving their bytes.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value);
  Message& bytes(std::uint32_t field, std::string_view value);
  Message& message(std::uint32_t field, const Message& value) { return bytes(field, value.bytes_); }
  Message& packed(std::uint32_t field, const std::vector<std::uint64_t>& values);
  Message& tag(std::uint32_t field, std::uint32_t wire);  // the value is up to the caller
  Message& varint(std::uint64_t value);
  Message& append(std::string_view bytes);
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

// TensorProto with raw data of zeros.
Message tensor(std::string_view name, std::int64_t type, const std::vector<std::uint64_t>& dimensions,
               std::size_t raw_bytes);
Message external_tensor(std::string_view name, std::int64_t type, const std::vector<std::uint64_t>& dimensions,
                        std::string_view location, std::string_view offset, std::string_view length);
// NodeProto; attributes are AttributeProto messages.
Message node(std::string_view op, std::string_view output, const std::vector<Message>& attributes = {},
             std::string_view domain = "");
// ValueInfoProto; dimensions that are digits become values, others parameters.
Message value(std::string_view name, std::int64_t type, const std::vector<std::string>& dimensions);
// ModelProto around a GraphProto: IR 8, opset 17, producer "writer 1.0".
Message model(const Message& graph);

// A graph with every kind of thing that holds a tensor: what the mutations start from.
std::string small_model();

}  // namespace gpuwright::model::testing::onnx

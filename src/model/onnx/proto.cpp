#include "model/onnx/proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/onnx/tensor_proto.h"
#include "model/onnx/wire.h"

namespace gpuwright::model::onnx {
namespace {

// A first block that holds the small fields between two tensors; jumps over weights start with it anew.
constexpr std::size_t kBlock = 16 << 10;
constexpr std::int64_t kMaxBytesRead = 1 << 29;
constexpr int kMaxDepth = 32;  // graphs within graphs; real models have three
constexpr std::size_t kMaxTensors = 1 << 18;
constexpr std::size_t kMaxOperators = 1 << 12;  // different ones
constexpr std::size_t kMaxValues = 1 << 14;     // inputs or outputs
constexpr std::size_t kMaxRank = 64;
constexpr std::size_t kMaxOpsets = 256;

class ProtoReader {
 public:
  explicit ProtoReader(const ByteSource& file) : cursor_(file, kBlock, kMaxBytesRead) {}

  Result<Proto> read() {
    read_model(Message(cursor_, cursor_.size()));
    if (!has_graph_) cursor_.fail_here("there is no graph in it");
    if (auto status = cursor_.status(); !status) {
      if (!has_graph_) status.error().hint = "is this an ONNX model?";
      return tl::unexpected<Error>(std::move(status.error()));
    }
    drop_initialized_inputs();
    rank_operators();
    return std::move(proto_);
  }

 private:
  GraphInfo& info() { return proto_.info; }
  std::string name_of(Message& message) { return message.text(kMaxNameBytes, "a name"); }

  void read_model(Message message) {
    enum : std::uint32_t {
      kIrVersion = 1,
      kProducer = 2,
      kProducerVersion = 3,
      kGraph = 7,
      kOpset = 8,
      kTraining = 20,
      kFunction = 25
    };
    std::string producer, version;
    while (message.next()) {
      switch (message.field()) {
        case kIrVersion:
          info().format_version = static_cast<std::int64_t>(message.number());
          break;
        case kProducer:
          producer = name_of(message);
          break;
        case kProducerVersion:
          version = name_of(message);
          break;
        case kGraph:
          has_graph_ = has_graph_ || message.wire() == Wire::bytes;
          read_graph(message.open(), 0);
          break;
        case kOpset:
          read_opset(message.open());
          break;
        case kTraining:
          read_training(message.open());
          break;
        case kFunction:
          read_function(message.open());
          break;
        default:
          break;
      }
    }
    info().producer = producer.empty() || version.empty() ? producer : producer + " " + version;
  }

  void read_opset(Message message) {
    GraphInfo::Opset opset;
    while (message.next()) {
      if (message.field() == 1) opset.domain = name_of(message);
      if (message.field() == 2) opset.version = static_cast<std::int64_t>(message.number());
    }
    if (info().opsets.size() == kMaxOpsets) return cursor_.fail_here("more operator sets than a model can use");
    if (opset.domain == "ai.onnx") opset.domain.clear();
    info().opsets.push_back(std::move(opset));
  }

  // Gradient graphs of the (never widespread) training extension: initialisers and nodes like any other.
  void read_training(Message message) {
    enum : std::uint32_t { kInitialization = 1, kAlgorithm = 2 };
    while (message.next())
      if (message.field() == kInitialization || message.field() == kAlgorithm) read_graph(message.open(), 1);
  }

  void read_function(Message message) {
    constexpr std::uint32_t kNode = 7;
    while (message.next())
      if (message.field() == kNode) read_node(message.open(), 1);
  }

  void read_graph(Message message, int depth) {
    enum : std::uint32_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12, kSparse = 15 };
    if (depth > kMaxDepth) return cursor_.fail_here(fmt::format("graphs nested more than {} deep", kMaxDepth));
    if (depth > 0) ++info().subgraphs;
    while (message.next()) {
      switch (message.field()) {
        case kNode:
          read_node(message.open(), depth);
          break;
        case kName:
          if (depth == 0) info().name = name_of(message);
          break;
        case kInitializer:
          keep(read_tensor(cursor_, message.open()));
          break;
        case kSparse:
          for (Initializer& part : read_sparse_tensor(cursor_, message.open())) keep(std::move(part));
          break;
        case kInput:
          if (depth == 0) read_value(message.open(), info().inputs);
          break;
        case kOutput:
          if (depth == 0) read_value(message.open(), info().outputs);
          break;
        default:
          break;
      }
    }
  }

  void keep(Initializer tensor) {
    if (!cursor_.ok()) return;
    if (proto_.initializers.size() == kMaxTensors)
      return cursor_.fail_here(fmt::format("more than {} tensors", kMaxTensors));
    proto_.initializers.push_back(std::move(tensor));
  }

  void read_node(Message message, int depth) {
    enum : std::uint32_t { kOutput = 2, kOperator = 4, kAttribute = 5, kDomain = 7 };
    std::string output, op, domain;
    const std::size_t before = proto_.initializers.size();
    while (message.next()) {
      switch (message.field()) {
        case kOutput:
          if (output.empty()) output = name_of(message);
          break;
        case kOperator:
          op = name_of(message);
          break;
        case kDomain:
          domain = name_of(message);
          break;
        case kAttribute:
          read_attribute(message.open(), depth);
          break;
        default:
          break;
      }
    }
    // A constant is known by the value it makes.
    if (proto_.initializers.size() == before + 1 && proto_.initializers.back().name.empty())
      proto_.initializers.back().name = std::move(output);
    count(domain.empty() || domain == "ai.onnx" ? std::move(op) : domain + "." + op);
  }

  void count(std::string op) {
    if (!cursor_.ok()) return;
    ++info().nodes;
    ++nodes_of_[std::move(op)];
    if (nodes_of_.size() > kMaxOperators)
      cursor_.fail_here(fmt::format("more than {} kinds of operators", kMaxOperators));
  }

  void read_attribute(Message message, int depth) {
    enum : std::uint32_t { kTensor = 5, kGraph = 6, kTensors = 10, kGraphs = 11, kSparse = 22, kSparses = 23 };
    while (message.next()) {
      switch (message.field()) {
        case kTensor:
        case kTensors:
          keep(read_tensor(cursor_, message.open()));
          break;
        case kGraph:
        case kGraphs:
          read_graph(message.open(), depth + 1);
          break;
        case kSparse:
        case kSparses:
          for (Initializer& part : read_sparse_tensor(cursor_, message.open())) keep(std::move(part));
          break;
        default:
          break;
      }
    }
  }

  void read_value(Message message, std::vector<GraphInfo::Value>& into) {
    enum : std::uint32_t { kName = 1, kType = 2 };
    GraphInfo::Value value;
    while (message.next()) {
      if (message.field() == kName) value.name = name_of(message);
      if (message.field() == kType) read_type(message.open(), value);
    }
    if (into.size() == kMaxValues) return cursor_.fail_here(fmt::format("more than {} inputs or outputs", kMaxValues));
    into.push_back(std::move(value));
  }

  void read_type(Message message, GraphInfo::Value& value) {
    enum : std::uint32_t { kTensor = 1, kSequence = 4, kMap = 5, kSparse = 8, kOptional = 9 };
    while (message.next()) {
      if (message.field() == kSequence) value.element_type = "sequence";
      if (message.field() == kMap) value.element_type = "map";
      if (message.field() == kOptional) value.element_type = "optional";
      if (message.field() == kTensor || message.field() == kSparse) read_tensor_type(message.open(), value);
    }
  }

  void read_tensor_type(Message message, GraphInfo::Value& value) {
    enum : std::uint32_t { kElementType = 1, kShape = 2, kDimension = 1 };
    while (message.next()) {
      if (message.field() == kElementType)
        value.element_type = element_type(static_cast<std::int64_t>(message.number())).name;
      if (message.field() != kShape) continue;
      Message shape = message.open();
      while (shape.next())
        if (shape.field() == kDimension) read_dimension(shape.open(), value);
    }
  }

  void read_dimension(Message message, GraphInfo::Value& value) {
    enum : std::uint32_t { kValue = 1, kParameter = 2 };
    std::string dimension = "?";
    while (message.next()) {
      if (message.field() == kValue) dimension = std::to_string(static_cast<std::int64_t>(message.number()));
      if (message.field() == kParameter) dimension = name_of(message);
    }
    if (value.dimensions.size() == kMaxRank) return cursor_.fail_here("a value of too many dimensions");
    value.dimensions.push_back(dimension.empty() ? "?" : std::move(dimension));
  }

  // Before IR version 4 every initialiser was listed among the inputs too.
  void drop_initialized_inputs() {
    std::set<std::string_view> initialized;
    for (const Initializer& tensor : proto_.initializers) initialized.insert(tensor.name);
    std::erase_if(info().inputs, [&](const GraphInfo::Value& input) { return initialized.count(input.name) > 0; });
  }

  void rank_operators() {
    for (auto& [name, nodes] : nodes_of_) info().operators.push_back({name, nodes});
    std::stable_sort(info().operators.begin(), info().operators.end(),
                     [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
  }

  ByteCursor cursor_;
  Proto proto_;
  std::map<std::string, std::int64_t> nodes_of_;
  bool has_graph_ = false;
};

}  // namespace

Result<Proto> read_proto(const ByteSource& file) {
  return ProtoReader(file).read();
}

}  // namespace gpuwright::model::onnx

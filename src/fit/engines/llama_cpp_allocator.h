// What llama.cpp's "compute buffer size" will be: its compute graph, tensor by tensor, run through the same allocator.
//
// ggml reserves one buffer a device for all intermediate tensors of the largest graph. The size is not a sum: tensors
// are placed by best fit among freed blocks, some operations write into their input, views take nothing, and each
// device first receives copies of what other devices made. So the graph is laid out here in execution order and the
// allocator replayed: ggml/src/ggml-alloc.c (ggml_gallocr_alloc_graph_impl, ggml_dyn_tallocr_alloc) and the split rules
// of ggml/src/ggml-backend.cpp (ggml_backend_sched_split_graph), both ggml-org/llama.cpp, read at commit 0450e2f9.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace gpuwright::fit {

class ComputeGraph {
 public:
  using Tensor = int;  // an index; none() for an operand that is not allocated here (weights, caches)
  static constexpr Tensor none() { return -1; }
  static constexpr int kHost = 0;  // buffers: the host's, then one for each device

  // copies: how many each device keeps of the inputs it gets; 4 under pipeline parallelism, else 1.
  ComputeGraph(int devices, int copies);

  // Where operations added from now on run.
  void on(int buffer) { buffer_ = buffer; }
  int buffer() const { return buffer_; }

  // Filled by the caller before each run; always in host memory.
  Tensor input(std::string_view name, std::int64_t bytes);
  // A new tensor that depends on `sources`.
  Tensor op(std::string_view name, std::int64_t bytes, std::vector<Tensor> sources);
  // The same, for operations that may overwrite a source of the same layout when nobody else needs it.
  Tensor in_place(std::string_view name, std::int64_t bytes, std::vector<Tensor> sources);
  Tensor view(Tensor source);
  // Reads `sources` and writes outside the graph (a store to the cache).
  void sink(std::vector<Tensor> sources);

  struct Reserved {
    std::int64_t bytes = 0;
    // What was live when the buffer was fullest, largest first: "result_output 304.0 MiB + result_norm 4.0 MiB".
    std::string live;
  };
  // One for each buffer, kHost first.
  std::vector<Reserved> reserve() const;

 private:
  friend class Replay;
  struct Node {
    std::string name;
    std::int64_t bytes = 0;
    int buffer = kHost;
    bool may_overwrite = false;
    bool is_input = false;
    bool stored = true;  // false for a sink
    Tensor view_of = -1;
    std::vector<Tensor> sources;
  };
  Tensor push(Node node);

  std::vector<Node> nodes_;
  int devices_;
  int copies_;
  int buffer_ = kHost;
};

}  // namespace gpuwright::fit

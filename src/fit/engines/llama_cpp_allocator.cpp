#include "fit/engines/llama_cpp_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gpuwright::fit {
namespace {

// ggml_dyn_tallocr: free blocks sorted by offset; the last one reaches to infinity.
class BlockAllocator {
 public:
  std::int64_t allocate(std::int64_t size) {
    size = pad_to(size, kAlignment);
    std::size_t best = blocks_.size() - 1;
    for (std::size_t i = 0; i + 1 < blocks_.size(); ++i)
      if (blocks_[i].size >= size && (best == blocks_.size() - 1 || blocks_[i].size <= blocks_[best].size)) best = i;
    Block& block = blocks_[best];
    const std::int64_t offset = block.offset;
    block.offset += size;
    block.size -= size;
    if (block.size == 0) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(best));
    highest_ = std::max(highest_, offset + size);
    return offset;
  }

  void free(std::int64_t offset, std::int64_t size) {
    size = pad_to(size, kAlignment);
    const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), offset,
                                     [](const Block& block, std::int64_t wanted) { return block.offset < wanted; });
    auto place = blocks_.insert(at, Block{offset, size});
    if (const auto next = place + 1; next != blocks_.end() && place->offset + place->size == next->offset) {
      place->size += next->size;
      place = blocks_.erase(next) - 1;
    }
    if (place != blocks_.begin() && (place - 1)->offset + (place - 1)->size == place->offset) {
      (place - 1)->size += place->size;
      blocks_.erase(place);
    }
  }

  std::int64_t highest() const { return highest_; }

 private:
  static constexpr std::int64_t kAlignment = 128;  // of CUDA buffers
  static constexpr std::int64_t kEndless = std::int64_t{1} << 62;
  struct Block {
    std::int64_t offset, size;
  };
  std::vector<Block> blocks_ = {{0, kEndless}};
  std::int64_t highest_ = 0;
};

}  // namespace

ComputeGraph::ComputeGraph(int devices, int copies) : devices_(devices), copies_(copies) {}

ComputeGraph::Tensor ComputeGraph::push(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<Tensor>(nodes_.size()) - 1;
}

ComputeGraph::Tensor ComputeGraph::input(std::string_view name, std::int64_t bytes) {
  Node node;
  node.name = name;
  node.bytes = bytes;
  node.is_input = true;
  return push(std::move(node));
}

ComputeGraph::Tensor ComputeGraph::op(std::string_view name, std::int64_t bytes, std::vector<Tensor> sources) {
  Node node;
  node.name = name;
  node.bytes = bytes;
  node.buffer = buffer_;
  node.sources = std::move(sources);
  return push(std::move(node));
}

ComputeGraph::Tensor ComputeGraph::in_place(std::string_view name, std::int64_t bytes, std::vector<Tensor> sources) {
  const Tensor tensor = op(name, bytes, std::move(sources));
  nodes_.back().may_overwrite = true;
  return tensor;
}

ComputeGraph::Tensor ComputeGraph::view(Tensor source) {
  Node node;
  node.name = "view";
  node.buffer = nodes_[static_cast<std::size_t>(source)].buffer;
  node.view_of =
      nodes_[static_cast<std::size_t>(source)].view_of >= 0 ? nodes_[static_cast<std::size_t>(source)].view_of : source;
  node.sources = {source};
  return push(std::move(node));
}

void ComputeGraph::sink(std::vector<Tensor> sources) {
  op("store", 0, std::move(sources));
  nodes_.back().stored = false;
}

// One pass of ggml_backend_sched_split_graph and ggml_gallocr over the nodes.
class Replay {
 public:
  explicit Replay(const ComputeGraph& graph) : copies_(graph.copies_) {
    buffers_.resize(static_cast<std::size_t>(graph.devices_) + 1);
    peaks_.resize(buffers_.size());
    split(graph.nodes_);
  }

  std::vector<ComputeGraph::Reserved> run() {
    count_users();
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].is_input) allocate(i);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].is_input && nodes_[i].stored && nodes_[i].view_of < 0) allocate(i);
      for (const int source : nodes_[i].sources)
        if (source >= 0) release(static_cast<std::size_t>(source));
    }
    std::vector<ComputeGraph::Reserved> reserved;
    for (std::size_t b = 0; b < buffers_.size(); ++b) reserved.push_back({buffers_[b].highest(), describe(peaks_[b])});
    return reserved;
  }

 private:
  using Node = ComputeGraph::Node;
  struct State {
    int children = 0;
    int views = 0;
    bool allocated = false;
    std::int64_t offset = 0;
  };

  std::size_t index(int tensor) const { return static_cast<std::size_t>(tensor); }

  // Puts the nodes in order with the copies that each device needs at the start of the split that first uses them.
  void split(const std::vector<Node>& graph) {
    std::vector<int> place(graph.size(), -1);
    for (std::size_t i = 0; i < graph.size(); ++i)
      if (graph[i].is_input) place[i] = append_input(graph[i]);
    for (std::size_t begin = 0; begin < graph.size();) {
      std::size_t end = begin;
      while (end < graph.size() && (graph[end].is_input || graph[end].buffer == graph[begin].buffer)) ++end;
      const int buffer = graph[begin].is_input ? -1 : graph[begin].buffer;
      if (buffer < 0) {
        ++begin;
        continue;
      }
      copy_sources(graph, begin, end, buffer, place);
      for (std::size_t i = begin; i < end; ++i)
        if (!graph[i].is_input) place[i] = append(graph[i], buffer, place);
      begin = end;
    }
  }

  int append_input(const Node& node) {
    nodes_.push_back(node);
    const int first = static_cast<int>(nodes_.size()) - 1;
    for (int copy = 1; copy < copies_; ++copy) {
      nodes_.push_back(node);
      nodes_.back().name += " (copy)";
    }
    return first;
  }

  void copy_sources(const std::vector<Node>& graph, std::size_t begin, std::size_t end, int buffer,
                    const std::vector<int>& place) {
    for (std::size_t i = begin; i < end; ++i)
      for (const int source : graph[i].is_input ? std::vector<int>{} : graph[i].sources) {
        if (source < 0 || place[index(source)] < 0) continue;
        const int original = place[index(source)];
        if (nodes_[index(original)].buffer == buffer || copied_.count({original, buffer}) != 0) continue;
        copied_[{original, buffer}] = append_copy(original, graph[index(source)], buffer, graph);
      }
  }

  int append_copy(int original, const Node& node, int buffer, const std::vector<Node>& graph) {
    Node copy;
    copy.name = node.view_of >= 0 ? graph[index(node.view_of)].name : node.name;
    copy.bytes = node.view_of >= 0 ? graph[index(node.view_of)].bytes : node.bytes;
    copy.buffer = buffer;
    copy.sources = {original};
    copy.is_input = copies_ > 1;  // then all copies are leafs: placed first and never freed
    nodes_.push_back(copy);
    const int first = static_cast<int>(nodes_.size()) - 1;
    for (int more = 1; more < copies_; ++more) {
      nodes_.push_back(copy);
      nodes_.back().sources.clear();
      nodes_.back().name += " (copy)";
    }
    return first;
  }

  int append(const Node& node, int buffer, const std::vector<int>& place) {
    Node placed = node;
    for (int& source : placed.sources) source = source < 0 ? -1 : on_buffer(place[index(source)], buffer);
    if (placed.view_of >= 0) {
      const int source = placed.sources.front();
      placed.view_of = nodes_[index(source)].view_of >= 0 ? nodes_[index(source)].view_of : source;
    }
    nodes_.push_back(std::move(placed));
    return static_cast<int>(nodes_.size()) - 1;
  }

  int on_buffer(int tensor, int buffer) const {
    if (nodes_[index(tensor)].buffer == buffer) return tensor;
    const auto copy = copied_.find({tensor, buffer});
    return copy == copied_.end() ? tensor : copy->second;
  }

  void count_users() {
    states_.assign(nodes_.size(), {});
    for (const Node& node : nodes_) {
      if (node.view_of >= 0) ++states_[index(node.view_of)].views;
      for (const int source : node.sources)
        if (source >= 0) ++states_[index(source)].children;
    }
  }

  void allocate(std::size_t i) {
    State& state = states_[i];
    if (state.allocated) return;
    if (nodes_[i].may_overwrite && take_over(i)) return;
    state.offset = buffers_[index(nodes_[i].buffer)].allocate(nodes_[i].bytes);
    state.allocated = true;
    const std::size_t buffer = index(nodes_[i].buffer);
    if (buffers_[buffer].highest() > tallest(buffer)) peaks_[buffer] = live_in(nodes_[i].buffer);
  }

  bool take_over(std::size_t i) {
    for (const int source : nodes_[i].sources) {
      if (source < 0) continue;
      State& parent = states_[index(source)];
      const Node& node = nodes_[index(source)];
      const bool free_to_use = parent.allocated && parent.children == 1 && parent.views == 0 && node.view_of < 0;
      const bool pinned = node.is_input && copies_ > 1;
      if (!free_to_use || pinned || node.bytes != nodes_[i].bytes || node.buffer != nodes_[i].buffer) continue;
      states_[i].offset = parent.offset;
      states_[i].allocated = true;
      parent.allocated = false;
      return true;
    }
    return false;
  }

  void release(std::size_t i) {
    State& state = states_[i];
    if (--state.children > 0 || state.views > 0) return;
    const int viewed = nodes_[i].view_of;
    if (viewed < 0) return free(i);
    State& base = states_[index(viewed)];
    if (--base.views == 0 && base.children == 0) free(index(viewed));
  }

  void free(std::size_t i) {
    State& state = states_[i];
    const bool pinned = copies_ > 1 && nodes_[i].is_input;
    if (!state.allocated || pinned) return;
    buffers_[index(nodes_[i].buffer)].free(state.offset, nodes_[i].bytes);
    state.allocated = false;
  }

  struct Live {
    std::string name;
    std::int64_t bytes;
  };
  struct Peak {
    std::int64_t bytes = 0;
    std::vector<Live> live;
  };
  std::int64_t tallest(std::size_t buffer) const { return peaks_[buffer].bytes; }

  Peak live_in(int buffer) const {
    Peak peak;
    peak.bytes = buffers_[index(buffer)].highest();
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (states_[i].allocated && nodes_[i].buffer == buffer) peak.live.push_back({nodes_[i].name, nodes_[i].bytes});
    return peak;
  }

  static std::string describe(Peak peak) {
    std::stable_sort(peak.live.begin(), peak.live.end(),
                     [](const Live& a, const Live& b) { return a.bytes > b.bytes; });
    constexpr std::size_t kMostNames = 5;
    std::string text;
    std::int64_t named = 0;
    for (std::size_t i = 0; i < std::min(kMostNames, peak.live.size()); ++i) {
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : " + ", peak.live[i].name, to_string(Bytes{peak.live[i].bytes}));
      named += peak.live[i].bytes;
    }
    if (peak.bytes > named && !text.empty()) text += fmt::format(" + {} more", to_string(Bytes{peak.bytes - named}));
    return text;
  }

  int copies_;
  std::vector<Node> nodes_;
  std::vector<State> states_;
  std::vector<BlockAllocator> buffers_;
  std::vector<Peak> peaks_;
  std::map<std::pair<int, int>, int> copied_;
};

std::vector<ComputeGraph::Reserved> ComputeGraph::reserve() const {
  return Replay(*this).run();
}

}  // namespace gpuwright::fit

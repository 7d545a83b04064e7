#include "fit/engines/llama_cpp_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuwright::fit {
namespace {

using model::TensorRole;

// Cumulative shares of the GPUs, by -ts or by free memory.
Result<std::vector<double>> cumulative_shares(const Job& job, const std::vector<Target>& targets) {
  std::vector<double> shares = job.llama.tensor_split;
  if (shares.size() > targets.size())
    return fail(ErrorCode::bad_input, fmt::format("-ts gives {} shares for {} GPUs", shares.size(), targets.size()));
  if (shares.empty())
    for (const Target& target : targets)
      shares.push_back(static_cast<double>(std::max<std::int64_t>(target.free.count, 1)));
  shares.resize(targets.size(), 0.0);
  double sum = 0;
  for (const double share : shares) {
    if (!std::isfinite(share) || share < 0) return fail(ErrorCode::bad_input, "-ts: shares are numbers of 0 or more");
    sum += share;
  }
  if (sum <= 0) return fail(ErrorCode::bad_input, "-ts: all shares are 0");
  std::partial_sum(shares.begin(), shares.end(), shares.begin());
  for (double& share : shares) share /= sum;
  return shares;
}

int gpu_of(const std::vector<double>& cumulative, double position) {
  const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), position);
  const auto last = static_cast<std::ptrdiff_t>(cumulative.size()) - 1;
  return static_cast<int>(std::min(at - cumulative.begin(), last)) + 1;
}

bool belongs_to_input(const model::Tensor& tensor) {
  if (tensor.role == TensorRole::token_embedding || tensor.role == TensorRole::position_embedding) return true;
  const auto has = [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; };
  return tensor.layer < 0 &&
         (has("token_type") || has("embeddings.LayerNorm") || has("token_embd_norm") || has("embeddings.norm") ||
          has("embed_tokens_per_layer") || has("word_embeddings_layernorm"));
}

class Placer {
 public:
  Placer(const model::Model& model, const Job& job, const LlamaSettings& settings, std::vector<double> shares,
         LlamaPlacement& placement)
      : model_(model), job_(job), settings_(settings), shares_(std::move(shares)), placement_(placement) {}

  void place_layers() {
    const auto layers = static_cast<std::int64_t>(model_.layers.size());
    const std::int64_t first = std::max<std::int64_t>(layers - settings_.gpu_layers, 0);
    const std::int64_t count = std::min(settings_.gpu_layers, layers + 1);
    for (std::int64_t il = 0; il <= layers; ++il) {
      const bool on_gpu = il >= first && il - first < count;
      const double position = count == 0 ? 0 : static_cast<double>(il - first) / static_cast<double>(count);
      const int buffer = !on_gpu ? 0 : job_.llama.split_by_rows ? 1 : gpu_of(shares_, position);
      if (il < layers)
        placement_.layer_buffer.push_back(buffer);
      else
        placement_.output_buffer = buffer;
    }
  }

  void place(const model::Tensor& tensor) {
    if (tensor.role == TensorRole::vision) return;
    // Blocks that only drafting uses are skipped by the loader (TENSOR_SKIP, llama-model.cpp) unless it drafts.
    if (tensor.role == TensorRole::multi_token_prediction && job_.llama.speculative_tokens == 0) return;
    const int buffer = buffer_of(tensor);
    if (buffer > 0 && job_.llama.split_by_rows && tensor.rows > 1) return place_by_rows(tensor);
    placement_.weights[static_cast<std::size_t>(buffer)] += tensor.bytes;
    const bool tied_head = tensor.role == TensorRole::token_embedding && is_tied_to(tensor);
    if (tied_head && placement_.output_buffer > 0) {
      placement_.weights[static_cast<std::size_t>(placement_.output_buffer)] += tensor.bytes;
      placement_.duplicated_head += tensor.bytes;
    }
  }

 private:
  bool is_tied_to(const model::Tensor& embedding) const {
    if (model_.kind == model::ModelKind::encoder || embedding.columns != model_.hidden) return false;
    return std::none_of(model_.tensors.begin(), model_.tensors.end(),
                        [](const model::Tensor& tensor) { return tensor.role == TensorRole::output_head; });
  }

  int buffer_of(const model::Tensor& tensor) const {
    if (belongs_to_input(tensor)) return 0;
    const bool in_block = tensor.layer >= 0 && static_cast<std::size_t>(tensor.layer) < placement_.layer_buffer.size();
    if (!in_block) return placement_.output_buffer;
    if (tensor.role == TensorRole::expert && tensor.layer < job_.llama.cpu_moe_layers) return 0;
    return placement_.layer_buffer[static_cast<std::size_t>(tensor.layer)];
  }

  void place_by_rows(const model::Tensor& tensor) {
    double before = 0;
    for (std::size_t gpu = 0; gpu < shares_.size(); ++gpu) {
      placement_.weights[gpu + 1] += tensor.bytes.scaled(shares_[gpu] - before);
      before = shares_[gpu];
    }
  }

  const model::Model& model_;
  const Job& job_;
  const LlamaSettings& settings_;
  std::vector<double> shares_;
  LlamaPlacement& placement_;
};

}  // namespace

Result<LlamaPlacement> llama_placement(const model::Model& model, const Job& job, const LlamaSettings& settings,
                                       const std::vector<Target>& targets) {
  LlamaPlacement placement;
  placement.weights.resize(targets.size() + 1);
  std::vector<double> shares = GW_TRY(cumulative_shares(job, targets));
  Placer placer(model, job, settings, std::move(shares), placement);
  placer.place_layers();
  for (const model::Tensor& tensor : model.tensors) placer.place(tensor);
  if (job.llama.projector) placement.projector = *job.llama.projector;
  return placement;
}

}  // namespace gpuwright::fit

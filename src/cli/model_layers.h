// A model's hundred layers and thousand tensors, folded into the few kinds that a reader wants to see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/model.h"

namespace gpuwright::cli {

// Layers of the same shape, wherever they stand.
struct LayerGroup {
  model::Layer layer;
  std::vector<std::int64_t> indices;
};
std::vector<LayerGroup> layer_groups(const std::vector<model::Layer>& layers);
// "0-2, 5, 8-60"
std::string index_ranges(const std::vector<std::int64_t>& indices);

// Tensors of one role and storage format.
struct WeightGroup {
  std::string_view role;
  std::string_view dtype;
  std::int64_t tensors = 0;
  std::int64_t weights = 0;
  Bytes bytes;
};
std::vector<WeightGroup> weight_groups(const model::Model& model);  // largest first

std::string_view name_of(model::AttentionKind kind);
std::string_view name_of(model::RecurrentKind kind);
std::string_view name_of(model::ModelKind kind);
std::string_view name_of(model::Source source);
std::string_view name_of(model::TensorRole role);

// One line each: "GQA, 32 heads, 8 kv heads of 128"; empty for a part that is absent.
std::string describe(const model::Attention& attention);
std::string describe(const model::Recurrent& recurrent);
std::string describe(const model::FeedForward& block);

}  // namespace gpuwright::cli

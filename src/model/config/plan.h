// Lays out the tensors of a model that is described but not at hand, in the storage format its config declares.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/fields.h"
#include "model/config/quantization.h"
#include "model/model.h"

namespace gpuwright::model {

struct LinearOptions {
  bool bias = false;
  std::int64_t copies = 1;
};

class Plan {
 public:
  Plan(Dtype dtype, Quantization quantization, Reading& reading)
      : dtype_(dtype), quantization_(std::move(quantization)), reading_(reading) {}

  // The weight (and bias) of a linear layer named `module`: `outputs` rows of `inputs`. Quantised as the config says.
  void linear(TensorRole role, std::int32_t layer, const std::string& module, std::int64_t outputs, std::int64_t inputs,
              LinearOptions options = {});
  // Tensors that quantisation schemes leave alone: embeddings, norms, convolutions.
  void matrix(TensorRole role, std::int32_t layer, std::string name, std::int64_t rows, std::int64_t columns,
              std::int64_t copies = 1);
  void vector(TensorRole role, std::int32_t layer, std::string name, std::int64_t elements, std::int64_t copies = 1) {
    matrix(role, layer, std::move(name), 1, elements, copies);
  }
  void vector_f32(TensorRole role, std::int32_t layer, std::string name, std::int64_t elements);
  void norm(std::int32_t layer, const std::string& module, std::int64_t width, bool bias = false,
            TensorRole role = TensorRole::norm);

  Dtype dtype() const { return dtype_; }
  std::size_t size() const { return tensors_.size(); }
  // Gives all tensors from the `first` on this role; scales keep theirs.
  void set_role(std::size_t first, TensorRole role);
  std::vector<Tensor> take() { return std::move(tensors_); }

 private:
  void add(Tensor tensor);
  void add(TensorRole role, std::int32_t layer, std::string name, Dtype dtype, std::int64_t rows, std::int64_t columns,
           std::int64_t copies);
  void add_scales(const Quantization& scheme, std::int32_t layer, const std::string& module, std::int64_t outputs,
                  std::int64_t inputs, std::int64_t copies);

  Dtype dtype_;
  Quantization quantization_;
  Reading& reading_;
  std::vector<Tensor> tensors_;
  std::int64_t total_weights_ = 0;
  std::int64_t total_bytes_ = 0;
};

}  // namespace gpuwright::model

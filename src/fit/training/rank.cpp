#include "fit/training/rank.h"

#include <algorithm>

#include "fit/engines/torch_common.h"
#include "fit/training/constants.h"

namespace gpuwright::fit::training {
namespace {

using model::Dtype;
using model::Tensor;
using model::TensorRole;

bool is_plain(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f64;
}

bool is_embedding(const Tensor& tensor) {
  return tensor.role == TensorRole::token_embedding || tensor.role == TensorRole::position_embedding;
}

bool is_table(const Tensor& tensor) {
  return tensor.role == TensorRole::token_embedding || tensor.role == TensorRole::output_head;
}

bool is_on(const Tensor& tensor, const Stage& stage, bool tied) {
  if (tensor.layer >= 0) {
    const auto layer = static_cast<std::size_t>(tensor.layer);
    return layer >= stage.first && layer < stage.last;
  }
  if (tensor.role == TensorRole::output_head) return stage.is_last;
  if (is_embedding(tensor)) return stage.is_first || (tied && stage.is_last && is_table(tensor));
  return stage.is_first || stage.is_last;
}

double count(const Tensor& tensor) {
  return tensor.role == TensorRole::quantization ? 0 : static_cast<double>(tensor.weights());
}

// prepare_model_for_kbit_training (peft/utils/other.py) casts what bitsandbytes left in 16 bit to fp32.
bool casts_rest_to_fp32(const model::Model& model, const TrainingJob& job) {
  if (job.method != TrainingMethod::qlora || job.engine != TrainingEngine::transformers) return false;
  return std::any_of(model.tensors.begin(), model.tensors.end(), [](const Tensor& tensor) {
    return tensor.dtype == Dtype::bnb_nf4 || tensor.dtype == Dtype::bnb_nf4_dq || tensor.dtype == Dtype::i8;
  });
}

bool is_gptq(const model::Model& model) {
  return std::any_of(model.tensors.begin(), model.tensors.end(),
                     [](const Tensor& tensor) { return tensor.dtype == Dtype::i4 || tensor.weights_per_element > 1; });
}

// Of one block, in 16 bit.
double largest_quantised_layer(const model::Model& model) {
  std::vector<double> layers(model.layers.size(), 0);
  for (const Tensor& tensor : model.tensors)
    if (!is_plain(tensor.dtype) && tensor.layer >= 0 && static_cast<std::size_t>(tensor.layer) < layers.size())
      layers[static_cast<std::size_t>(tensor.layer)] += 2 * count(tensor);
  return layers.empty() ? 0 : *std::max_element(layers.begin(), layers.end());
}

// A frozen base keeps its format; plain tensors follow the job's precision.
double stored_bytes(const model::Model& model, const TrainingJob& job, const Tensor& tensor, double share) {
  if (job.method == TrainingMethod::full) return full_recipe(job).weight * count(tensor) * share;
  if (!is_plain(tensor.dtype)) return static_cast<double>(tensor.bytes.count) * share;
  if (job.precision == Precision::fp32 || casts_rest_to_fp32(model, job)) return 4 * count(tensor) * share;
  // litgpt quantises its head, too, and keeps more of it than the 4 bit (constant litgpt_head_bytes_per_weight).
  if (job.method == TrainingMethod::qlora && job.engine == TrainingEngine::litgpt &&
      tensor.role == TensorRole::output_head) {
    const auto bytes = constant("litgpt_head_bytes_per_weight");
    return (bytes ? bytes->expected : 2) * count(tensor) * share;
  }
  return 2 * count(tensor) * share;
}

void add_trained(Holdings& holdings, const TrainingJob& job, const Recipe& recipe, double rows, double columns,
                 double copies, bool embedding) {
  const double parameters = rows * columns * copies;
  holdings.gradients += recipe.gradient * parameters;
  holdings.master += recipe.master * parameters;
  holdings.states += copies * state_bytes(job, recipe, rows, columns, embedding);
  holdings.cast_copies += embedding ? 0 : recipe.cast_copy * parameters;
  holdings.largest_trained = std::max(holdings.largest_trained, rows * columns);
  holdings.units.trained_parameters += parameters;
  const StepTemporaries step = step_temporaries(job, recipe);
  holdings.temporaries.low_of_all += step.low_of_all * parameters;
  holdings.temporaries.of_all += step.of_all * parameters;
  holdings.temporaries.high_of_all += step.high_of_all * parameters;
  holdings.temporaries.of_largest = std::max(holdings.temporaries.of_largest, step.of_largest * rows * columns);
}

double travelling_bytes(const TrainingJob& job, const Tensor& tensor, double share) {
  if (job.method != TrainingMethod::full && !is_plain(tensor.dtype))
    return static_cast<double>(tensor.bytes.count) * share;
  return (job.precision == Precision::fp32 ? 4 : 2) * count(tensor) * share;
}

struct LayerSums {
  std::vector<double> bytes, gradients;
};

void add_adapters(Holdings& holdings, const TrainingJob& job, const Stage& stage, const std::vector<Module>& adapted,
                  LayerSums& layers) {
  const Recipe recipe = adapter_recipe(job);
  const double rank = static_cast<double>(job.lora.rank);
  for (const Module& module : adapted) {
    const auto layer = static_cast<std::size_t>(std::max(module.layer, 0));
    const bool in_block = module.layer >= 0;
    if (in_block ? layer < stage.first || layer >= stage.last : !stage.is_last) continue;
    // One of the two matrices is split by tensor parallelism, the other is whole.
    const double in = module.in, out = module.out, copies = module.copies;
    add_trained(holdings, job, recipe, rank, in, copies, false);
    add_trained(holdings, job, recipe, out, rank, copies, false);
    double parameters = rank * (in + out) * copies;
    if (job.method == TrainingMethod::dora) {
      add_trained(holdings, job, recipe, 1, out, copies, false);
      parameters += out * copies;
    }
    holdings.adapter_parameters += parameters;
    holdings.adapter_bytes += recipe.weight * parameters;
    if (!in_block) continue;
    layers.gradients[layer] += recipe.gradient * parameters;
    layers.bytes[layer] += recipe.weight * parameters;
  }
}

}  // namespace

Stage stage_of(const model::Model& model, const TrainingJob& job, int stage) {
  const std::size_t layers = model.layers.size();
  const auto stages = static_cast<std::size_t>(job.pipeline_parallel), index = static_cast<std::size_t>(stage);
  Stage part;
  part.first = layers * index / stages;
  part.last = layers * (index + 1) / stages;
  part.is_first = index == 0;
  part.is_last = index + 1 == stages;
  // transformers' device_map runs one stage after the other with a single micro-batch.
  if (stages == 1 || job.engine == TrainingEngine::transformers) return part;
  const double p = job.pipeline_parallel;
  part.in_flight = std::min(p - stage, static_cast<double>(job.gradient_accumulation));
  if (job.interleaved_pipeline) part.in_flight *= 1 + (p - 1) / (2 * p);
  return part;
}

Holdings holdings_of(const model::Model& model, const TrainingJob& job, const Stage& stage,
                     const std::vector<Module>& adapted) {
  Holdings holdings;
  LayerSums layers{std::vector<double>(model.layers.size(), 0), std::vector<double>(model.layers.size(), 0)};
  const bool full = job.method == TrainingMethod::full;
  const Recipe recipe = full_recipe(job), table = trained_embedding_recipe(job);
  for (const Tensor& tensor : model.tensors) {
    if (!is_on(tensor, stage, model.tied_embeddings)) continue;
    const double share = tensor.bytes.count > 0
                             ? static_cast<double>(tensor_parallel_share(model, tensor, job.tensor_parallel).count) /
                                   static_cast<double>(tensor.bytes.count)
                             : 1;
    const double parameters = count(tensor) * share;
    holdings.base_parameters += parameters;
    holdings.base_bytes += stored_bytes(model, job, tensor, share);
    const double travelling = travelling_bytes(job, tensor, share);
    holdings.units.all += travelling;
    if (tensor.layer >= 0 && static_cast<std::size_t>(tensor.layer) < layers.bytes.size()) {
      layers.bytes[static_cast<std::size_t>(tensor.layer)] += travelling;
      if (full) layers.gradients[static_cast<std::size_t>(tensor.layer)] += 2 * parameters;
    } else {
      holdings.units.root += travelling;
    }
    const double rows = static_cast<double>(tensor.rows), columns = static_cast<double>(tensor.columns) * share,
                 copies = static_cast<double>(tensor.copies);
    if (full && parameters > 0) add_trained(holdings, job, recipe, rows, columns, copies, is_embedding(tensor));
    if (full && tensor.role == TensorRole::token_embedding && !model.tied_embeddings)
      holdings.embedding_gradient += recipe.gradient * parameters;
    if (full && is_table(tensor))
      holdings.head_gradient = std::max(holdings.head_gradient, recipe.gradient * parameters);
    if (!full && job.lora.trainable_embeddings && is_table(tensor)) {
      holdings.trained_copies += table.weight * parameters;
      add_trained(holdings, job, table, rows, columns, copies, true);
      holdings.head_gradient = std::max(holdings.head_gradient, table.gradient * parameters);
    }
  }
  if (!full) add_adapters(holdings, job, stage, adapted, layers);
  if (job.method == TrainingMethod::qlora) {
    const double largest = static_cast<double>(largest_quantized_matrix(model, 16).count) / job.tensor_parallel;
    holdings.dequantised = largest;
    // AutoGPTQ's trainable kernel unpacks in PyTorch operations (int32, int16, scales and product, 12 B a weight), and
    // autograd keeps the 16-bit result of every linear of the layer in work.
    if (is_gptq(model)) holdings.dequantised = 5 * largest + largest_quantised_layer(model) / job.tensor_parallel;
  }
  holdings.step_gradients = recipe.step_gradient;
  for (std::size_t i = stage.first; i < stage.last; ++i) {
    holdings.units.largest_layer = std::max(holdings.units.largest_layer, layers.bytes[i]);
    holdings.units.largest_layer_gradient = std::max(holdings.units.largest_layer_gradient, layers.gradients[i]);
  }
  holdings.units.all_parameters = holdings.base_parameters;
  return holdings;
}

}  // namespace gpuwright::fit::training

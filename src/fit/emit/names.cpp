#include "fit/emit/names.h"

#include <array>

namespace gpuwright::fit {
namespace {

struct OptimizerName {
  std::string_view name;
  Optimizer optimizer;
};
// The first name of an optimizer is the one that is written.
constexpr std::array kOptimizers{
    OptimizerName{"adamw_torch", Optimizer::adamw},
    OptimizerName{"adamw_torch_fused", Optimizer::adamw_fused},
    OptimizerName{"adamw_bnb_8bit", Optimizer::adamw_8bit},
    OptimizerName{"adamw_8bit", Optimizer::adamw_8bit},
    OptimizerName{"adamw_torch_8bit", Optimizer::adamw_8bit},
    OptimizerName{"adamw_torch_4bit", Optimizer::adamw_4bit},
    OptimizerName{"paged_adamw_8bit", Optimizer::adamw_8bit},  // its pages leave the GPU only where memory is short
    OptimizerName{"paged_adamw_32bit", Optimizer::adamw_paged},
    OptimizerName{"paged_adamw", Optimizer::adamw_paged},
    OptimizerName{"adafactor", Optimizer::adafactor},
    OptimizerName{"sgd", Optimizer::sgd},
    OptimizerName{"adamw_hf", Optimizer::adamw_loop},  // removed from transformers in 5: read, not written
};

}  // namespace

std::optional<std::string_view> trainer_name(Optimizer optimizer) {
  if (optimizer == Optimizer::sgd_momentum) return "sgd";
  if (optimizer == Optimizer::adamw_loop) return std::nullopt;
  for (const OptimizerName& known : kOptimizers)
    if (known.optimizer == optimizer) return known.name;
  return std::nullopt;
}

std::optional<Optimizer> trainer_optimizer_named(std::string_view trainer_name) {
  for (const OptimizerName& known : kOptimizers)
    if (known.name == trainer_name) return known.optimizer;
  return std::nullopt;
}

bool is_adam_of_torch(Optimizer optimizer) {
  return optimizer == Optimizer::adamw || optimizer == Optimizer::adamw_loop || optimizer == Optimizer::adamw_fused;
}

bool is_fsdp(Sharding sharding) {
  return sharding == Sharding::fsdp || sharding == Sharding::fsdp_grad_only;
}

std::optional<int> zero_stage(Sharding sharding) {
  switch (sharding) {
    case Sharding::none:
      return 0;
    case Sharding::zero1:
      return 1;
    case Sharding::zero2:
      return 2;
    case Sharding::zero3:
      return 3;
    case Sharding::fsdp:
    case Sharding::fsdp_grad_only:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Sharding> sharding_of_stage(std::int64_t stage) {
  constexpr std::array kStages{Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3};
  if (stage < 0 || stage >= static_cast<std::int64_t>(kStages.size())) return std::nullopt;
  return kStages[static_cast<std::size_t>(stage)];
}

int fsdp_version(const TrainingJob& job) {
  const std::string& version = job.engine_version;
  const bool one = job.engine == TrainingEngine::fsdp && (version == "1" || version.substr(0, 2) == "1.");
  return one ? 1 : 2;
}

}  // namespace gpuwright::fit

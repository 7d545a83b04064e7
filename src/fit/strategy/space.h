// The plans that a search chooses from: a product of small lists, each in order of preference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fit/training/job.h"

namespace gpuwright::fit {

// Who runs the job and how it is spread over the GPUs.
struct Layout {
  TrainingEngine engine = TrainingEngine::transformers;
  ShardingOptions sharding;
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
};

// How parameters are kept: the engine's own mixed precision, or everything in 16 bit.
enum class Numerics : std::uint8_t { mixed, pure };

struct Space {
  std::vector<TrainingMethod> methods;
  std::vector<Numerics> numerics;
  std::vector<Optimizer> optimizers;
  std::vector<Checkpointing> checkpointing;
  std::vector<bool> chunked_loss;
  std::vector<Layout> layouts;
  std::vector<std::int64_t> micro_batches;  // that do not divide a rank's share of the batch are left out

  std::size_t size() const;
};

// What the user left open.
struct Freedom {
  bool numerics = true;
  bool optimizer = true;
  bool checkpointing = true;
  bool loss = true;
  bool engine = true;
  bool sharding = true;
  bool parallelism = true;
  bool micro_batch = true;
  std::vector<TrainingMethod> also;  // methods beside the asked one, in order of preference
};

// The space around a job: what is not free keeps the job's value. `gpus` are all used.
Space space_around(const TrainingJob& job, const Freedom& freedom, std::int64_t global_batch, int gpus);

// A point of the space as a job, every GPU used and gradient accumulation filling the batch; nothing where the numbers
// do not divide.
std::optional<TrainingJob> job_at(const TrainingJob& base, TrainingMethod method, Numerics numerics,
                                  Optimizer optimizer, Checkpointing checkpointing, bool chunked_loss,
                                  const Layout& layout, std::int64_t micro_batch, std::int64_t global_batch, int gpus,
                                  bool keep_precision);

}  // namespace gpuwright::fit

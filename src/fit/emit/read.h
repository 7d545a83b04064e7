// The reverse of emit.h: what an existing configuration asks for. DeepSpeed JSON, accelerate YAML, arguments of Trainer
// and TRL (JSON or YAML), LLaMA-Factory YAML, and command lines of `vllm serve` and `llama-server`, which are split
// into words and never run.
//
// Keys that say nothing about memory are passed over; keys that are not known are named in notes. Contradictions are
// errors that name key and line: batch sizes that do not multiply, two files that say different things, "auto" where
// no file says the number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fit/job.h"
#include "fit/training/job.h"

namespace gpuwright::fit {

struct ConfigText {
  std::string name;  // of the file, for messages; its folder does not matter
  std::string text;
};

enum class ConfigFormat : std::uint8_t { deepspeed, accelerate, trainer, llama_factory, vllm, llama_cpp };
std::string_view name_of(ConfigFormat format);

// A key that was seen and not used, and why.
struct ConfigNote {
  std::string file;
  std::int64_t line = 0;
  std::string key;
  std::string text;
  std::string sentence() const;  // "ds_config.json:12: zero_hpz_partition_size: not known here"
};

struct ReadConfig {
  std::vector<ConfigFormat> formats;  // of the texts, in their order
  std::optional<TrainingJob> training;
  std::optional<Job> serving;
  std::string model;    // as the file names it; empty when it does not
  std::string variant;  // the quantisation of that repository which the command names ("Q4_K_M"); may be empty
  std::string
      weight_format;  // how the command says that weights are stored ("fp8", "bfloat16"); empty when it does not
  std::vector<ConfigNote> notes;
};

// What the user says beside the files. It goes before them, and it answers their "auto".
struct SaidBeside {
  std::optional<std::int64_t> micro_batch, accumulation;
  std::optional<std::int64_t> gpus;  // replicas that the GPUs named make
  bool precision = false;            // the training job given says it
};

// Several texts describe one training job together (sft.yaml, accelerate.yaml, ds_config.json); a command line stands
// alone. What no text says is taken from the jobs given.
Result<ReadConfig> read_config(std::span<const ConfigText> texts, const TrainingJob& training, const Job& serving,
                               const SaidBeside& beside = {});

// Reads the files (1 MiB each at most) and, from their folders, the DeepSpeed files that they name.
Result<ReadConfig> read_config_files(std::span<const std::string> paths, const TrainingJob& training,
                                     const Job& serving, const SaidBeside& beside = {});

}  // namespace gpuwright::fit

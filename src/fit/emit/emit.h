// From an answer to what realises it: the configuration files and the command line of other programs, with explicit
// numbers that add up (train batch = micro-batch x accumulation x GPUs), never "auto" where the number is known.
//
// What a job asks for and a target cannot express is an error, not left out; what a target decides by itself is said in
// a note. Text from outside (model references) is quoted for the language it lands in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fit/job.h"
#include "fit/training/job.h"

namespace gpuwright::fit {

// deepspeed to llama_factory train; vllm to ollama serve.
enum class EmitTarget : std::uint8_t {
  deepspeed,
  fsdp,
  accelerate,
  torchrun,
  trl,
  llama_factory,
  vllm,
  llama_cpp,
  ollama
};

Result<EmitTarget> emit_target_named(std::string_view text);
std::string_view name_of(EmitTarget target);
bool is_training(EmitTarget target);
std::vector<std::string> emit_target_names();

struct EmittedFile {
  std::string name;  // without a folder
  std::string contents;
};

struct Emission {
  std::vector<EmittedFile> files;
  std::string command;             // run in the folder of the files; several lines, each a shell command
  std::vector<std::string> notes;  // one sentence each: what is left to fill in, what the target decides itself
};

// `reference` is the model as the user named it: "hf://org/name", "org/name" or a path. Errors: bad_input (numbers that
// do not add up to `gpus`), unsupported (something that the target cannot express).
Result<Emission> emit(EmitTarget target, std::string_view reference, const TrainingJob& job, int gpus);

// How the weights are to be stored that the answer is about, beside what lies at the reference.
struct ServedWeights {
  std::string format;   // instead of the stored one ("Q4_K_M", "fp8"); empty: as stored
  bool is_gguf = true;  // the reference holds GGUF files
};
Result<Emission> emit(EmitTarget target, std::string_view reference, const Job& job, int gpus,
                      const ServedWeights& weights = {});

// Whether emit would write this job; the reason where it would not.
Status can_emit(EmitTarget target, const TrainingJob& job, int gpus);

}  // namespace gpuwright::fit

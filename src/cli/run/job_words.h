// The job's command line in the words of `gpuwright fit`: `vllm serve Qwen/Qwen2.5-7B --max-model-len 8192` is
// "Qwen/Qwen2.5-7B --engine vllm --context 8192". What cannot be told is left out; what is told need not be true.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpuwright::cli {

struct JobWords {
  std::vector<std::string> words;  // model and options, as fit takes them
  bool training = false;
  std::optional<std::int64_t> batch;  // sequences at once on one GPU, where the words say it
};

// Understands vLLM, SGLang, llama.cpp, and programs that take the arguments of Hugging Face's Trainer and TRL, also
// behind torchrun, accelerate, deepspeed, env, python -m and the like. Nothing: it is none of these or names no model.
std::optional<JobWords> job_words(const std::vector<std::string>& command);

}  // namespace gpuwright::cli

#include "cli/run/job_words.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/text.h"

namespace gpuwright::cli {
namespace {

using Words = std::vector<std::string>;

// A long option of another program, and what it is called in fit; a fit name that ends in "=" takes the value.
struct Meaning {
  std::string_view theirs, ours;
};

constexpr Meaning kVllm[] = {
    {"max-model-len", "--context="},
    {"context-length", "--context="},
    {"tensor-parallel-size", "--tensor-parallel="},
    {"tp-size", "--tensor-parallel="},
    {"tp", "--tensor-parallel="},
    {"pipeline-parallel-size", "--pipeline-parallel="},
    {"gpu-memory-utilization", "--gpu-memory-utilization="},
    {"max-num-batched-tokens", "--max-num-batched-tokens="},
    {"max-num-seqs", "--max-num-seqs="},
    {"block-size", "--block-size="},
    {"kv-cache-dtype", "--kv-type="},
    {"enforce-eager", "--enforce-eager"},
};

constexpr Meaning kLlama[] = {
    {"c", "--context="},
    {"ctx-size", "--context="},
    {"ngl", "--gpu-layers="},
    {"gpu-layers", "--gpu-layers="},
    {"n-gpu-layers", "--gpu-layers="},
    {"np", "--batch="},
    {"parallel", "--batch="},
    {"ub", "--ubatch="},
    {"ubatch-size", "--ubatch="},
    {"ctk", "--key-type="},
    {"cache-type-k", "--key-type="},
    {"ctv", "--value-type="},
    {"cache-type-v", "--value-type="},
    {"ts", "--tensor-split="},
    {"tensor-split", "--tensor-split="},
    {"sm", "--split-mode="},
    {"split-mode", "--split-mode="},
    {"nkvo", "--no-kv-offload"},
    {"no-kv-offload", "--no-kv-offload"},
    {"ncmoe", "--n-cpu-moe="},
    {"n-cpu-moe", "--n-cpu-moe="},
    {"mmproj", "--mmproj="},
    {"swa-full", "--swa-full"},
};

// TrainingArguments of transformers and SFTConfig of TRL; names are compared with '-' for '_'.
constexpr Meaning kTrainer[] = {
    {"per-device-train-batch-size", "--batch="},
    {"gradient-accumulation-steps", "--accumulate="},
    {"max-seq-length", "--sequence="},
    {"max-length", "--sequence="},
    {"cutoff-len", "--sequence="},
    {"model-max-length", "--sequence="},
    {"block-size", "--sequence="},
    {"deepspeed", "--config="},
};
constexpr Meaning kAdapters[] = {{"lora-r", "--rank="}, {"lora-rank", "--rank="}};

// Options of one program as name and value, whichever way they are written. A value is the word that follows, unless it
// is an option itself.
class Options {
 public:
  Options(Words::const_iterator begin, Words::const_iterator end) {
    for (auto at = begin; at != end; ++at) {
      const std::string& word = *at;
      if (word.size() < 2 || word[0] != '-' || (word[1] >= '0' && word[1] <= '9')) {
        plain_.push_back(word);
        continue;
      }
      const std::size_t dashes = word[1] == '-' ? 2 : 1;
      const std::size_t equals = word.find('=');
      std::string name = word.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
      std::replace(name.begin(), name.end(), '_', '-');
      const bool follows =
          at + 1 != end && (at[1].empty() || at[1][0] != '-' || at[1].size() < 2 || is_digit(at[1][1]));
      if (equals != std::string::npos)
        values_[name] = word.substr(equals + 1);
      else if (follows)
        values_[name] = *++at;
      else
        values_[name] = "";
    }
  }

  std::optional<std::string> value(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  // A flag of its own, or "true" behind it as Hugging Face's parser takes it.
  bool is_set(std::string_view name) const {
    const auto found = value(name);
    const std::string text = lower(found.value_or("false"));
    return text != "false" && text != "0" && text != "no";
  }
  const Words& plain() const { return plain_; }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::map<std::string, std::string, std::less<>> values_;
  Words plain_;
};

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

void add_meanings(const Options& options, const auto& meanings, Words& words) {
  for (const Meaning& meaning : meanings) {
    const auto value = options.value(meaning.theirs);
    if (!value) continue;
    std::string name(meaning.ours);
    const bool takes_value = name.back() == '=';
    if (takes_value) name.pop_back();
    if (takes_value == value->empty() || std::find(words.begin(), words.end(), name) != words.end()) continue;
    words.push_back(name);
    if (takes_value) words.push_back(*value);
  }
}

std::optional<std::int64_t> batch_in(const Words& words) {
  const auto found = std::find(words.begin(), words.end(), "--batch");
  return found == words.end() || found + 1 == words.end() ? std::nullopt : to_integer(found[1]);
}

std::optional<JobWords> serving(std::string engine, std::optional<std::string> model, const Options& options,
                                const auto& meanings) {
  if (!model || model->empty()) return std::nullopt;
  JobWords job;
  job.words = {*model, "--engine", std::move(engine)};
  add_meanings(options, meanings, job.words);
  job.batch = batch_in(job.words);
  return job;
}

std::optional<std::string> first_of(const Options& options, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto value = options.value(name); value && !value->empty()) return value;
  return std::nullopt;
}

std::optional<JobWords> training(const Options& options) {
  const auto model = first_of(options, {"model-name-or-path", "model-name", "base-model", "model-id"});
  const bool trains = options.value("per-device-train-batch-size") || options.value("num-train-epochs") ||
                      options.value("gradient-accumulation-steps") || options.value("learning-rate");
  if (!model || !trains || options.value("fsdp")) return std::nullopt;
  const bool four_bit = options.is_set("load-in-4bit") || options.value("quantization-bit") == "4";
  const bool adapters = options.is_set("use-peft") || options.is_set("use-lora") || options.value("lora-r") ||
                        options.value("lora-rank") || options.value("finetuning-type") == "lora";
  JobWords job;
  job.training = true;
  job.words = {*model, "--train", four_bit ? "qlora" : adapters ? "lora" : "full"};
  add_meanings(options, kTrainer, job.words);
  if (adapters || four_bit) add_meanings(options, kAdapters, job.words);
  if (options.is_set("gradient-checkpointing")) job.words.insert(job.words.end(), {"--checkpointing", "full"});
  if (const auto attention = options.value("attn-implementation"))
    job.words.insert(job.words.end(), {"--attention", *attention});
  job.batch = batch_in(job.words);
  return job;
}

}  // namespace

std::optional<JobWords> job_words(const Words& command) {
  for (auto at = command.begin(); at != command.end(); ++at) {
    const std::string name = base_name(*at);
    const auto rest = at + 1;
    if (name == "vllm" && rest != command.end() && *rest == "serve") {
      const Options options(rest + 1, command.end());
      const auto plain = options.plain().empty() ? std::nullopt : std::optional(options.plain().front());
      return serving("vllm", options.value("model") ? options.value("model") : plain, options, kVllm);
    }
    if (name.starts_with("vllm.entrypoints")) {
      const Options options(rest, command.end());
      return serving("vllm", options.value("model"), options, kVllm);
    }
    if (name == "sglang.launch_server") {
      const Options options(rest, command.end());
      return serving("sglang", first_of(options, {"model-path", "model"}), options, kVllm);
    }
    if (name == "llama-server" || name == "llama-cli" || name == "llama-bench" || name == "llama-run") {
      const Options options(rest, command.end());
      return serving("llama.cpp", first_of(options, {"m", "model"}), options, kLlama);
    }
    if (name.ends_with(".py") || name == "trl" || name == "llamafactory-cli") {
      const Options options(rest, command.end());
      if (auto job = training(options)) return job;
    }
  }
  return std::nullopt;
}

}  // namespace gpuwright::cli

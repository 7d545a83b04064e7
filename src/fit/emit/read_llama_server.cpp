// `llama-server -m FILE ...`. Options: llama.cpp, common/arg.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/emit/command_reader.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kAllLayers = 999;  // more than any model has

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 2> kModel{"-m", "--model"};
constexpr std::array<std::string_view, 3> kRepository{"-hf", "-hfr", "--hf-repo"};
constexpr std::array<std::string_view, 2> kContext{"-c", "--ctx-size"};
constexpr std::array<std::string_view, 3> kLayers{"-ngl", "--gpu-layers", "--n-gpu-layers"};
constexpr std::array<std::string_view, 2> kSplit{"-ts", "--tensor-split"};
constexpr std::array<std::string_view, 2> kSplitMode{"-sm", "--split-mode"};
constexpr std::array<std::string_view, 2> kMicroBatch{"-ub", "--ubatch-size"};
constexpr std::array<std::string_view, 2> kFlash{"-fa", "--flash-attn"};
constexpr std::array<std::string_view, 2> kParallel{"-np", "--parallel"};
constexpr std::array<std::string_view, 2> kKeyType{"-ctk", "--cache-type-k"};
constexpr std::array<std::string_view, 2> kValueType{"-ctv", "--cache-type-v"};
constexpr std::array<std::string_view, 2> kMoe{"-ncmoe", "--n-cpu-moe"};
constexpr std::array<std::string_view, 2> kAllMoe{"-cmoe", "--cpu-moe"};
constexpr std::array<std::string_view, 2> kUnified{"-kvu", "--kv-unified"};
constexpr std::array<std::string_view, 2> kOnHost{"-nkvo", "--no-kv-offload"};

// Their value, or they themselves, say nothing about a GPU's memory.
constexpr std::array<std::string_view, 16> kHarmlessWithValue{
    "--host",  "--port", "--api-key", "-t",     "--threads", "-tb",       "--threads-batch",      "-b",
    "--alias", "-a",     "--seed",    "--temp", "-n",        "--predict", "--chat-template-file", "--chat-template"};
constexpr std::array<std::string_view, 6> kHarmlessFlags{"--jinja",   "--mlock", "--no-mmap",
                                                         "--metrics", "-cb",     "--cont-batching"};

Result<std::vector<double>> shares(CommandReader& words, const CommandOption& option) {
  const std::string text = GW_TRY(words.value(option));
  std::vector<double> made;
  for (const std::string_view part : split(text, ',')) {
    const auto share = to_number(trim(part));
    if (!share || *share < 0 || made.size() == 128) return words.fault(option, "is not a list of shares, as 3,1");
    made.push_back(*share);
  }
  return made;
}

Status read_layers(CommandReader& words, const CommandOption& option, Job& job) {
  const std::string text = GW_TRY(words.value(option));
  job.llama.gpu_layers.reset();
  if (text == "all" || text == "auto") return {};
  const auto layers = to_integer(text);
  if (!layers || *layers < -1) return words.fault(option, fmt::format("'{}' is not a number of layers", text));
  if (*layers >= 0 && *layers < kAllLayers) job.llama.gpu_layers = *layers;
  return {};
}

// Alone (older builds) or with on, off, auto.
Status read_flash_attention(CommandReader& words, const CommandOption& option, Job& job) {
  const bool alone = !option.value && (words.peek() == nullptr || looks_like_option(*words.peek()));
  const std::string text = alone ? "on" : GW_TRY(words.value(option));
  if (text != "on" && text != "off" && text != "auto" && text != "1" && text != "0")
    return words.fault(option, fmt::format("'{}' is none of on, off and auto", text));
  job.llama.flash_attention.reset();
  if (text != "auto") job.llama.flash_attention = text == "on" || text == "1";
  return {};
}

Result<model::Dtype> cache_type(CommandReader& words, const CommandOption& option) {
  const std::string text = GW_TRY(words.value(option));
  const auto type = model::dtype_named(text);
  if (!type) return words.fault(option, fmt::format("'{}' is no type of a cache", text), "f16, q8_0, q4_0, ...");
  return *type;
}

Result<bool> read_cache_option(CommandReader& words, const CommandOption& option, Job& job) {
  if (is_one_of(kContext, option.name)) {
    const std::int64_t tokens = GW_TRY(words.integer(option, 0, kMostTokens));
    job.context_tokens = tokens > 0 ? std::optional(tokens) : std::nullopt;  // 0: the model's own
  } else if (is_one_of(kParallel, option.name)) {
    const std::int64_t sequences = GW_TRY(words.integer(option, -1, 1'000'000));
    if (sequences > 0) job.sequences = sequences;
  } else if (is_one_of(kKeyType, option.name)) {
    job.key_type = GW_TRY(cache_type(words, option));
  } else if (is_one_of(kValueType, option.name)) {
    job.value_type = GW_TRY(cache_type(words, option));
  } else if (is_one_of(kUnified, option.name)) {
    job.llama.unified_kv = true;
  } else if (option.name == "--swa-full") {
    job.llama.swa_full = true;
  } else if (is_one_of(kOnHost, option.name)) {
    job.llama.kv_on_host = true;
  } else {
    return false;
  }
  return true;
}

Result<bool> read_placement_option(CommandReader& words, const CommandOption& option, Job& job) {
  if (is_one_of(kLayers, option.name)) {
    GW_TRY(read_layers(words, option, job));
  } else if (is_one_of(kSplit, option.name)) {
    job.llama.tensor_split = GW_TRY(shares(words, option));
  } else if (is_one_of(kSplitMode, option.name)) {
    job.llama.split_by_rows = GW_TRY(words.value(option)) == "row";
  } else if (is_one_of(kMicroBatch, option.name)) {
    job.llama.ubatch = GW_TRY(words.integer(option, 1, 1'000'000));
  } else if (is_one_of(kFlash, option.name)) {
    GW_TRY(read_flash_attention(words, option, job));
  } else if (is_one_of(kMoe, option.name)) {
    job.llama.cpu_moe_layers = GW_TRY(words.integer(option, 0, 100'000));
  } else if (is_one_of(kAllMoe, option.name)) {
    job.llama.cpu_moe_layers = kAllLayers;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Status read_llama_server(CommandReader& words, Job& job, ReadConfig& into) {
  job.engine = Engine::llama_cpp;
  while (const auto option = words.next()) {
    if (option->name.empty())
      return fail(ErrorCode::bad_input, fmt::format("'{}' stands behind no option", *option->value));
    if (GW_TRY(read_cache_option(words, *option, job))) continue;
    if (GW_TRY(read_placement_option(words, *option, job))) continue;
    if (is_one_of(kModel, option->name)) {
      into.model = GW_TRY(words.value(*option));
    } else if (is_one_of(kRepository, option->name)) {
      const std::string named = GW_TRY(words.value(*option));
      const std::size_t colon = named.find(':');
      into.model = "hf://" + named.substr(0, colon);
      if (colon != std::string::npos) into.variant = named.substr(colon + 1);
    } else if (is_one_of(kHarmlessWithValue, option->name)) {
      GW_TRY(words.value(*option));
    } else if (!is_one_of(kHarmlessFlags, option->name)) {
      words.note_unknown(*option, into.notes);
    }
  }
  return {};
}

}  // namespace gpuwright::fit

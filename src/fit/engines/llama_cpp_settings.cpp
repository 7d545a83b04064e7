// Defaults and their history: common/common.h, src/llama-context.cpp, src/llama-kv-cache*.cpp and src/llama-model.cpp
// of ggml-org/llama.cpp; numbers of pull requests stand beside each change. A version that is not told is the newest,
// except for details of the graph that move a few MiB of host memory: those are taken from the time of the model's
// family, when the logs of such models were written.
#include "fit/engines/llama_cpp_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/engine.h"
#include "fit/kv_cache.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kDefaultUbatch = 512;
constexpr std::int64_t kPadding = 256, kOldPadding = 32;

// Letters and digits only: "gpt-oss", "gpt_oss" and "gptoss" are one family.
std::string plain(std::string_view family) {
  std::string name;
  for (const char c : lower(family))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) name += c;
  return name;
}

// Families whose windows llama.cpp puts into a cache of their own (set_swa_pattern in src/models/*.cpp). Others keep a
// full cache whatever their config says: Mistral 7B v0.1, Phi-3, Qwen2.
bool has_window_cache(const std::string& family) {
  constexpr std::array<std::string_view, 14> kFamilies = {"gemma2",  "gemma3", "gemma3n", "gemma4",      "gptoss",
                                                          "cohere2", "llama4", "exaone4", "olmo2",       "olmo3",
                                                          "plamo3",  "afmoe",  "mimo2",   "smallthinker"};
  return std::any_of(kFamilies.begin(), kFamilies.end(),
                     [&](std::string_view known) { return family.rfind(known, 0) == 0; });
}

// The build that was new when a family became runnable (gguf-py/gguf/constants.py history, roughly).
std::string_view build_of_age(const model::Model& model) {
  const std::string family = plain(model.family);
  struct Age {
    std::string_view family, build;
  };
  constexpr std::array kAges = {Age{"qwen35", "b8600"},    Age{"qwen36", "b8600"}, Age{"gemma4", "b8500"},
                                Age{"qwen3next", "b8600"}, Age{"gptoss", "b6200"}, Age{"gemma3n", "b5800"},
                                Age{"qwen3", "b5600"},     Age{"llama4", "b5100"}, Age{"gemma3", "b5500"},
                                Age{"falconh1", "b6000"},  Age{"lfm2", "b6000"},   Age{"granitemoehybrid", "b6300"},
                                Age{"deepseek", "b4500"},  Age{"qwen2", "b4500"}};
  for (const Age& age : kAges)
    if (family.rfind(age.family, 0) == 0) return age.build;
  const bool linear_attention = std::any_of(model.layers.begin(), model.layers.end(), [](const model::Layer& layer) {
    return layer.recurrent.kind == model::RecurrentKind::gated_delta_net;
  });
  return linear_attention ? "b8600" : "b4500";
}

// The llama.cpp build that a job names ("b4477", "4477"); empty, which is the newest, for ollama's and others' own
// numbers.
std::string build_of(const Job& job) {
  const std::string_view version = job.engine_version;
  const bool lettered = !version.empty() && (version[0] == 'b' || version[0] == 'B');
  const std::string_view digits = version.substr(lettered ? 1 : 0);
  const bool number =
      !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number && (lettered || job.engine == Engine::llama_cpp) ? std::string(version) : std::string();
}

bool is_quantized(model::Dtype type) {
  return model::traits(type).block_elements > 1;
}

Status set_types(const Job& job, LlamaSettings& settings) {
  const bool refusing = job.engine == Engine::llama_cpp;
  settings.key_type = job.key_type.value_or(model::Dtype::f16);
  settings.value_type = job.value_type.value_or(job.key_type.value_or(model::Dtype::f16));
  const bool needs_flash = is_quantized(settings.value_type);
  const bool switched_off = job.llama.flash_attention.has_value() && !*job.llama.flash_attention;
  settings.flash_attention =
      job.llama.flash_attention.value_or(needs_flash || version_at_least(build_of(job), "b6325"));
  if (!needs_flash || !switched_off) return {};
  if (refusing)
    return fail(ErrorCode::bad_input, "a quantised V cache needs flash attention, which is off",
                "use --flash-attn on, or --cache-type-v f16");
  // ollama falls back to f16 when flash attention is off (ollama/ollama docs/faq.md).
  settings.key_type = settings.value_type = model::Dtype::f16;
  settings.notes.push_back("OLLAMA_KV_CACHE_TYPE is ignored without flash attention: the cache is f16");
  return {};
}

void set_graph_details(const model::Model& model, const Job& job, LlamaSettings& settings) {
  const std::string build = build_of(job);
  const std::string age = build.empty() ? std::string(build_of_age(model)) : build;
  settings.fused_glu = version_at_least(age, "b5830");        // #14181
  settings.both_embeddings = version_at_least(age, "b7900");  // #18550
  settings.rotated_cache = version_at_least(age, "b8500");    // rotation of quantised caches
  settings.fused_delta_net = version_at_least(age, "b8150");  // GGML_OP_GATED_DELTA_NET
  settings.half_mask = version_at_least(age, "b9500");        // f16 mask straight from the host
  settings.old_qkv_copies = !version_at_least(age, "b5900");
}

// Streams of the cache. llama-server's automatic choice is four slots over one unified cache (#16653).
void set_streams(const Job& job, LlamaSettings& settings) {
  constexpr std::int64_t kAutomaticSlots = 4;
  const bool automatic = job.engine == Engine::llama_cpp && settings.sequences == kAutomaticSlots &&
                         version_at_least(build_of(job), "b7000");
  if (automatic && !job.llama.unified_kv)
    settings.notes.push_back("four sequences are llama-server's automatic choice, which shares one cache among them");
  settings.streams = job.llama.unified_kv || automatic ? 1 : settings.sequences;
}

void set_cells(const model::Model& model, const Job& job, LlamaSettings& settings) {
  const bool old_padding = !version_at_least(build_of(job), "b6800") && !settings.flash_attention;
  const std::int64_t padding = old_padding ? kOldPadding : kPadding;
  settings.full_cells = pad_to(divide_up(settings.context, settings.streams), padding);
  settings.context = settings.full_cells * settings.streams;
  if (!has_window_cache(plain(model.family)) || job.llama.swa_full) return;
  for (const model::Layer& layer : model.layers)
    if (layer.attention.kind == model::AttentionKind::sliding || layer.attention.kind == model::AttentionKind::chunked)
      settings.swa_window = std::max(settings.swa_window, layer.attention.window);
  if (settings.swa_window == 0) return;
  const std::int64_t windows = settings.swa_window * (settings.streams == 1 ? settings.sequences : 1);
  settings.swa_cells = std::min(settings.full_cells, pad_to(windows + settings.ubatch, padding));
}

void set_latent(const Job& job, LlamaSettings& settings) {
  using Latent = LlamaSettings::Latent;
  if (job.llama.mla_mode) {  // ik_llama.cpp: 0 off, 1 keeps a transposed copy of the latent, 2 and 3 do not
    settings.latent = *job.llama.mla_mode == 0   ? Latent::expanded
                      : *job.llama.mla_mode == 1 ? Latent::keys_and_values
                                                 : Latent::keys_only;
    return;
  }
  if (version_at_least(build_of(job), "b7830")) return;                                                     // #19067
  settings.latent = version_at_least(build_of(job), "b5130") ? Latent::keys_and_values : Latent::expanded;  // #12801
}

// llama.cpp's -c counts all sequences together.
Status set_context(const model::Model& model, const Job& job, LlamaSettings& settings) {
  const std::int64_t fallback = job.prompt_tokens ? (*job.prompt_tokens + job.new_tokens.value_or(1)) * job.sequences
                                                  : std::max<std::int64_t>(model.context_length, 1);
  settings.context = job.context_tokens.value_or(fallback);
  if (!job.context_tokens && !job.prompt_tokens)
    settings.notes.push_back(
        fmt::format("context not given: {} tokens, the model's own, llama-server's default", settings.context));
  return {};
}

// ollama's num_ctx is that of one sequence; its runner gets num_ctx x OLLAMA_NUM_PARALLEL (KvSize in llm/server.go,
// num_ctx x numParallel in server/sched.go before), where num_ctx is cut to what the model was trained on. The default
// goes by the memory of all GPUs since 0.15.5 (server/routes.go; 23 and 47 GiB stand for cards of 24 and 48).
Status set_ollama_context(const model::Model& model, const Job& job, Bytes memory, LlamaSettings& settings) {
  const std::string_view name = memory >= Bytes::from_gib(47)   ? "ollama_context_tokens_from_47_gib"
                                : memory >= Bytes::from_gib(23) ? "ollama_context_tokens_from_23_gib"
                                                                : "ollama_context_tokens";
  const Constant usual = GW_TRY(constant(Engine::ollama, name, job.engine_version));
  std::int64_t each = static_cast<std::int64_t>(usual.expected);
  if (job.context_tokens || job.prompt_tokens)
    each = job.context_tokens ? *job.context_tokens : *job.prompt_tokens + job.new_tokens.value_or(1);
  else
    settings.notes.push_back(fmt::format("context not given: num_ctx {}, ollama's default", each));
  if (model.context_length > 0 && each > model.context_length) {
    settings.notes.push_back(fmt::format("num_ctx {} is cut to the {} tokens the model was trained on",
                                         with_thousands(each), with_thousands(model.context_length)));
    each = model.context_length;
  }
  settings.context = each * job.sequences;
  return {};
}

// Sizes come from files. Everything below multiplies them, so absurd ones are refused before they can overflow.
Status check_sizes(const model::Model& model, const LlamaSettings& settings) {
  constexpr double kMost = 0x1p58;
  double widest = std::max<double>(static_cast<double>(model.hidden), static_cast<double>(model.vocabulary));
  double heads = 1;
  for (const model::Layer& layer : model.layers) {
    const model::Attention& attention = layer.attention;
    const model::FeedForward& block = layer.feed_forward;
    const auto dims = static_cast<double>(attention.key_dim) + static_cast<double>(attention.value_dim) +
                      static_cast<double>(attention.kv_lora_rank) + static_cast<double>(attention.rope_dim);
    heads = std::max({heads, static_cast<double>(attention.heads), static_cast<double>(attention.kv_heads)});
    const double states = static_cast<double>(layer.recurrent.state_elements()) +
                          static_cast<double>(layer.recurrent.convolution_elements());
    const double experts = static_cast<double>(std::max<std::int64_t>(block.experts_per_token, 1)) *
                           std::max(static_cast<double>(block.expert_width), static_cast<double>(model.hidden));
    widest = std::max({widest, heads * dims, static_cast<double>(block.width), static_cast<double>(block.shared_width),
                       static_cast<double>(block.experts), experts, states * static_cast<double>(settings.sequences)});
  }
  const auto tokens = static_cast<double>(settings.ubatch) * 16.0;
  const double cells = static_cast<double>(settings.full_cells) * static_cast<double>(settings.streams);
  const double cache = cells * widest * 8.0 * static_cast<double>(model.layers.size() + 1);
  if (tokens * widest < kMost && tokens * cells * heads < kMost && cache < kMost) return {};
  return fail(
      ErrorCode::bad_input,
      fmt::format("{}: its sizes with {} tokens of context are beyond any machine", model.name, settings.context),
      "check the model's header or ask for a shorter context");
}

}  // namespace

Result<LlamaSettings> llama_settings(const model::Model& model, const Job& job, Bytes memory) {
  LlamaSettings settings;
  settings.sequences = job.sequences;
  GW_TRY(job.engine == Engine::ollama ? set_ollama_context(model, job, memory, settings)
                                      : set_context(model, job, settings));
  settings.ubatch = job.llama.ubatch.value_or(kDefaultUbatch);
  if (settings.ubatch < 1 || settings.ubatch > (std::int64_t{1} << 24))
    return fail(ErrorCode::bad_input, fmt::format("-ub {} is not a number of tokens", settings.ubatch));
  settings.ubatch = std::min(settings.ubatch, settings.context);
  if (job.llama.speculative_tokens < 0 || job.llama.speculative_tokens > 1024)
    return fail(ErrorCode::bad_input, "between 0 and 1024 tokens can be drafted");
  settings.state_copies = 1 + job.llama.speculative_tokens;
  const auto all = static_cast<std::int64_t>(model.layers.size()) + 1;
  settings.gpu_layers = std::clamp<std::int64_t>(job.llama.gpu_layers.value_or(all), 0, all);
  settings.cache = model.kind != model::ModelKind::encoder || !version_at_least(build_of(job), "b5400");
  GW_TRY(set_types(job, settings));
  set_graph_details(model, job, settings);
  set_streams(job, settings);
  set_cells(model, job, settings);
  set_latent(job, settings);
  GW_TRY(check_sizes(model, settings));
  return settings;
}

bool slides(const LlamaSettings& settings, const model::Attention& attention) {
  return settings.swa_cells > 0 &&
         (attention.kind == model::AttentionKind::sliding || attention.kind == model::AttentionKind::chunked);
}

std::int64_t cells_of(const LlamaSettings& settings, const model::Attention& attention) {
  return slides(settings, attention) ? settings.swa_cells : settings.full_cells;
}

Bytes layer_cache_bytes(const LlamaSettings& settings, const model::Attention& attention) {
  if (!settings.cache || attention.kind == model::AttentionKind::none || attention.shares_cache_of) return {};
  model::Attention stored = attention;
  stored.causal = true;
  Bytes per_cell;
  if (attention.kind == model::AttentionKind::latent && settings.latent == LlamaSettings::Latent::expanded) {
    stored.kind = model::AttentionKind::full;
    stored.kv_heads = attention.heads;
    stored.indexer_key_dim = 0;
  }
  per_cell = cache_bytes_per_token(stored, settings.key_type, settings.value_type);
  if (attention.kind == model::AttentionKind::latent && settings.latent == LlamaSettings::Latent::keys_and_values)
    per_cell += model::storage_bytes(settings.value_type, 1, attention.kv_lora_rank).value_or(Bytes{});
  return per_cell * cells_of(settings, attention) * settings.streams;
}

Bytes layer_state_bytes(const LlamaSettings& settings, const model::Recurrent& recurrent) {
  constexpr Bytes kFloat{4};
  return recurrent_bytes(recurrent, kFloat, kFloat) * settings.sequences * settings.state_copies;
}

}  // namespace gpuwright::fit

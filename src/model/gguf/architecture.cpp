#include "model/gguf/architecture.h"

#include <algorithm>
#include <iterator>

namespace gpuwright::model::gguf {
namespace {

using When = WindowRule::When;

constexpr WindowRule kNever{};
constexpr WindowRule every(std::int64_t period, std::int64_t window = 0) {
  return {.when = When::always, .period = period, .window = window};
}
constexpr WindowRule if_given(std::int64_t period, bool dense_first = false) {
  return {.when = When::if_given, .period = period, .dense_first = dense_first};
}
constexpr WindowRule kPatternInFile{.when = When::pattern_in_file};

constexpr Architecture plain(std::string_view name, std::string_view family, WindowRule window = kNever) {
  return {.name = name, .family = family, .window = window};
}
constexpr Architecture parallel(std::string_view name, std::string_view family, WindowRule window = kNever) {
  return {.name = name, .family = family, .window = window, .parallel_block = true};
}
constexpr Architecture encoder(std::string_view name, std::string_view family, WindowRule window = kNever) {
  return {.name = name, .family = family, .kind = ModelKind::encoder, .window = window, .keeps_cache = false};
}
// Text diffusion: a decoder's shape, but every step sees the whole text.
constexpr Architecture diffusion(std::string_view name) {
  return {.name = name, .family = name, .keeps_cache = false};
}
constexpr Architecture hybrid(std::string_view name, std::string_view family, RecurrentKind recurrent,
                              WindowRule window = kNever) {
  return {.name = name, .family = family, .window = window, .recurrent = recurrent};
}

constexpr Architecture kArchitectures[] = {
    plain("llama", "llama"),
    plain("llama4", "llama4", {.when = When::unless_zero, .period = 4, .window = 8192, .kind = AttentionKind::chunked}),
    encoder("llama-embed", "llama"),
    plain("deci", "deci"),
    plain("mistral3", "mistral"),
    plain("mistral4", "mistral4"),
    plain("qwen", "qwen"),
    plain("qwen2", "qwen2"),
    plain("qwen2moe", "qwen2moe"),
    plain("qwen2vl", "qwen2"),
    plain("qwen3", "qwen3"),
    plain("qwen3moe", "qwen3moe"),
    plain("qwen3vl", "qwen3"),
    plain("qwen3vlmoe", "qwen3moe"),
    hybrid("qwen3next", "qwen3next", RecurrentKind::gated_delta_net),
    hybrid("qwen35", "qwen35", RecurrentKind::gated_delta_net),
    hybrid("qwen35moe", "qwen35moe", RecurrentKind::gated_delta_net),
    plain("gemma", "gemma"),
    plain("gemma2", "gemma2", every(2, 4096)),
    plain("gemma3", "gemma3", every(6)),
    {.name = "gemma3n", .family = "gemma3n", .window = every(5), .cached_layers = 20},
    plain("gemma4", "gemma4", kPatternInFile),
    encoder("gemma-embedding", "gemma-embedding", every(6)),
    parallel("phi2", "phi2"),
    plain("phi3", "phi3"),
    plain("phimoe", "phimoe"),
    plain("deepseek", "deepseek"),
    plain("deepseek2", "deepseek2"),
    plain("deepseek2-ocr", "deepseek"),
    plain("deepseek32", "deepseek32"),
    plain("glm-dsa", "glm-dsa"),
    plain("gpt2", "gpt2"),
    parallel("gptj", "gptj"),
    parallel("gptneox", "gptneox"),
    plain("gpt-oss", "gpt-oss", every(2)),
    parallel("falcon", "falcon"),
    {.name = "falcon-h1", .family = "falcon-h1", .recurrent = RecurrentKind::mamba2, .both_in_one_layer = true},
    hybrid("mamba", "mamba", RecurrentKind::mamba1),
    hybrid("mamba2", "mamba2", RecurrentKind::mamba2),
    hybrid("jamba", "jamba", RecurrentKind::mamba1),
    hybrid("nemotron_h", "nemotron-h", RecurrentKind::mamba2),
    hybrid("nemotron_h_moe", "nemotron-h", RecurrentKind::mamba2),
    plain("nemotron", "nemotron"),
    plain("granite", "granite"),
    plain("granitemoe", "granitemoe"),
    hybrid("granitehybrid", "granitehybrid", RecurrentKind::mamba2),
    plain("chatglm", "chatglm"),
    plain("glm4", "glm4"),
    plain("glm4moe", "glm4moe"),
    plain("internlm2", "internlm2"),
    plain("internlm3", "internlm3"),
    encoder("bert", "bert"),
    encoder("modern-bert", "modern-bert", if_given(3, true)),
    encoder("nomic-bert", "nomic-bert"),
    encoder("nomic-bert-moe", "nomic-bert"),
    encoder("neo-bert", "neo-bert"),
    encoder("eurobert", "eurobert"),
    encoder("jina-bert-v2", "jina-bert-v2"),
    encoder("jina-bert-v3", "jina-bert-v3"),
    {.name = "t5", .family = "t5", .kind = ModelKind::encoder_decoder},
    encoder("t5encoder", "t5"),
    {.name = "clip", .family = "clip", .kind = ModelKind::other, .keeps_cache = false},
    {.name = "wavtokenizer-dec", .family = "wavtokenizer", .kind = ModelKind::other, .keeps_cache = false},
    parallel("command-r", "command-r"),
    parallel("cohere2", "cohere2", every(4)),
    parallel("cohere2moe", "cohere2", every(4)),
    plain("starcoder", "starcoder"),
    plain("starcoder2", "starcoder2"),
    plain("stablelm", "stablelm"),
    plain("olmo", "olmo"),
    plain("olmo2", "olmo2", if_given(4)),
    plain("olmoe", "olmoe"),
    plain("minicpm", "minicpm"),
    plain("minicpm3", "minicpm3"),
    plain("bloom", "bloom"),
    plain("mpt", "mpt"),
    hybrid("rwkv6", "rwkv6", RecurrentKind::rwkv),
    hybrid("rwkv6qwen2", "rwkv6", RecurrentKind::rwkv),
    hybrid("rwkv7", "rwkv7", RecurrentKind::rwkv),
    hybrid("arwkv7", "rwkv7", RecurrentKind::rwkv),
    hybrid("lfm2", "lfm2", RecurrentKind::short_convolution, if_given(0)),
    hybrid("lfm2moe", "lfm2", RecurrentKind::short_convolution, if_given(0)),
    hybrid("kimi-linear", "kimi-linear", RecurrentKind::gated_delta_net),
    hybrid("plamo2", "plamo2", RecurrentKind::mamba1),
    plain("plamo3", "plamo3", if_given(8)),
    parallel("plamo", "plamo"),
    plain("exaone", "exaone"),
    plain("exaone4", "exaone4", {.when = When::if_64_layers, .period = 4, .window = 4096}),
    plain("exaone-moe", "exaone-moe", every(4, 128)),
    plain("smollm3", "smollm3"),
    plain("smallthinker", "smallthinker", if_given(4, true)),
    plain("ernie4_5", "ernie4_5"),
    plain("ernie4_5-moe", "ernie4_5"),
    plain("hunyuan-dense", "hunyuan"),
    plain("hunyuan-moe", "hunyuan"),
    plain("hunyuan_vl", "hunyuan"),
    plain("dots1", "dots1"),
    plain("bailingmoe", "bailingmoe"),
    plain("bailingmoe2", "bailingmoe"),
    plain("minimax-m2", "minimax-m2"),
    plain("mimo2", "mimo2", kPatternInFile),
    plain("step35", "step35", kPatternInFile),
    plain("afmoe", "afmoe", if_given(4)),
    plain("laguna", "laguna", if_given(4, true)),
    plain("arcee", "arcee"),
    plain("apertus", "apertus"),
    plain("arctic", "arctic"),
    plain("baichuan", "baichuan"),
    plain("bitnet", "bitnet"),
    plain("chameleon", "chameleon"),
    plain("codeshell", "codeshell"),
    plain("cogvlm", "cogvlm"),
    plain("dbrx", "dbrx"),
    plain("grok", "grok"),
    plain("grovemoe", "grovemoe"),
    plain("jais", "jais"),
    plain("jais2", "jais2"),
    plain("maincoder", "maincoder"),
    plain("openelm", "openelm"),
    plain("orion", "orion"),
    plain("paddleocr", "ernie4_5"),
    plain("pangu-embedded", "pangu-embedded"),
    plain("plm", "plm"),
    plain("refact", "refact"),
    plain("seed_oss", "seed_oss"),
    plain("xverse", "xverse"),
    diffusion("dream"),
    diffusion("llada"),
    diffusion("llada-moe"),
    diffusion("rnd1"),
};

}  // namespace

const Architecture* architecture_named(std::string_view name) {
  const auto found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                  [&](const Architecture& row) { return row.name == name; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

}  // namespace gpuwright::model::gguf

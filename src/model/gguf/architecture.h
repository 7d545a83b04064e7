// What the name in general.architecture implies and the metadata do not say: which layers slide, what the recurrent
// ones keep, whether there is a cache at all. One row an architecture, after llama.cpp's load_arch_hparams
// (src/llama-model.cpp, later src/models/*.cpp) and llama_model::create_memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/model.h"

namespace gpuwright::model::gguf {

// Which layers see only a window. Layer i is windowed when i % period < period - 1, or, with dense_first, when
// i % period != 0; period 0 means every attention layer. An array or a number in attention.sliding_window_pattern
// takes the place of `period`.
struct WindowRule {
  enum class When : std::uint8_t {
    never,            // also where files name a window that llama.cpp ignores (Phi-3)
    always,           // the window is in the file, or else `window`
    if_given,         // only when the file names a window above 0
    unless_zero,      // `window`, whatever the file names, but not when that is 0 (Llama 4)
    if_64_layers,     // EXAONE 4: the 32B slides, the 1.2B does not
    pattern_in_file,  // the file must hold one flag a layer
  };
  When when = When::never;
  std::int64_t period = 0;
  bool dense_first = false;
  std::int64_t window = 0;
  AttentionKind kind = AttentionKind::sliding;
};

struct Architecture {
  std::string_view name;    // general.architecture
  std::string_view family;  // Model::family
  ModelKind kind = ModelKind::decoder;
  WindowRule window = {};
  RecurrentKind recurrent = RecurrentKind::none;
  bool both_in_one_layer = false;  // Falcon-H1: attention and state side by side
  bool keeps_cache = true;         // false: bidirectional, the whole text is seen at once
  bool parallel_block = false;
  std::int64_t cached_layers = 0;  // when the file has no shared_kv_layers: how many layers keep a cache; 0 for all
};

// Nothing when llama.cpp has no such architecture, or gpuwright does not know what it keeps.
const Architecture* architecture_named(std::string_view name);

}  // namespace gpuwright::model::gguf

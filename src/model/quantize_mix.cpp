// After llama_tensor_get_type_impl and tensor_type_fallback in src/llama-quant.cpp (ggml-org/llama.cpp at 007dbbf3;
// the older rules from src/llama-quant.cpp of 2024 and llama.cpp of December 2023). Files below IQ3_XS are taken to be
// made with an importance matrix, as llama-quantize demands; the others without.
#include "model/quantize_mix.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gpuwright::model {
namespace {

using Category = GgufCategory;
using enum Dtype;

struct FileTypeRow {
  std::string_view name;
  Dtype base;
};
constexpr std::array kFileTypes = {
    FileTypeRow{"F32", f32},         FileTypeRow{"F16", f16},       FileTypeRow{"BF16", bf16},
    FileTypeRow{"Q4_0", q4_0},       FileTypeRow{"Q4_1", q4_1},     FileTypeRow{"Q5_0", q5_0},
    FileTypeRow{"Q5_1", q5_1},       FileTypeRow{"Q8_0", q8_0},     FileTypeRow{"Q2_K", q2_k},
    FileTypeRow{"Q2_K_S", q2_k},     FileTypeRow{"Q3_K_S", q3_k},   FileTypeRow{"Q3_K_M", q3_k},
    FileTypeRow{"Q3_K_L", q3_k},     FileTypeRow{"Q4_K_S", q4_k},   FileTypeRow{"Q4_K_M", q4_k},
    FileTypeRow{"Q5_K_S", q5_k},     FileTypeRow{"Q5_K_M", q5_k},   FileTypeRow{"Q6_K", q6_k},
    FileTypeRow{"IQ1_S", iq1_s},     FileTypeRow{"IQ1_M", iq1_m},   FileTypeRow{"IQ2_XXS", iq2_xxs},
    FileTypeRow{"IQ2_XS", iq2_xs},   FileTypeRow{"IQ2_S", iq2_xs},  FileTypeRow{"IQ2_M", iq2_s},
    FileTypeRow{"IQ3_XXS", iq3_xxs}, FileTypeRow{"IQ3_XS", iq3_s},  FileTypeRow{"IQ3_S", iq3_s},
    FileTypeRow{"IQ3_M", iq3_s},     FileTypeRow{"IQ4_NL", iq4_nl}, FileTypeRow{"IQ4_XS", iq4_xs},
    FileTypeRow{"TQ1_0", tq1_0},     FileTypeRow{"TQ2_0", tq2_0},   FileTypeRow{"MXFP4_MOE", mxfp4},
};
static_assert(kFileTypes.size() == static_cast<std::size_t>(FileType::mxfp4_moe) + 1);

bool is_attention_v(Category category, MixRules rules) {
  if (category == Category::attention_v) return true;
  return rules == MixRules::by_category &&
         (category == Category::attention_qkv || category == Category::attention_kv_b);
}

// Layers where a few more bits help most: the first and last eighth, and every third between them.
bool use_more_bits(std::int64_t layer, std::int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

class Mixer {
 public:
  Mixer(const Model& model, const std::vector<GgufTensor>& layout, FileType type, MixRules rules)
      : type_(type), rules_(rules), layers_(static_cast<std::int64_t>(model.layers.size())) {
    falcon_ = model.family == "falcon";
    family_ = model.family;
    tied_ = std::none_of(layout.begin(), layout.end(),
                         [](const GgufTensor& one) { return one.category == Category::output; });
    for (const Layer& layer : model.layers) {
      experts_ = std::max(experts_, layer.feed_forward.experts);
      linear_attention_ |= layer.recurrent.kind == RecurrentKind::gated_delta_net;
      if (gqa_ == 0 && layer.attention.kv_heads > 0) gqa_ = layer.attention.heads / layer.attention.kv_heads;
    }
    seventy_b_ = layers_ == 80 && gqa_ > 1 && (model.family == "llama" || model.family == "qwen2");
    for (const GgufTensor& one : layout)
      if (one.quantizable && (one.category == Category::attention_v || one.category == Category::attention_qkv ||
                              one.category == Category::attention_kv_b))
        ++attention_layers_;
  }

  Dtype dtype_of(const GgufTensor& one) {
    if (rules_ == MixRules::y2023 && one.tensor.role == TensorRole::router) return f16;
    if (!one.quantizable) return f32;
    const Dtype base = base_dtype(type_);
    if (traits(base).block_elements == 1) return base;
    return fallback(chosen(one, base), one.tensor.columns);
  }

 private:
  bool is(std::initializer_list<FileType> types) const {
    return std::find(types.begin(), types.end(), type_) != types.end();
  }
  bool tiny() const {
    using enum FileType;
    return is({iq2_xxs, iq2_xs, FileType::iq1_s, iq2_s, iq2_m, FileType::iq1_m});
  }

  Dtype chosen(const GgufTensor& one, Dtype base) {
    const Category category = one.category;
    if (rules_ == MixRules::ollama)
      if (const auto type = chosen_by_ollama(one)) return *type;
    if (category == Category::output || (tied_ && category == Category::token_embedding)) return head(one, base);
    if (type_ == FileType::mxfp4_moe) return one.stacked && is_expert(category) ? mxfp4 : q8_0;
    if (category == Category::token_embedding) return embedding(base);
    if (tiny()) return tiny_type(category, base);
    if (is_attention_v(category, rules_)) return attention_v(base);
    switch (category) {
      case Category::attention_k:
        return attention_k(base);
      case Category::attention_q:
        return attention_q(base);
      case Category::ffn_down:
        return ffn_down(one, base);
      case Category::attention_output:
        return attention_output(base);
      case Category::attention_qkv:
        return fused_qkv(base);
      case Category::ffn_gate:
        return ffn_gate_or_up(one, gates_++, base);
      case Category::ffn_up:
        return ffn_gate_or_up(one, ups_++, base);
      default:
        return base;
    }
  }

  // Where ollama differs: linear-attention families have fixed types, MLA projections are Q8_0.
  std::optional<Dtype> chosen_by_ollama(const GgufTensor& one) const {
    const bool four_bits = is({FileType::q4_k_m, FileType::q4_k_s});
    if (linear_attention_ && four_bits && one.tensor.layer >= 0)
      return one.category == Category::attention_v || (one.category == Category::ffn_down && experts_ > 0) ? q6_k
                                                                                                           : q4_k;
    if (one.tensor.role == TensorRole::attention_kv_a || one.tensor.name.find("kv_b_proj") != std::string::npos ||
        one.tensor.name.find("q_b_proj") != std::string::npos)
      return q8_0;
    const bool qwen3 = family_ == "qwen3" || family_ == "qwen3moe";
    if (qwen3 && one.category == Category::attention_v) return f16;
    return std::nullopt;
  }

  static bool is_expert(Category category) {
    return category == Category::ffn_up || category == Category::ffn_gate || category == Category::ffn_down;
  }

  Dtype head(const GgufTensor& one, Dtype base) const {
    if (type_ == FileType::mxfp4_moe || falcon_) return q8_0;
    if (one.tensor.columns % traits(base).block_elements != 0) return q8_0;
    if (tiny() || type_ == FileType::iq3_xxs) return q5_k;
    return base == q8_0 ? base : q6_k;
  }

  Dtype embedding(Dtype base) const {
    using enum FileType;
    if (is({iq2_xxs, iq2_xs, FileType::iq1_s, FileType::iq1_m})) return Dtype::q2_k;
    if (is({iq2_s, iq2_m, iq3_xxs})) return Dtype::iq3_s;
    if (is({FileType::tq1_0, FileType::tq2_0})) return q4_k;
    return base;
  }

  Dtype tiny_type(Category category, Dtype base) {
    const bool two_s = is({FileType::iq2_s, FileType::iq2_m});
    if (is_attention_v(category, rules_)) {
      if (gqa_ >= 4 || experts_ >= 4) return q4_k;
      return two_s ? iq3_s : q2_k;
    }
    if (experts_ == 8 && category == Category::attention_k) return q4_k;
    if (category == Category::ffn_down) return downs_++ < layers_ / 8 ? (two_s ? iq3_s : q2_k) : base;
    if (category == Category::attention_output) {
      if (experts_ == 8) return q5_k;
      if (is({FileType::iq1_s, FileType::iq1_m})) return iq2_xxs;
      if (two_s) return iq3_s;
    }
    return base;
  }

  Dtype attention_v(Dtype base) {
    const std::int64_t index = values_++;
    Dtype type = attention_v_by_file_type(base, index);
    if (seventy_b_ && (type == q3_k || type == q4_k)) type = q5_k;
    return experts_ == 8 ? q8_0 : type;
  }

  Dtype attention_v_by_file_type(Dtype base, std::int64_t index) const {
    const bool grouped = gqa_ >= 4;
    switch (type_) {
      case FileType::q2_k:
        return grouped ? q4_k : q3_k;
      case FileType::q2_k_s:
        return grouped ? q4_k : base;
      case FileType::iq3_xxs:
        return grouped ? q4_k : iq3_xxs;
      case FileType::iq3_xs:
      case FileType::iq3_s:
        return grouped ? q4_k : base;
      case FileType::iq3_m:
        return q4_k;
      case FileType::q3_k_m:
        return index < 2 ? q5_k : q4_k;
      case FileType::q3_k_l:
        return q5_k;
      case FileType::iq4_nl:
      case FileType::iq4_xs:
        return grouped ? q5_k : base;
      case FileType::q4_k_m:
      case FileType::q5_k_m:
        return use_more_bits(index, attention_layers_) ? q6_k : base;
      case FileType::q4_k_s:
        return index < 4 ? q5_k : base;
      default:
        return base;
    }
  }

  Dtype attention_k(Dtype base) const {
    if (experts_ == 8) return q8_0;
    return attention_q(base);
  }
  Dtype attention_q(Dtype base) const {
    if (type_ == FileType::iq3_xs) return iq3_xxs;
    if (type_ == FileType::iq3_xxs) return iq2_s;
    return base;
  }

  std::int64_t layer_of(const GgufTensor& one, std::int64_t counter) const {
    if (experts_ <= 1) return counter;
    return one.tensor.layer < 0 ? layers_ : one.tensor.layer;
  }

  Dtype ffn_down(const GgufTensor& one, Dtype base) {
    const std::int64_t layer = layer_of(one, downs_++);
    if (rules_ == MixRules::y2023 && one.stacked) return base;
    const bool first_eighth = layer < layers_ / 8;
    const bool more = use_more_bits(layer, layers_);
    switch (type_) {
      case FileType::q2_k:
        return q3_k;
      case FileType::q2_k_s:
        return first_eighth ? q4_k : base;
      case FileType::q3_k_m:
        if (layer < layers_ / 16) return q5_k;
        return !falcon_ || more ? q4_k : q3_k;
      case FileType::iq3_m:
        return first_eighth || (experts_ == 8 && more) ? q4_k : base;
      case FileType::q3_k_l:
        return falcon_ ? q4_k : q5_k;
      case FileType::q4_k_m:
        if (falcon_) return layer < layers_ / 16 ? q6_k : more ? q5_k : q4_k;
        return more ? q6_k : base;
      case FileType::q5_k_m:
        return more ? q6_k : base;
      case FileType::iq4_nl:
      case FileType::iq4_xs:
        return first_eighth ? q5_k : base;
      case FileType::q4_k_s:
        return !falcon_ && first_eighth ? q5_k : base;
      default:
        return base;
    }
  }

  Dtype attention_output(Dtype base) const {
    using enum FileType;
    if (falcon_) return type_ == q3_k_l ? Dtype::q4_k : base;
    if (experts_ == 8 && rules_ == MixRules::y2023) return base;
    if (experts_ == 8)
      return is({FileType::q2_k, iq3_xs, FileType::iq3_xxs, q3_k_s, q3_k_m, FileType::iq4_nl, q4_k_s, q4_k_m,
                 FileType::iq3_s, iq3_m, FileType::iq4_xs})
                 ? Dtype::q5_k
                 : base;
    if (type_ == FileType::q2_k) return Dtype::q3_k;
    if (type_ == FileType::iq3_xxs) return Dtype::iq3_s;
    if (is({q3_k_m, iq3_m})) return Dtype::q4_k;
    return type_ == q3_k_l ? Dtype::q5_k : base;
  }

  Dtype fused_qkv(Dtype base) const {
    using enum FileType;
    if (is({q3_k_m, q3_k_l, iq3_m})) return Dtype::q4_k;
    if (type_ == q4_k_m) return Dtype::q5_k;
    return type_ == q5_k_m ? Dtype::q6_k : base;
  }

  Dtype ffn_gate_or_up(const GgufTensor& one, std::int64_t counter, Dtype base) const {
    const std::int64_t layer = layer_of(one, counter);
    const bool middle = layer >= layers_ / 8 && layer < 7 * layers_ / 8;
    return type_ == FileType::iq3_xs && middle ? iq3_xxs : base;
  }

  static Dtype fallback(Dtype wanted, std::int64_t columns) {
    if (columns % traits(wanted).block_elements == 0) return wanted;
    const Dtype smaller = smaller_blocks(wanted);
    return columns % traits(smaller).block_elements == 0 ? smaller : f16;
  }
  static Dtype smaller_blocks(Dtype wanted) {
    switch (wanted) {
      case q2_k:
      case q3_k:
      case tq1_0:
      case tq2_0:
        return q4_0;
      case q4_k:
        return q5_0;
      case q5_k:
        return q5_1;
      case q6_k:
        return q8_0;
      case q4_0:
      case q4_1:
      case q5_0:
      case q5_1:
      case q8_0:
      case mxfp4:
        return f16;
      default:
        return iq4_nl;
    }
  }

  FileType type_;
  MixRules rules_;
  std::int64_t layers_ = 0;
  std::int64_t experts_ = 0;
  std::int64_t gqa_ = 0;
  std::int64_t attention_layers_ = 0;
  std::string family_;
  bool falcon_ = false;
  bool linear_attention_ = false;
  bool tied_ = false;
  bool seventy_b_ = false;
  std::int64_t values_ = 0, downs_ = 0, gates_ = 0, ups_ = 0;
};

}  // namespace

std::optional<FileType> file_type_named(std::string_view name) {
  const std::string wanted = lower(name.substr(0, 32));
  for (std::size_t i = 0; i < kFileTypes.size(); ++i)
    if (lower(kFileTypes[i].name) == wanted) return static_cast<FileType>(i);
  if (wanted == "q3_k") return FileType::q3_k_m;
  if (wanted == "q4_k") return FileType::q4_k_m;
  if (wanted == "q5_k") return FileType::q5_k_m;
  return std::nullopt;
}

std::string_view name_of(FileType type) {
  return kFileTypes[static_cast<std::size_t>(type)].name;
}

std::vector<std::string_view> file_type_names() {
  std::vector<std::string_view> names;
  for (const FileTypeRow& row : kFileTypes) names.push_back(row.name);
  return names;
}

Dtype base_dtype(FileType type) {
  return kFileTypes[static_cast<std::size_t>(type)].base;
}

std::vector<Dtype> mixed_dtypes(const Model& model, const std::vector<GgufTensor>& layout, FileType type,
                                MixRules rules) {
  Mixer mixer(model, layout, type, rules);
  std::vector<Dtype> dtypes;
  dtypes.reserve(layout.size());
  for (const GgufTensor& one : layout) dtypes.push_back(mixer.dtype_of(one));
  return dtypes;
}

}  // namespace gpuwright::model

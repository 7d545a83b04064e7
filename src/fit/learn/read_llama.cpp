// llama.cpp's own lines, also as ollama, LM Studio, koboldcpp and others pass them on. They begin with the name of the
// printing function, which changed often (llm_load_tensors, load_tensors; llama_new_context_with_model, llama_context,
// reserve, sched_reserve), so the readers go by the words after it. Formats: ggml-org/llama.cpp src/llama-model.cpp,
// llama-context.cpp, llama-kv-cache.cpp, llama-memory-recurrent.cpp, ggml-cuda.cu, from 2023 to b8000.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/learn/readers.h"

namespace gpuwright::fit {
namespace {

using Merge = LogBook::Merge;

// Where a buffer of that name lies.
struct Place {
  bool known = false;
  std::optional<int> gpu;  // nothing: the host
};

Place place_of(std::string_view device) {
  constexpr std::array<std::string_view, 9> kHost = {"CPU",  "BLAS", "AMX", "ACCEL",    "KleidiAI",
                                                     "Host", "HBM",  "RPC", "CUDA_Host"};
  constexpr std::array<std::string_view, 8> kGpu = {"CUDA", "ROCm", "Vulkan", "SYCL", "MTL", "Metal", "MUSA", "CANN"};
  if (device.find("_Host") != std::string_view::npos) return {true, std::nullopt};
  for (const std::string_view prefix : kHost)
    if (device.starts_with(prefix)) return {true, std::nullopt};
  for (const std::string_view prefix : kGpu) {
    if (!device.starts_with(prefix)) continue;
    std::string_view rest = device.substr(prefix.size());
    rest = rest.substr(0, rest.find('_'));
    if (rest.empty()) return {prefix == "Metal", 0};  // "CUDA_Split" is spread over several
    const auto number = to_integer(rest);
    if (number && *number >= 0 && *number < static_cast<std::int64_t>(LogBook::kMostGpus))
      return {true, static_cast<int>(*number)};
  }
  return {};
}

std::optional<ComponentKind> kind_of(std::string_view what) {
  if (what.empty() || what == "model") return ComponentKind::weights;
  if (what == "KV" || what == "paged KV") return ComponentKind::kv_cache;
  if (what == "RS") return ComponentKind::recurrent_state;
  if (what == "compute") return ComponentKind::compute_buffer;
  if (what == "output") return ComponentKind::output_buffer;
  return std::nullopt;
}

// "mostly Q4_K - Medium (guessed)" -> "Q4_K_M": llama_model_ftype_name against the names of llama-quantize.
std::string format_named(std::string_view text) {
  text = trim(text);
  for (const std::string_view lead : {"all ", "mostly "})
    if (text.starts_with(lead)) text.remove_prefix(lead.size());
  std::string base(text.substr(0, text.find_first_of(" (,")));
  if (base == "Q2_K" || base.empty()) return base;
  const auto size = after(text, " - ");
  if (size && size->starts_with("Small")) return base + "_S";
  if (size && size->starts_with("Medium")) return base + "_M";
  if (size && size->starts_with("Large")) return base + "_L";
  return base == "MXFP4" ? "MXFP4_MOE" : base;
}

class LlamaReader final : public LogReader {
 public:
  void line(std::string_view text, LogBook& book) override {
    if (text.find("buffer size") != std::string_view::npos) return buffer(text, book);
    if (text.find("memory_breakdown_print: |") != std::string_view::npos) return breakdown(text, book);
    if (text.find(" = ") != std::string_view::npos) assignment(text, book);
    loading(text, book);
    device(text, book);
  }

 private:
  // "load_tensors:        CUDA0 model buffer size =  4403.49 MiB"
  void buffer(std::string_view text, LogBook& book) {
    const auto at = text.find("buffer size");
    const auto amount = amount_after(text.substr(at), "=");
    std::string_view head = trim(text.substr(0, at));
    if (const auto colon = head.rfind(": "); colon != std::string_view::npos) head = trim(head.substr(colon + 2));
    if (head.starts_with('[')) head = trim(head.substr(std::min(head.find(']'), head.size() - 1) + 1));
    const auto space = head.find(' ');
    const Place place = place_of(head.substr(0, space));
    const auto kind = kind_of(space == std::string_view::npos ? "" : trim(head.substr(space)));
    // A vision projector has a graph of its own.
    if (!amount || !place.known || !kind || text.find("clip") != std::string_view::npos) return;
    if (*kind == ComponentKind::compute_buffer && text.find("alloc_compute_meta") != std::string_view::npos) return;
    book.claim(LogProgram::llama_cpp);
    const bool summed = *kind == ComponentKind::weights || *kind == ComponentKind::kv_cache;
    book.component(*kind, place.gpu, *amount, summed ? Merge::sum : Merge::last);
  }

  // "|   - CUDA0 (RTX 4090)   | 24110 = 234 + (23424 = 17904 +    384 +    5136) +         451 |": MiB of total, free,
  // self = model + context + compute, unaccounted. Differences below zero are printed as huge numbers.
  void breakdown(std::string_view text, LogBook& book) {
    const auto row = after(text, "|   - ");
    if (!row) return;
    const std::string_view device = row->substr(0, row->find_first_of(" |"));
    const Place place = place_of(device);
    if (!place.known) return;
    std::vector<std::int64_t> mib;
    const auto numbers = row->find('|');
    if (numbers == std::string_view::npos) return;
    for (std::string_view rest = row->substr(numbers); mib.size() < 8;) {
      const auto digit = rest.find_first_of("0123456789");
      if (digit == std::string_view::npos) break;
      const auto number = scan_number(rest.substr(digit));
      if (!number) return;
      mib.push_back(number->value < 1e9 ? static_cast<std::int64_t>(number->value) : -1);
      rest = rest.substr(digit + number->consumed);
    }
    const std::size_t first = place.gpu ? 3 : 1;  // the host has neither total nor free
    if (mib.size() < first + 3) return;
    book.claim(LogProgram::llama_cpp);
    constexpr std::array kKinds = {ComponentKind::weights, ComponentKind::kv_cache, ComponentKind::compute_buffer};
    for (std::size_t i = 0; i < kKinds.size(); ++i)
      if (mib[first + i] > 0 && !book.has(kKinds[i], place.gpu))
        book.component(kKinds[i], place.gpu, whole_mib(mib[first + i]), Merge::last, true);
    if (!place.gpu) return;
    if (mib.size() >= 7 && mib[6] > 0)
      book.component(ComponentKind::runtime, place.gpu, whole_mib(mib[6]), Merge::last);
    if (LogGpu* gpu = book.gpu(*place.gpu)) {
      if (!gpu->total && mib[0] > 0) gpu->total = Bytes{mib[0] << 20};
      const auto name = after(*row, "(");
      if (gpu->name.empty() && name)
        gpu->name = std::string(name->substr(0, std::min(name->find(" |"), name->find(")"))));
    }
  }

  static Amount whole_mib(std::int64_t mib) { return {Bytes{mib << 20}, 524288.0, 0}; }

  void assignment(std::string_view text, LogBook& book) {
    const auto integer = [&](std::string_view key, std::string_view option) {
      const auto value = value_of(text, key);
      if (const auto number = value ? scan_integer(*value) : std::nullopt; number && *number > 0)
        book.set(option, std::to_string(*number));
    };
    // "llama_context: n_ctx = 8192" opens a context; llama-server's slots print n_ctx too.
    if (text.find(": n_ctx ") != std::string_view::npos && text.find("slot") == std::string_view::npos) {
      new_context(book);
      integer("n_ctx", "--context");
    }
    integer("n_ubatch", "--ubatch");
    integer("n_seq_max", "--batch");
    if (const auto flash = value_of(text, "flash_attn")) {
      if (*flash == "1" || *flash == "enabled") book.set("--flash-attn", "on");
      if (*flash == "0" || *flash == "disabled") book.set("--flash-attn", "off");
    }
    if (value_of(text, "kv_unified") == "true") book.set("--kv-unified", "");
    cache_types(text, book);
    for (const std::string_view key : {"model ftype", "file type", "ftype"})
      if (const auto value = value_of(text, key); value && value->find_first_of("QFqf") != std::string_view::npos)
        book.set("--format", format_named(*value));
    if (const auto value = value_of(text, "general.name"); value && book.run().model_name.empty())
      book.run().model_name = std::string(value->substr(0, 256));
    if (text.find("main: build") != std::string_view::npos)
      if (const auto value = value_of(text, "build"))
        if (const auto number = scan_integer(*value)) book.run().version = fmt::format("b{}", *number);
  }

  // Caches are made anew with each context on the same weights; n_ctx is its first or second line.
  static void new_context(LogBook& book) { book.forget(ComponentKind::kv_cache); }

  // "llama_kv_cache: size = 1024.00 MiB ( 8192 cells,  32 layers,  1/1 seqs), K (f16):  512.00 MiB, V (f16): ..." and
  // "KV self size  =  256.00 MiB, K (f16):  128.00 MiB, V (f16):  128.00 MiB"
  static void cache_types(std::string_view text, LogBook& book) {
    const auto keys = after(text, ", K ("), values = after(text, ", V (");
    if (!keys || !values) return;
    book.set("--key-type", keys->substr(0, keys->find(')')));
    book.set("--value-type", values->substr(0, values->find(')')));
  }

  void loading(std::string_view text, LogBook& book) {
    if (const auto rest = after(text, "loaded meta data with ");
        rest && rest->find(" tensors from ") != std::string_view::npos) {
      book.begin_run(LogProgram::llama_cpp);
      const std::string_view path = *after(*rest, " tensors from ");
      book.run().model_file = std::string(path.substr(0, path.rfind(" (version")).substr(0, 1024));
      overridden_ = -1;
    }
    if (const auto rest = after(text, "offloaded "); rest && rest->find("layers to GPU") != std::string_view::npos)
      if (const auto layers = scan_integer(*rest)) book.set("--gpu-layers", std::to_string(*layers));
    // "tensor blk.3.ffn_gate_exps.weight (250 MiB q4_K) buffer type overridden to CPU"
    if (const auto rest = after(text, "tensor blk."); rest && text.find("_exps") != std::string_view::npos &&
                                                      text.find("overridden to CPU") != std::string_view::npos)
      if (const auto layer = scan_integer(*rest); layer && *layer < 100000 && *layer > overridden_) {
        overridden_ = *layer;
        book.set("--n-cpu-moe", std::to_string(*layer + 1));
      }
    if (const auto rest = after(text, "build: ")) {
      const auto number = scan_integer(*rest);
      if (number && rest->find('(') != std::string_view::npos) book.run().version = fmt::format("b{}", *number);
    }
    if (text.find("Flash Attention was auto, set to enabled") != std::string_view::npos) book.set("--flash-attn", "on");
    if (text.find("Flash Attention was auto, set to disabled") != std::string_view::npos)
      book.set("--flash-attn", "off");
    if (const auto amount = amount_after(text, "allocating "); amount && text.find("failed") != std::string_view::npos)
      book.remark(fmt::format("an allocation of {} failed", to_string(amount->bytes)));
  }

  // "using device CUDA0 (NVIDIA GeForce RTX 4090) (0000:01:00.0) - 23287 MiB free" and
  // "  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes, VRAM: 24110 MiB"
  void device(std::string_view text, LogBook& book) {
    if (const auto rest = after(text, "using device ")) {
      const Place place = place_of(rest->substr(0, rest->find(' ')));
      LogGpu* gpu = place.known && place.gpu ? book.gpu(*place.gpu) : nullptr;
      if (gpu == nullptr) return;
      if (const auto name = after(*rest, "("))
        gpu->name = std::string(name->substr(0, std::min(name->find(") ("), name->find(") -"))).substr(0, 128));
      if (const auto free = rest->rfind(" - "); free != std::string_view::npos)
        if (const auto amount = scan_amount(rest->substr(free + 3))) gpu->free = amount->bytes;
    }
    const auto rest = after(text, "Device ");
    if (!rest || rest->find("compute capability") == std::string_view::npos) return;
    const auto number = scan_integer(*rest);
    const auto name = after(*rest, ": ");
    if (!number || !name || *number >= static_cast<std::int64_t>(LogBook::kMostGpus)) return;
    LogGpu* gpu = book.gpu(static_cast<int>(*number));
    if (gpu == nullptr) return;
    gpu->name = std::string(name->substr(0, name->find(',')).substr(0, 128));
    if (const auto total = amount_after(*rest, "VRAM: ")) gpu->total = total->bytes;
  }

  std::int64_t overridden_ = -1;
};

// ollama's own lines (log/slog): ml/device.go, server.go, sched.go, routes.go.
class OllamaReader final : public LogReader {
 public:
  void line(std::string_view text, LogBook& book) override {
    const auto message = slog_value(text, "msg");
    if (!message) return;
    if (*message == "starting runner" || *message == "starting llama server" || *message == "starting ollama engine")
      return start(text, book);
    if (*message == "load") return request(text, book);
    if (*message == "inference compute") return gpu(text, book);
    const auto kind = kind_of(*message);
    auto device = slog_value(text, "device");
    if (!device) device = slog_value(text, "buffer_type");
    const auto size = slog_value(text, "size");
    if (!kind || !device || !size) return;
    const Place place = place_of(*device);
    const auto amount = scan_amount(*size);
    if (!place.known || !amount) return;
    book.claim(LogProgram::ollama);
    book.component(*kind, place.gpu, *amount, Merge::last, true);
  }

 private:
  static std::optional<ComponentKind> kind_of(std::string_view message) {
    if (message == "model weights") return ComponentKind::weights;
    if (message == "kv cache") return ComponentKind::kv_cache;
    if (message == "compute graph") return ComponentKind::compute_buffer;
    return std::nullopt;
  }

  // cmd="/usr/bin/ollama runner --model /.../sha256-... --ctx-size 8192 --batch-size 512 --n-gpu-layers 33 --parallel
  // 4"
  static void start(std::string_view text, LogBook& book) {
    book.begin_run(LogProgram::ollama);
    const auto command = slog_value(text, "cmd");
    if (!command) return;
    const auto word = [&](std::string_view option) -> std::string_view {
      const auto rest = after(*command, fmt::format(" {} ", option));
      return rest ? rest->substr(0, rest->find(' ')) : std::string_view();
    };
    book.run().model_file = std::string(word("--model").substr(0, 1024));
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOptions = {{
        {"--ctx-size", "--context"},
        {"--batch-size", "--ubatch"},
        {"--n-gpu-layers", "--gpu-layers"},
        {"--parallel", "--batch"},
    }};
    for (const auto& [theirs, ours] : kOptions)
      if (const auto number = scan_integer(word(theirs)); number && *number > 0)
        book.set(ours, std::to_string(*number));
  }

  // request="{Operation:commit ... Parallel:1 BatchSize:512 FlashAttention:true KvSize:8192 KvCacheType:q8_0 ...}"
  static void request(std::string_view text, LogBook& book) {
    const auto body = slog_value(text, "request");
    if (!body || body->find("Operation:close") != std::string_view::npos) return;
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFields = {{
        {" KvSize:", "--context"},
        {" BatchSize:", "--ubatch"},
        {" Parallel:", "--batch"},
        {" GPULayers:", "--gpu-layers"},
    }};
    for (const auto& [field, ours] : kFields)
      if (const auto rest = after(*body, field))
        if (const auto number = scan_integer(*rest); number && *number > 0) book.set(ours, std::to_string(*number));
    if (const auto type = after(*body, " KvCacheType:"); type && !type->starts_with(' ')) {
      book.set("--key-type", type->substr(0, type->find(' ')));
      book.set("--value-type", type->substr(0, type->find(' ')));
    }
    if (const auto flash = after(*body, " FlashAttention:"))
      book.set("--flash-attn", flash->starts_with("true") || flash->starts_with("Enabled") ? "on" : "off");
  }

  static void gpu(std::string_view text, LogBook& book) {
    const auto name = slog_value(text, "name"), total = slog_value(text, "total"), free = slog_value(text, "available");
    const auto library = slog_value(text, "library");
    if (!name || !library || *library == "cpu") return;
    // ollama 0.12 and later call the device CUDA0 here and tell its name as the description.
    const auto description = slog_value(text, "description");
    const int number = static_cast<int>(std::min(book.run().gpus.size(), LogBook::kMostGpus));
    if (LogGpu* gpu = book.gpu(number)) {
      gpu->name = std::string((description ? *description : *name).substr(0, 128));
      if (const auto amount = total ? scan_amount(*total) : std::nullopt) gpu->total = amount->bytes;
      if (const auto amount = free ? scan_amount(*free) : std::nullopt) gpu->free = amount->bytes;
    }
  }
};

}  // namespace

std::unique_ptr<LogReader> llama_reader() {
  return std::make_unique<LlamaReader>();
}
std::unique_ptr<LogReader> ollama_reader() {
  return std::make_unique<OllamaReader>();
}

}  // namespace gpuwright::fit

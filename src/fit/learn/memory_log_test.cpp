// The readers on lines in the formats of the programs, one test a generation of each. Sizes are those of published
// logs where a source is named; the lines are written anew.
#include "fit/learn/memory_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "fit/learn/log_lines.h"
#include "fit/learn/scan.h"

namespace gpuwright::fit {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::SizeIs;

MemoryLog read(std::string text) {
  return read_memory_log(*bytes_in_memory(std::move(text), "test.log")).value();
}

Bytes component(const MemoryLog& log, ComponentKind kind, std::optional<int> gpu = 0) {
  for (const Measurement& measurement : log.run.measurements)
    if (measurement.what == Measurement::What::component && measurement.kind == kind && measurement.gpu == gpu)
      return measurement.bytes;
  return Bytes{-1};
}

const Measurement* total(const MemoryLog& log, Meter meter, int gpu = 0) {
  for (const Measurement& measurement : log.run.measurements)
    if (measurement.what == Measurement::What::total && measurement.meter == meter && measurement.gpu == gpu)
      return &measurement;
  return nullptr;
}

double capacity(const MemoryLog& log, std::string_view name) {
  for (const Measurement& measurement : log.run.measurements)
    if (measurement.what == Measurement::What::capacity && measurement.name == name) return measurement.count;
  return -1;
}

std::string setting(const MemoryLog& log, std::string_view option) {
  const LogSetting* found = log.run.setting(option);
  return found == nullptr ? "(not told)" : found->value;
}

Bytes mib(double value) {
  return Bytes{static_cast<std::int64_t>(std::llround(value * 1048576))};
}
Bytes gib(double value) {
  return Bytes{static_cast<std::int64_t>(std::llround(value * 1073741824))};
}

// ---------------------------------------------------------------- lines

TEST(LogLines, EndAtLineFeedsAndCarriageReturnsWithoutColours) {
  std::vector<std::pair<std::int64_t, std::string>> seen;
  LogLines lines([&](std::int64_t number, std::string_view line) { seen.emplace_back(number, line); });
  lines.feed("a\r\n 10%\r100%\r\n\n\033[1;31mre");
  lines.feed("d\033[0m\033]0;title\a!\0x");
  lines.feed(std::string_view("\0y\n", 3));
  lines.feed("tail");
  lines.finish();
  EXPECT_THAT(seen, ElementsAre(std::pair(1, "a"), std::pair(2, " 10%"), std::pair(2, "100%"), std::pair(4, "red!y"),
                                std::pair(5, "tail")));
  EXPECT_EQ(lines.lines(), 5);
}

TEST(LogLines, KeepTheBeginningOfALongLine) {
  std::size_t longest = 0;
  LogLines lines([&](std::int64_t, std::string_view line) { longest = std::max(longest, line.size()); });
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 100; ++i) lines.feed(piece);
  lines.finish();
  EXPECT_EQ(longest, LogLines::kLongestLine);
  EXPECT_EQ(lines.cut_lines(), 1);
}

TEST(Scan, AmountsOfEveryProgram) {
  EXPECT_EQ(scan_amount("  4403.49 MiB")->bytes, mib(4403.49));
  EXPECT_EQ(scan_amount("14.9614 GiB and 5.1 seconds")->bytes, gib(14.9614));
  EXPECT_EQ(scan_amount("6.59GiB;")->bytes, gib(6.59));
  EXPECT_EQ(scan_amount("0 bytes free")->bytes, Bytes{0});
  EXPECT_EQ(scan_amount("4403,49 MiB")->bytes, mib(4403.49));  // German locale
  EXPECT_EQ(scan_amount("1,024 MiB")->bytes, mib(1024));       // thousands
  EXPECT_DOUBLE_EQ(scan_amount("1.25 MiB")->slack, 0.005 * 1048576);
}

TEST(Scan, WhatIsNoAmount) {
  for (const std::string_view text : {"3.43 seconds", "-7.83GiB", "", "MiB", "1e30 GiB", "nan GiB", "12", "5 MiBs"})
    EXPECT_FALSE(scan_amount(text)) << text;
  EXPECT_FALSE(scan_amount(std::string(400, '9') + " B"));
  EXPECT_FALSE(scan_amount("130206040000 GiB"));
  EXPECT_FALSE(scan_integer("99999999999999999999"));
}

// ---------------------------------------------------------------- llama.cpp

// Sizes: Pythia 2.8B on a V100, ggml-org/ci ggml-4-x86-cuda-v100, build 4477.
constexpr const char* kLlama2025 = R"(build: 4477 (c4b9b5c) with cc (Ubuntu) for x86_64-linux-gnu
ggml_cuda_init: found 1 CUDA devices:
  Device 0: Tesla V100-PCIE-16GB, compute capability 7.0, VMM: yes
llama_model_loader: loaded meta data with 22 key-value pairs and 388 tensors from models/pythia-2.8b-Q4_K_M.gguf (version GGUF V3 (latest))
print_info: file type   = Q4_K - Medium
print_info: general.name     = 2.8B
load_tensors: offloaded 33/33 layers to GPU
load_tensors:        CUDA0 model buffer size =  1632.95 MiB
load_tensors:   CPU_Mapped model buffer size =    69.08 MiB
llama_init_from_model: n_seq_max     = 1
llama_init_from_model: n_ctx         = 2048
llama_init_from_model: n_ctx_per_seq = 2048
llama_init_from_model: n_ubatch      = 512
llama_init_from_model: flash_attn    = 0
llama_kv_cache_init:      CUDA0 KV buffer size =   640.00 MiB
llama_init_from_model: KV self size  =  640.00 MiB, K (f16):  320.00 MiB, V (f16):  320.00 MiB
llama_init_from_model:  CUDA_Host  output buffer size =     0.19 MiB
llama_init_from_model:      CUDA0 compute buffer size =   162.00 MiB
llama_init_from_model:  CUDA_Host compute buffer size =     9.01 MiB
slot launch: id 0 | new slot, n_ctx = 512
)";

TEST(LlamaLog, OfJanuary2025) {
  const MemoryLog log = read(kLlama2025);
  EXPECT_EQ(log.run.program, LogProgram::llama_cpp);
  EXPECT_EQ(log.run.version, "b4477");
  EXPECT_EQ(log.run.model_file, "models/pythia-2.8b-Q4_K_M.gguf");
  EXPECT_EQ(log.run.gpus.at(0).name, "Tesla V100-PCIE-16GB");
  EXPECT_EQ(component(log, ComponentKind::weights), mib(1632.95));
  EXPECT_EQ(component(log, ComponentKind::weights, std::nullopt), mib(69.08));
  EXPECT_EQ(component(log, ComponentKind::kv_cache), mib(640));
  EXPECT_EQ(component(log, ComponentKind::compute_buffer), mib(162));
  EXPECT_EQ(component(log, ComponentKind::compute_buffer, std::nullopt), mib(9.01));
  EXPECT_EQ(component(log, ComponentKind::output_buffer, std::nullopt), mib(0.19));
  EXPECT_EQ(setting(log, "--context"), "2048");
  EXPECT_EQ(setting(log, "--gpu-layers"), "33");
  EXPECT_EQ(setting(log, "--format"), "Q4_K_M");
  EXPECT_EQ(setting(log, "--flash-attn"), "off");
  EXPECT_EQ(setting(log, "--key-type"), "f16");
}

// Without "model" before "buffer size", and the first names of the functions.
TEST(LlamaLog, OfEarly2024) {
  const MemoryLog log = read(
      R"(llama_model_loader: loaded meta data with 20 key-value pairs and 291 tensors from llama-2-7b.Q4_0.gguf (version GGUF V2)
llm_load_print_meta: model ftype      = mostly Q4_0
llm_load_tensors: offloaded 33/33 layers to GPU
llm_load_tensors:        CPU buffer size =    70.31 MiB
llm_load_tensors:      CUDA0 buffer size =  3577.56 MiB
llama_new_context_with_model: n_ctx      = 4096
llama_kv_cache_init:      CUDA0 KV buffer size =  2048.00 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   296.00 MiB
)");
  EXPECT_EQ(component(log, ComponentKind::weights), mib(3577.56));
  EXPECT_EQ(component(log, ComponentKind::kv_cache), mib(2048));
  EXPECT_EQ(setting(log, "--format"), "Q4_0");
  EXPECT_EQ(setting(log, "--context"), "4096");
}

// Two caches (sliding and full) and two devices; Gemma-3-4B's 160 and 174 MiB.
TEST(LlamaLog, OfLate2025SumsTheCachesOfADevice) {
  const MemoryLog log = read(
      R"(0.00.1 I llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) (0000:01:00.0) - 23287 MiB free
0.00.1 I llama_model_load_from_file_impl: using device CUDA1 (NVIDIA GeForce RTX 3060) (0000:02:00.0) - 11700 MiB free
llama_model_loader: loaded meta data with 40 key-value pairs and 444 tensors from /models/gemma-3-4b-it-Q4_K_M.gguf (version GGUF V3 (latest))
load_tensors:        CUDA0 model buffer size =  1500.00 MiB
load_tensors:        CUDA1 model buffer size =   868.00 MiB
llama_context: constructing llama_context
llama_context: n_ctx         = 8192
llama_context: flash_attn    = auto
llama_context: kv_unified    = true
llama_kv_cache:      CUDA0 KV buffer size =   160.00 MiB
llama_kv_cache: size =  160.00 MiB (  8192 cells,   5 layers,  1/1 seqs), K (q8_0):   80.00 MiB, V (q8_0):   80.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =   174.00 MiB
llama_context: Flash Attention was auto, set to enabled
sched_reserve:      CUDA0 compute buffer size =   517.00 MiB
sched_reserve:      CUDA0 compute buffer size =   518.00 MiB
)");
  EXPECT_EQ(component(log, ComponentKind::kv_cache), mib(334));
  EXPECT_EQ(component(log, ComponentKind::weights, 1), mib(868));
  EXPECT_EQ(component(log, ComponentKind::compute_buffer), mib(518));
  EXPECT_EQ(setting(log, "--flash-attn"), "on");
  EXPECT_EQ(setting(log, "--value-type"), "q8_0");
  ASSERT_THAT(log.run.gpus, SizeIs(2));
  EXPECT_EQ(log.run.gpus[1].name, "NVIDIA GeForce RTX 3060");
  EXPECT_EQ(log.run.gpus[1].free, mib(11700));
}

// A context made anew replaces the cache of the first; a second, smaller load (a draft model) does not hide the first.
TEST(LlamaLog, OfSeveralContextsAndLoads) {
  const std::string second =
      "llama_context: n_ctx         = 4096\nllama_kv_cache: CUDA0 KV buffer size = 1280.00 MiB\n";
  EXPECT_EQ(component(read(kLlama2025 + second), ComponentKind::kv_cache), mib(1280));
  const std::string draft =
      "llama_model_loader: loaded meta data with 20 key-value pairs and 100 tensors from draft.gguf (version GGUF V3)\n"
      "load_tensors:        CUDA0 model buffer size =   300.00 MiB\n";
  const MemoryLog log = read(kLlama2025 + draft);
  EXPECT_EQ(log.runs, 2);
  EXPECT_EQ(component(log, ComponentKind::weights), mib(1632.95));
}

// ggml-org/llama.cpp#15860's table of an RTX 4090. Unaccounted memory below zero is printed as 2^44 less something.
TEST(LlamaLog, BreakdownTable) {
  const char* kHead =
      "llama_memory_breakdown_print: | memory breakdown [MiB] | total free self model context compute unaccounted |\n";
  const MemoryLog log = read(std::string(kHead) +
                             "llama_memory_breakdown_print: |   - CUDA0 (RTX 4090)   | 24080 =  9436 + (14193 = 13169 "
                             "+      40 +     984) +         451 |\n"
                             "llama_memory_breakdown_print: |   - Host               |                  1014 =   900 + "
                             "      0 +     114                |\n");
  EXPECT_EQ(component(log, ComponentKind::weights), mib(13169));
  EXPECT_EQ(component(log, ComponentKind::kv_cache), mib(40));
  EXPECT_EQ(component(log, ComponentKind::compute_buffer), mib(984));
  EXPECT_EQ(component(log, ComponentKind::runtime), mib(451));
  EXPECT_EQ(component(log, ComponentKind::weights, std::nullopt), mib(900));
  EXPECT_EQ(log.run.gpus.at(0).total, mib(24080));
  EXPECT_EQ(log.run.gpus.at(0).name, "RTX 4090");
  const MemoryLog wrapped = read(std::string(kHead) +
                                 "llama_memory_breakdown_print: |   - SYCL0 (Intel(R) Arc(TM) A770 Graphics) | 15473 = "
                                 "15473 + (14014 = 13486 +     224 +     304) + 17592186030401 |\n");
  EXPECT_EQ(component(wrapped, ComponentKind::weights), mib(13486));
  EXPECT_EQ(component(wrapped, ComponentKind::runtime), Bytes{-1});
}

TEST(LlamaLog, ExpertsOnTheHostAndAFailedAllocation) {
  const MemoryLog log = read(
      "llama_model_loader: loaded meta data with 20 key-value pairs and 100 tensors from q.gguf (version GGUF V3)\n"
      "tensor blk.0.ffn_gate_exps.weight (256 MiB q4_K) buffer type overridden to CPU\n"
      "tensor blk.11.ffn_down_exps.weight (256 MiB q6_K) buffer type overridden to CPU\n"
      "load_tensors:        CUDA0 model buffer size =   300.00 MiB\n"
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1024.00 MiB on device 0: cudaMalloc failed: out of "
      "memory\n");
  EXPECT_EQ(setting(log, "--n-cpu-moe"), "12");
  EXPECT_THAT(log.run.remarks, ElementsAre(HasSubstr("1.00 GiB failed")));
}

// ---------------------------------------------------------------- ollama

// Sizes of an RTX 3060 run of ollama's own engine with half the layers on the GPU.
TEST(OllamaLog, DeviceLinesOfItsOwnEngine) {
  const MemoryLog log = read(
      "time=2026-04-09T23:30:17.630-07:00 level=INFO source=types.go:42 msg=\"inference compute\" id=GPU-2 "
      "library=CUDA compute=8.6 name=CUDA0 description=\"NVIDIA GeForce RTX 3090\" total=\"24.0 GiB\" available=\"22.9 "
      "GiB\"\n"
      "time=2026-04-09T23:30:17.630-07:00 level=INFO source=server.go:432 msg=\"starting runner\" cmd=\"/bin/ollama "
      "runner --model /blobs/sha256-60 --port 44344\"\n"
      "time=2026-04-09T23:30:17.630-07:00 level=INFO source=runner.go:1284 msg=load request=\"{Operation:commit "
      "LoraPath:[] Parallel:1 BatchSize:1024 FlashAttention:Enabled KvSize:32768 KvCacheType:q8_0 NumThreads:8 "
      "GPULayers:20[ID:GPU-2 Layers:20(28..47)] MultiUserCache:false}\"\n"
      "time=2026-04-09T23:30:17.630-07:00 level=INFO source=device.go:240 msg=\"model weights\" device=CUDA0 "
      "size=\"19.9 GiB\"\n"
      "time=2026-04-09T23:30:17.631-07:00 level=INFO source=device.go:245 msg=\"model weights\" device=CPU size=\"28.3 "
      "GiB\"\n"
      "time=2026-04-09T23:30:17.631-07:00 level=INFO source=device.go:251 msg=\"kv cache\" device=CUDA0 size=\"1.1 "
      "GiB\"\n"
      "time=2026-04-09T23:30:17.631-07:00 level=INFO source=device.go:262 msg=\"compute graph\" device=CUDA0 "
      "size=\"884.1 MiB\"\n");
  EXPECT_EQ(log.run.program, LogProgram::ollama);
  EXPECT_EQ(component(log, ComponentKind::weights), gib(19.9));
  EXPECT_EQ(component(log, ComponentKind::weights, std::nullopt), gib(28.3));
  EXPECT_EQ(component(log, ComponentKind::compute_buffer), mib(884.1));
  EXPECT_EQ(setting(log, "--context"), "32768");
  EXPECT_EQ(setting(log, "--ubatch"), "1024");
  EXPECT_EQ(setting(log, "--gpu-layers"), "20");
  EXPECT_EQ(setting(log, "--key-type"), "q8_0");
  EXPECT_EQ(log.run.gpus.at(0).name, "NVIDIA GeForce RTX 3090");
}

// llama.cpp's own lines, two decimals, win over ollama's forecast of one.
TEST(OllamaLog, GivesWayToTheRunnersLines) {
  const MemoryLog log = read(
      "time=2025-01-01T00:00:00Z level=INFO source=server.go:376 msg=\"starting llama server\" "
      "cmd=\"/bin/ollama_llama_server --model /blobs/sha256-1 --ctx-size 8192 --batch-size 512 --n-gpu-layers 33 "
      "--parallel 4 --port 1\"\n"
      "level=INFO msg=\"model weights\" device=CUDA0 size=\"4.3 GiB\"\n"
      "llm_load_tensors:      CUDA0 buffer size =  4155.99 MiB\n"
      "level=INFO msg=\"model weights\" device=CUDA0 size=\"4.3 GiB\"\n");
  EXPECT_EQ(log.run.program, LogProgram::ollama);
  EXPECT_EQ(component(log, ComponentKind::weights), mib(4155.99));
  EXPECT_EQ(setting(log, "--batch"), "4");
  EXPECT_EQ(log.run.model_file, "/blobs/sha256-1");
}

// ---------------------------------------------------------------- vLLM

TEST(VllmLog, V0WithItsProfile) {
  const MemoryLog log = read(
      R"(INFO 12-22 10:55:30 llm_engine.py:234] Initializing an LLM engine (v0.6.5) with config: model='meta-llama/Llama-3.1-8B-Instruct', speculative_config=None, tokenizer='x', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto,
INFO 12-22 10:55:34 model_runner.py:1097] Loading model weights took 14.9888 GB
INFO 12-22 10:55:34 worker.py:241] the current vLLM instance can use total_gpu_memory (79.25GiB) x gpu_memory_utilization (0.90) = 71.33GiB
INFO 12-22 10:55:34 worker.py:241] model weights take 14.99GiB; non_torch_memory takes 0.26GiB; PyTorch activation peak memory takes 0.94GiB; the rest of the memory reserved for KV Cache is 55.14GiB.
INFO 12-22 10:55:35 gpu_executor.py:76] # GPU blocks: 28231, # CPU blocks: 2048
INFO 12-22 10:55:35 gpu_executor.py:80] Maximum concurrency for 8192 tokens per request: 55.14x
INFO 12-22 10:55:51 model_runner.py:1527] Graph capturing finished in 13 secs, took 0.27 GiB
)");
  EXPECT_EQ(log.run.program, LogProgram::vllm);
  EXPECT_EQ(log.run.version, "0.6.5");
  EXPECT_EQ(log.run.model_file, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(component(log, ComponentKind::weights), gib(14.99));
  EXPECT_EQ(component(log, ComponentKind::activations), gib(0.94));
  EXPECT_EQ(component(log, ComponentKind::runtime), gib(0.26));
  EXPECT_EQ(component(log, ComponentKind::graphs), gib(0.27));
  EXPECT_EQ(capacity(log, "kv_cache_blocks"), 28231);
  EXPECT_EQ(capacity(log, "max_concurrency"), 55.14);
  EXPECT_EQ(setting(log, "--context"), "8192");
  EXPECT_EQ(setting(log, "--gpu-memory-utilization"), "0.90");
  EXPECT_EQ(log.run.gpus.at(0).total, gib(79.25));
}

TEST(VllmLog, V1OnTwoRanks) {
  const MemoryLog log =
      read(R"((APIServer pid=1) INFO 10-06 12:00:01 [api_server.py:1839] vLLM API server version 0.11.0
(APIServer pid=1) INFO 10-06 12:00:01 [utils.py:233] non-default args: {'model_tag': 'Qwen/Qwen2.5-32B', 'model': 'Qwen/Qwen2.5-32B', 'max_model_len': 16384, 'gpu_memory_utilization': 0.95, 'tensor_parallel_size': 2, 'max_num_seqs': 64}
(EngineCore_DP0 pid=2) INFO 10-06 12:00:05 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen2.5-32B', max_seq_len=16384, tensor_parallel_size=2, quantization=fp8, enforce_eager=True, kv_cache_dtype=fp8_e4m3,
(Worker_TP0 pid=3) INFO 10-06 12:00:20 [gpu_model_runner.py:2653] Model loading took 30.7100 GiB and 13.204526 seconds
(Worker_TP1 pid=4) INFO 10-06 12:00:20 [gpu_model_runner.py:2653] Model loading took 30.7100 GiB and 13.204526 seconds
(Worker_TP0 pid=3) INFO 10-06 12:00:31 [gpu_worker.py:298] Available KV cache memory: 7.71 GiB
(Worker_TP1 pid=4) INFO 10-06 12:00:31 [gpu_worker.py:298] Available KV cache memory: 7.90 GiB
(EngineCore_DP0 pid=2) INFO 10-06 12:00:31 [kv_cache_utils.py:1087] GPU KV cache size: 63,152 tokens
(EngineCore_DP0 pid=2) INFO 10-06 12:00:31 [kv_cache_utils.py:1091] Maximum concurrency for 16,384 tokens per request: 3.85x
)");
  EXPECT_EQ(component(log, ComponentKind::weights, 1), gib(30.71));
  EXPECT_EQ(capacity(log, "kv_cache_tokens"), 63152);
  EXPECT_NEAR(capacity(log, "kv_cache_budget"), static_cast<double>(gib(7.71).count), 1);
  EXPECT_EQ(setting(log, "--tensor-parallel"), "2");
  EXPECT_EQ(setting(log, "--max-num-seqs"), "64");
  EXPECT_EQ(setting(log, "--kv-type"), "fp8");
  EXPECT_EQ(setting(log, "--format"), "fp8");
  EXPECT_EQ(setting(log, "--enforce-eager"), "");
  EXPECT_EQ(setting(log, "--gpu-memory-utilization"), "0.95");
}

TEST(VllmLog, NegativeRoomAndTooSmallACache) {
  const MemoryLog log = read(
      "INFO worker.py:295] model weights take 6.59GiB; non_torch_memory takes 8.29GiB; PyTorch activation peak memory "
      "takes 4.93GiB; the rest of the memory reserved for KV Cache is -7.83GiB.\n"
      "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
      "needed, which is larger than the available KV cache memory (9.54 GiB). \n");
  EXPECT_EQ(component(log, ComponentKind::weights), gib(6.59));
  EXPECT_EQ(component(log, ComponentKind::kv_cache), gib(16));
  EXPECT_EQ(setting(log, "--context"), "131072");
}

// ---------------------------------------------------------------- torch and nvidia-smi

TEST(TorchLog, MessagesFrom10To2x) {
  const auto allocated = [](const std::string& text) { return total(read(text), Meter::allocated)->bytes; };
  EXPECT_EQ(allocated("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.92 GiB total capacity; "
                      "8.00 GiB already allocated; 300.38 MiB free; 32.38 MiB cached)"),
            gib(10));
  EXPECT_EQ(
      allocated("RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 11.17 GiB total capacity; "
                "10.50 GiB already allocated; 142.25 MiB free; 10.58 GiB reserved in total by PyTorch)"),
      gib(11));
  EXPECT_EQ(
      allocated("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has a total capacty of "
                "93.02 GiB of which 1.18 GiB is free. Process 2752205 has 91.82 GiB memory in use. Of the allocated "
                "memory 90.50 GiB is allocated by PyTorch, and 120.54 MiB is reserved by PyTorch but unallocated."),
      gib(91.75));
}

TEST(TorchLog, SentencesWrappedOverLines) {
  const MemoryLog log = read(R"(torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.
GPU 3 has a total capacity of 23.68 GiB of which 11.88 GiB is free. Including non-PyTorch memory, this process has
11.79 GiB memory in use. Of the allocated memory 11.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by
PyTorch but unallocated. If reserved but unallocated memory is large try setting ...
)");
  ASSERT_NE(total(log, Meter::allocated, 3), nullptr);
  EXPECT_EQ(total(log, Meter::allocated, 3)->bytes, gib(11.5));
  EXPECT_TRUE(total(log, Meter::allocated, 3)->at_least);
  EXPECT_EQ(total(log, Meter::allocated, 3)->line, 1);
  EXPECT_EQ(total(log, Meter::reserved, 3)->bytes, gib(11.5));
  EXPECT_EQ(total(log, Meter::device, 3)->bytes, gib(11.79));
  EXPECT_EQ(log.run.gpus.at(0).total, gib(23.68));
}

// A request of more than a pebibyte is a fault of the program that asked; no amount is read from it.
TEST(TorchLog, AbsurdRequestsAreNoMeasurement) {
  EXPECT_FALSE(read("CUDA out of memory. Tried to allocate 99999999999.04 GiB. GPU 0 has a total capacity of 23.56 GiB "
                    "of which 16.57 GiB is free. Of the allocated memory 5.45 GiB is allocated by PyTorch, and 1.17 "
                    "GiB is reserved by PyTorch but unallocated.")
                   .found());
  EXPECT_FALSE(
      read("RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58")
          .found());
}

TEST(TorchLog, MemorySummary) {
  const MemoryLog log = read(R"(|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 1                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |  14336 MiB |  15002 MiB |    120 GiB |    106 GiB |
|       from large pool |  14300 MiB |  14990 MiB |    119 GiB |    105 GiB |
| Active memory         |  14336 MiB |  15002 MiB |    120 GiB |    106 GiB |
| GPU reserved memory   |  15900 MiB |  16100 MiB |     15 GiB |      0 B   |
)");
  ASSERT_NE(total(log, Meter::allocated, 1), nullptr);
  EXPECT_EQ(total(log, Meter::allocated, 1)->bytes, mib(15002.5));  // rounded down to whole MiB
  EXPECT_EQ(total(log, Meter::reserved, 1)->bytes, mib(16100.5));
  EXPECT_FALSE(total(log, Meter::allocated, 1)->at_least);
}

constexpr const char* kNvidiaSmi =
    R"(+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0  On |                  Off |
|  0%   42C    P2             60W /  450W |   15240MiB /  24564MiB |      3%      Default |
|   1  Tesla T4                       On  |   00000000:02:00.0 Off |                    0 |
| N/A   40C    P8              9W /   70W |       3MiB /  15360MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
)";

TEST(NvidiaSmiLog, TableWithAndWithoutProcesses) {
  MemoryLog log = read(kNvidiaSmi);
  EXPECT_EQ(log.run.program, LogProgram::nvidia_smi);
  EXPECT_EQ(total(log, Meter::device, 0)->bytes, mib(15240));
  EXPECT_TRUE(total(log, Meter::device, 0)->others);
  EXPECT_EQ(log.run.gpus.at(0).name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(log.run.gpus.at(1).name, "Tesla T4");
  EXPECT_EQ(log.run.gpus.at(1).total, mib(15360));
  log = read(std::string(kNvidiaSmi) +
             "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n"
             "|    0   N/A  N/A      1890      G   /usr/lib/xorg/Xorg                            310MiB |\n"
             "|    0   N/A  N/A     23456      C   python                                      14800MiB |\n");
  EXPECT_EQ(total(log, Meter::device, 0)->bytes, mib(14800));
  EXPECT_FALSE(total(log, Meter::device, 0)->others);
}

// ---------------------------------------------------------------- anything

// nvidia-smi --help-query-gpu: the form with and without units.
TEST(NvidiaSmiLog, CommaSeparatedAnswers) {
  const MemoryLog log = read(
      "index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA A100-SXM4-80GB, 81920 MiB, 36012 MiB\n"
      "1, NVIDIA A100-SXM4-80GB, 81920 MiB, 7 MiB\n");
  EXPECT_EQ(log.run.program, LogProgram::nvidia_smi);
  ASSERT_NE(total(log, Meter::device, 1), nullptr);
  EXPECT_EQ(total(log, Meter::device, 0)->bytes, mib(36012));
  EXPECT_EQ(log.run.gpus.at(1).name, "NVIDIA A100-SXM4-80GB");
  const MemoryLog plain = read("name, memory.used [MiB]\nTesla T4, 5120\nTesla T4, 99999999999999999999\n");
  EXPECT_EQ(total(plain, Meter::device, 0)->bytes, mib(5120));
  EXPECT_EQ(total(plain, Meter::device, 1), nullptr);
}

TEST(MemoryLog, FindsNothingInOtherText) {
  EXPECT_FALSE(read("").found());
  EXPECT_FALSE(read("hello\nworld\nbuffer size = \n| a | b |\nModel loading took long\n").found());
}

TEST(MemoryLog, IsBoundedWhateverTheLogHolds) {
  std::string hostile;
  for (int i = 0; i < 3000; ++i)
    hostile += "load_tensors: CUDA" + std::to_string(i) + " model buffer size = 1.00 MiB\nDevice " + std::to_string(i) +
               ": x, compute capability 1\nallocating 1.00 MiB failed\n";
  const MemoryLog log = read(hostile);
  EXPECT_THAT(log.run.measurements.size(), Lt(1025u));
  EXPECT_THAT(log.run.gpus.size(), Lt(129u));
  EXPECT_THAT(log.run.remarks.size(), Lt(17u));
}

TEST(MemoryLog, NumbersThatCannotBeAreNotRead) {
  const std::string digits(400, '9');
  EXPECT_FALSE(read("load_tensors: CUDA0 model buffer size = " + digits + " MiB\n").found());
  EXPECT_FALSE(read("load_tensors: CUDA0 model buffer size = -5.00 MiB\n").found());
  EXPECT_FALSE(read("load_tensors: CUDA" + digits + " model buffer size = 5.00 MiB\n").found());
  EXPECT_FALSE(read("# GPU blocks: " + digits + ", # CPU blocks: 1\n").found());
  // Sums of large amounts stay within 63 bits.
  std::string many;
  for (int i = 0; i < 9000; ++i) many += "load_tensors: CUDA0 model buffer size = 1023.00 TiB\n";
  EXPECT_THAT(component(read(many), ComponentKind::weights).count, Gt(0));
}

TEST(MemoryLog, ReadsAPipeAsItReadsAFile) {
  std::istringstream stream(kLlama2025);
  const MemoryLog log = read_memory_log(stream, "pipe").value();
  EXPECT_EQ(component(log, ComponentKind::kv_cache), mib(640));
  EXPECT_EQ(log.name, "pipe");
}

}  // namespace
}  // namespace gpuwright::fit

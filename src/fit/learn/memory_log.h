// What the log of a run says about memory: how much each part took, on which device, and which model, engine and
// settings it was. Formats of llama.cpp (2023 to now), ollama, vLLM (V0 and V1), torch (OutOfMemoryError of 0.4 to 2.x,
// torch.cuda.memory_summary) and nvidia-smi's table.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "fit/estimate.h"

namespace gpuwright::fit {

enum class LogProgram : std::uint8_t { unknown, nvidia_smi, torch, llama_cpp, ollama, vllm };
std::string_view name_of(LogProgram program);

// One measured amount. Exactly one of the three kinds.
struct Measurement {
  enum class What : std::uint8_t {
    component,  // `kind` took `bytes`
    total,      // `meter` showed `bytes`
    capacity,   // `name` (as in fit::Capacity, or "kv_cache_budget" in bytes) was `count`
  };
  What what = What::component;
  ComponentKind kind = ComponentKind::weights;
  Meter meter = Meter::device;
  std::string name;
  std::optional<int> gpu;  // its number in the log; nothing: host memory
  Bytes bytes;
  double count = 0;
  double slack = 0;       // half of the last printed digit, in bytes (or counts)
  bool at_least = false;  // the run ended before its peak (an OOM message)
  bool others = false;    // may hold memory of other processes too
  bool weak = false;      // an engine's own forecast: gives way to a measurement
  std::int64_t line = 0;
  std::string text;  // of that line, shortened
};

// A setting as an option of `gpuwright fit`: {"--context", "8192"}; a flag has an empty value.
struct LogSetting {
  std::string option, value;
  std::int64_t line = 0;
};

struct LogGpu {
  int number = 0;
  std::string name;  // "NVIDIA GeForce RTX 4090"; empty when only the size is told
  std::optional<Bytes> total, free;
};

// One load of a model: a log may hold several.
struct LogRun {
  LogProgram program = LogProgram::unknown;
  std::string version;     // "b4477", "0.8.5"
  std::string model_file;  // path or Hugging Face name, as the log has it
  std::string model_name;  // "Llama 3.1 8B Instruct"
  std::vector<LogSetting> settings;
  std::vector<LogGpu> gpus;
  std::vector<Measurement> measurements;
  std::vector<std::string> remarks;  // "line 12: an allocation of 1.00 GiB failed on GPU 0"

  const LogSetting* setting(std::string_view option) const;
  Bytes weights() const;
};

struct MemoryLog {
  std::string name;
  std::int64_t lines = 0, cut_lines = 0, runs = 0;
  LogRun run;  // the one with the most weights; of equal ones the last

  bool found() const { return !run.measurements.empty(); }
};

// Errors: those of reading. A log without a memory line is no error here (found() is false).
Result<MemoryLog> read_memory_log(const ByteSource& source);
Result<MemoryLog> read_memory_log(std::istream& stream, std::string name);

// What is looked for, one line a program, for people whose log had none of it.
std::vector<std::string> memory_lines_known();

}  // namespace gpuwright::fit

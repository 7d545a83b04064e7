#include "fit/learn/memory_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/learn/log_lines.h"
#include "fit/learn/readers.h"

namespace gpuwright::fit {
namespace {

constexpr std::size_t kPiece = 1 << 16;
constexpr std::size_t kMostSettings = 64;
constexpr std::size_t kLongestValue = 1024;

bool same_place(const Measurement& a, const Measurement& b) {
  return a.what == b.what && a.gpu == b.gpu && a.kind == b.kind && a.meter == b.meter && a.name == b.name &&
         a.at_least == b.at_least;
}

// Feeds every reader; owns the state of one log.
class Reading {
 public:
  Reading() : lines_([this](std::int64_t number, std::string_view text) { line(number, text); }) {
    readers_[0] = llama_reader();
    readers_[1] = ollama_reader();
    readers_[2] = vllm_reader();
    readers_[3] = torch_reader();
    readers_[4] = nvidia_smi_reader();
  }

  void feed(std::string_view bytes) { lines_.feed(bytes); }

  MemoryLog finish(std::string name) {
    lines_.finish();
    for (const auto& reader : readers_) reader->finish(book_);
    MemoryLog log = book_.finish(std::move(name));
    log.lines = lines_.lines();
    log.cut_lines = lines_.cut_lines();
    return log;
  }

 private:
  void line(std::int64_t number, std::string_view text) {
    book_.begin_line(number, text);
    for (const auto& reader : readers_) reader->line(text, book_);
  }

  LogBook book_;
  std::array<std::unique_ptr<LogReader>, 5> readers_;
  LogLines lines_;
};

}  // namespace

std::string_view name_of(LogProgram program) {
  switch (program) {
    case LogProgram::nvidia_smi:
      return "nvidia-smi";
    case LogProgram::torch:
      return "torch";
    case LogProgram::llama_cpp:
      return "llama.cpp";
    case LogProgram::ollama:
      return "ollama";
    case LogProgram::vllm:
      return "vllm";
    case LogProgram::unknown:
      break;
  }
  return "unknown";
}

const LogSetting* LogRun::setting(std::string_view option) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const LogSetting& setting) { return setting.option == option; });
  return found == settings.end() ? nullptr : &*found;
}

Bytes LogRun::weights() const {
  Bytes sum;
  for (const Measurement& measurement : measurements)
    if (measurement.what == Measurement::What::component && measurement.kind == ComponentKind::weights)
      sum += measurement.bytes;
  return sum;
}

void LogBook::begin_line(std::int64_t number, std::string_view text) {
  line_ = number;
  text_ = text;
}

void LogBook::begin_run(LogProgram program) {
  const bool empty = run_.measurements.empty();
  if (!empty) {
    ++runs_;
    if (best_.measurements.empty() || run_.weights() >= best_.weights()) best_ = run_;
  }
  // Devices are listed once, before the first load.
  LogRun next;
  next.gpus = run_.gpus;
  next.version = run_.version;
  if (empty) {
    next.settings = run_.settings;
    next.program = run_.program;
    next.model_file = run_.model_file;
  }
  run_ = std::move(next);
  claim(program);
}

void LogBook::claim(LogProgram program) {
  run_.program = std::max(run_.program, program);
}

void LogBook::add(Measurement measurement, Merge merge) {
  measurement.line = line_;
  measurement.text = excerpt(text_);
  const auto found = std::find_if(run_.measurements.begin(), run_.measurements.end(),
                                  [&](const Measurement& other) { return same_place(measurement, other); });
  if (found == run_.measurements.end()) {
    if (run_.measurements.size() < kMostMeasurements) run_.measurements.push_back(std::move(measurement));
    return;
  }
  if (measurement.weak && !found->weak) return;
  if (merge == Merge::most && found->bytes > measurement.bytes) return;
  if (merge == Merge::sum && found->weak == measurement.weak) {
    measurement.bytes = Bytes{checked_add(measurement.bytes.count, found->bytes.count).value_or(found->bytes.count)};
    measurement.slack += found->slack;
  }
  *found = std::move(measurement);
}

void LogBook::component(ComponentKind kind, std::optional<int> gpu, Amount amount, Merge merge, bool weak) {
  Measurement measurement;
  measurement.kind = kind;
  measurement.gpu = gpu;
  measurement.bytes = amount.bytes;
  measurement.slack = amount.slack;
  measurement.weak = weak;
  add(std::move(measurement), merge);
}

void LogBook::total(Meter meter, int gpu, Amount amount, Merge merge, bool at_least, bool others) {
  Measurement measurement;
  measurement.what = Measurement::What::total;
  measurement.meter = meter;
  measurement.gpu = gpu;
  measurement.bytes = amount.bytes;
  measurement.slack = amount.slack;
  measurement.at_least = at_least;
  measurement.others = others;
  add(std::move(measurement), merge);
}

void LogBook::capacity(std::string_view name, double count, double slack) {
  Measurement measurement;
  measurement.what = Measurement::What::capacity;
  measurement.name = name;
  measurement.count = count;
  measurement.slack = slack;
  add(std::move(measurement), Merge::last);
}

bool LogBook::has(ComponentKind kind, std::optional<int> gpu) const {
  return std::any_of(run_.measurements.begin(), run_.measurements.end(), [&](const Measurement& measurement) {
    return measurement.what == Measurement::What::component && measurement.kind == kind && measurement.gpu == gpu &&
           !measurement.weak;
  });
}

void LogBook::forget(ComponentKind kind) {
  std::erase_if(run_.measurements, [&](const Measurement& measurement) {
    return measurement.what == Measurement::What::component && measurement.kind == kind && !measurement.weak;
  });
}

void LogBook::set(std::string_view option, std::string_view value) {
  value = value.substr(0, kLongestValue);
  for (LogSetting& setting : run_.settings)
    if (setting.option == option) {
      setting.value = value;
      setting.line = line_;
      return;
    }
  if (run_.settings.size() < kMostSettings) run_.settings.push_back({std::string(option), std::string(value), line_});
}

void LogBook::set_once(std::string_view option, std::string_view value) {
  if (run_.setting(option) == nullptr) set(option, value);
}

LogGpu* LogBook::gpu(int number) {
  if (number < 0 || static_cast<std::size_t>(number) >= kMostGpus) return nullptr;
  for (LogGpu& gpu : run_.gpus)
    if (gpu.number == number) return &gpu;
  run_.gpus.push_back({number, {}, {}, {}});
  std::sort(run_.gpus.begin(), run_.gpus.end(), [](const LogGpu& a, const LogGpu& b) { return a.number < b.number; });
  return gpu(number);
}

void LogBook::remark(std::string text) {
  if (run_.remarks.size() < kMostRemarks) run_.remarks.push_back(fmt::format("line {}: {}", line_, text));
}

MemoryLog LogBook::finish(std::string name) {
  MemoryLog log;
  log.name = std::move(name);
  if (!run_.measurements.empty()) ++runs_;
  const bool last = best_.measurements.empty() || (!run_.measurements.empty() && run_.weights() >= best_.weights());
  log.run = last ? std::move(run_) : std::move(best_);
  log.runs = runs_;
  return log;
}

Result<MemoryLog> read_memory_log(const ByteSource& source) {
  Reading reading;
  std::string piece(kPiece, '\0');
  for (std::int64_t offset = 0;;) {
    const std::size_t got = GW_TRY(source.read_at(offset, std::as_writable_bytes(std::span(piece))));
    if (got == 0) break;
    reading.feed(std::string_view(piece).substr(0, got));
    offset += static_cast<std::int64_t>(got);
  }
  return reading.finish(source.name());
}

Result<MemoryLog> read_memory_log(std::istream& stream, std::string name) {
  Reading reading;
  std::string piece(kPiece, '\0');
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())), stream.gcount() > 0)
    reading.feed(std::string_view(piece).substr(0, static_cast<std::size_t>(stream.gcount())));
  if (stream.bad()) return fail(ErrorCode::unavailable, fmt::format("{}: cannot be read", name));
  return reading.finish(std::move(name));
}

std::vector<std::string> memory_lines_known() {
  return {
      "llama.cpp: \"CUDA0 model buffer size\", \"KV buffer size\", \"compute buffer size\", memory breakdown tables",
      "ollama: msg=\"model weights\", msg=\"kv cache\", msg=\"compute graph\" with device and size",
      "vLLM: \"Model loading took\", \"reserved for KV Cache\", \"GPU KV cache size\", \"Graph capturing finished\"",
      "torch: \"CUDA out of memory. Tried to allocate\", tables of torch.cuda.memory_summary()",
      "nvidia-smi: its table with \"Memory-Usage\", or --query-gpu=...,memory.used --format=csv",
  };
}

}  // namespace gpuwright::fit

// How the readers of the single programs' formats work together: each sees every line and puts what it knows into the
// run that is being read. Internal to fit/learn.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fit/learn/memory_log.h"
#include "fit/learn/scan.h"

namespace gpuwright::fit {

// The runs of a log as they are being read, bounded whatever the log holds.
class LogBook {
 public:
  static constexpr std::size_t kMostMeasurements = 1024;  // GPUs x kinds
  static constexpr std::size_t kMostGpus = 128;
  static constexpr std::size_t kMostRemarks = 16;

  enum class Merge : std::uint8_t { last, sum, most };

  void begin_line(std::int64_t number, std::string_view text);
  // A new load begins: what was read so far is compared with the best run and kept or dropped.
  void begin_run(LogProgram program);
  // The stronger claim wins: a vLLM log with a torch error is a vLLM log.
  void claim(LogProgram program);
  LogRun& run() { return run_; }
  const LogRun& run() const { return run_; }
  std::int64_t line_number() const { return line_; }

  // What `body` adds is told of an earlier line than the one that is being read.
  template <class Body>
  void at_line(std::int64_t number, std::string_view text, Body body) {
    const std::int64_t line = line_;
    const std::string_view current = text_;
    begin_line(number, text);
    body();
    begin_line(line, current);
  }

  void component(ComponentKind kind, std::optional<int> gpu, Amount amount, Merge merge, bool weak = false);
  void total(Meter meter, int gpu, Amount amount, Merge merge, bool at_least, bool others = false);
  void capacity(std::string_view name, double count, double slack);
  bool has(ComponentKind kind, std::optional<int> gpu) const;
  // Forgets measurements of these kinds: a new context is made on the same weights.
  void forget(ComponentKind kind);

  void set(std::string_view option, std::string_view value);       // the last one told holds
  void set_once(std::string_view option, std::string_view value);  // the first one told holds
  LogGpu* gpu(int number);                                         // nullptr beyond kMostGpus
  void remark(std::string text);

  MemoryLog finish(std::string name);

 private:
  void add(Measurement measurement, Merge merge);

  LogRun run_, best_;
  std::int64_t runs_ = 0;
  std::int64_t line_ = 0;
  std::string_view text_;
};

// One program's format. line() is called for every line, finish() once.
class LogReader {
 public:
  virtual ~LogReader() = default;
  virtual void line(std::string_view text, LogBook& book) = 0;
  virtual void finish(LogBook&) {}
};

std::unique_ptr<LogReader> llama_reader();
std::unique_ptr<LogReader> ollama_reader();
std::unique_ptr<LogReader> vllm_reader();
std::unique_ptr<LogReader> torch_reader();
std::unique_ptr<LogReader> nvidia_smi_reader();

}  // namespace gpuwright::fit

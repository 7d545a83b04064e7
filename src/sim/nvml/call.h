// The way of every call into the simulated driver: counted, delayed or hung as the scenario wants it, refused where
// the library is not ready or the GPU is gone, and only then answered.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/nvml_functions.h"
#include "sim/gpu_view.h"
#include "sim/nvml.h"

namespace gpuwright::sim {

// The declarations of all functions, so that a definition whose arguments differ does not compile.
extern "C" {
#define GW_DECLARE(function, arguments) nvml::Return function arguments;
GW_NVML_FUNCTIONS(GW_DECLARE)
#undef GW_DECLARE
const char* nvmlErrorString(nvml::Return result);
}

namespace calls {

// What a call found when it was let in; the answer's code when it was not.
struct Entry {
  nvml::Return code = nvml::kSuccess;
  std::shared_ptr<Host> host;
  double time = 0;
  const Host::State& state() const { return host->state(); }
};

// For the functions that open the library: it need not be open.
Entry enter_closed(const char* function);
// `gpu`: whose slowness and hanging the call shares; -1: only the host's.
Entry enter(const char* function, int gpu = -1);

nvml::Return open_library(const char* function);
nvml::Return close_library();

nvml::Device handle_of(int gpu, int instance);
struct Decoded {
  int gpu = -1, instance = -1;  // gpu -1: no handle of this library, or one from before a reload
};
Decoded decode(nvml::Device device);
// The code with which calls for a GPU in that condition answer.
nvml::Return code_of(Condition condition);

// Copies text with its final zero; insufficient size where the buffer is too short.
nvml::Return copy_text(std::string_view text, char* into, unsigned size);

// A call for a GPU or a MIG instance: answer(GpuView).
template <class Answer>
nvml::Return for_device(const char* function, nvml::Device device, Answer&& answer) {
  const Decoded where = decode(device);
  const Entry entry = enter(function, where.gpu);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (where.gpu < 0 || static_cast<std::size_t>(where.gpu) >= entry.state().scenario.gpus.size())
    return nvml::kInvalidArgument;
  const GpuView whole(entry.state(), where.gpu, -1, entry.time);
  if (where.instance >= static_cast<int>(whole.spec().instances.size())) return nvml::kInvalidArgument;
  const GpuView view(entry.state(), where.gpu, where.instance, entry.time);
  if (view.instance() != nullptr && !view.instance()->interval.holds(entry.time)) return nvml::kInvalidArgument;
  if (const nvml::Return code = code_of(view.condition()); code != nvml::kSuccess) return code;
  return answer(view);
}

// A call that MIG instances do not support.
template <class Answer>
nvml::Return for_gpu(const char* function, nvml::Device device, Answer&& answer) {
  return for_device(function, device,
                    [&](const GpuView& gpu) { return gpu.instance() != nullptr ? nvml::kNotSupported : answer(gpu); });
}

// answer(GpuView) gives an optional value: nothing means that it is not supported.
template <class Value, class Answer>
nvml::Return tell(const char* function, nvml::Device device, Value* value, Answer&& answer) {
  if (value == nullptr) return nvml::kInvalidArgument;
  return for_gpu(function, device, [&](const GpuView& gpu) {
    const auto answered = answer(gpu);
    if (!answered) return nvml::kNotSupported;
    *value = static_cast<Value>(*answered);
    return nvml::kSuccess;
  });
}

// What a driver writes where it has no number and says success all the same: all bits one.
template <class Value>
constexpr Value blank_value() {
  return static_cast<Value>(~0ULL);
}

// As tell(), of something that is measured: blank_values puts a sentinel in its place.
template <class Value, class Answer>
nvml::Return measure(const char* function, nvml::Device device, Value* value, Answer&& answer) {
  return tell(function, device, value, [&](const GpuView& gpu) {
    const auto answered = answer(gpu);
    if (answered && gpu.scenario().driver.blank_values) return std::optional<Value>(blank_value<Value>());
    return answered ? std::optional<Value>(static_cast<Value>(*answered)) : std::nullopt;
  });
}

// A text of a GPU; an empty one is not supported.
template <class Answer>
nvml::Return tell_text(const char* function, nvml::Device device, char* into, unsigned size, Answer&& answer) {
  return for_device(function, device, [&](const GpuView& gpu) {
    const std::string text = answer(gpu);
    return text.empty() ? nvml::kNotSupported : copy_text(text, into, size);
  });
}

// The version of a versioned struct: under strict_versions the whole word, else its number may stand alone, or be 0
// where the function knows one version only.
template <class Struct>
nvml::Return check_version(const GpuView& gpu, const Struct* argument, unsigned number) {
  if (argument == nullptr) return nvml::kInvalidArgument;
  if (argument->version == nvml::version_of<Struct>(number)) return nvml::kSuccess;
  const bool bare = argument->version == number || argument->version == 0;
  return bare && !gpu.scenario().driver.strict_versions ? nvml::kSuccess : nvml::kArgumentVersionMismatch;
}

// Whether the simulated driver has the symbol.
bool has_symbol(const DriverSpec& driver, std::string_view function);

// The host that functions speak for; null when there is none.
std::shared_ptr<Host> installed();

}  // namespace calls
}  // namespace gpuwright::sim

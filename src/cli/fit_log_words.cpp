// From what a log says to the words that one would have typed.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "cli/fit_log.h"
#include "model/config.h"
#include "model/dtype.h"
#include "model/quantize.h"

namespace gpuwright::cli {
namespace {

using fit::LogProgram;

// "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf" -> "llama-3.1-8b-instruct": how files are named after models.
std::string name_in(std::string_view path) {
  std::string name(path.substr(path.find_last_of("/\\") + 1));
  name = lower(name.substr(0, name.rfind(".gguf")));
  std::replace(name.begin(), name.end(), ' ', '-');
  if (name.starts_with("meta-")) name.erase(0, 5);
  std::vector<std::string> formats = model::weight_formats();
  std::sort(formats.begin(), formats.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& format : formats)
    for (const char separator : {'-', '.'})
      if (const std::string end = separator + lower(format); name.size() > end.size() && name.ends_with(end))
        return name.substr(0, name.size() - end.size());
  return name;
}

// A file of this machine, or a preset that the log's name or file name means. The network is not asked because of what
// a log says.
std::optional<std::string> model_of(const fit::LogRun& run) {
  if (!run.model_file.empty() && path_exists(run.model_file)) return run.model_file;
  for (const std::string& name : {run.model_file, name_in(run.model_file), name_in(run.model_name)})
    if (!name.empty())
      if (const auto preset = model::preset(name)) return preset->name;
  return std::nullopt;
}

bool is_gguf(std::string_view word) {
  return lower(word.substr(0, word.find(','))).ends_with(".gguf");
}

class Underlay {
 public:
  Underlay(const Arguments& arguments, const fit::LogRun& run, const catalog::Catalog& catalog)
      : run_(run), catalog_(catalog) {
    request_.arguments = arguments;
  }

  Result<LogRequest> build() {
    engine();
    GW_TRY(model());
    for (const fit::LogSetting& setting : run_.settings) add_setting(setting);
    GW_TRY(gpus());
    return std::move(request_);
  }

 private:
  bool given(std::string_view option) const { return request_.arguments.has(option); }

  void add(std::string_view option, std::string value) {
    if (value.empty())
      request_.arguments.mark(option);
    else
      request_.arguments.add(option, value);
    request_.words.emplace_back(option, std::move(value));
  }

  void engine() {
    if (given("--engine") || given("--train")) return;
    if (run_.program == LogProgram::torch) return add("--engine", "transformers");
    if (run_.program == LogProgram::unknown || run_.program == LogProgram::nvidia_smi) return;
    const std::string name(fit::name_of(run_.program));
    add("--engine", run_.version.empty() ? name : name + "@" + run_.version);
  }

  Status model() {
    if (given("MODEL")) return {};
    const auto model = model_of(run_);
    if (!model) {
      const std::string_view called = run_.model_name.empty() ? run_.model_file : run_.model_name;
      return fail(ErrorCode::bad_input,
                  called.empty() ? "the log does not say which model ran"
                                 : fmt::format("the log's model \"{}\" is no file here and no preset", called),
                  "name it: gpuwright fit --from-log FILE MODEL");
    }
    add("MODEL", *model);
    return {};
  }

  void add_setting(const fit::LogSetting& setting) {
    if (given(setting.option)) return;
    const bool cache_type = setting.option == "--key-type" || setting.option == "--value-type";
    if (cache_type && given("--kv-type")) return;
    if (cache_type) {
      const auto dtype = model::dtype_named(setting.value);
      if (!dtype || *dtype == model::Dtype::unknown) return skip(setting);
    }
    if (setting.option == "--format") {
      const std::string reference = request_.arguments.value("MODEL").value_or("");
      const auto formats = model::weight_formats();
      if (is_gguf(reference) || path_exists(reference) || reference.find("://") != std::string::npos) return;
      if (std::none_of(formats.begin(), formats.end(),
                       [&](const std::string& format) { return lower(format) == lower(setting.value); }))
        return skip(setting);
      // A checkpoint that is quantised already is what ran.
      const auto preset = model::preset(reference);
      if (preset && preset->weight_format != "BF16" && preset->weight_format != "F16" && preset->weight_format != "F32")
        return;
    }
    add(setting.option, setting.value);
  }

  void skip(const fit::LogSetting& setting) {
    request_.notes.push_back(fmt::format("Line {}: {} {} is not known here and was left out.", setting.line,
                                         setting.option, printable(setting.value)));
  }

  // The GPUs that something was measured on; all that are listed when nothing says which.
  std::set<int> used() const {
    std::set<int> numbers;
    for (const fit::Measurement& measurement : run_.measurements)
      if (measurement.gpu && !measurement.others) numbers.insert(*measurement.gpu);
    if (!numbers.empty()) return numbers;
    for (const fit::LogGpu& gpu : run_.gpus) numbers.insert(gpu.number);
    return numbers;
  }

  std::string word_for(int number) const {
    const auto gpu = std::find_if(run_.gpus.begin(), run_.gpus.end(),
                                  [&](const fit::LogGpu& candidate) { return candidate.number == number; });
    if (gpu == run_.gpus.end()) return {};
    if (!gpu->name.empty())
      if (const auto row = catalog_.find(gpu->name)) return (*row)->id;
    if (gpu->total) return fmt::format("{}MiB", gpu->total->count >> 20);
    return {};
  }

  Status gpus() {
    if (given("--gpu") || given("--measure")) return {};
    for (const int number : used()) {
      std::string word = word_for(number);
      if (word.empty() && !run_.gpus.empty()) word = word_for(run_.gpus.front().number);
      if (word.empty() && run_.program >= LogProgram::vllm)
        return fail(ErrorCode::bad_input, "the log does not say how much memory the GPU has", "name it with --gpu");
      if (word.empty()) {
        // Buffers do not depend on the card; the runtime does.
        word = "1TiB";
        if (number == *used().begin())
          request_.notes.push_back("The log does not name its GPU: the prediction is for any that holds the job.");
      }
      add("--gpu", std::move(word));
    }
    if (used().empty()) return fail(ErrorCode::bad_input, "the log names no GPU", "name the one it ran on with --gpu");
    return {};
  }

  const fit::LogRun& run_;
  const catalog::Catalog& catalog_;
  LogRequest request_;
};

}  // namespace

Result<LogRequest> with_log(const Arguments& arguments, const fit::LogRun& run, const catalog::Catalog& catalog) {
  return Underlay(arguments, run, catalog).build();
}

}  // namespace gpuwright::cli

#include "cli/run/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/fit_ask.h"
#include "cli/live/values.h"
#include "cli/parse.h"
#include "cli/run/job_words.h"
#include "cli/style.h"
#include "model/config.h"

namespace gpuwright::cli {
namespace {

constexpr double kLongEnough = 20;                    // seconds on the GPU before its use says anything
constexpr double kBusy = 0.5;                         // at least: nothing to say
constexpr double kIdle = 0.02;                        // at most: it was held and not used
constexpr double kThrottled = 0.1;                    // of the time
constexpr double kFullHost = 0.9;                     // of the processors
constexpr double kSaturated = 0.8, kOneThread = 1.3;  // cores
constexpr double kAgrees = 0.15;                      // between what fit foretold and what was measured

class Judge {
 public:
  Judge(const Outcome& outcome, Language language) : outcome_(outcome), chinese_(language == Language::chinese) {}

  std::vector<RunAdvice> judge() {
    for (const WatchedGpu* gpu : outcome_.gpus.of_job()) {
      const device::GpuReport* report = report_of(*gpu);
      if (report == nullptr) continue;
      if (report->utilization && report->utilization->known.count() >= kLongEnough) {
        known_.push_back({gpu, report});
        if (report->utilization->mean.value <= kIdle) idle_.push_back(gpu);
      }
      clocks(*gpu, *report);
    }
    held_idle();
    waiting();
    return std::move(advice_);
  }

 private:
  struct Known {
    const WatchedGpu* gpu;
    const device::GpuReport* report;
  };

  std::string_view say(std::string_view english, std::string_view chinese) const {
    return chinese_ ? chinese : english;
  }
  template <class... Values>
  void add(std::string id, std::string_view english, std::string_view chinese, const Values&... values) {
    advice_.push_back({std::move(id), fmt::format(fmt::runtime(say(english, chinese)), values...)});
  }

  const device::GpuReport* report_of(const WatchedGpu& gpu) const {
    for (const device::GpuReport& report : outcome_.gpus.report.gpus)
      if (report.gpu.index == gpu.gpu.index) return &report;
    return nullptr;
  }

  void held_idle() {
    if (idle_.empty()) return;
    std::string numbers;
    Bytes held;
    for (const WatchedGpu* gpu : idle_) {
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", gpu->gpu.index);
      held = std::max(held, gpu->memory.peak().size);
    }
    add("idle-gpus-held", "Idle GPUs were held: GPU {} stayed below {:.0f} % with up to {} of memory held",
        "占用了空闲 GPU：GPU {} 利用率低于 {:.0f} %，却占用多达 {} 显存", numbers, kIdle * 100, to_string(held));
  }

  // The GPUs that work, but little: what else was busy meanwhile?
  void waiting() {
    double use = 0;
    int count = 0;
    for (const Known& one : known_) {
      if (one.report->utilization->mean.value <= kIdle) continue;
      use += one.report->utilization->mean.value;
      ++count;
    }
    const HostUse& host = outcome_.gpus.host;
    const double seconds = host.at_seconds - host.claim_seconds;
    if (count == 0 || use / count >= kBusy || seconds < kLongEnough) return;
    const double percent = use / count * 100;
    const double cores = (host.cpu_seconds - host.cpu_seconds_at_claim) / seconds;
    if (cores >= kFullHost * outcome_.processors || cores >= 2)
      add("input-bound",
          "Input-bound: the GPU was busy {:.0f} % of the time while the job used {:.1f} of {} processors. Prepare less "
          "per sample or on the GPU, cache what is prepared{}",
          "受输入限制：GPU 仅 {:.0f} % 的时间在忙，而作业用了 {:.1f} / {} 个处理器。减少每个样本的预处理，或放到 GPU "
          "上做，或缓存结果{}",
          percent, cores, outcome_.processors,
          cores < kFullHost * outcome_.processors ? say(", or use more loader workers", "，或增加 worker") : "");
    else if (cores >= kSaturated && cores <= kOneThread)
      add("host-bound",
          "Host-bound: the GPU was busy {:.0f} % of the time and the job kept {:.1f} processors busy, as a program "
          "does "
          "whose one thread feeds the GPU. Larger batches, CUDA graphs or torch.compile; loader workers where there "
          "are "
          "none",
          "受主机限制：GPU 仅 {:.0f} % 的时间在忙，作业用了 {:.1f} 个处理器，即由单个线程喂给 "
          "GPU。可用更大的批次、CUDA "
          "graphs 或 torch.compile；若无数据 worker 则增加",
          percent, cores);
    else
      add("waiting",
          "The GPU was busy {:.0f} % of the time, and the job used {:.1f} of {} processors: it waited for something "
          "else (disk, network, other ranks, requests)",
          "GPU 仅 {:.0f} % 的时间在忙，作业只用了 {:.1f} / {} 个处理器：它在等待别的（磁盘、网络、其他 rank、请求）",
          percent, cores, outcome_.processors);
  }

  void clocks(const WatchedGpu& gpu, const device::GpuReport& report) {
    if (report.throttle_known.count() < kLongEnough) return;
    for (const auto& [reason, time] : report.throttled) {
      const double share = time.count() / report.throttle_known.count();
      // At its power limit is where a busy GPU works.
      if (share < kThrottled || reason.find("power cap") != std::string::npos) continue;
      add("clocks-held-down", "The clocks of GPU {} were held down {:.0f} % of the time: {}",
          "GPU {} 的时钟有 {:.0f} % 的时间被压低：{}", gpu.gpu.index, share * 100, reason);
    }
  }

  const Outcome& outcome_;
  bool chinese_;
  std::vector<Known> known_;
  std::vector<const WatchedGpu*> idle_;
  std::vector<RunAdvice> advice_;
};

// The model of a command line may be anything. The network is not asked for it.
bool is_at_hand(const std::string& model) {
  return model::preset(model).has_value() || path_exists(model);
}

const WatchedGpu* fullest(const Watched& gpus) {
  const WatchedGpu* most = nullptr;
  for (const WatchedGpu* gpu : gpus.of_job())
    if (most == nullptr || gpu->memory.peak().size > most->memory.peak().size) most = gpu;
  return most;
}

Result<AskedFit> ask(const std::vector<std::string>& words, const std::vector<std::string>& more,
                     const catalog::Catalog& catalog) {
  std::vector<std::string> line = {"fit"};
  line.insert(line.end(), words.begin(), words.end());
  line.insert(line.end(), more.begin(), more.end());
  const Invocation invocation = GW_TRY(parse(line, commands()));
  return ask_fit(invocation.arguments, catalog);
}

Bytes expected(const AskedFit& asked) {
  Bytes most;
  for (const fit::GpuEstimate& gpu : asked.answer.estimate.per_gpu)
    most = std::max(most, gpu.peak().total(gpu.meter).expected);
  return most;
}

}  // namespace

std::vector<RunAdvice> advice_on(const Outcome& outcome, Language language) {
  return Judge(outcome, language).judge();
}

std::vector<std::string> gpu_words(const Watched& gpus) {
  const auto of_job = gpus.of_job();
  if (of_job.empty()) return {};
  std::vector<std::string> words;
  for (const WatchedGpu* one : of_job) {
    std::string name = one->gpu.catalog_id;
    if (name.empty() && one->gpu.memory_total) name = fmt::format("{}MiB", one->gpu.memory_total->count >> 20);
    if (name.empty()) return {};
    words.insert(words.end(), {"--gpu", std::move(name)});
  }
  return words;
}

std::optional<std::vector<std::string>> words_for_fit(const Outcome& outcome) {
  const auto job = job_words(outcome.command);
  if (!job || !is_at_hand(job->words.front())) return std::nullopt;
  std::vector<std::string> words = job->words;
  for (std::string& word : gpu_words(outcome.gpus)) words.push_back(std::move(word));
  return words;
}

std::optional<RunAdvice> advice_of_fit(const Outcome& outcome, const catalog::Catalog& catalog, Language language) {
  const auto job = job_words(outcome.command);
  const auto words = words_for_fit(outcome);
  const WatchedGpu* gpu = fullest(outcome.gpus);
  if (!words || gpu == nullptr || gpu->shared || !job->training || !job->batch) return std::nullopt;
  const auto ran = ask(*words, {}, catalog);
  if (!ran) return std::nullopt;
  const double foretold = static_cast<double>(expected(*ran).count);
  const double measured = static_cast<double>(gpu->memory.peak().size.count);
  if (measured <= 0 || std::abs(foretold / measured - 1) > kAgrees) return std::nullopt;
  const auto most = ask(*words, {"--max", "batch"}, catalog);
  if (!most || most->answer.largest().value_or(0) <= *job->batch) return std::nullopt;
  const bool chinese = language == Language::chinese;
  return RunAdvice{
      "larger-batch",
      fmt::format(fmt::runtime(chinese ? "批次可以到 {}（现在 {}）：预计需要 {}，共 {}；现在的预测 {}，实测 {}"
                                       : "Could use batch {} instead of {}: fit expects {} of {}, having foretold {} "
                                         "where {} were measured"),
                  *most->answer.largest(), *job->batch, to_string(expected(*most)),
                  to_string(most->answer.estimate.per_gpu.front().usable), to_string(expected(*ran)),
                  to_string(gpu->memory.peak().size))};
}

}  // namespace gpuwright::cli

// strategy [RUNS]: how long --strategy auto takes for 70B models on eight GPUs, from plans that fit at once to spaces
// where nothing does. Printed are the plans of the space, the estimates made, and the median and worst time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "base/text.h"
#include "catalog/catalog.h"
#include "fit/strategy/strategy.h"
#include "model/config.h"

namespace gpuwright {
namespace {

struct Case {
  const char* model;
  const char* gpu;
  fit::TrainingMethod method;
  bool adapters_allowed;
  std::int64_t global_batch;
  std::int64_t sequence;
};

constexpr Case kCases[] = {
    {"llama-2-70b", "h100 sxm", fit::TrainingMethod::full, false, 16, 2048},
    {"llama-2-70b", "h100 sxm", fit::TrainingMethod::full, true, 256, 4096},
    {"llama-2-70b", "a100-sxm4-80gb", fit::TrainingMethod::lora, true, 64, 8192},
    {"llama-2-70b", "4090", fit::TrainingMethod::full, true, 64, 2048},
    {"llama-3.1-70b", "h200 sxm", fit::TrainingMethod::full, true, 512, 8192},
    {"llama-3.1-70b", "rtx-3060-12gb", fit::TrainingMethod::full, true, 64, 65536},
};

Result<bool> run_case(const Case& each, const catalog::Catalog& catalog, int runs) {
  const model::Model model = GW_TRY(model::preset(each.model));
  const catalog::Accelerator* accelerator = GW_TRY(catalog.find(each.gpu));
  const std::vector<fit::Target> targets(8, fit::target_from(*accelerator));
  const fit::Machine machine = GW_TRY(fit::machine_from(*accelerator));
  fit::StrategyRequest request;
  request.job.method = each.method;
  request.job.optimizer = fit::Optimizer::adamw_fused;
  request.job.sequence = each.sequence;
  request.global_batch = each.global_batch;
  if (each.adapters_allowed) request.freedom.also = {fit::TrainingMethod::lora, fit::TrainingMethod::qlora};

  std::vector<double> milliseconds;
  fit::Strategy last;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    last = GW_TRY(fit::find_strategy(model, request, targets, machine));
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    milliseconds.push_back(passed.count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  fmt::print(
      "{:14} 8 x {:16} {:5} batch {:4} seq {:6}  {:6} plans {:5} estimates  median {:7.1f} ms  worst {:7.1f} ms\n",
      each.model, accelerator->name, fit::name_of(each.method), each.global_batch, each.sequence, last.plans,
      last.estimated, milliseconds[milliseconds.size() / 2], milliseconds.back());
  fmt::print("    {}\n", last.best ? fit::describe(last.best->job) : "nothing fits");
  return true;
}

Result<bool> run_all(int runs) {
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  for (const Case& each : kCases) GW_TRY(run_case(each, catalog, runs));
  return true;
}

}  // namespace
}  // namespace gpuwright

int main(int count, char** words) {
  const auto runs = count > 1 ? gpuwright::to_integer(words[1]) : 20;
  if (!runs || *runs < 1 || *runs > 10000) {
    fmt::print(stderr, "strategy: RUNS is a number from 1 to 10000\n");
    return 2;
  }
  const auto done = gpuwright::run_all(static_cast<int>(*runs));
  if (done) return 0;
  fmt::print(stderr, "strategy: {}\n", done.error().message());
  return 1;
}

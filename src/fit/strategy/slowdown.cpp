#include "fit/strategy/slowdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "fit/strategy/constants.h"
#include "fit/training/adapters.h"

namespace gpuwright::fit {
namespace {

// GT/s of a lane after line coding, in bytes a second: PCI Express base specification, revisions 1 to 6.
std::optional<double> pcie_bytes_per_second(std::string_view text) {
  constexpr std::array<double, 7> kLane = {0, 2.5e8, 5e8, 9.846e8, 1.9692e9, 3.9385e9, 7.5625e9};
  const auto x = text.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto generation = to_number(text.substr(0, x)), lanes = to_number(text.substr(x + 1));
  if (!generation || !lanes || *generation < 1 || *generation > 6 || *lanes < 1 || *lanes > 32) return std::nullopt;
  return kLane[static_cast<std::size_t>(*generation)] * *lanes;
}

bool is_adapter(TrainingMethod method) {
  return method != TrainingMethod::full;
}

// Backward costs two products for each of forward's, one where the weight itself is not trained.
double backward_share(TrainingMethod method) {
  return is_adapter(method) ? 1 : 2;
}

double gradient_bytes(const TrainingJob& job) {
  switch (job.precision) {
    case Precision::pure_bf16:
    case Precision::pure_fp16:
    case Precision::mixed_deepspeed:
      return 2;
    default:
      return 4;
  }
}

bool gathers_weights(Sharding kind) {
  return kind == Sharding::zero3 || kind == Sharding::fsdp;
}

double sum_of(const double* first, const double* last) {
  double sum = 0;
  for (; first != last; ++first) sum += *first;
  return sum;
}

}  // namespace

Result<Machine> unknown_machine() {
  Machine machine;
  machine.flops = GW_TRY(strategy::constant("default_flops")).expected;
  machine.memory_bytes_per_second = GW_TRY(strategy::constant("default_memory_bytes_per_second")).expected;
  machine.pcie_bytes_per_second = GW_TRY(strategy::constant("default_pcie_bytes_per_second")).expected *
                                  GW_TRY(strategy::constant("pcie_efficiency")).expected;
  machine.link_bytes_per_second = machine.pcie_bytes_per_second;
  machine.assumed = {"throughput", "memory bandwidth", "PCIe"};
  return machine;
}

Result<Machine> machine_from(const catalog::Accelerator& accelerator) {
  Machine machine = GW_TRY(unknown_machine());
  machine.assumed.clear();
  const catalog::Throughput& peak = accelerator.throughput;
  if (const auto tera = peak.bf16_tflops ? peak.bf16_tflops : peak.fp16_tflops; tera && *tera > 0)
    machine.flops = *tera * 1e12;
  else
    machine.assumed.emplace_back("throughput");
  if (const auto rate = accelerator.memory_bandwidth_gb_per_second; rate && *rate > 0)
    machine.memory_bytes_per_second = *rate * 1e9;
  else
    machine.assumed.emplace_back("memory bandwidth");
  if (const auto rate = pcie_bytes_per_second(accelerator.pcie))
    machine.pcie_bytes_per_second = *rate * GW_TRY(strategy::constant("pcie_efficiency")).expected;
  else
    machine.assumed.emplace_back("PCIe");
  const double nvlink = accelerator.nvlink_gb_per_second.value_or(0) * 1e9 / 2;
  machine.link_bytes_per_second = std::max(nvlink, machine.pcie_bytes_per_second);
  return machine;
}

Result<SlowdownModel> SlowdownModel::create(const model::Model& model, TrainingMethod method, const TrainingJob& job,
                                            const Machine& machine) {
  SlowdownModel result;
  result.parameters_ = static_cast<double>(std::max<std::int64_t>(model.parameters(), 1));
  result.active_ = static_cast<double>(std::max<std::int64_t>(model.active_parameters(), 1));
  result.layers_ = static_cast<double>(model.layers.size());
  result.hidden_ = static_cast<double>(model.hidden);
  for (const model::Layer& layer : model.layers)
    result.core_flops_ +=
        2 * static_cast<double>(layer.attention.heads * (layer.attention.key_dim + layer.attention.value_dim));
  if (const auto modules = training::adapted_modules(model, job))
    result.adapters_ = training::adapter_parameters(*modules, job);
  result.asked_ = method;
  result.machine_ = machine;
  result.utilisation_ = GW_TRY(strategy::constant("model_flops_utilisation")).expected;
  result.nf4_factor_ = GW_TRY(strategy::constant("nf4_time_factor")).expected;
  result.exposed_ = GW_TRY(strategy::constant("communication_exposed_share")).expected;
  result.host_ = GW_TRY(strategy::constant("host_bytes_per_second")).expected;
  result.network_ = GW_TRY(strategy::constant("network_bytes_per_second")).expected;
  return result;
}

SlowdownModel::Times SlowdownModel::times(const TrainingJob& job) const {
  Times times;
  const double steps = static_cast<double>(job.gradient_accumulation);
  const double tokens = static_cast<double>(job.micro_batch) * static_cast<double>(job.sequence) / job.context_parallel;
  const double split = static_cast<double>(job.tensor_parallel) * job.pipeline_parallel;
  const double ranks = job.data_parallel;
  const double rate = machine_.flops * utilisation_;

  // Arithmetic of one step on one GPU.
  const double core = core_flops_ * static_cast<double>(job.sequence);
  const double forward = (2 * active_ + core) * tokens * steps / split / rate;
  times.ideal = forward * (1 + backward_share(asked_));
  times.compute = forward * (1 + backward_share(job.method));

  double passes = 1 + backward_share(job.method);
  if (job.checkpointing == Checkpointing::full || job.checkpointing == Checkpointing::offloaded) {
    times.terms[kRecompute] = forward;
    passes += 1;
  } else if (job.checkpointing == Checkpointing::selective && job.attention == "eager") {
    times.terms[kRecompute] = core * tokens * steps / split / rate;  // fused kernels recompute it anyway
  }

  const double stored = job.method == TrainingMethod::qlora ? 0.53 : 2;  // NF4 with doubly quantised scales
  times.terms[kPieces] = parameters_ / split * stored * passes * steps / machine_.memory_bytes_per_second;
  if (job.method == TrainingMethod::qlora)
    times.terms[kDequantise] = (nf4_factor_ - 1) * (times.compute + times.terms[kRecompute]);

  // Collectives. What compute cannot hide, and the share that never overlaps.
  const double trained = (is_adapter(job.method) ? adapters_ : parameters_) / split;
  const double all_gpus = ranks * split * job.context_parallel;
  const double link = all_gpus > job.gpus_per_node ? std::min(network_, machine_.link_bytes_per_second)
                                                   : machine_.link_bytes_per_second;
  const auto visible = [&](double seconds) { return std::max(exposed_ * seconds, seconds - times.compute); };
  if (ranks > 1) {
    const double ring = (ranks - 1) / ranks;
    const double gradients = trained * gradient_bytes(job);
    const bool each_time = job.sharding.kind != Sharding::none && job.sharding.kind != Sharding::zero1;
    const double reduced = each_time ? steps * gradients + trained * 2 : 2 * gradients;
    if (gathers_weights(job.sharding.kind)) {
      times.terms[kReduce] = visible(steps * gradients * ring / link);
      times.terms[kGather] = visible(2 * steps * parameters_ / split * stored * ring / link);
    } else {
      times.terms[kReduce] = visible(reduced * ring / link);
    }
  }
  if (job.tensor_parallel > 1) {
    const double n = job.tensor_parallel;
    const double each = tokens * hidden_ * 2 * 2 * (n - 1) / n;
    const double times_a_layer = passes > 1 + backward_share(job.method) ? 6 : 4;
    times.terms[kTensor] =
        layers_ / job.pipeline_parallel * times_a_layer * each * steps / machine_.link_bytes_per_second;
  }
  if (job.pipeline_parallel > 1)
    times.terms[kPipeline] =
        (job.pipeline_parallel - 1) / steps * (times.compute + sum_of(times.terms, times.terms + kPipeline));

  // The host. Each rank moves its own shard; the ranks of one machine share its memory.
  const double shard = job.sharding.kind == Sharding::none ? 1 : ranks;
  if (job.sharding.offload_optimizer) {
    const double neighbours = std::min<double>(ranks, job.gpus_per_node);
    const double moved = trained / shard * (gradient_bytes(job) * steps + 2);
    // Adam reads weight, both moments and gradient in fp32 and writes three of them and a 16-bit copy.
    times.terms[kOffload] = moved / machine_.pcie_bytes_per_second + trained / shard * neighbours * 30 / host_;
  }
  if (job.sharding.offload_parameters)
    times.terms[kOffload] += visible(2 * steps * parameters_ / split / shard * stored / machine_.pcie_bytes_per_second);
  if (job.checkpointing == Checkpointing::offloaded || job.activation_offload)
    times.terms[kActivations] =
        visible(2 * tokens * hidden_ * 2 * layers_ / job.pipeline_parallel * steps / machine_.pcie_bytes_per_second);
  return times;
}

double SlowdownModel::factor(const TrainingJob& job) const {
  const Times found = times(job);
  return (found.compute + sum_of(found.terms, found.terms + kTerms)) / found.ideal;
}

Slowdown SlowdownModel::explain(const TrainingJob& job) const {
  struct Label {
    std::string_view name, source;
  };
  constexpr std::array<Label, kTerms> kLabels = {{
      {"recomputing forward", "arXiv 1604.06174: one more forward pass"},
      {"reading the weights for each micro-batch", "weight bytes x passes / memory bandwidth"},
      {"unpacking NF4 weights", "data/strategy.toml, nf4_time_factor"},
      {"reducing gradients", "arXiv 1910.02054, section 7"},
      {"gathering sharded weights", "arXiv 1910.02054, section 7.2.2: ZeRO-3 moves 1.5 times the bytes"},
      {"all-reduces of tensor parallelism", "arXiv 1909.08053, section 3"},
      {"the pipeline's bubble", "arXiv 2104.04473, section 2.2: (p-1)/m"},
      {"offloading states or weights over PCIe", "bytes / PCIe bandwidth; Adam at host memory bandwidth"},
      {"offloading activations over PCIe", "bytes / PCIe bandwidth"},
  }};
  const Times found = times(job);
  Slowdown answer;
  answer.factor = factor(job);
  const double method = found.compute / found.ideal - 1;
  if (std::abs(method) > 1e-9)
    answer.parts.push_back({"no gradients of the frozen weights", method, "arXiv 2106.09685: frozen weights"});
  for (std::size_t i = 0; i < kTerms; ++i)
    if (found.terms[i] > 0)
      answer.parts.push_back(
          {std::string(kLabels[i].name), found.terms[i] / found.ideal, std::string(kLabels[i].source)});
  return answer;
}

}  // namespace gpuwright::fit

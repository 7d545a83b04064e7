// How much longer a step of training takes than it must: the price of what a plan does to save memory.
//
// Not a prediction of speed. The step's time is compared with that of the same tokens on the same GPUs if they did
// nothing but the model's own arithmetic, all the time at the usual share of their peak. What a plan adds to that is
// counted in seconds and told as shares:
//
//   recomputation     checkpointing runs forward again: 1 of 3 parts under full training, 1 of 2 under LoRA, where no
//                     weight gradients are computed (arXiv 1604.06174; arXiv 2205.05198, section 5)
//   small pieces      each micro-batch reads all weights anew, which large ones share (roofline, doi
//                     10.1145/1498765.1498785)
//   dequantisation    NF4 weights are unpacked before each product (arXiv 2305.14314)
//   gradients         2 (n-1)/n bytes of gradients a step for an all-reduce; ZeRO-3 and FSDP gather weights twice in
//                     each micro-batch: 1.5 times the volume (arXiv 1910.02054, section 7)
//   tensor parallel   four all-reduces a layer and micro-batch, nothing to hide them behind (arXiv 1909.08053, section
//   3) pipeline          (p-1)/m of the time idle (arXiv 2104.04473, section 2.2) offload           weights, gradients
//   and states over PCIe, Adam at the speed of host memory (arXiv 2101.06840)
#pragma once

#include <string>
#include <vector>

#include "catalog/accelerator.h"
#include "fit/training/job.h"
#include "model/model.h"

namespace gpuwright::fit {

// What the slow-down depends on. Bytes a second are of one direction.
struct Machine {
  double flops = 0;  // 16-bit, dense
  double memory_bytes_per_second = 0;
  double pcie_bytes_per_second = 0;
  double link_bytes_per_second = 0;  // between GPUs of one machine: NVLink where there is one, else PCIe
  std::vector<std::string> assumed;  // what the catalogue did not tell
};
Result<Machine> machine_from(const catalog::Accelerator& accelerator);
Result<Machine> unknown_machine();  // for a GPU of which only the size is known

struct Slowdown {
  double factor = 1;
  struct Part {
    std::string name;
    double share = 0;  // of the ideal step: 0.33
    std::string source;
  };
  std::vector<Part> parts;  // what adds up to factor - 1
};

// Prepared once for a model and GPUs, then asked for many jobs.
class SlowdownModel {
 public:
  // `method`: what was asked; a step of it, undisturbed, is the measure of all methods.
  static Result<SlowdownModel> create(const model::Model& model, TrainingMethod method, const TrainingJob& job,
                                      const Machine& machine);
  // Only the factor; fast.
  double factor(const TrainingJob& job) const;
  Slowdown explain(const TrainingJob& job) const;

 private:
  enum Term { kRecompute, kPieces, kDequantise, kReduce, kGather, kTensor, kPipeline, kOffload, kActivations, kTerms };
  struct Times {
    double ideal = 0;    // of the asked method
    double compute = 0;  // of this method
    double terms[kTerms] = {};
  };
  Times times(const TrainingJob& job) const;

  double parameters_ = 0, active_ = 0, adapters_ = 0;
  double layers_ = 0, hidden_ = 0;
  double core_flops_ = 0;  // of attention's own products, per token and position of the sequence
  TrainingMethod asked_ = TrainingMethod::full;
  Machine machine_;
  double utilisation_ = 1, nf4_factor_ = 1, exposed_ = 1, host_ = 1, network_ = 1;
};

}  // namespace gpuwright::fit

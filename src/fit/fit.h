// Umbrella of the room: will this model, served this way, fit on these GPUs, and what exactly takes the memory?
//   Job (job.h) + Model + Targets -> Estimate (estimate.h); solve.h turns the question round (how much fits).
// Knows nothing of live devices: the caller passes the bytes that are free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "catalog/accelerator.h"
#include "fit/estimate.h"
#include "fit/job.h"
#include "model/model.h"

namespace gpuwright::fit {

// What kind of device a target is, where that is known: engines do not run on all of them.
struct Hardware {
  std::string vendor;                        // as the catalogue writes it: "NVIDIA"
  std::string capability;                    // "8.9", "gfx942"; empty where the catalogue has none
  std::optional<double> link_gb_per_second;  // NVLink, Infinity Fabric: both directions together; 0 = PCIe only
};

// One GPU (or MIG slice) to put the job on.
struct Target {
  std::string name;
  Bytes total;               // as the driver reports it
  Bytes free;                // what this job may take of it; equal to total on an idle GPU
  std::string architecture;  // "Ada", "Hopper", "CDNA3", ...: overheads depend on it; may be empty
  bool unified_memory = false;
  std::optional<Hardware> hardware = std::nullopt;  // nothing for a plain size ("24GiB"), which every engine accepts
};
Target target_from(const catalog::Accelerator& accelerator);
Result<Target> mig_target_from(const catalog::Accelerator& accelerator, std::string_view profile);

// The estimate, without advice. Errors: bad_input (a job that contradicts itself or the model: tensor_parallel that
// does not divide the heads, a prompt beyond the context), unsupported (a model whose layers are not known; what the
// engine refuses: a context beyond the model's, a model, format or GPU that it does not run, see support.h).
Result<Estimate> estimate(const model::Model& model, const Job& job, const std::vector<Target>& targets);

// Changes that would help, tried for real (each is an estimate of the changed job) and ordered by what they cost.
std::vector<Advice> advise(const model::Model& model, const Job& job, const std::vector<Target>& targets);

}  // namespace gpuwright::fit

// Why the job ended as it did: `explain` of what it printed, of what the kernel said, and of how it ended.
#pragma once

#include "catalog/catalog.h"
#include "cli/run/kernel_log.h"
#include "cli/run/listener.h"
#include "cli/run/outcome.h"
#include "explain/input.h"

namespace gpuwright::cli {

struct KernelSays {
  std::string text;  // the lines that concern the job
  KernelLog::Kills kills;
};

// `outcome` without its explanation. What ran out of memory is answered by fit, with the job's command line.
explain::Explanation explain_job(const Outcome& outcome, Listener::Heard& heard, const KernelSays& kernel,
                                 const catalog::Catalog& catalog, const Console& console);

// What `run` says of the end in sentences that the rules know (data/errors_job.toml), one a line.
std::string sentences_on(const Outcome& outcome, const KernelSays& kernel);

// The sources that the evidence comes from, for print_explanation().
explain::LogInput sources_of(const explain::Explanation& explanation, const Outcome& outcome);

}  // namespace gpuwright::cli

// What runs on this machine's GPUs taught: local corrections of the parts of an estimate that were measured rather than
// derived. They stand in ~/.config/gpuwright/calibration.toml, one [[correction]] each, to be read and edited by hand.
// A correction moves `expected` and only ever widens low..high, and fit says in a note that it was applied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fit/learn/compare.h"

namespace gpuwright::fit {

// Corrections are for what depends on drivers and kernels; weights and caches are derived and need none.
bool can_be_corrected(ComponentKind kind);

Result<std::vector<Correction>> corrections_from_toml(std::string_view text, std::string_view name);
std::string to_toml(const std::vector<Correction>& corrections);

// ~/.config/gpuwright/calibration.toml; empty when there is no home.
std::string calibration_path();
// Nothing when the file does not exist; an error names the file and the line.
Result<std::vector<Correction>> load_corrections(const std::string& path);
Status save_corrections(const std::vector<Correction>& corrections, const std::string& path);

// What a comparison teaches about GPUs of this name: one correction a part, the mean over the GPUs of the run. The
// comparison must be with an estimate that no correction entered. `source` is the name of the log.
std::vector<Correction> corrections_from(const Comparison& comparison, Engine engine, std::string_view gpu,
                                         std::string_view date, std::string_view source);
// Newer ones replace those of the same engine, GPU and part.
void merge(std::vector<Correction>& known, const std::vector<Correction>& newer);

// Changes the estimate by the job's corrections and notes each.
void apply_corrections(Estimate& estimate, const Job& job);

// "+120 MiB" or "x 1.18"
std::string describe(const Correction& correction);

}  // namespace gpuwright::fit

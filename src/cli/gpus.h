// gpuwright gpus: which GPUs there are, which are here, how they compare.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "catalog/accelerator.h"
#include "catalog/architecture.h"
#include "catalog/host_gpus.h"
#include "cli/command.h"

namespace gpuwright::cli {

Command gpus_command();
Command gpus_show_command();
Command gpus_compare_command();

// The parts of the answers, in JSON (schema gpuwright.gpus/1).
Json gpus_answer();  // an object with its schema
Json to_json(const catalog::Accelerator& gpu);
Json to_json(const catalog::Architecture& architecture);
Json to_json(const catalog::HostGpus& host);

// What the hardware or its software cannot do, as far as that is known: "no FP8 tensor cores". Unknown is left out.
std::vector<std::string> what_it_lacks(const catalog::Accelerator& gpu);

// Figures for people: four significant digits, thousands separated; "no" for 0 (the hardware lacks it), "n/a".
std::string figure_text(const std::optional<double>& value);
std::string money_text(const std::optional<Money>& price);  // "USD 1,599"

// A sentence below a table: broken to the width of a terminal, one line in a file or pipe.
void print_legend(const Console& console, std::string_view text);
void print_gpu(const catalog::Accelerator& gpu, const Console& console);
void print_architectures(const std::vector<catalog::Architecture>& architectures, const Console& console);
void print_host_gpus(const catalog::HostGpus& host, const Console& console);

}  // namespace gpuwright::cli

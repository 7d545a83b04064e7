#include "cli/setup_wish.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "base/text.h"
#include "catalog/host_gpus.h"
#include "doctor/distribution.h"
#include "doctor/machine.h"

namespace gpuwright::cli {
namespace {

using Alias = std::pair<std::string_view, std::string_view>;
constexpr std::array kAliases = {
    Alias{"rocky", "rhel"},        Alias{"almalinux", "rhel"}, Alias{"alma", "rhel"},   Alias{"oracle", "rhel"},
    Alias{"ol", "rhel"},           Alias{"centos", "rhel"},    Alias{"redhat", "rhel"}, Alias{"amazon", "amzn"},
    Alias{"amazonlinux", "amzn"},  Alias{"opensuse", "suse"},  Alias{"leap", "suse"},   Alias{"sles", "suse"},
    Alias{"opensuseleap", "suse"}, Alias{"archlinux", "arch"}};

std::string known_distributions(const doctor::SetupTables& tables) {
  std::string known;
  for (const doctor::SetupDistribution& one : tables.distributions) known += (known.empty() ? "" : ", ") + one.id;
  return known;
}

Result<std::string> version_option(const Arguments& arguments, std::string_view name) {
  const std::string text = std::string(trim(arguments.value(name).value_or("")));
  const bool good = !text.empty() && text[0] >= '0' && text[0] <= '9' && text.size() < 40 &&
                    text.find_first_not_of("0123456789.abcdefghijklmnopqrstuvwxyz+") == std::string::npos;
  if (!good) return fail(ErrorCode::bad_input, fmt::format("{} wants a version, not \"{}\"", name, text));
  return text;
}

Result<std::optional<std::string>> optional_version(const Arguments& arguments, std::string_view name) {
  if (!arguments.value(name)) return std::optional<std::string>();
  return std::optional(GW_TRY(version_option(arguments, name)));
}

// "12.8", "cu128" and "128" are the same.
Result<std::optional<std::string>> cuda_option(const Arguments& arguments) {
  const auto text = arguments.value("--cuda");
  if (!text) return std::optional<std::string>();
  if (const auto tag = catalog::cuda_of_tag(lower(trim(*text)))) return tag;
  if (const auto tag = catalog::cuda_of_tag("cu" + std::string(trim(*text)))) return tag;
  return std::optional(GW_TRY(version_option(arguments, "--cuda")));
}

// YYYY-MM of now; SOURCE_DATE_EPOCH stands for it where it is set.
std::string this_month() {
  std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (const char* fixed = std::getenv("SOURCE_DATE_EPOCH"))
    if (const auto seconds = to_integer(fixed); seconds && *seconds >= 0) now = static_cast<std::time_t>(*seconds);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1);
}

// Boards with NVIDIA's own Arm CPU.
bool has_arm_cpu(const catalog::Accelerator& gpu) {
  return gpu.compute_capability == "12.1" || gpu.name.find("GH200") != std::string::npos ||
         gpu.name.find("GB200") != std::string::npos || gpu.name.find("GB300") != std::string::npos;
}

Result<std::string> distribution_of(const Arguments& arguments, const doctor::Host& host,
                                    const doctor::SetupTables& tables) {
  if (const auto asked = arguments.value("--distribution")) {
    std::string id = setup_distribution_named(*asked, tables);
    if (!id.empty()) return id;
    return fail(ErrorCode::not_found, fmt::format("setup does not know the distribution \"{}\"", *asked),
                "it knows " + known_distributions(tables));
  }
  const auto here = doctor::read_distribution(host);
  if (here && tables.distribution(here->base()) != nullptr) return here->base();
  return fail(ErrorCode::unavailable,
              here ? fmt::format("setup does not know the packages of {}", here->name)
                   : std::string("which distribution this is cannot be read"),
              "name one with --distribution: " + known_distributions(tables));
}

// "v100" names four boards, which differ in nothing that matters here.
Result<const catalog::Accelerator*> gpu_named(const std::string& name, const catalog::Catalog& catalog) {
  auto found = catalog.find(name);
  if (found || found.error().code != ErrorCode::bad_input) return found;
  std::string prefix = lower(trim(name)) + "-";
  std::replace(prefix.begin(), prefix.end(), ' ', '-');
  const catalog::Accelerator* first = nullptr;
  for (const catalog::Accelerator& gpu : catalog.accelerators()) {
    if (!gpu.id.starts_with(prefix)) continue;
    if (first == nullptr) first = &gpu;
    if (gpu.vendor != first->vendor || gpu.compute_capability != first->compute_capability) return found;
  }
  return first != nullptr ? Result<const catalog::Accelerator*>(first) : found;
}

Status take_gpus(const Arguments& arguments, const catalog::Catalog& catalog, const std::string& root,
                 doctor::SetupWish& wish) {
  for (const std::string& name : arguments.values("GPU")) wish.gpus.push_back(GW_TRY(gpu_named(name, catalog)));
  if (!wish.gpus.empty()) return {};
  for (const catalog::HostGpu& gpu : catalog::find_host_gpus(catalog, root).gpus)
    if (!gpu.display_only && !gpu.candidates.empty() &&
        std::find(wish.gpus.begin(), wish.gpus.end(), gpu.candidates.front()) == wish.gpus.end())
      wish.gpus.push_back(gpu.candidates.front());  // boards that share an id are of one architecture
  if (wish.gpus.empty())
    return fail(ErrorCode::unavailable, "no GPU that setup knows is in this machine",
                "name the one that is meant: gpuwright setup \"rtx 4090\"");
  return {};
}

}  // namespace

std::string setup_distribution_named(std::string_view text, const doctor::SetupTables& tables) {
  std::string name, version;
  for (const char c : lower(text)) {
    if (c >= 'a' && c <= 'z' && version.empty())
      name += c;
    else if ((c >= '0' && c <= '9') || c == '.')
      version += c;
  }
  for (const auto& [alias, id] : kAliases)
    if (name == alias) name = id;
  if (name != "ubuntu") version = catalog::version_prefix(version, 1);
  if (name == "ubuntu" && version.size() == 4 && version.find('.') == std::string::npos) version.insert(2, ".");
  const std::string id = version.empty() ? name : name + "-" + version;
  return tables.distribution(id) != nullptr ? id : "";
}

Result<doctor::SetupWish> setup_wish_from(const Arguments& arguments, const catalog::Catalog& catalog,
                                          const doctor::SetupTables& tables) {
  const std::string root = arguments.value("--root").value_or("");
  const doctor::Host host = GW_TRY(doctor::Host::open(root));
  doctor::SetupWish wish;
  wish.distribution = GW_TRY(distribution_of(arguments, host, tables));
  GW_TRY(take_gpus(arguments, catalog, root, wish));
  wish.today = this_month();
  wish.aarch64 = std::any_of(wish.gpus.begin(), wish.gpus.end(), [](const auto* gpu) { return has_arm_cpu(*gpu); });
  // A GPU that was named is to be put into some machine, perhaps not this one.
  if (!arguments.has("GPU")) {
    const doctor::Machine machine(host, catalog, nullptr);
    wish.present_driver = machine.nvidia().module_version;
    wish.wsl = machine.surroundings().wsl;
    if (const auto kind = host.machine()) wish.aarch64 = *kind == "aarch64";
  }
  if (const auto kind = arguments.value("--machine")) wish.aarch64 = *kind == "aarch64";
  wish.driver = GW_TRY(optional_version(arguments, "--driver"));
  wish.python = GW_TRY(optional_version(arguments, "--python"));
  wish.cuda = GW_TRY(cuda_option(arguments));
  wish.toolkit = arguments.has("--toolkit");
  wish.container = arguments.has("--container");
  wish.wants_tensorflow = arguments.has("--tensorflow");
  if (!arguments.value("--tensorflow").value_or("").empty())
    wish.tensorflow = GW_TRY(optional_version(arguments, "--tensorflow"));
  wish.wants_jax = arguments.has("--jax");
  const std::string torch = arguments.value("--torch").value_or("");
  wish.wants_torch = torch.empty() ? !wish.wants_tensorflow && !wish.wants_jax : torch != "none";
  if (!torch.empty() && torch != "none" && torch != "newest") wish.torch = GW_TRY(version_option(arguments, "--torch"));
  return wish;
}

}  // namespace gpuwright::cli

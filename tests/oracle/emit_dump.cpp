// Writes what --emit writes for a table of jobs: DIRECTORY/CASE/ with the files, and job.json with the numbers that
// other people's parsers must find in them. emit_dump DIRECTORY (which must not hold the cases yet).
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "fit/emit/emit.h"

namespace {

using namespace gpuwright;  // NOLINT: a test program of one file
using fit::EmitTarget;
using fit::Precision;
using fit::Sharding;
using fit::TrainingMethod;

struct Case {
  std::string name;
  EmitTarget target = EmitTarget::deepspeed;
  fit::TrainingJob job;
};

fit::TrainingJob basis(int gpus, Sharding sharding, Precision precision) {
  fit::TrainingJob job;
  job.micro_batch = 2;
  job.gradient_accumulation = 4;
  job.sequence = 4096;
  job.data_parallel = gpus;
  job.sharding.kind = sharding;
  job.precision = precision;
  job.checkpointing = fit::Checkpointing::full;
  return job;
}

std::vector<Case> cases() {
  std::vector<Case> made;
  const std::vector<std::pair<std::string, Sharding>> stages{
      {"zero1", Sharding::zero1}, {"zero2", Sharding::zero2}, {"zero3", Sharding::zero3}};
  for (const EmitTarget target : {EmitTarget::deepspeed, EmitTarget::accelerate, EmitTarget::torchrun, EmitTarget::trl,
                                  EmitTarget::llama_factory}) {
    const std::string prefix = std::string(name_of(target)) + "-";
    for (const auto& [name, sharding] : stages) {
      made.push_back({prefix + name, target, basis(8, sharding, Precision::mixed_deepspeed)});
      Case offloaded{prefix + name + "-offload", target, basis(16, sharding, Precision::mixed_deepspeed)};
      offloaded.job.sharding.offload_optimizer = true;
      offloaded.job.sharding.offload_parameters = sharding == Sharding::zero3;
      offloaded.job.sharding.bucket_elements = 200'000'000;
      made.push_back(offloaded);
    }
    Case lora{prefix + "lora", target, basis(4, Sharding::zero2, Precision::mixed_deepspeed)};
    lora.job.method = TrainingMethod::lora;
    lora.job.lora.targets = {"q_proj", "v_proj"};
    made.push_back(lora);
    if (target == EmitTarget::deepspeed) {
      made.push_back({prefix + "pure", target, basis(8, Sharding::zero2, Precision::pure_bf16)});
      Case eight{prefix + "8bit", target, basis(8, Sharding::zero2, Precision::mixed_deepspeed)};
      eight.job.optimizer = fit::Optimizer::adamw_8bit;
      made.push_back(eight);
      continue;
    }
    made.push_back({prefix + "ddp", target, basis(4, Sharding::none, Precision::amp_bf16)});
    Case qlora{prefix + "qlora", target, basis(1, Sharding::none, Precision::pure_bf16)};
    qlora.job.method = TrainingMethod::qlora;
    qlora.job.lora.targets = {"all-linear"};
    qlora.job.optimizer = fit::Optimizer::adamw_paged;
    qlora.job.fused_kernels = qlora.job.chunked_cross_entropy = true;
    made.push_back(qlora);
  }
  for (const EmitTarget target : {EmitTarget::fsdp, EmitTarget::torchrun, EmitTarget::trl, EmitTarget::llama_factory})
    for (const std::string version : {"1", "2"})
      for (const Sharding sharding : {Sharding::fsdp, Sharding::fsdp_grad_only})
        for (const bool offload : {false, true}) {
          if (target == EmitTarget::torchrun && version == "1" && sharding == Sharding::fsdp_grad_only) continue;
          fit::TrainingJob job = basis(8, sharding, Precision::amp_bf16);
          job.engine = fit::TrainingEngine::fsdp;
          job.engine_version = version;
          job.sharding.offload_parameters = job.sharding.offload_optimizer = offload;
          made.push_back({std::string(name_of(target)) + "-fsdp" + version +
                              (sharding == Sharding::fsdp ? "-full" : "-grad") + (offload ? "-offload" : ""),
                          target, job});
        }
  return made;
}

Json numbers(const Case& one) {
  const fit::TrainingJob& job = one.job;
  Json made = Json::object();
  made.set("target", name_of(one.target)).set("micro_batch", job.micro_batch);
  made.set("accumulation", job.gradient_accumulation).set("gpus", job.data_parallel);
  made.set("gpus_per_node", job.gpus_per_node).set("sequence", job.sequence);
  const bool fsdp = job.sharding.kind == Sharding::fsdp || job.sharding.kind == Sharding::fsdp_grad_only;
  made.set("zero", fsdp ? 0 : static_cast<int>(job.sharding.kind)).set("fsdp", fsdp);
  made.set("grad_only", job.sharding.kind == Sharding::fsdp_grad_only);
  made.set("fsdp_version", job.engine_version == "1" ? 1 : 2);
  made.set("offload_optimizer", job.sharding.offload_optimizer)
      .set("offload_parameters", job.sharding.offload_parameters);
  made.set("bucket", job.sharding.bucket_elements.value_or(500'000'000));
  made.set("pure", job.precision == Precision::pure_bf16).set("rank", job.lora.rank);
  made.set("method", job.method == TrainingMethod::full   ? "full"
                     : job.method == TrainingMethod::lora ? "lora"
                                                          : "qlora");
  return made;
}

Status write_case(const std::string& directory, const Case& one) {
  const fit::Emission emission =
      GW_TRY(fit::emit(one.target, "hf://org/it's a \"model\": #1", one.job, one.job.data_parallel));
  const std::string folder = directory + "/" + one.name;
  std::filesystem::create_directories(folder);
  for (const fit::EmittedFile& file : emission.files)
    GW_TRY(write_file_atomically(folder + "/" + file.name, file.contents));
  GW_TRY(write_file_atomically(folder + "/command.sh", emission.command));
  return write_file_atomically(folder + "/job.json", numbers(one).dump());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  for (const Case& one : cases()) {
    const Status written = write_case(arguments[1], one);
    if (written) continue;
    std::fprintf(stderr, "%s: %s\n", one.name.c_str(), written.error().message().c_str());
    return 1;
  }
  return 0;
}

// Configurations and command lines from anybody: read_config answers or refuses; what it answers can be counted on, and
// what is emitted from it is read back.
#include <cstdlib>
#include <string>
#include <vector>

#include "fit/emit/emit.h"
#include "fit/emit/read.h"

namespace {

using namespace gpuwright::fit;  // NOLINT: a fuzz target of one file

void check(const TrainingJob& job) {
  if (job.micro_batch < 1 || job.gradient_accumulation < 1 || job.data_parallel < 1 || job.sequence < 1) std::abort();
  for (const EmitTarget target : {EmitTarget::deepspeed, EmitTarget::accelerate, EmitTarget::torchrun,
                                  EmitTarget::llama_factory, EmitTarget::trl}) {
    const auto emission = emit(target, "org/model", job, 0);
    if (!emission || target == EmitTarget::trl) continue;
    std::vector<ConfigText> texts;
    for (const EmittedFile& file : emission->files) texts.push_back({file.name, file.contents});
    TrainingJob base;
    base.data_parallel = job.data_parallel;
    const auto back = read_config(texts, base, Job{});
    if (!back || !back->training || back->training->micro_batch != job.micro_batch) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<ConfigText> texts{{"file", std::string(reinterpret_cast<const char*>(data), size)}};
  const auto made = read_config(texts, TrainingJob{}, Job{});
  if (!made) {
    if (made.error().what.empty()) std::abort();
    return 0;
  }
  if (made->training.has_value() == made->serving.has_value()) std::abort();
  if (made->training) check(*made->training);
  for (const ConfigNote& note : made->notes)
    if (note.sentence().empty()) std::abort();
  return 0;
}

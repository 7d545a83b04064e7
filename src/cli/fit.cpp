// gpuwright fit: will this model, served this way, fit on that GPU; what takes the memory; what to change.
#include "fit/fit.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/fit_answer.h"
#include "cli/fit_ask.h"
#include "cli/fit_emit.h"
#include "cli/fit_log.h"
#include "cli/fit_request.h"
#include "cli/fit_table.h"
#include "cli/fit_train.h"
#include "fit/engine.h"
#include "fit/together.h"

namespace gpuwright::cli {
namespace {

constexpr std::size_t kChoicesShown = 5;

FitAnswer answer_to(const FitRequest& request) {
  FitAnswer answer;
  answer.request = &request;
  return answer;
}

Result<FitAnswer> answer_smallest(const FitRequest& request, const catalog::Catalog& catalog) {
  const FitItem& item = request.items.front();
  FitAnswer answer = answer_to(request);
  answer.gpu_choices = GW_TRY(
      fit::smallest_gpus(item.model, item.job, catalog, request.gpu_count, true, kChoicesShown, request.candidate));
  if (!answer.gpu_choices.empty()) {
    answer.estimate = answer.gpu_choices.front().estimate;
    return answer;
  }
  // Nothing holds it: show what the largest accelerator lacks.
  const catalog::Accelerator* largest = fit::largest_gpu(item.model, item.job, catalog, request.candidate);
  if (largest == nullptr)
    return fail(ErrorCode::unsupported,
                fmt::format("{} runs on none of the GPUs that were asked about", fit::name_of(item.job.engine)),
                request.among.empty() ? "name one with --gpu" : "a wider --among, or another --engine");
  const std::vector<fit::Target> targets(static_cast<std::size_t>(request.gpu_count), fit::target_from(*largest));
  answer.estimate = GW_TRY(fit::estimate(item.model, item.job, targets));
  answer.estimate.advice = fit::advise(item.model, item.job, targets);
  return answer;
}

Result<FitAnswer> answer_together(const FitRequest& request) {
  std::vector<fit::Tenant> tenants;
  for (const FitItem& item : request.items)
    tenants.push_back({item.reference, GW_TRY(fit::estimate(item.model, item.job, request.targets)),
                       item.job.engine == fit::Engine::vllm || item.job.engine == fit::Engine::sglang});
  FitAnswer answer = answer_to(request);
  answer.estimate = fit::together(tenants, request.targets, request.items.front().job.reserve);
  return answer;
}

Result<FitAnswer> answer_one(const FitRequest& request) {
  const FitItem& item = request.items.front();
  FitAnswer answer = answer_to(request);
  if (request.maximise) {
    answer.solution = GW_TRY(fit::largest(*request.maximise, item.model, item.job, request.targets, request.strict));
    answer.estimate = answer.solution->estimate;
  } else {
    answer.estimate = GW_TRY(fit::estimate(item.model, item.job, request.targets));
  }
  const bool solved = answer.solution && answer.estimate.verdict() != fit::Verdict::no;
  if (!solved && answer.estimate.verdict() != fit::Verdict::fits)
    answer.estimate.advice =
        fit::advise(item.model, answer.solution ? answer.solution->job : item.job, request.targets);
  return answer;
}

Result<FitAnswer> answer_for(const FitRequest& request, const catalog::Catalog& catalog) {
  if (request.items.front().training) return answer_training(request, catalog);
  if (request.targets.empty()) return answer_smallest(request, catalog);
  if (request.items.size() > 1) return answer_together(request);
  FitAnswer answer = GW_TRY(answer_one(request));
  if (request.smallest_gpu) {
    const FitItem& item = request.items.front();
    answer.gpu_choices = GW_TRY(
        fit::smallest_gpus(item.model, item.job, catalog, request.gpu_count, true, kChoicesShown, request.candidate));
  }
  return answer;
}

bool is_no(const FitAnswer& answer) {
  if (answer.request->targets.empty()) return answer.gpu_choices.empty();
  if (answer.strategy && !answer.strategy->best) return true;
  const fit::Verdict verdict = answer.estimate.verdict();
  return verdict == fit::Verdict::no || (answer.request->strict && verdict == fit::Verdict::tight);
}

Result<int> run_fit(const Arguments& arguments, const Console& console) {
  if (wants_table(arguments)) return run_fit_table(arguments, console);
  const catalog::Catalog catalog = GW_TRY(catalog::Catalog::load());
  if (asks_to_learn(arguments)) return run_fit_log(arguments, console, catalog);
  if (!arguments.has("MODEL") && !arguments.has("--config"))
    return fail(ErrorCode::bad_input, "fit needs MODEL", "see 'gpuwright fit --help'");
  const FitRequest request = GW_TRY(read_fit_request(arguments, catalog));
  FitAnswer answer = GW_TRY(answer_for(request, catalog));
  answer.estimate.notes.insert(answer.estimate.notes.end(), request.notes.begin(), request.notes.end());
  const auto emission = GW_TRY(emission_of(answer, arguments));
  const std::string folder = arguments.value("--out").value_or("");
  if (emission && !folder.empty()) GW_TRY(write_emission(*emission, folder, arguments.has("--force")));
  if (console.json) {
    Json json = to_json(answer);
    if (arguments.has("--emit")) json.set("emission", emission ? to_json(*emission) : Json());
    console.out << json.dump() << '\n';
  } else {
    print(answer, console);
    if (emission) {
      console.out << '\n';
      print_emission(*emission, folder, console);
    } else if (arguments.has("--emit")) {
      console.out << "\nnothing is emitted: the job does not fit\n";
    }
  }
  return is_no(answer) ? kAnswerIsNo : kDone;
}

}  // namespace

Result<AskedFit> ask_fit(const Arguments& arguments, const catalog::Catalog& catalog) {
  AskedFit asked;
  asked.request = std::make_unique<FitRequest>(GW_TRY(read_fit_request(arguments, catalog)));
  asked.answer = GW_TRY(answer_for(*asked.request, catalog));
  return asked;
}

Command fit_command() {
  Command command;
  command.name = "fit";
  command.summary = "Will this model, served this way, fit on that GPU";
  command.description =
      "Reads the model's own files (headers only), predicts what takes the memory of each GPU under the named engine, "
      "and answers fits, tight or no. The peak is the largest of several instants (load, prefill, decode), and each "
      "figure is a range whose formula and source --explain prints.\n\n"
      "MODEL is a file (GGUF, safetensors, ONNX, config.json), a folder, hf://org/name, a preset (gpuwright model "
      "list) "
      "or a size such as 7B. Several models are placed on the same GPUs at once; settings of one of them follow its "
      "name: NAME,context=8192,format=Q4_K_M.\n\n"
      "Without --gpu the smallest GPUs that hold the model are listed.";
  command.arguments = {{"MODEL", "file, folder, hf://org/name, preset or size", false, true, true}};
  command.options = fit_options();
  command.examples = {
      {"gpuwright fit llama-3.1-8b --gpu 4090 --context 8192", "Llama 3.1 8B in vLLM on one RTX 4090"},
      {"gpuwright fit model-Q4_K_M.gguf --gpu 3060 --context 32768 --kv-type q8_0", "a GGUF file in llama.cpp"},
      {"gpuwright fit qwen3-32b --gpu 4090x2 --engine llama.cpp --format Q6_K --max context",
       "the longest context that fits"},
      {"gpuwright fit deepseek-v3 --smallest-gpu --tensor-parallel 8", "which eight GPUs would hold it"},
      {"gpuwright fit llama-3.1-8b --train lora --gpu 4090 --sequence 2048", "fine-tune adapters on one RTX 4090"},
      {"gpuwright fit llama-2-70b --train full --gpu h100-sxmx8 --strategy auto",
       "the fastest full fine-tuning that fits"},
      {"gpuwright fit qwen3-8b --train lora --train-engine deepspeed --zero 2 --gpu h100-sxmx2 --emit deepspeed",
       "the files that realise it"},
      {"gpuwright fit --from-log server.log --calibrate", "what a run measured beside the prediction, and keep it"},
      {"gpuwright fit --table", "what 7B to 70B take, beside what guides say"},
      {"gpuwright fit qwen3-8b,format=fp8 bge-large,engine=transformers --gpu l40s", "two models on one GPU"},
  };
  command.exit_notes = {"0  it fits, or fits tightly",
                        "1  it does not fit; with --strict also a tight fit; a log differs by more than 10 %"};
  command.run = run_fit;
  return command;
}

}  // namespace gpuwright::cli

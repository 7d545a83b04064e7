#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/setup_answer.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

constexpr std::size_t kMostRecipes = 5;

using doctor::SetupAction;
using doctor::SetupSet;

const std::string& in(const Console& console, const Words& words) {
  return words.in(console.language == Language::chinese ? "zh" : "en");
}

void print_wrapped(const Console& console, std::string_view text, int indent) {
  console.out << std::string(static_cast<std::size_t>(indent), ' ') << wrap(text, console.width, indent) << '\n';
}

std::string gpus_of(const doctor::SetupWish& wish) {
  std::string names;
  for (const catalog::Accelerator* gpu : wish.gpus)
    names += (names.empty() ? "" : ", ") + gpu->vendor + " " + printable(gpu->name);
  return names;
}

std::string driver_text(const SetupSet& set, const Console& console) {
  const doctor::DriverChoice& driver = *set.driver;
  if (driver.keeps) return say(console, "{}, which is here and is enough", printable(driver.version));
  std::string text = say(
      console, driver.open ? "branch {}, open kernel modules" : "branch {}, proprietary kernel modules", driver.branch);
  if (!driver.floor.empty()) text += say(console, " ({} or newer will do)", driver.floor);
  return text;
}

std::string torch_text(const SetupSet& set, const Console& console) {
  std::string text = say(console, "{} for {}", set.torch->newest, set.tag);
  if (set.build == nullptr) return text;
  text += fmt::format(" (CUDA {}, cuDNN {}", set.build->cuda, set.build->cudnn);
  if (set.build->nccl) text += fmt::format(", NCCL {}", *set.build->nccl);
  return text + ")";
}

std::string beside_torch(const catalog::TorchRelease& torch) {
  std::string text;
  if (torch.vision) text += "torchvision " + *torch.vision;
  if (torch.audio) text += (text.empty() ? "torchaudio " : ", torchaudio ") + *torch.audio;
  return text;
}

// Both columns of the set, one line a part.
std::vector<std::pair<std::string, std::string>> parts(const SetupAnswer& answer, const Console& console) {
  const SetupSet& set = *answer.set;
  std::vector<std::pair<std::string, std::string>> rows;
  const auto add = [&](std::string_view label, std::string text) {
    rows.emplace_back(say(console, label), std::move(text));
  };
  if (set.driver) add("driver", driver_text(set, console));
  if (set.torch != nullptr) {
    add("PyTorch", torch_text(set, console));
    if (const std::string beside = beside_torch(*set.torch); !beside.empty()) add("with it", beside);
  }
  if (set.tensorflow != nullptr)
    add("TensorFlow",
        fmt::format("{} (CUDA {}, cuDNN {})", set.tensorflow->newest, set.tensorflow->cuda, set.tensorflow->cudnn));
  if (set.jax != nullptr)
    add("JAX", fmt::format("jax[{}] (CUDA {}, cuDNN {})", set.jax->extra, set.jax->cuda, set.jax->cudnn));
  if (set.toolkit)
    add("toolkit", set.gcc ? say(console, "CUDA {}, with g++ {}", *set.toolkit, *set.gcc) : "CUDA " + *set.toolkit);
  const bool frameworks = set.torch != nullptr || set.tensorflow != nullptr || set.jax != nullptr;
  if (!set.image.empty())
    add("image", set.image);
  else if (frameworks)
    add("Python", set.python_of_distribution ? set.python : say(console, "{}, which uv brings", set.python));
  for (const auto& [name, value] : set.variables) add("variable", name + "=" + value);
  return rows;
}

void print_set(const SetupAnswer& answer, const Console& console) {
  print_heading(console, say(console, "What goes together"));
  Table table({{""}, {"", Align::left, true}}, 2);
  for (auto& [label, text] : parts(answer, console)) table.add({{label, Tone::name}, text});
  table.print(console);
  for (const Words& note : answer.set->notes) {
    console.out << "  " << paint(console, Tone::warning, "! ") << wrap(in(console, note), console.width, 4) << '\n';
  }
}

void print_action(const SetupAction& action, std::size_t number, const Console& console) {
  std::string title = fmt::format("{:2}. ", number) + in(console, action.title);
  if (!action.repository.empty() && action.repository != "distribution")
    title += fmt::format("  [{}]", say(console, action.repository));
  console.out << paint(console, Tone::name, wrap(title, console.width, 4)) << '\n';
  if (!in(console, action.why).empty()) print_wrapped(console, in(console, action.why), 4);
  // As they are: a broken line would be another command.
  for (const std::string& command : action.commands) console.out << "      " << command << '\n';
  if (action.reboot)
    console.out << "      sudo reboot    " << paint(console, Tone::warning, say(console, "# then go on below")) << '\n';
}

void print_refusal(const SetupAnswer& answer, const Console& console) {
  console.out << paint(console, Tone::bad, say(console, "This does not go together:")) << '\n';
  print_wrapped(console, in(console, answer.refusal.reason), 2);
  if (answer.refusal.changes.empty()) {
    print_wrapped(console, say(console, "No change of what was asked for helps, only other hardware."), 0);
    return;
  }
  print_heading(console,
                say(console, answer.refusal.changes.size() > 1 ? "What must give: one of these" : "What must give"));
  for (const doctor::SetupChange& change : answer.refusal.changes) {
    std::string text = in(console, change.text);
    if (change.set.torch != nullptr) text += fmt::format("  (PyTorch {} {})", change.set.torch->newest, change.set.tag);
    console.out << "  - " << wrap(text, console.width, 4) << '\n';
  }
}

}  // namespace

void print_recipes(const std::vector<const doctor::OldRecipe*>& recipes, const Console& console) {
  print_heading(console, say(console, "What old recipes got wrong"));
  for (const doctor::OldRecipe* recipe : recipes) {
    console.out << "  " << paint(console, Tone::name, wrap("\"" + in(console, recipe->said) + "\"", console.width, 3))
                << '\n';
    print_wrapped(console, in(console, recipe->truth), 4);
  }
}

void print_setup(const SetupAnswer& answer, const Console& console) {
  if (!answer.set) return print_refusal(answer, console);
  console.out << paint(console, Tone::heading,
                       say(console, "{} on {}", gpus_of(answer.wish), answer.set->distribution->name))
              << '\n';
  print_set(answer, console);
  print_heading(console, say(console, "How to get there"));
  std::size_t number = 0;
  for (const SetupAction& action : answer.actions) print_action(action, ++number, console);
  if (answer.recipes.empty()) return;
  // The ones that are most about this very wish.
  std::vector<const doctor::OldRecipe*> shown = answer.recipes;
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto* left, const auto* right) { return left->when.size() > right->when.size(); });
  if (shown.size() > kMostRecipes) shown.resize(kMostRecipes);
  print_recipes(shown, console);
  if (answer.recipes.size() > shown.size())
    console.out << "  " << say(console, "{} more: gpuwright setup --old-recipes", answer.recipes.size() - shown.size())
                << '\n';
}

}  // namespace gpuwright::cli

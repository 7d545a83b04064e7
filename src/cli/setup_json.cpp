#include "cli/setup_answer.h"

namespace gpuwright::cli {
namespace {

Json both(const Words& words) {
  return Json().set("en", words.en).set("zh", words.zh);
}

Json list(const std::vector<std::string>& items) {
  Json array = Json::array();
  for (const std::string& item : items) array.push(item);
  return array;
}

Json wish_json(const doctor::SetupWish& wish) {
  Json gpus = Json::array();
  for (const catalog::Accelerator* gpu : wish.gpus)
    gpus.push(Json().set("id", gpu->id).set("name", gpu->name).set("compute_capability", gpu->compute_capability));
  Json json;
  json.set("gpus", std::move(gpus));
  json.set("distribution", wish.distribution);
  json.set("machine", wish.aarch64 ? "aarch64" : "x86_64");
  json.set("driver", wish.driver).set("present_driver", wish.present_driver);
  json.set("torch", wish.torch).set("tensorflow", wish.tensorflow).set("cuda", wish.cuda).set("python", wish.python);
  json.set("toolkit", wish.toolkit).set("container", wish.container);
  return json;
}

Json driver_json(const std::optional<doctor::DriverChoice>& driver) {
  if (!driver) return nullptr;
  return Json()
      .set("branch", driver->branch)
      .set("modules", driver->open ? "open" : "proprietary")
      .set("at_least", driver->floor.empty() ? Json() : Json(driver->floor))
      .set("stays", driver->keeps);
}

Json torch_json(const doctor::SetupSet& set) {
  if (set.torch == nullptr) return nullptr;
  Json json;
  json.set("version", set.torch->newest).set("tag", set.tag);
  json.set("torchvision", set.torch->vision).set("torchaudio", set.torch->audio);
  if (set.build != nullptr)
    json.set("cuda", set.build->cuda).set("cudnn", set.build->cudnn).set("nccl", set.build->nccl);
  json.set("sources", list(set.torch->sources));
  return json;
}

Json set_json(const doctor::SetupSet& set) {
  Json json;
  json.set("driver", driver_json(set.driver)).set("torch", torch_json(set));
  json.set("tensorflow", set.tensorflow == nullptr ? Json()
                                                   : Json()
                                                         .set("version", set.tensorflow->newest)
                                                         .set("cuda", set.tensorflow->cuda)
                                                         .set("cudnn", set.tensorflow->cudnn));
  json.set("jax", set.jax == nullptr ? Json() : Json().set("extra", set.jax->extra).set("cuda", set.jax->cuda));
  json.set("python", set.python).set("python_of_distribution", set.python_of_distribution);
  json.set("toolkit", set.toolkit);
  json.set("gcc", set.gcc ? Json(*set.gcc) : Json());
  json.set("image", set.image.empty() ? Json() : Json(set.image));
  Json variables = Json::object();
  for (const auto& [name, value] : set.variables) variables.set(name, value);
  json.set("variables", std::move(variables));
  Json notes = Json::array();
  for (const Words& note : set.notes) notes.push(both(note));
  json.set("notes", std::move(notes));
  return json;
}

Json action_json(const doctor::SetupAction& action) {
  Json packages = Json::array();
  for (const std::string& package : action.packages) packages.push(package);
  return Json()
      .set("id", action.id)
      .set("title", both(action.title))
      .set("why", both(action.why))
      .set("commands", list(action.commands))
      .set("repository", action.repository.empty() ? Json() : Json(action.repository))
      .set("packages", std::move(packages))
      .set("reboot", action.reboot);
}

Json refusal_json(const doctor::SetupRefusal& refusal) {
  Json changes = Json::array();
  for (const doctor::SetupChange& change : refusal.changes) {
    Json values = Json::object();
    for (const auto& [name, value] : change.values) values.set(name, value);
    changes.push(
        Json().set("values", std::move(values)).set("text", both(change.text)).set("set", set_json(change.set)));
  }
  return Json().set("reason", both(refusal.reason)).set("changes", std::move(changes));
}

}  // namespace

Json to_json(const SetupAnswer& answer) {
  Json json;
  json.set("schema", "gpuwright.setup/1");
  json.set("possible", answer.set.has_value());
  json.set("wish", wish_json(answer.wish));
  json.set("set", answer.set ? set_json(*answer.set) : Json());
  Json actions = Json::array();
  for (const doctor::SetupAction& action : answer.actions) actions.push(action_json(action));
  json.set("steps", std::move(actions));
  json.set("refusal", answer.set ? Json() : refusal_json(answer.refusal));
  Json recipes = Json::array();
  for (const doctor::OldRecipe* recipe : answer.recipes)
    recipes.push(Json()
                     .set("id", recipe->id)
                     .set("said", both(recipe->said))
                     .set("true", both(recipe->truth))
                     .set("source", recipe->source));
  json.set("old_recipes", std::move(recipes));
  return json;
}

}  // namespace gpuwright::cli

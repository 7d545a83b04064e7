#include "cli/doctor_software.h"

#include "doctor/inventory.h"

namespace gpuwright::cli {
namespace {

Json texts(const std::vector<std::string>& items) {
  Json list = Json::array();
  for (const std::string& item : items) list.push(item);
  return list;
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json python_json(const doctor::InstalledPython& python) {
  Json packages = Json::object();
  for (const doctor::Package& package : python.packages) packages.set(package.name, package.version);
  return Json()
      .set("prefix", python.prefix)
      .set("kind", to_string(python.kind))
      .set("version", python.version)
      .set("active", python.active)
      .set("torch", python.torch)
      .set("torch_cuda", python.torch_cuda)
      .set("torch_hip", python.torch_hip)
      .set("packages", std::move(packages));
}

}  // namespace

Json software_json(const doctor::Machine& machine) {
  const doctor::Inventory inventory = doctor::read_inventory(machine);
  Json toolkits = Json::array(), variables = Json::object(), pythons = Json::array();
  for (const auto& [folder, version] : inventory.cuda_toolkits)
    toolkits.push(Json().set("folder", folder).set("version", or_null(version)));
  for (const auto& [name, value] : inventory.variables) variables.set(name, value);
  for (const doctor::InstalledPython& python : inventory.pythons) pythons.push(python_json(python));
  return Json()
      .set("cpu", inventory.cpu)
      .set("processors", inventory.processors ? Json(std::int64_t{*inventory.processors}) : Json())
      .set("libc", inventory.libc)
      .set("gcc", inventory.gcc)
      .set("clang", inventory.clang)
      .set("cmake", inventory.cmake)
      .set("rocm", inventory.rocm)
      .set("cuda_toolkits", std::move(toolkits))
      .set("cudnn", texts(inventory.cudnn))
      .set("variables", std::move(variables))
      .set("pythons", std::move(pythons));
}

}  // namespace gpuwright::cli

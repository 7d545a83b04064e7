// The closed vocabularies of the measurement table: what a line may say. A word outside them is refused with a
// reason, because a setting that is not understood could change the memory.
#pragma once

#include <string>
#include <vector>

namespace gpuwright::scorer {

const std::vector<std::string>& known_modes();
const std::vector<std::string>& known_components();
const std::vector<std::string>& known_places();  // without gpu0, gpu1, ...
const std::vector<std::string>& known_meters();
const std::vector<std::string>& known_parts();
const std::vector<std::string>& arch_keys();
const std::vector<std::string>& setting_keys();

}  // namespace gpuwright::scorer

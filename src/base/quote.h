// Writing values into other programs' languages so that no text can become anything but text: YAML (strings quoted as
// JSON does, which every YAML reader takes), shell words and Python literals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace gpuwright {

// Block style, two blanks a level, members in their order. Numbers are written so that YAML 1.1 readers (PyYAML) see
// numbers: "1e-05" without a point is a string to them.
std::string yaml_from(const Json& object);

// The word as it stands when it needs no quotes, else in single quotes.
std::string shell_word(std::string_view word);

// Words of a command line, each quoted; options that start a new line are indented under the first.
std::string shell_command(const std::vector<std::string>& words);

// A Python literal: True, False, None, numbers, strings, lists and dicts.
std::string python_from(const Json& value);

// A double as the shortest text that reads back as the same number and has a point: 0.0002, 1.0e-05.
std::string number_with_point(double value);

}  // namespace gpuwright

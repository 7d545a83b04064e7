// The facts under data/ travel inside the binary.
#pragma once

#include <optional>
#include <string_view>

namespace gpuwright {

// The whole contents of data/<name> ("gpus.toml"); nothing for a name that was not built in. Lives for ever.
std::optional<std::string_view> embedded_data(std::string_view name);

}  // namespace gpuwright

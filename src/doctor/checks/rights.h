// Whether this user may open a device node. For the checks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/check.h"
#include "doctor/host.h"

namespace gpuwright::doctor {

// Read and write, by the node's mode, owner and group; true where the user is not known, and for root.
bool may_use(const Node& node, const Host& host);
// Adds the problem for each node that is there and may not be used.
void add_missing_rights(const Host& host, const std::vector<std::string>& nodes, std::string_view problem,
                        Outcome& outcome);
// "/dev/dri/renderD128", ...
std::vector<std::string> render_nodes(const Host& host);

}  // namespace gpuwright::doctor

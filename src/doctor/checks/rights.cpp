#include "doctor/checks/rights.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuwright::doctor {

bool may_use(const Node& node, const Host& host) {
  const auto user = host.user();
  if (!user || *user == 0) return true;
  if (node.owner == *user) return (node.mode & 0600u) == 0600u;
  const auto groups = host.groups();
  const bool member = groups && std::find(groups->begin(), groups->end(), node.group) != groups->end();
  const unsigned wanted = member ? 0060u : 0006u;
  return (node.mode & wanted) == wanted;
}

void add_missing_rights(const Host& host, const std::vector<std::string>& nodes, std::string_view problem,
                        Outcome& outcome) {
  for (const std::string& path : nodes) {
    const auto node = host.node(path);
    if (node && !may_use(*node, host))
      outcome.wrong(problem)
          .item("nodes", path)
          .seen(path, fmt::format("mode {:04o}, group {}", node->mode, node->group));
  }
}

std::vector<std::string> render_nodes(const Host& host) {
  std::vector<std::string> nodes;
  for (const std::string& name : host.names("/dev/dri"))
    if (name.starts_with("renderD")) nodes.push_back("/dev/dri/" + name);
  return nodes;
}

}  // namespace gpuwright::doctor

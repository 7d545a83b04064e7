#include "device/process/pods.h"

#include "device/sysfs/attribute.h"

namespace gpuwright::device {

Pods::Pod Pods::find(const std::string& uid) const {
  if (uid.empty()) return {std::string(), std::string()};
  for (const std::string& entry : names_in(folder_)) {
    // Names of pods and namespaces are DNS labels: they hold no '_'.
    const std::size_t first = entry.find('_'), last = entry.rfind('_');
    if (first == std::string::npos || first == last || entry.compare(last + 1, std::string::npos, uid) != 0) continue;
    return {entry.substr(first + 1, last - first - 1), entry.substr(0, first)};
  }
  return {Why::no_data, Why::no_data};
}

}  // namespace gpuwright::device

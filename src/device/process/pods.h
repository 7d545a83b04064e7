// Names of Kubernetes pods by their uid. The kubelet keeps the logs of a pod in /var/log/pods/NAMESPACE_NAME_UID, so
// that the node's own folder names them; neither the API server nor the kubelet's socket is asked.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "device/reading.h"

namespace gpuwright::device {

class Pods {
 public:
  explicit Pods(std::string root) : folder_(std::move(root) + "/var/log/pods") {}

  struct Pod {
    Reading<std::string> name, kubernetes_namespace;
  };
  // Empty names for an empty uid (a process in no pod); no_data where the folder does not have it.
  Pod find(const std::string& uid) const;

 private:
  std::string folder_;
};

}  // namespace gpuwright::device

// To whom a process belongs, by the text of /proc/PID/cgroup: container, pod, Slurm job, systemd unit. No daemon and no
// right is needed for it.
#pragma once

#include <string>
#include <string_view>

namespace gpuwright::device {

// Empty: the process is in none.
struct Belonging {
  std::string container;  // the runtime's id (64 hexadecimal digits), or the name that LXC and nspawn go by
  std::string runtime;    // "docker", "containerd", "cri-o", "podman", "lxc", "systemd-nspawn"
  std::string pod_uid;    // "f4c0b9d5-1c3e-4a3a-9f57-0e1d8a6c2b11"; static pods: 32 hexadecimal digits
  std::string slurm_job;  // as sacct writes it: "4711.0", "4711.batch"; "4711" without a step
  std::string unit;       // "vllm.service", "session-3.scope"
  bool operator==(const Belonging&) const = default;
};

// The text may be cgroup v1's (a line a controller), v2's ("0::/path") or both.
Belonging belonging_of(std::string_view cgroup_text);

}  // namespace gpuwright::device

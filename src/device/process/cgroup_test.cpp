#include "device/process/cgroup.h"

#include <gtest/gtest.h>

namespace gpuwright::device {
namespace {

const std::string kId = "1f0c8e4d6a2b9375e1c4d8f7a6b5c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6";
constexpr std::string_view kUid = "f4c0b9d5-1c3e-4a3a-9f57-0e1d8a6c2b11";

TEST(Cgroup, DockerUnderSystemdAndUnderCgroupfs) {
  // docs.docker.com/engine/containers/runmetrics: "/docker/<longid>/" on v1 and v2 cgroupfs, "docker-<longid>.scope"
  // with the systemd driver.
  const Belonging systemd = belonging_of("0::/system.slice/docker-" + kId + ".scope\n");
  EXPECT_EQ(systemd.container, kId);
  EXPECT_EQ(systemd.runtime, "docker");
  const Belonging v1 = belonging_of("12:devices:/docker/" + kId + "\n1:name=systemd:/docker/" + kId + "\n");
  EXPECT_EQ(v1.container, kId);
  EXPECT_EQ(v1.runtime, "docker");
  EXPECT_EQ(v1.pod_uid, "");
}

// dcgm-exporter#150, #188, #127: pods are told by the cgroup, device plugin or not.
TEST(Cgroup, PodLabelsMissingWithoutADevicePlugin) {
  const Belonging slice = belonging_of(
      "0::/kubepods.slice/kubepods-burstable.slice/"
      "kubepods-burstable-podf4c0b9d5_1c3e_4a3a_9f57_0e1d8a6c2b11.slice/cri-containerd-" +
      kId + ".scope\n");
  EXPECT_EQ(slice.pod_uid, kUid);
  EXPECT_EQ(slice.container, kId);
  EXPECT_EQ(slice.runtime, "containerd");
  const Belonging guaranteed =
      belonging_of("0::/kubepods.slice/kubepods-podf4c0b9d5_1c3e_4a3a_9f57_0e1d8a6c2b11.slice/crio-" + kId + ".scope");
  EXPECT_EQ(guaranteed.pod_uid, kUid);
  EXPECT_EQ(guaranteed.runtime, "cri-o");
  const Belonging cgroupfs = belonging_of("11:memory:/kubepods/besteffort/pod" + std::string(kUid) + "/" + kId + "\n");
  EXPECT_EQ(cgroupfs.pod_uid, kUid);
  EXPECT_EQ(cgroupfs.container, kId);
  EXPECT_EQ(cgroupfs.runtime, "containerd");
  // A static pod's uid is a hash of its manifest.
  EXPECT_EQ(belonging_of("0::/kubepods/burstable/pod8b7a69c4d3e2f1a0b9c8d7e6f5a4b3c2/" + kId).pod_uid,
            "8b7a69c4d3e2f1a0b9c8d7e6f5a4b3c2");
}

// kind and k3d: the node itself is a container; the pod's container is the inner one.
TEST(Cgroup, TheInnermostContainerOfANestedOne) {
  const std::string node(64, 'a');
  const Belonging nested = belonging_of("0::/system.slice/docker-" + node +
                                        ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-"
                                        "podf4c0b9d5_1c3e_4a3a_9f57_0e1d8a6c2b11.slice/cri-containerd-" +
                                        kId + ".scope");
  EXPECT_EQ(nested.container, kId);
  EXPECT_EQ(nested.runtime, "containerd");
  EXPECT_EQ(nested.pod_uid, kUid);
}

TEST(Cgroup, PodmanWithAndWithoutRoot) {
  EXPECT_EQ(belonging_of("0::/machine.slice/libpod-" + kId + ".scope/container").runtime, "podman");
  const Belonging user =
      belonging_of("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope/container");
  EXPECT_EQ(user.container, kId);
  EXPECT_EQ(user.runtime, "podman");
}

TEST(Cgroup, MonitorsOfContainersAreNotInThem) {
  EXPECT_EQ(belonging_of("0::/kubepods.slice/kubepods-podf4c0b9d5_1c3e_4a3a_9f57_0e1d8a6c2b11.slice/crio-conmon-" +
                         kId + ".scope")
                .container,
            "");
}

TEST(Cgroup, SlurmJobsAndSteps) {
  // slurm.schedmd.com/cgroup_v2.html: system.slice/slurmstepd.scope/job_x/step_y/user/task_z; v1:
  // slurm/uid_x/job_y/step_z
  EXPECT_EQ(belonging_of("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3").slurm_job, "4711.0");
  EXPECT_EQ(belonging_of("0::/system.slice/node7_slurmstepd.scope/job_4711/step_batch/user/task_0").slurm_job,
            "4711.batch");
  EXPECT_EQ(belonging_of("9:cpuset:/slurm/uid_1000/job_42/step_extern\n4:memory:/slurm/uid_1000/job_42\n").slurm_job,
            "42.extern");
  EXPECT_EQ(belonging_of("5:devices:/slurm_node7/uid_1000/job_42/step_1/task_0").slurm_job, "42.1");
  EXPECT_EQ(belonging_of("0::/mine/job_42").slurm_job, "");
  EXPECT_EQ(belonging_of("0::/system.slice/slurmstepd.scope/job_x/step_0").slurm_job, "");
}

TEST(Cgroup, SystemdUnits) {
  EXPECT_EQ(belonging_of("0::/system.slice/vllm.service").unit, "vllm.service");
  EXPECT_EQ(belonging_of("0::/user.slice/user-1000.slice/session-3.scope").unit, "session-3.scope");
  EXPECT_EQ(belonging_of("0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service").unit,
            "jupyter.service");
  EXPECT_EQ(belonging_of("1:name=systemd:/system.slice/ollama.service\n0::/system.slice/ollama.service\n").unit,
            "ollama.service");
}

TEST(Cgroup, OtherContainers) {
  EXPECT_EQ(belonging_of("0::/lxc.payload.train/init.scope").runtime, "lxc");
  EXPECT_EQ(belonging_of("0::/lxc.payload.train/init.scope").container, "train");
  EXPECT_EQ(belonging_of("0::/machine.slice/machine-lab.scope/payload").runtime, "systemd-nspawn");
  EXPECT_EQ(belonging_of("0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope").container, "");
}

TEST(Cgroup, HostileTextsTellNothing) {
  EXPECT_EQ(belonging_of("0::/"), Belonging{});
  EXPECT_EQ(belonging_of("0::/../../.."), Belonging{});
  EXPECT_EQ(belonging_of(""), Belonging{});
  EXPECT_EQ(belonging_of("nonsense"), Belonging{});
  EXPECT_EQ(belonging_of("0::/docker/" + kId.substr(1)), Belonging{});
  EXPECT_EQ(belonging_of("0::/docker/" + std::string(64, 'G')), Belonging{});
  belonging_of("0::" + std::string(100000, '/') + "docker-" + kId);
  belonging_of(std::string(1 << 16, ':'));
}

}  // namespace
}  // namespace gpuwright::device

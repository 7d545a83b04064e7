#include "doctor/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/tree.h"
#include "doctor/archive.h"
#include "doctor/bundle.h"
#include "doctor/doctor.h"

namespace gpuwright::doctor {
namespace {

using device::testing::Tree;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Host, ResolvesLinksInsideTheRoot) {
  Tree tree;
  tree.file("usr/lib/libcuda.so.580.95.05", "")
      .link("lib", "usr/lib")
      .link("usr/lib/libcuda.so.1", "libcuda.so.580.95.05");
  tree.link("etc/alternatives/cuda", "/usr/lib/libcuda.so.1").link("up", "../../../../../../usr/lib");
  const auto host = Host::open(tree.root());
  ASSERT_TRUE(host);
  EXPECT_EQ(host->resolve("/lib/libcuda.so.1"), "/usr/lib/libcuda.so.580.95.05");
  EXPECT_EQ(host->resolve("/etc/alternatives/cuda"), "/usr/lib/libcuda.so.580.95.05");
  EXPECT_EQ(host->resolve("/up/libcuda.so.1"), "/usr/lib/libcuda.so.580.95.05") << "\"..\" stays below the root";
  EXPECT_EQ(host->link("/usr/lib/libcuda.so.1"), "libcuda.so.580.95.05");
  EXPECT_EQ(host->link_name("/etc/alternatives/cuda"), "libcuda.so.1");
  EXPECT_FALSE(host->link("/usr/lib"));
}

TEST(Host, NoLinkLeadsOutOfTheRoot) {
  Tree tree;
  tree.file("outside/secret", "secret")
      .file("root/etc/motd", "here")
      .link("root/a", "/etc/motd")
      .link("root/b", "../outside/secret");
  tree.link("root/etc/passwd", "/etc/passwd");
  const auto host = Host::open(tree.root() + "/root");
  ASSERT_TRUE(host);
  EXPECT_EQ(host->text("/a"), "here");
  EXPECT_FALSE(host->text("/b"));
  EXPECT_FALSE(host->text("/../outside/secret"));
  EXPECT_FALSE(host->text("/etc/passwd")) << "a link to itself there";
}

TEST(Host, HostileFilesAreHarmless) {
  Tree tree;
  tree.fifo("proc/modules")
      .link("loop", "loop")
      .link("a", "b")
      .link("b", "a")
      .sparse("proc/driver/nvidia/version", 1ULL << 40);
  tree.link("sys/bus/pci/devices", "/sys/bus/pci/devices")
      .folder("proc/version")
      .file("etc/os-release", std::string(1 << 20, '\x1b'));
  const auto host = Host::open(tree.root());
  ASSERT_TRUE(host);
  EXPECT_FALSE(host->text("/proc/modules")) << "a FIFO is not waited for";
  EXPECT_EQ(host->access("/loop"), Access::unreadable);
  EXPECT_FALSE(host->text("/a"));
  EXPECT_FALSE(host->text("/proc/version"));
  EXPECT_EQ(host->text("/proc/driver/nvidia/version")->size(), kMostTextBytes);
  EXPECT_FALSE(host->text(std::string("/etc/os-release\0x", 17)));
  EXPECT_FALSE(host->exists(std::string(100000, 'x')));

  const auto catalog = catalog::Catalog::load();
  const auto book = ProblemBook::load();
  ASSERT_TRUE(catalog && book);
  const Machine machine(*host, *catalog, nullptr);
  EXPECT_THAT(diagnose(machine, *book, {}).findings, IsEmpty());
}

TEST(Host, ReadsWhatNoFileHolds) {
  Tree tree;
  tree.file("gpuwright-host.json", R"({"kernel_release": "6.8.0", "env": {"CUDA_HOME": "/usr/local/cuda"},
    "nodes": {"/dev/nvidia0": {"mode": "0660", "group": 44, "major": 195}}, "limits": {"memlock": 65536, "as": null},
    "space": {"/dev/shm": {"total_bytes": 67108864, "free_bytes": 1}}, "processes": ["systemd"], "kernel_log": ["x"]})");
  const auto host = Host::open(tree.root());
  ASSERT_TRUE(host) << host.error().message();
  EXPECT_EQ(host->kernel_release(), "6.8.0");
  EXPECT_EQ(host->variable("CUDA_HOME"), "/usr/local/cuda");
  EXPECT_FALSE(host->variable("PATH"));
  EXPECT_EQ(host->node("/dev/nvidia0")->mode, 0660U);
  EXPECT_TRUE(host->exists("/dev/nvidia0"));
  EXPECT_THAT(host->names("/dev"), ElementsAre("nvidia0"));
  EXPECT_EQ(host->limit("memlock")->value, 65536);
  EXPECT_FALSE(host->limit("as")->value) << "null: unlimited";
  EXPECT_FALSE(host->limit("stack")) << "not told";
  EXPECT_EQ(host->space("/dev/shm")->total.count, 67108864);
  EXPECT_FALSE(host->space("/"));
  EXPECT_THAT(host->kernel_log()->lines, ElementsAre("x"));
}

TEST(Host, NothingIsKnownOfAnEmptyRoot) {
  Tree tree;
  const auto host = Host::open(tree.root());
  ASSERT_TRUE(host);
  EXPECT_FALSE(host->environment_known());
  EXPECT_FALSE(host->kernel_release() || host->user() || host->processes() || host->kernel_log());
}

TEST(Host, RefusesAHostFileThatIsWrong) {
  Tree tree;
  for (const char* text : {"[]", "{", R"({"env": []})", R"({"nodes": {"/dev/x": {"mode": "rw"}}})"}) {
    tree.file("gpuwright-host.json", text);
    EXPECT_FALSE(Host::open(tree.root())) << text;
  }
  EXPECT_FALSE(Host::open(tree.root() + "/gpuwright-host.json"));
  EXPECT_FALSE(Host::open(tree.root() + "/nowhere"));
}

TEST(KernelLog, OldBootsAreOver) {
  Tree tree;
  tree.file("var/log/kern.log",
            "Nov 1 Linux version 6.1\nNov 1 NVRM: Xid (PCI:0000:01:00): 79, old\n"
            "Nov 2 Linux version 6.1\nNov 2 fine\n");
  const auto host = Host::open(tree.root());
  ASSERT_TRUE(host);
  EXPECT_THAT(host->kernel_log()->lines, ElementsAre("Nov 2 Linux version 6.1", "Nov 2 fine"));
}

TEST(Archive, ReadsWhatItWrites) {
  Archive archive;
  archive["/proc/modules"] = {ArchiveEntry::Kind::file, "nvidia 1\n== not a head\n\\ nor this\n"};
  archive["/empty"] = {ArchiveEntry::Kind::file, ""};
  archive["/dev/shm"] = {ArchiveEntry::Kind::folder, ""};
  archive["/lib"] = {ArchiveEntry::Kind::link, "usr/lib"};
  archive["/config"] = {ArchiveEntry::Kind::file, std::string("\xde\x10\x00\xff", 4)};
  Tree tree;
  tree.file("host.txt", archive_text(archive));
  const auto read = read_archive(tree.root() + "/host.txt");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(archive_text(*read), archive_text(archive));
  EXPECT_EQ(read->at("/config").text, archive["/config"].text);
  EXPECT_EQ(read->at("/proc/modules").text, archive["/proc/modules"].text);
}

TEST(Archive, NothingIsWrittenOutsideOfItsFolder) {
  Tree tree;
  for (const char* text :
       {"== /../x\n", "== x\n", "== /a/../../x\n", "nonsense\n", "base: ../other.txt\n", "== /x (hex)\n0g\n"}) {
    tree.file("host.txt", text);
    EXPECT_FALSE(read_archive(tree.root() + "/host.txt")) << text;
  }
  const std::string outside = tree.root() + "/outside";
  tree.folder("outside").file("host.txt", "== /a -> " + outside + "\n== /a/b\nx\n");
  const auto archive = read_archive(tree.root() + "/host.txt");
  ASSERT_TRUE(archive);
  const auto unpacked = UnpackedHost::unpack(*archive);
  EXPECT_FALSE(unpacked) << "/a cannot be a link and a folder";
  EXPECT_FALSE(std::filesystem::exists(outside + "/b"));
  tree.file("loop.txt", "base: loop.txt\n");
  EXPECT_FALSE(read_archive(tree.root() + "/loop.txt"));
}

TEST(Bundle, NamesNobody) {
  const Secrets secrets{"ada", "gpu01.lab.example.com"};
  EXPECT_EQ(redacted("/home/ada/venv on gpu01.lab.example.com, adapter", secrets), "/home/user/venv on host, adapter");
  EXPECT_EQ(redacted("inet 10.1.2.3 netmask", secrets), "inet 192.0.2.1 netmask");
  EXPECT_EQ(redacted("10.1.2.3:8080", secrets), "192.0.2.1:8080");
  EXPECT_EQ(redacted("link a0:36:9f:12:34:56 up", secrets), "link 02:00:00:00:00:00 up");
  EXPECT_EQ(redacted("fe80::a236:9fff:fe12:3456", secrets), "2001:db8::1");
  EXPECT_EQ(redacted("ada.l@example.com wrote", secrets), "name@example.org wrote");
  EXPECT_EQ(redacted("\"auth\": {\"token\": \"abc\"}", secrets), "\"auth\": {\"token\": \"(redacted)\"}");
  EXPECT_EQ(redacted("PASSWORD=hunter2", secrets), "PASSWORD= (redacted)");
  EXPECT_EQ(redacted("GPU-1b0e3d4c-2f6a-4c1d-9d3e-7a5b6c7d8e9f GPU-1b0e3d4c-2f6a-4c1d-9d3e-7a5b6c7d8e9f", secrets),
            "GPU-00000000-0000-0000-0000-000000000001 GPU-00000000-0000-0000-0000-000000000001");
}

// The forms of the keys are those that their givers document; none of these is a real one.
TEST(Bundle, KeepsNoSecretOfAHostFullOfThem) {
  const std::vector<std::string> secrets = {"nvapi-S3cretOne",
                                            "hf_abcdefghijklmnopqrstuvwxyz012345",
                                            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
                                            "gho_0123456789abcdefghij",
                                            "github_pat_11ABCDEFG0_abcdefghij",
                                            "glpat-abcdEFGH1234_-xyz",
                                            "sk-proj-abcd1234efgh5678",
                                            "AKIAABCDEFGHIJKLMNOP",
                                            "ASIAABCDEFGHIJKLMNOP",
                                            "xoxb-1234-5678-abcdef",
                                            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0"};
  std::string log =
      R"("NVRM: Xid (PCI:0000:01:00): 31, pid=99, name=secretproc, Ch 8", "NVRM: GPU serial 1650223004412",
      "Out of memory: Killed process 7 (oomproc) total-vm:1kB", "NVRM: Comm: commproc Tainted",
      "amdgpu: in page from Process amdproc pid 7 thread amdthread:cs0 pid 8", "nvidia: Serial Number: ABC12345678")";
  std::string daemon =
      R"({"registry-auth": "hunter3", "authToken": "hunter4", "a": {"key": "hunter5"}, "runtimes": {}})";
  for (const std::string& secret : secrets) log += ", \"nvidia: login " + secret + " at x:" + secret + "\"";
  Tree tree;
  tree.file("gpuwright-host.json", R"({"env": {"USER": "ada", "HOME": "/home/ada", "NVIDIA_API_KEY": "hunter6",
      "NVIDIA_AUTH": "hunter7", "CUDA_CRED": "hunter8", "NCCL_PASS": "hunter9", "CUDA_HOME": "/home/carol/cuda",
      "TORCH_HOME": "/scratch/erin", "PATH": "/home/alice/bin:/data/home/dave:/mnt/home/frank/x:/Users/grace:/root/bin",
      "NCCL_X": "password=hunter1 secret=hunter2"}, "kernel_log": [)" +
                                       log + "]}\n");
  tree.file("etc/docker/daemon.json", daemon).file("proc/modules", "nvidia 1 2 - Live 0x0\n");
  const auto host = Host::open(tree.root());
  const auto catalog = catalog::Catalog::load();
  ASSERT_TRUE(host && catalog);
  host->text("/etc/docker/daemon.json");
  const Machine machine(*host, *catalog, nullptr);
  const std::string text = archive_text(bundle(machine));
  for (const std::string& secret : secrets) EXPECT_THAT(text, Not(HasSubstr(secret)));
  for (const char* word : {"secretproc", "1650223004412", "oomproc", "commproc", "amdproc", "amdthread", "ABC12345678",
                           "hunter", "carol", "erin", "alice", "dave", "frank", "grace", "ada\""})
    EXPECT_THAT(text, Not(HasSubstr(word))) << word;
  EXPECT_THAT(text, AllOf(HasSubstr("/root/bin"), HasSubstr("Xid (PCI:0000:01:00): 31, pid=99"),
                          HasSubstr("/home/user\""), HasSubstr("\"runtimes\": {}}")));
}

TEST(Bundle, LeavesVersionsAndAddressesOfDevices) {
  const Secrets secrets{"ada", "gpu01"};
  for (const char* text :
       {"libcuda.so.580.95.05", "0000:01:00.0", "NVRM: Xid (PCI:0000:01:00): 79, pid=1", "torch 2.9.1+cu128",
        "Linux version 6.8.0-88-generic", "cudnn 9.10.2.21", "12:34:56", "std::vector",
        "/lib/hf_transfer-0.1.9.dist-info", "iommu.passthrough=1 vconsole.keymap=us", "Author: NVIDIA",
        "serial8250: ttyS0", "task-scheduler-of-disk-1", "/root/venv", "bypass: 1"})
    EXPECT_EQ(redacted(text, secrets), text);
}

TEST(Bundle, TakesOnlyVariablesThatTheChecksRead) {
  Tree tree;
  tree.file("gpuwright-host.json",
            R"({"env": {"CUDA_HOME": "/opt/cuda", "HOME": "/home/ada", "NVIDIA_API_KEY": "nvapi-1",
    "TF_VAR_db": "hunter2", "AWS_PROFILE": "lab", "NCCL_DEBUG": "INFO"}})");
  const auto host = Host::open(tree.root());
  const auto catalog = catalog::Catalog::load();
  ASSERT_TRUE(host && catalog);
  const Machine machine(*host, *catalog, nullptr);
  const std::string text = archive_text(bundle(machine));
  EXPECT_THAT(text, AllOf(HasSubstr("CUDA_HOME"), HasSubstr("NCCL_DEBUG"), HasSubstr("/home/user")));
  for (const char* word : {"nvapi", "API_KEY", "hunter2", "TF_VAR", "AWS", "ada\""})
    EXPECT_THAT(text, Not(HasSubstr(word)));
}

TEST(Bundle, IsReadAsTheMachineThatItWas) {
  const auto catalog = catalog::Catalog::load();
  const auto book = ProblemBook::load();
  ASSERT_TRUE(catalog && book);
  for (const char* name : {"kmod-nouveau", "ct-inside-void", "fab-manager", "amd-rights"}) {
    const auto archive = read_archive(std::string(GPUWRIGHT_SOURCE_DIR) + "/tests/hosts/" + name + ".txt");
    ASSERT_TRUE(archive) << archive.error().message();
    const auto verdict = [&](const Archive& from, Archive* to) {
      const auto unpacked = UnpackedHost::unpack(from);
      const auto host = Host::open(unpacked->root());
      const Machine machine(*host, *catalog, nullptr);
      const Diagnosis diagnosis = diagnose(machine, *book, {});
      if (to != nullptr) *to = bundle(machine);
      return diagnosis.first_cause() == nullptr ? "none" : diagnosis.first_cause()->id;
    };
    Archive bundled;
    const std::string before = verdict(*archive, &bundled);
    EXPECT_EQ(verdict(bundled, nullptr), before) << name;
    EXPECT_NE(before, "none") << name;
    EXPECT_THAT(archive_text(bundled), Not(HasSubstr("/home/ada"))) << name;
  }
}

}  // namespace
}  // namespace gpuwright::doctor

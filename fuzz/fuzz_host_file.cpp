// A machine whose files are anybody's: one of the files that doctor reads has the input's bytes (its first byte says
// which), and every check runs. Whatever stands there, doctor ends, and its texts are filled.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "doctor/capture.h"
#include "doctor/doctor.h"

namespace {

using namespace gpuwright;          // NOLINT: a fuzz target of one file
using namespace gpuwright::doctor;  // NOLINT

struct Text {
  const char* path;
  const char* usual;
};
constexpr Text kFiles[] = {
    {"proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n"},
    {"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Release\n"},
    {"sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n"},
    {"sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"},
    {"sys/bus/pci/devices/0000:01:00.0/device", "0x2684\n"},
    {"sys/bus/pci/devices/0000:01:00.0/resource", "0x0 0x0 0x0\n"},
    {"sys/bus/pci/devices/0000:01:00.0/config", "\xde\x10\x84\x26"},
    {"etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\n"},
    {"etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"},
    {"etc/ld.so.cache", ""},
    {"etc/docker/daemon.json", "{\"runtimes\": {\"nvidia\": {\"path\": \"nvidia-container-runtime\"}}}"},
    {"etc/cdi/nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"},
    {"etc/slurm/gres.conf", "Name=gpu File=/dev/nvidia0\n"},
    {"proc/meminfo", "MemTotal: 65719364 kB\nMemAvailable: 58211004 kB\n"},
    {"proc/mounts", "overlay / overlay rw 0 0\n"},
    {"proc/cmdline", "ro quiet\n"},
    {"var/log/kern.log", "Nov 30 12:00:00 a kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1\n"},
    {"usr/lib/python3.11/site-packages/torch/version.py", "__version__ = '2.7.0+cu126'\ncuda = '12.6'\n"},
    {"usr/lib/python3.11/site-packages/torch-2.7.0.dist-info/METADATA", "Requires-Dist: nvidia-nccl-cu12==2.26.2\n"},
    {"usr/lib/python3.11/site-packages/torch/lib/libtorch_global_deps.so", ""},
    {"usr/local/cuda/version.json", "{\"cuda\": {\"version\": \"12.1.1\"}}"},
    {"gpuwright-host.json", "{\"machine\": \"x86_64\", \"env\": {\"PATH\": \"/usr/bin\", \"HOME\": \"/root\"}}"},
};

void write(const std::string& root, const char* path, std::string_view bytes) {
  const std::filesystem::path file = std::filesystem::path(root) / path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

// Made once for each process, with what a healthy machine has. Never destroyed: it is wanted at exit.
const std::string& machine_root() {
  static const std::string& root = *new std::string([] {
    std::string folder = "/tmp/gpuwright_fuzz_host_file_" + std::to_string(::getpid());
    for (const Text& file : kFiles) write(folder, file.path, file.usual);
    std::atexit([] { std::filesystem::remove_all(machine_root()); });
    return folder;
  }());
  return root;
}

void diagnose_machine(const std::string& root) {
  static const auto catalog = catalog::Catalog::load();
  static const auto book = ProblemBook::load();
  if (!catalog || !book) std::abort();
  const auto host = Host::open(root);
  if (!host) return;
  const auto snapshot = captured_snapshot(*host);
  if (!snapshot) return;
  const Machine machine(*host, *catalog, *snapshot ? &**snapshot : nullptr);
  for (const Finding& finding : diagnose(machine, *book, {}).findings)
    if (finding.title.empty() || finding.cause.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Text& file = kFiles[data[0] % std::size(kFiles)];
  write(machine_root(), file.path, {reinterpret_cast<const char*>(data) + 1, size - 1});
  diagnose_machine(machine_root());
  write(machine_root(), file.path, file.usual);
  return 0;
}

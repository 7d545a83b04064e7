// The checks of cuda.* and fw.* on small hosts. Right values: what the programs themselves say in these situations, as
// in the issues and documents named beside the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/testing/tree.h"
#include "doctor/doctor.h"
#include "doctor/testing/elf_builder.h"

namespace gpuwright::doctor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct SoftwareTest : ::testing::Test {
  static constexpr const char* kVenv = "root/venv/lib/python3.11/site-packages/";

  SoftwareTest() { variables(""); }

  // `more`: members of the environment, "\"A\": \"b\"".
  SoftwareTest& variables(const std::string& more) {
    tree.file("gpuwright-host.json",
              R"({"machine": "x86_64", "env": {"PATH": "/root/venv/bin:/usr/bin", "HOME": "/root")" +
                  (more.empty() ? "" : ", " + more) + "}}\n");
    return *this;
  }
  SoftwareTest& gpu(const std::string& device, const std::string& vendor = "0x10de") {
    const std::string folder = "sys/bus/pci/devices/0000:0" + std::to_string(++gpus) + ":00.0/";
    tree.file(folder + "vendor", vendor + "\n")
        .file(folder + "device", device + "\n")
        .file(folder + "class", "0x030000\n");
    return *this;
  }
  SoftwareTest& driver(const std::string& version) {
    tree.file("proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + version + "  Release Build\n");
    library("usr/lib/x86_64-linux-gnu/libcuda.so." + version, "soname=libcuda.so.1");
    tree.link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so." + version);
    return *this;
  }
  SoftwareTest& library(const std::string& path, const std::string& words) {
    tree.file(path, testing::build_elf_from(words));
    return *this;
  }
  SoftwareTest& package(const std::string& name, const std::string& version, const std::string& requires_dist = "") {
    tree.file(kVenv + name + "-" + version + ".dist-info/METADATA",
              "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n" + requires_dist + "\n");
    return *this;
  }
  SoftwareTest& torch(const std::string& version, const std::string& cuda, const std::string& hip = "None") {
    package("torch", version);
    tree.file(kVenv + std::string("torch/version.py"), "__version__ = '" + version + "'\ncuda: Optional[str] = " +
                                                           cuda + "\nhip: Optional[str] = " + hip + "\n");
    tree.file("root/venv/bin/python3", "").file("root/venv/pyvenv.cfg", "home = /usr/bin\n");
    return *this;
  }
  // PyTorch's libraries with the code of its own wheels; `needed` by libtorch_global_deps.so.
  SoftwareTest& torch_libraries(const std::string& codes, const std::string& needed = "libcudart.so.12") {
    const std::string lib = kVenv + std::string("torch/lib/");
    library(lib + "libtorch_global_deps.so",
            "soname=libtorch_global_deps.so needed=" + needed +
                " runpath=$ORIGIN,$ORIGIN/../../nvidia/cuda_runtime/lib,$ORIGIN/../../nvidia/"
                "cudnn/lib,$ORIGIN/../../nvidia/nvjitlink/lib,$ORIGIN/../../nvidia/cusparse/lib");
    library(lib + "libtorch_python.so", "needed=libtorch_cuda.so,libc10.so,libtorch_cpu.so runpath=$ORIGIN");
    library(lib + "libtorch_cuda.so", "soname=libtorch_cuda.so " + codes);
    library(lib + "libc10.so", "soname=libc10.so exports=_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx11E");
    library(lib + "libtorch_cpu.so", "soname=libtorch_cpu.so exports=_ZN2at4zeroE");
    library(kVenv + std::string("nvidia/cuda_runtime/lib/libcudart.so.12"), "soname=libcudart.so.12");
    return *this;
  }

  Diagnosis diagnose_software(const std::string& language = "en") {
    static const auto catalog = catalog::Catalog::load();
    static const auto book = ProblemBook::load();
    EXPECT_TRUE(book) << book.error().message();
    const auto host = Host::open(tree.root());
    EXPECT_TRUE(host) << host.error().message();
    const Machine machine(*host, *catalog, nullptr);
    DiagnosisOptions options;
    options.language = language;
    options.only = {"cuda.*", "fw.*"};
    return diagnose(machine, *book, options);
  }
  // Ids of what is wrong; every text has to be filled.
  std::vector<std::string> found() {
    last = diagnose_software();
    std::vector<std::string> ids;
    for (const Finding& finding : last.findings) {
      ids.push_back(finding.id);
      for (const std::string& text : {finding.title, finding.cause}) {
        EXPECT_EQ(text.find('?'), std::string::npos) << finding.id << ": " << text;
        EXPECT_EQ(text.find('{'), std::string::npos) << finding.id << ": " << text;
      }
      EXPECT_FALSE(finding.fixes.empty()) << finding.id;
      for (const Fix& fix : finding.fixes)
        for (const std::string& command : fix.commands)
          EXPECT_EQ(command.find_first_of("{?"), std::string::npos) << finding.id << ": " << command;
    }
    return ids;
  }
  std::vector<std::string> commands() const {
    std::vector<std::string> all;
    for (const Finding& finding : last.findings)
      for (const Fix& fix : finding.fixes) all.insert(all.end(), fix.commands.begin(), fix.commands.end());
    return all;
  }
  std::string state_of(std::string_view id) const {
    for (const CheckResult& result : last.checks)
      if (result.check->id == id) return std::string(to_string(result.outcome.state)) + " " + result.outcome.text;
    return "";
  }

  device::testing::Tree tree;
  Diagnosis last;
  int gpus = 0;
};

TEST_F(SoftwareTest, NothingIsWrongWithARightPyTorch) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'").torch_libraries("sm=50,60,70,75,80,86,90");
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(state_of("fw.torch"), HasSubstr("ok torch 2.7.0+cu126 in /root/venv"));
}

TEST_F(SoftwareTest, AnEmptyHostTellsNothing) {
  EXPECT_THAT(found(), IsEmpty());
  gpu("0x2684");
  EXPECT_THAT(found(), IsEmpty());
}

// RELEASE.md of PyTorch: 2.7 for CUDA 12.6 and 12.8; NVIDIA's release notes: CUDA 12 takes driver 525.60.13, 11.x
// 450.80.02.
TEST_F(SoftwareTest, ADriverThatIsTooOld) {
  gpu("0x2204").driver("470.57.02").torch("2.7.0+cu126", "'12.6'").torch_libraries("sm=50,80,86");
  EXPECT_THAT(found(), ElementsAre("cuda.driver"));
  EXPECT_THAT(last.findings[0].cause, HasSubstr("525.60.13"));
  EXPECT_TRUE(last.findings[0].fixes[0].reboot);
  EXPECT_THAT(commands(), Contains(HasSubstr("whl/cu118")));
}

// "found no NVIDIA driver" is not the text here: torch.cuda.is_available() is False with every driver.
TEST_F(SoftwareTest, APyTorchForTheCpuAlone) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cpu", "None");
  EXPECT_THAT(found(), ElementsAre("fw.torch.cpu"));
  EXPECT_THAT(commands(), Contains(AllOf(HasSubstr("/root/venv/bin/python -m pip"), HasSubstr("whl/cu126"))));
}

// The RTX 5090 is sm_120, which came with torch 2.7 for CUDA 12.8 (PyTorch RELEASE.md): "NVIDIA GeForce RTX 5090 with
// CUDA capability sm_120 is not compatible with the current PyTorch installation".
TEST_F(SoftwareTest, APyTorchWithoutCodeForTheGpu) {
  gpu("0x2b85").driver("570.124.06").torch("2.6.0+cu124", "'12.4'").torch_libraries("sm=50,60,70,75,80,86,90");
  EXPECT_THAT(found(), ElementsAre("fw.torch.arch"));
  EXPECT_THAT(last.findings[0].title, HasSubstr("sm_120"));
  EXPECT_THAT(last.findings[0].cause, HasSubstr("sm_90"));
  // By the table of releases, where the libraries were not captured.
  tree.remove(kVenv + std::string("torch/lib"));
  EXPECT_THAT(found(), ElementsAre("fw.torch.arch"));
}

TEST_F(SoftwareTest, OneGpuOfTwoIsNotServed) {
  gpu("0x2684")
      .gpu("0x1b06")
      .driver("570.124.06")
      .torch("2.9.0+cu128", "'12.8'")
      .torch_libraries("sm=70,75,80,86,90,100,120");
  EXPECT_THAT(found(), ElementsAre("fw.torch.arch.some"));
  EXPECT_THAT(commands(), Contains(HasSubstr("whl/cu126")));  // cu126 reaches back to 5.0
}

// CUDA error 222: PTX of CUDA 12.8 on a driver of 12.2.
TEST_F(SoftwareTest, PtxThatTheDriverCannotCompile) {
  gpu("0x2b85").driver("535.104.05").torch("2.7.0+cu128", "'12.8'").torch_libraries("sm=80,90 ptx=90");
  EXPECT_THAT(found(), ElementsAre("cuda.driver.ptx"));
}

TEST_F(SoftwareTest, BuildsForTheOtherVendor) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+rocm6.3", "None", "'6.3.42131'");
  EXPECT_THAT(found(), ElementsAre("fw.torch.rocm"));
  tree.remove("sys");
  gpu("0x744c", "0x1002").torch("2.7.0+cu126", "'12.6'");
  EXPECT_THAT(found(), ElementsAre("fw.torch.cuda"));
  torch("2.7.0+cpu", "None");
  tree.remove(kVenv + std::string("torch-2.7.0+cu126.dist-info"));
  EXPECT_THAT(found(), ElementsAre("fw.torch.cpu.amd"));
  EXPECT_THAT(commands(), Contains(HasSubstr("whl/rocm6.3")));
}

// pytorch/vision README: torch 2.7 goes with torchvision 0.22.
TEST_F(SoftwareTest, AVisionForAnotherPyTorch) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'");
  package("torchvision", "0.21.0+cu126", "Requires-Dist: torch (==2.6.0)\n");
  EXPECT_THAT(found(), ElementsAre("fw.pair"));
  EXPECT_THAT(last.findings[0].title, HasSubstr("torchvision 0.21.0+cu126 is made for torch 2.6.0"));
  tree.remove(kVenv + std::string("torchvision-0.21.0+cu126.dist-info"));
  package("torchvision", "0.22.0+cpu", "Requires-Dist: torch (==2.7.0)\n");
  EXPECT_THAT(found(), ElementsAre("fw.pair.tag"));
  tree.remove(kVenv + std::string("torchvision-0.22.0+cpu.dist-info"));
  package("xformers", "0.0.29", "Requires-Dist: torch==2.6.0\n");
  EXPECT_THAT(found(), ElementsAre("fw.pair.pinned"));
}

TEST_F(SoftwareTest, WheelsThatPyTorchAsksFor) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'");
  package("torch", "2.7.0+cu126",
          "Requires-Dist: nvidia-cudnn-cu12==9.5.1.17; platform_system == \"Linux\"\n"
          "Requires-Dist: nvidia-nccl-cu12==2.26.2; platform_system == \"Linux\"\n");
  package("nvidia_cudnn_cu12", "9.1.0.70").package("nvidia_nccl_cu12", "2.26.2");
  EXPECT_THAT(found(), ElementsAre("fw.wheels"));
  tree.remove(kVenv + std::string("nvidia_nccl_cu12-2.26.2.dist-info"));
  EXPECT_THAT(found(), ElementsAre("fw.wheels", "fw.wheels.missing"));
}

// The symbol of flash-attention#1644 and many others: a wheel for the old C++ strings with a PyTorch of the new.
TEST_F(SoftwareTest, AnExtensionForTheOtherAbi) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'").torch_libraries("sm=50,80,86,90");
  package("flash_attn", "2.7.4");
  library(kVenv + std::string("flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"),
          "needed=libc10.so,libtorch_cpu.so imports=_ZN2at4zeroE,_ZN3c105ErrorC2ENS_14SourceLocationESs,free");
  EXPECT_THAT(found(), ElementsAre("fw.abi"));
  EXPECT_THAT(last.findings[0].title, HasSubstr("flash-attn 2.7.4"));
  EXPECT_THAT(last.findings[0].cause, HasSubstr("_GLIBCXX_USE_CXX11_ABI=FALSE"));
  library(kVenv + std::string("flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"),
          "needed=libc10.so imports=_ZN2at4zeroE,_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx11E");
  EXPECT_THAT(found(), IsEmpty());
}

// "ImportError: libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"
// (pytorch/pytorch#111469).
TEST_F(SoftwareTest, LdLibraryPathWithAnOlderNvJitLink) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'");
  torch_libraries("sm=50,80,86,90", "libcudart.so.12,libcusparse.so.12");
  library(kVenv + std::string("nvidia/cusparse/lib/libcusparse.so.12"),
          "soname=libcusparse.so.12 needed=libnvJitLink.so.12 runpath=$ORIGIN/../../nvjitlink/lib "
          "imports=__nvJitLinkComplete_12_4");
  library(kVenv + std::string("nvidia/nvjitlink/lib/libnvJitLink.so.12"),
          "soname=libnvJitLink.so.12 exports=__nvJitLinkComplete_12_4");
  library("usr/local/cuda-12.1/lib64/libnvJitLink.so.12", "soname=libnvJitLink.so.12 exports=__nvJitLinkComplete_12_1");
  EXPECT_THAT(found(), IsEmpty());
  variables(R"("LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64")");
  EXPECT_THAT(found(), ElementsAre("cuda.ldpath"));
  EXPECT_THAT(last.findings[0].cause, HasSubstr("__nvJitLinkComplete_12_4"));
  EXPECT_THAT(commands(), Contains("unset LD_LIBRARY_PATH"));
  library("usr/local/cuda-12.1/lib64/libnvJitLink.so.12", "soname=libnvJitLink.so.12 exports=__nvJitLinkComplete_12_4");
  EXPECT_THAT(found(), ElementsAre("cuda.ldpath.shadow"));
}

// CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH: libcudnn.so.9 of the wheel, its parts of the system.
TEST_F(SoftwareTest, LdLibraryPathWithPartsOfAnotherCudnn) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'");
  torch_libraries("sm=50,80,86,90", "libcudart.so.12,libcudnn.so.9");
  const std::string cudnn = kVenv + std::string("nvidia/cudnn/lib/");
  library(cudnn + "libcudnn.so.9", "soname=libcudnn.so.9")
      .library(cudnn + "libcudnn_ops.so.9", "soname=libcudnn_ops.so.9");
  library("opt/cudnn/lib/libcudnn_ops.so.9", "soname=libcudnn_ops.so.9");
  variables(R"("LD_LIBRARY_PATH": "/opt/cudnn/lib")");
  EXPECT_THAT(found(), ElementsAre("cuda.ldpath.cudnn"));
}

// "libcudnn.so.9: cannot open shared object file", with cuDNN 8 installed.
TEST_F(SoftwareTest, ALibraryOfAnotherMajorVersion) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'");
  torch_libraries("sm=50,80,86,90", "libcudart.so.12,libcudnn.so.9");
  library("usr/lib/x86_64-linux-gnu/libcudnn.so.8", "soname=libcudnn.so.8");
  EXPECT_THAT(found(), ElementsAre("cuda.soname"));
  EXPECT_THAT(last.findings[0].cause, HasSubstr("/usr/lib/x86_64-linux-gnu/libcudnn.so.8"));
  EXPECT_THAT(commands(), Contains(HasSubstr("nvidia-cudnn-cu12")));
}

TEST_F(SoftwareTest, TheDriversLibraryIsNotTheToolkits) {
  gpu("0x2684").driver("570.124.06");
  library("usr/local/cuda/lib64/stubs/libcuda.so.1", "soname=libcuda.so.1");
  EXPECT_THAT(found(), IsEmpty());
  variables(R"("LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs")");
  EXPECT_THAT(found(), ElementsAre("cuda.stub"));
}

// NVIDIA CUDA Compatibility, "Forward Compatibility": errors 803 and 804.
TEST_F(SoftwareTest, ForwardCompatibilityThatDoesNotServe) {
  gpu("0x2684").driver("535.104.05");
  library("usr/local/cuda-12.6/compat/libcuda.so.560.35.05", "soname=libcuda.so.1");
  tree.link("usr/local/cuda-12.6/compat/libcuda.so.1", "libcuda.so.560.35.05");
  variables(R"("LD_LIBRARY_PATH": "/usr/local/cuda-12.6/compat")");
  EXPECT_THAT(found(), ElementsAre("cuda.compat.unsupported"));
  driver("570.124.06");
  EXPECT_THAT(found(), ElementsAre("cuda.compat.older"));
  tree.remove("sys");
  gpu("0x2330").driver("535.104.05");  // an H100, for which it is made
  EXPECT_THAT(found(), IsEmpty());
}

// torch/utils/cpp_extension.py, CUDA_GCC_VERSIONS: CUDA 12.1 up to GCC 12.
TEST_F(SoftwareTest, ToolkitsAndCompilers) {
  gpu("0x2684").driver("570.124.06");
  tree.file("usr/local/cuda-12.1/version.json", R"({"cuda": {"name": "CUDA SDK", "version": "12.1.1"}})");
  tree.file("usr/local/cuda-12.1/bin/nvcc", "").link("usr/local/cuda", "cuda-12.1");
  tree.link("usr/bin/g++", "g++-13").file("usr/bin/g++-13", "");
  EXPECT_THAT(found(), ElementsAre("cuda.gcc"));
  tree.file("usr/bin/g++-11", "");
  EXPECT_THAT(found(), ElementsAre("cuda.gcc"));
  EXPECT_THAT(commands(), Contains(HasSubstr("g++-11")));
  tree.link("usr/bin/g++", "g++-11");
  EXPECT_THAT(found(), IsEmpty());
  torch("1.13.1+cu117", "'11.7'");
  EXPECT_THAT(found(), ElementsAre("cuda.toolkit"));
  tree.remove("root/venv").file("usr/local/cuda-12.1/version.json", R"({"cuda": {"version": "13.0.1"}})");
  EXPECT_THAT(found(), ElementsAre("cuda.toolkit.newer"));
  tree.remove("usr/local/cuda-12.1");
  EXPECT_THAT(found(), ElementsAre("cuda.toolkit.gone"));
}

TEST_F(SoftwareTest, VariablesThatHideGpus) {
  gpu("0x2684").gpu("0x2684").driver("570.124.06");
  for (const char* all : {"0,1", "1", "GPU-5ffd7d3c", "0", "MIG-7"}) {
    variables("\"CUDA_VISIBLE_DEVICES\": \"" + std::string(all) + "\"");
    EXPECT_THAT(found(), IsEmpty()) << all;
  }
  for (const char* none : {"", "-1", "2", "none", "NoDevFiles"}) {
    variables("\"CUDA_VISIBLE_DEVICES\": \"" + std::string(none) + "\"");
    EXPECT_THAT(found(), ElementsAre("fw.visible")) << none;
  }
  variables(R"("CUDA_VISIBLE_DEVICES": "0,2,1")");
  EXPECT_THAT(found(), ElementsAre("fw.visible.some"));
  EXPECT_THAT(last.findings[0].cause, HasSubstr("1 of 2 GPUs"));
}

TEST_F(SoftwareTest, SettingsOfTheAllocator) {
  gpu("0x2684").driver("570.124.06");
  variables(
      R"("PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:True,roundup_power2_divisions:[256:1,512:2,>:8]")");
  EXPECT_THAT(found(), IsEmpty());
  variables(R"("PYTORCH_CUDA_ALLOC_CONF": "max_split_size:128")");
  EXPECT_THAT(found(), ElementsAre("fw.alloc"));
  EXPECT_THAT(last.findings[0].cause, HasSubstr("max_split_size_mb is meant"));
}

// "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0".
TEST_F(SoftwareTest, NumPy2WithAnOldPyTorch) {
  gpu("0x2684").driver("570.124.06").torch("2.2.2+cu121", "'12.1'").package("numpy", "2.0.1");
  EXPECT_THAT(found(), ElementsAre("fw.numpy"));
}

// libstdc++ of an old conda: "version `GLIBCXX_3.4.30' not found".
TEST_F(SoftwareTest, ACppLibraryThatIsTooOld) {
  gpu("0x2684").driver("570.124.06").torch("2.7.0+cu126", "'12.6'");
  torch_libraries("sm=50,80,86,90", "libcudart.so.12,libstdc++.so.6");
  library(kVenv + std::string("torch/lib/libtorch_cpu.so"),
          "soname=libtorch_cpu.so needed=libstdc++.so.6 wants=libstdc++.so.6:GLIBCXX_3.4.30");
  library("usr/lib/x86_64-linux-gnu/libstdc++.so.6", "soname=libstdc++.so.6 versions=GLIBCXX_3.4.29,GLIBCXX_3.4.30");
  EXPECT_THAT(found(), IsEmpty());
  library("opt/old/libstdc++.so.6", "soname=libstdc++.so.6 versions=GLIBCXX_3.4.29");
  variables(R"("LD_LIBRARY_PATH": "/opt/old")");
  EXPECT_THAT(found(), ElementsAre("fw.libstdcxx"));
}

TEST_F(SoftwareTest, TensorFlowAndJax) {
  gpu("0x2684").driver("570.124.06");
  package("tensorflow", "2.17.0", "Requires-Dist: nvidia-cudnn-cu12 ==8.9.7.29 ; extra == 'and-cuda'\n");
  package("jaxlib", "0.4.31").package("jax", "0.4.31");
  tree.file("root/venv/bin/python3", "").file("root/venv/pyvenv.cfg", "home = /usr/bin\n");
  EXPECT_THAT(found(), ElementsAre("fw.tensorflow", "fw.jax"));
  package("nvidia_cudnn_cu12", "8.9.7.29").package("jax_cuda12_plugin", "0.4.30");
  EXPECT_THAT(found(), ElementsAre("fw.jax.plugin"));
  EXPECT_THAT(commands(), Contains(HasSubstr("jax[cuda12]")));
}

TEST_F(SoftwareTest, ChineseTextsAreFilled) {
  gpu("0x2b85").driver("470.57.02").torch("2.6.0+cu124", "'12.4'").package("numpy", "2.0.1");
  variables(R"("CUDA_VISIBLE_DEVICES": "7")");
  const Diagnosis diagnosis = diagnose_software("zh");
  EXPECT_GE(diagnosis.findings.size(), 3U);
  for (const Finding& finding : diagnosis.findings)
    EXPECT_EQ(finding.cause.find('?'), std::string::npos) << finding.cause;
}

}  // namespace
}  // namespace gpuwright::doctor

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/testing/tree.h"
#include "doctor/python/environment.h"
#include "doctor/python/package.h"
#include "doctor/python/torch_build.h"

namespace gpuwright::doctor {
namespace {

using device::testing::Tree;
using ::testing::ElementsAre;

// PEP 503, "Normalized Names"; folder names as pip writes them.
TEST(Package, IsReadFromItsFolder) {
  const auto torch = package_named("/s", "torch-2.7.0+cu126.dist-info");
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->name, "torch");
  EXPECT_EQ(torch->version, "2.7.0+cu126");
  EXPECT_EQ(torch->folder, "/s/torch-2.7.0+cu126.dist-info");
  EXPECT_EQ(package_named("/s", "nvidia_cudnn_cu12-9.5.1.17.dist-info")->name, "nvidia-cudnn-cu12");
  EXPECT_EQ(package_named("/s", "Flash__Attn-2.6.3-py3.11.egg-info")->version, "2.6.3");
  for (const char* none : {"torch", "torch.dist-info", "-1.dist-info", "torch-.dist-info", "torch-abc.dist-info", ""}) {
    EXPECT_FALSE(package_named("/s", none)) << none;
  }
}

// Lines of the METADATA of torch 2.7.0, torchvision 0.22.0, fsspec and an old setuptools' one.
TEST(Requirement, IsReadFromMetadata) {
  const auto requirements = requirements_in(
      "Metadata-Version: 2.1\nName: torch\nVersion: 2.7.0\n"
      "Requires-Dist: nvidia-cudnn-cu12==9.5.1.17; platform_system == \"Linux\" and platform_machine == \"x86_64\"\n"
      "Requires-Dist: torch (==2.7.0)\nRequires-Dist: fsspec[http]>=2021.11.1\n"
      "Requires-Dist: optree>=0.13.0; extra == \"optree\"\nRequires-Dist: local @ file:///tmp/x\n\nRequires-Dist: "
      "no\n");
  ASSERT_EQ(requirements.size(), 5U);
  EXPECT_EQ(requirements[0].name, "nvidia-cudnn-cu12");
  EXPECT_EQ(requirements[0].pin(), "9.5.1.17");
  EXPECT_EQ(requirements[1].pin(), "2.7.0");
  EXPECT_EQ(requirements[2].specifier, ">=2021.11.1");
  EXPECT_FALSE(requirements[2].pin());
  EXPECT_TRUE(requirements[3].optional);
  EXPECT_EQ(requirements[4].specifier, "");
}

TEST(Version, HasItsParts) {
  EXPECT_EQ(local_tag("2.7.0+cu126"), "cu126");
  EXPECT_EQ(local_tag("2.7.0"), "");
  EXPECT_EQ(minor_version("2.7.0+cu126"), "2.7");
  EXPECT_EQ(minor_version("2.10.0a0+git1"), "2.10");
  EXPECT_EQ(minor_version("2.9a0"), "2.9");
}

// PEP 440; tests/oracle/python_oracle.py compares with the package "packaging".
TEST(Version, MeetsSpecifiers) {
  EXPECT_EQ(meets("2.7.0+cu126", "==2.7.0"), true);
  EXPECT_EQ(meets("2.7.1", "==2.7.0"), false);
  EXPECT_EQ(meets("1.26.4", ">=1.17,<2"), true);
  EXPECT_EQ(meets("2.0.1", "<2,>=1.17"), false);
  EXPECT_EQ(meets("2.10", "==2.1.*"), false);
  EXPECT_EQ(meets("1.4.5", "~=1.4.2"), true);
  EXPECT_EQ(meets("1.5", "~=1.4.2"), false);
  EXPECT_EQ(meets("1.0", "whatever"), std::nullopt);
}

// As tools/generate_torch_version.py of PyTorch 2.7 and of 1.12 writes it.
TEST(Torch, TellsWhatItWasBuiltFor) {
  const auto cuda = parse_torch_version(
      "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n"
      "__version__ = '2.7.0+cu126'\ndebug = False\ncuda: Optional[str] = '12.6'\n"
      "git_version = '134179474539648ba7dee1317959529fbd0e7f89'\nhip: Optional[str] = None\nxpu: Optional[str] = "
      "None\n");
  ASSERT_TRUE(cuda);
  EXPECT_EQ(cuda->version, "2.7.0+cu126");
  EXPECT_EQ(cuda->cuda, "12.6");
  EXPECT_FALSE(cuda->hip || cuda->xpu);
  const auto old = parse_torch_version("__version__ = '1.12.1+cpu'\ndebug = False\ncuda = None\nhip = None\n");
  ASSERT_TRUE(old);
  EXPECT_FALSE(old->for_gpus());
  EXPECT_FALSE(parse_torch_version(""));
  EXPECT_FALSE(parse_torch_version("__version__ = 2\n"));
}

struct EnvironmentTest : ::testing::Test {
  EnvironmentTest& package(const std::string& site, const std::string& name, const std::string& version) {
    tree.file(site + "/" + name + "-" + version + ".dist-info/METADATA", "Name: " + name + "\n\n");
    return *this;
  }
  EnvironmentTest& variables(const std::string& json) {
    tree.file("gpuwright-host.json", R"({"env": )" + json + "}\n");
    return *this;
  }
  std::vector<PythonEnvironment> environments() {
    const auto host = Host::open(tree.root());
    EXPECT_TRUE(host) << host.error().message();
    return host ? python_environments(*host) : std::vector<PythonEnvironment>{};
  }
  Tree tree;
};

TEST_F(EnvironmentTest, TheFirstOfThePathIsActive) {
  variables(R"({"PATH": "/root/venv/bin:/usr/bin", "HOME": "/root"})");
  package("root/venv/lib/python3.11/site-packages", "torch", "2.7.0+cpu");
  package("usr/lib/python3/dist-packages", "numpy", "1.24.2");
  tree.folder("usr/lib/python3.11").link("root/venv/bin/python3", "/usr/bin/python3").file("usr/bin/python3", "");
  tree.file("root/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  const auto found = environments();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].prefix, "/root/venv");
  EXPECT_EQ(found[0].kind, PythonEnvironment::Kind::virtual_environment);
  EXPECT_TRUE(found[0].active);
  EXPECT_EQ(found[0].find("torch")->version, "2.7.0+cpu");
  EXPECT_EQ(found[0].find("numpy"), nullptr);
  EXPECT_EQ(found[1].kind, PythonEnvironment::Kind::system);
  EXPECT_EQ(found[1].version, "3.11");
  EXPECT_EQ(environments_with(found, "numpy").size(), 1U);
}

TEST_F(EnvironmentTest, WhatAUserInstalledShadowsTheSystem) {
  variables(R"({"PATH": "/usr/bin", "HOME": "/home/ada"})");
  tree.folder("usr/lib/python3.12").file("usr/bin/python3", "");
  package("home/ada/.local/lib/python3.12/site-packages", "torch", "2.5.1");
  package("usr/local/lib/python3.12/dist-packages", "torch", "2.9.0");
  const auto found = environments();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].find("torch")->version, "2.5.1");
}

TEST_F(EnvironmentTest, FindsCondaAndItsChildren) {
  variables(R"({"PATH": "/usr/bin", "HOME": "/home/ada"})");
  package("home/ada/miniconda3/lib/python3.10/site-packages", "pip", "24.0");
  package("home/ada/miniconda3/envs/llm/lib/python3.11/site-packages", "torch", "2.6.0");
  tree.folder("home/ada/miniconda3/envs/llm/conda-meta");
  package("srv/envs/other/lib/python3.9/site-packages", "jax", "0.4.30");
  tree.file("home/ada/.conda/environments.txt", "/srv/envs/other\n/gone\n");
  std::vector<std::string> prefixes;
  for (const auto& environment : environments()) prefixes.push_back(environment.prefix);
  EXPECT_THAT(prefixes, ElementsAre("/srv/envs/other", "/home/ada/miniconda3", "/home/ada/miniconda3/envs/llm"));
}

TEST_F(EnvironmentTest, EndsOnLoops) {
  tree.link("root/venv", "venv").link("usr/lib", "../usr/lib").link("opt/conda/envs/a", "/opt/conda");
  EXPECT_TRUE(environments().empty());
}

}  // namespace
}  // namespace gpuwright::doctor

#include "doctor/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/tree.h"
#include "doctor/testing/elf_builder.h"

namespace gpuwright::doctor {
namespace {

// Each fact from the file that tells it without running anything: Debian 12's layout of compilers and glibc.
TEST(Inventory, TellsWhatBugReportsAskFor) {
  device::testing::Tree tree;
  tree.file(
      "gpuwright-host.json",
      R"({"machine": "x86_64", "env": {"PATH": "/venv/bin", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}})");
  tree.file("proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC 9654\nprocessor\t: 1\nmodel name\t: AMD EPYC 9654\n");
  tree.file("usr/lib/x86_64-linux-gnu/libc.so.6",
            testing::build_elf_from("soname=libc.so.6 versions=GLIBC_2.2.5,GLIBC_2.36,GLIBC_2.9,GLIBC_PRIVATE"));
  tree.link("usr/bin/gcc", "gcc-12")
      .link("usr/bin/clang", "../lib/llvm-14/bin/clang")
      .file("usr/lib/llvm-14/bin/clang", "");
  tree.folder("usr/share/cmake-3.25").folder("usr/share/cmake").file("opt/rocm/.info/version", "6.4.1\n");
  tree.file("usr/local/cuda/version.json", R"({"cuda": {"name": "CUDA SDK", "version": "12.6.3"}})");
  tree.link("usr/lib/x86_64-linux-gnu/libcudnn.so.8", "libcudnn.so.8.9.2");
  tree.file("usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.2", "");
  const std::string site = "venv/lib/python3.11/site-packages/";
  tree.file("venv/bin/python3", "").file("venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.7\n");
  tree.file(site + "torch/version.py", "__version__ = '2.7.1+cu126'\ncuda = '12.6'\nhip = None\n");
  tree.file(site + "torch-2.7.1+cu126.dist-info/METADATA", "").file(site + "requests-2.32.0.dist-info/METADATA", "");

  const auto host = Host::open(tree.root());
  const auto catalog = catalog::Catalog::load();
  ASSERT_TRUE(host && catalog);
  const Inventory inventory = read_inventory(Machine(*host, *catalog, nullptr));
  EXPECT_EQ(inventory.cpu, "AMD EPYC 9654");
  EXPECT_EQ(inventory.processors, 2);
  EXPECT_EQ(inventory.libc, "glibc 2.36");
  EXPECT_EQ(inventory.gcc, "12");
  EXPECT_EQ(inventory.clang, "14");
  EXPECT_EQ(inventory.cmake, "3.25");
  EXPECT_EQ(inventory.rocm, "6.4.1");
  EXPECT_THAT(inventory.cuda_toolkits,
              ::testing::ElementsAre(std::pair<std::string, std::string>("/usr/local/cuda", "12.6.3")));
  EXPECT_THAT(inventory.cudnn, ::testing::ElementsAre("/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.2"));
  ASSERT_EQ(inventory.variables.size(), 1U);
  ASSERT_EQ(inventory.pythons.size(), 1U);
  EXPECT_EQ(inventory.pythons[0].version, "3.11.7");
  EXPECT_TRUE(inventory.pythons[0].active);
  EXPECT_EQ(inventory.pythons[0].torch_cuda, "12.6");
  ASSERT_EQ(inventory.pythons[0].packages.size(), 1U);
  EXPECT_EQ(inventory.pythons[0].packages[0].name, "torch");
}

TEST(Inventory, OfAnEmptyHostIsEmpty) {
  device::testing::Tree tree;
  const auto host = Host::open(tree.root());
  const auto catalog = catalog::Catalog::load();
  ASSERT_TRUE(host && catalog);
  const Inventory inventory = read_inventory(Machine(*host, *catalog, nullptr));
  EXPECT_FALSE(inventory.cpu || inventory.processors || inventory.libc || inventory.gcc || inventory.clang);
  EXPECT_TRUE(inventory.pythons.empty() && inventory.cuda_toolkits.empty() && inventory.cudnn.empty());
}

}  // namespace
}  // namespace gpuwright::doctor

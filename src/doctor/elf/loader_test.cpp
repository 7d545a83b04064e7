#include "doctor/elf/loader.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <string>
#include <vector>

#include "device/testing/tree.h"
#include "doctor/testing/elf_builder.h"

namespace gpuwright::doctor {
namespace {

using device::testing::Tree;
using ::testing::ElementsAre;

std::vector<std::string> paths_of(const LoadPlan& plan) {
  std::vector<std::string> paths;
  for (const LoadedLibrary& library : plan.libraries) paths.push_back(library.path);
  return paths;
}

struct LoaderTest : ::testing::Test {
  LoaderTest& library(const std::string& path, std::string_view words) {
    tree.file(path, testing::build_elf_from(words));
    return *this;
  }
  LoadPlan plan(const std::string& path, const std::string& ld_library_path = "") {
    const auto host = Host::open(tree.root());
    EXPECT_TRUE(host) << host.error().message();
    const Loader loader(*host, {"/usr/lib"}, {ld_library_path, 64});
    return loader.plan({path});
  }
  Tree tree;
};

// ld.so(8), "in the following order".
TEST_F(LoaderTest, SearchesInTheOrderOfTheManual) {
  library("opt/app/libmain.so", "needed=libdnn.so.9 runpath=$ORIGIN/own");
  library("usr/lib/libdnn.so.9", "soname=libdnn.so.9");
  EXPECT_EQ(plan("/opt/app/libmain.so").find("libdnn.so.9")->way, FoundBy::system);
  library("opt/app/own/libdnn.so.9", "soname=libdnn.so.9");
  EXPECT_EQ(plan("/opt/app/libmain.so").find("libdnn.so.9")->path, "/opt/app/own/libdnn.so.9");
  library("opt/cuda/lib64/libdnn.so.9", "soname=libdnn.so.9");
  const LoadPlan shadowed = plan("/opt/app/libmain.so", "/nowhere:/opt/cuda/lib64");
  EXPECT_EQ(shadowed.find("libdnn.so.9")->path, "/opt/cuda/lib64/libdnn.so.9");
  EXPECT_EQ(shadowed.find("libdnn.so.9")->way, FoundBy::ld_library_path);
  // RPATH goes before LD_LIBRARY_PATH, RUNPATH behind it.
  library("opt/app/libmain.so", "needed=libdnn.so.9 rpath=$ORIGIN/own");
  EXPECT_EQ(plan("/opt/app/libmain.so", "/opt/cuda/lib64").find("libdnn.so.9")->way, FoundBy::rpath);
}

TEST_F(LoaderTest, RpathIsInheritedAndRunpathIsNot) {
  library("opt/a/libmain.so", "needed=liba.so rpath=$ORIGIN/x")
      .library("opt/a/x/liba.so", "soname=liba.so needed=libb.so");
  library("opt/a/x/libb.so", "soname=libb.so");
  EXPECT_THAT(paths_of(plan("/opt/a/libmain.so")),
              ElementsAre("/opt/a/libmain.so", "/opt/a/x/liba.so", "/opt/a/x/libb.so"));
  library("opt/a/libmain.so", "needed=liba.so runpath=$ORIGIN/x");
  const LoadPlan without = plan("/opt/a/libmain.so");
  ASSERT_EQ(without.missing.size(), 1U);
  EXPECT_EQ(without.missing[0].name, "libb.so");
  EXPECT_EQ(without.libraries[static_cast<std::size_t>(without.missing[0].wanted_by)].name, "liba.so");
}

TEST_F(LoaderTest, TakesTheFirstOfANameAndPassesOverOtherMachines) {
  library("opt/libmain.so", "needed=liba.so,libb.so runpath=/arm:/one")
      .library("arm/liba.so", "soname=liba.so machine=aarch64");
  library("one/liba.so", "soname=liba.so needed=libc1.so").library("one/libb.so", "needed=libc1.so");
  library("usr/lib/libc1.so", "soname=libc1.so");
  EXPECT_THAT(paths_of(plan("/opt/libmain.so")),
              ElementsAre("/opt/libmain.so", "/one/liba.so", "/one/libb.so", "/usr/lib/libc1.so"));
}

TEST_F(LoaderTest, ResolvesOriginThroughLinks) {
  library("data/store/libmain.so.1", "needed=liba.so runpath=$ORIGIN").library("data/store/liba.so", "soname=liba.so");
  tree.link("opt/libmain.so", "../data/store/libmain.so.1");
  EXPECT_THAT(paths_of(plan("/opt/libmain.so")), ElementsAre("/opt/libmain.so", "/data/store/liba.so"));
}

TEST_F(LoaderTest, EndsOnLoopsAndHostileFolders) {
  library("opt/liba.so", "soname=liba.so needed=libb.so runpath=/loop:/pipe:/opt");
  library("opt/libb.so", "soname=libb.so needed=liba.so runpath=/opt");
  tree.link("loop", "loop").fifo("pipe/libb.so");
  EXPECT_THAT(paths_of(plan("/opt/liba.so")), ElementsAre("/opt/liba.so", "/opt/libb.so"));
  EXPECT_FALSE(plan("/not/there.so").complete);
}

// The loader of the machine that runs the test has the right answers: every library of this program, where it was
// found.
TEST(Loader, FindsTheFilesThatThisProgramRunsWith) {
  const auto host = Host::open("/");
  ASSERT_TRUE(host);
  const Loader loader(*host, {"/lib", "/usr/lib"});
  if (!loader.has_cache()) GTEST_SKIP() << "no ld.so.cache";
  const LoadPlan plan = loader.plan({"/proc/self/exe"});
  EXPECT_TRUE(plan.complete);
  int compared = 0;
  for (const LoadedLibrary& library : plan.libraries) {
    void* handle = ::dlopen(library.name.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;  // the program itself
    const link_map* map = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0) {
      EXPECT_EQ(library.real_path, host->resolve(map->l_name)) << library.name;
      ++compared;
    }
    ::dlclose(handle);
  }
  EXPECT_GE(compared, 3);
}

TEST(LoaderCache, RefusesWhatIsNone) {
  for (const std::string_view bytes : {"", "ld.so-1.7.0", "glibc-ld.so.cache1.1", "ld.so-1.7.0\0\xff\xff\xff\xff"}) {
    EXPECT_FALSE(parse_loader_cache(bytes, "/etc/ld.so.cache"));
  }
}

}  // namespace
}  // namespace gpuwright::doctor

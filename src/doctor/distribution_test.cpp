// os-release files as these distributions ship them (their base-files or release packages).
#include "doctor/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuwright::doctor {
namespace {

using ::testing::ElementsAre;

struct Known {
  const char* text;
  Family family;
  const char* base;
};

TEST(Distribution, IsToldByItsFile) {
  const Known known[] = {
      {"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\n"
       "VERSION_CODENAME=bookworm\nID=debian\n",
       Family::debian, "debian-12"},
      {"PRETTY_NAME=\"Debian GNU/Linux forky/sid\"\nVERSION_CODENAME=forky\nID=debian\n", Family::debian, "debian-14"},
      {"NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n"
       "UBUNTU_CODENAME=noble\n",
       Family::ubuntu, "ubuntu-24.04"},
      {"NAME=\"Linux Mint\"\nVERSION_ID=\"22\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_CODENAME=wilma\n"
       "UBUNTU_CODENAME=noble\n",
       Family::ubuntu, "ubuntu-24.04"},
      {"NAME=\"Pop!_OS\"\nVERSION_ID=\"22.04\"\nID=pop\nID_LIKE=\"ubuntu debian\"\n", Family::ubuntu, "ubuntu-22.04"},
      {"NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\n", Family::rhel,
       "rhel-9"},
      {"NAME=\"Red Hat Enterprise Linux\"\nID=\"rhel\"\nID_LIKE=\"centos fedora\"\nVERSION_ID=\"10.0\"\n", Family::rhel,
       "rhel-10"},
      {"NAME=\"Amazon Linux\"\nID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n", Family::rhel, "amzn-2023"},
      {"NAME=\"Fedora Linux\"\nID=fedora\nVERSION_ID=42\n", Family::fedora, "fedora-42"},
      {"NAME=\"openSUSE Leap\"\nID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=\"15.6\"\n", Family::suse,
       "suse-15"},
      {"NAME=\"openSUSE Tumbleweed\"\nID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\nVERSION_ID=\"20260101\"\n",
       Family::suse, "suse"},
      {"NAME=\"Arch Linux\"\nID=arch\nBUILD_ID=rolling\n", Family::arch, "arch"},
      {"NAME=\"EndeavourOS\"\nID=endeavouros\nID_LIKE=arch\n", Family::arch, "arch"},
      {"NAME=NixOS\nID=nixos\nVERSION_ID=\"25.05\"\n", Family::unknown, "nixos-25.05"},
      {"", Family::unknown, ""},
  };
  for (const Known& one : known) {
    const Distribution distribution = distribution_from_os_release(one.text);
    EXPECT_EQ(distribution.family, one.family) << one.text;
    EXPECT_EQ(distribution.base(), one.base) << one.text;
  }
}

TEST(Distribution, TakesTheNearestCommandsFirst) {
  EXPECT_THAT(dialects_of(distribution_from_os_release("ID=ubuntu\n")), ElementsAre("ubuntu", "apt", "any"));
  EXPECT_THAT(dialects_of(distribution_from_os_release("ID=nixos\n")), ElementsAre("any"));
}

TEST(Distribution, BearsFilesThatAreNoOsRelease) {
  EXPECT_EQ(distribution_from_os_release("ID=\"\nVERSION_ID='\n\x1b[31mID\n=\n").family, Family::unknown);
  EXPECT_EQ(distribution_from_os_release(std::string(1 << 16, '=')).id, "");
}

}  // namespace
}  // namespace gpuwright::doctor

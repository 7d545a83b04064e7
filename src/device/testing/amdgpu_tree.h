// Test help: what amdgpu shows of a card, with the files of Linux'
// Documentation/gpu/amdgpu/{driver-misc,thermal,ras}.rst and
// Documentation/ABI/testing/{sysfs-class-hwmon,sysfs-bus-pci}.
#pragma once

#include <string>

#include "device/testing/tree.h"

namespace gpuwright::device::testing {

inline std::string card_path(int number) {
  return "sys/class/drm/card" + std::to_string(number) + "/device/";
}

inline void add_uevent(Tree& tree, int number, const std::string& driver, const std::string& id,
                       const std::string& address) {
  tree.file(card_path(number) + "uevent", "DRIVER=" + driver + "\nPCI_CLASS=30000\nPCI_ID=" + id +
                                              "\nPCI_SUBSYS_ID=1EAE:7901\nPCI_SLOT_NAME=" + address +
                                              "\nMODALIAS=pci:v00001002d0000744Csv00001EAEsd00007901bc03sc00i00\n");
  tree.file(card_path(number) + "power/runtime_status", "active\n");
  tree.folder("sys/class/drm/card" + std::to_string(number) + "-DP-1");  // a connector
}

// A Radeon RX 7900 XTX that works.
inline void add_radeon(Tree& tree, int number = 1, const std::string& address = "0000:03:00.0") {
  const std::string card = card_path(number), hwmon = card + "hwmon/hwmon4/";
  add_uevent(tree, number, "amdgpu", "1002:744C", address);
  tree.file(card + "mem_info_vram_total", "25753026560\n").file(card + "mem_info_vram_used", "9663676416\n");
  tree.file(card + "mem_info_vis_vram_total", "25753026560\n").file(card + "mem_info_vis_vram_used", "9663676416\n");
  tree.file(card + "mem_info_gtt_total", "16698912768\n").file(card + "mem_info_gtt_used", "33554432\n");
  tree.file(card + "gpu_busy_percent", "97\n").file(card + "mem_busy_percent", "41\n");
  tree.file(card + "pp_dpm_sclk", "0: 500Mhz \n1: 2482Mhz *\n2: 2526Mhz \n");
  tree.file(card + "pp_dpm_mclk", "0: 96Mhz \n1: 456Mhz \n2: 772Mhz \n3: 1249Mhz *\n");
  tree.file(card + "current_link_speed", "16.0 GT/s PCIe\n").file(card + "current_link_width", "16\n");
  tree.file(card + "max_link_speed", "16.0 GT/s PCIe\n").file(card + "max_link_width", "16\n");
  tree.file(card + "unique_id", "5b9f2f8e1c3d4a7" + std::to_string(number) + "\n")
      .file(card + "vbios_version", "113-D70401-00\n");
  tree.file(card + "numa_node", "-1\n").file(card + "pcie_replay_count", "2\n");
  tree.file(hwmon + "name", "amdgpu\n").file(hwmon + "power1_average", "303000000\n");
  tree.file(hwmon + "power1_cap", "339000000\n").file(hwmon + "power1_cap_default", "339000000\n");
  tree.file(hwmon + "power1_cap_min", "0\n").file(hwmon + "power1_cap_max", "389000000\n");
  tree.file(hwmon + "temp1_input", "54000\n")
      .file(hwmon + "temp1_label", "edge\n")
      .file(hwmon + "temp1_crit", "100000\n");
  tree.file(hwmon + "temp1_emergency", "105000\n").file(hwmon + "temp2_input", "71000\n");
  tree.file(hwmon + "temp2_label", "junction\n").file(hwmon + "temp3_input", "80000\n");
  tree.file(hwmon + "temp3_label", "mem\n").file(hwmon + "fan1_input", "1480\n").file(hwmon + "pwm1", "102\n");
  tree.file(hwmon + "pwm1_max", "255\n").file(hwmon + "freq1_input", "2482000000\n");
  tree.file(hwmon + "freq2_input", "1249000000\n");
}

}  // namespace gpuwright::device::testing

// The noun of this room: an accelerator that can be had, as its data sheet and its driver describe it.
// A board (what one buys) and a device (what a driver enumerates) are apart: a Tesla A16 is one board of four devices.
// Every figure that is not known is empty; 0 means that the hardware lacks it. Tensor figures are dense.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace gpuwright::catalog {

struct PciId {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  // Only where boards share a device id (A2 and A16); 0 = any.
  std::uint16_t subsystem_vendor = 0;
  std::uint16_t subsystem_device = 0;
  auto operator<=>(const PciId&) const = default;
};
// "10de:2684", and "10de:25b6/10de:14a9" with a subsystem.
std::string to_string(PciId id);

// A slice of a MIG-capable device: `nvidia-smi mig -lgip` of that device.
struct MigProfile {
  std::string name;  // "1g.10gb"
  Bytes memory;      // as the driver reports it
  int max_instances = 0;
};

// Peak throughput in 1e12 operations a second, per device. "accumulate" is the type sums are kept in: GeForce cards
// multiply FP16 with FP32 accumulation at half the rate of FP16 accumulation.
struct Throughput {
  std::optional<double> fp32_tflops;
  std::optional<double> tf32_tflops;
  std::optional<double> fp16_tflops;  // FP32 accumulate
  std::optional<double> fp16_accumulate_fp16_tflops;
  std::optional<double> bf16_tflops;
  std::optional<double> fp8_tflops;
  std::optional<double> fp4_tflops;
  std::optional<double> int8_tops;
};

struct Accelerator {
  std::string id;                    // "rtx-4090-24gb"
  std::string vendor;                // "NVIDIA"
  std::string name;                  // "GeForce RTX 4090"
  std::vector<std::string> aliases;  // the driver's own name and what people call it
  std::string family;                // consumer, workstation, datacenter, embedded, apu, ...
  std::string architecture;
  std::string chip;
  std::optional<int> year;
  std::string form_factor;

  int devices_per_board = 1;
  Bytes nominal_memory;                // of one device, as sold (a "24 GB" card: 24 GiB of chips)
  std::optional<Bytes> usable_memory;  // of one device, as the driver reports the total; see usable()
  std::string usable_memory_source;
  // The total that drivers report for another board of the same chip, family, memory type and amount; filled in by
  // Catalog.
  std::optional<Bytes> sibling_usable_memory;
  std::string sibling;          // its name
  std::string memory_type;      // GDDR6X, HBM3e, unified LPDDR5X, ...
  bool unified_memory = false;  // shared with the CPU
  std::optional<double> memory_bandwidth_gb_per_second;
  Throughput throughput;

  std::optional<std::string> compute_capability;  // NVIDIA: "8.9"; AMD: "gfx942"
  std::optional<int> multiprocessors;             // SMs, CUs, Xe cores
  std::optional<double> boost_mhz;
  std::optional<double> nvlink_gb_per_second;  // both directions together
  std::string pcie;                            // "4x16"
  std::optional<Watts> board_power;
  std::optional<Money> launch_price;

  std::optional<std::string> first_cuda, last_cuda;  // toolkits that can target it; last empty = still supported
  std::optional<std::string> first_driver, last_driver;
  std::vector<PciId> pci_ids;
  std::vector<MigProfile> mig_profiles;

  std::vector<std::string> sources;
  std::vector<std::string> unverified;         // fields whose only source is a secondary one
  std::map<std::string, std::string> unknown;  // why a field is empty, where a reason is known
  std::string notes;

  // What a program can use of one device: the driver-reported total where known, else that of a sibling, else
  // usable_by_rule().
  Bytes usable() const;
  // Where usable() is from, for people.
  std::string usable_source() const;
  // Nominal memory less what devices of its kind lose to firmware, ECC and page tables; fitted on driver-reported
  // totals, see accelerator.cpp. Within 1.5 % of the totals in data/gpus.toml, but for the B300 and Strix Halo.
  Bytes usable_by_rule() const;
  // Whether usable() is a driver's figure, of this board or of a sibling, and no field behind it is unverified.
  bool memory_is_verified() const;
};

// A board that is put into a computer or rented in one: no laptop GPU, no module, no chip that shares its memory with
// the CPU of a Mac, a Jetson or a DGX Spark.
bool is_board(const Accelerator& accelerator);

// Whether the device can be cut into MIG instances; nothing where the guide's list of supported GPUs does not tell.
std::optional<bool> supports_mig(const Accelerator& accelerator);

}  // namespace gpuwright::catalog

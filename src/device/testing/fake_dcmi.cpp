// A libdcmi of two cards for tests: card 0 is an Ascend 910B3 with 64 GB of HBM, card 4 a 310P3 with DDR. Structures
// are declared by Huawei's names in the order of dcmi_interface_api.h, so that they check those of the reader.
// FAKE_DCMI says what is wrong: "no-init", "lost", "alarm", "refused", "old" (only the functions of the first drivers).
#include <cstdlib>
#include <cstring>
#include <string>

struct dcmi_chip_info {
  unsigned char chip_type[32];
  unsigned char chip_name[32];
  unsigned char chip_ver[32];
  unsigned int aicore_cnt;
};
struct dcmi_pcie_info_all {
  unsigned int venderid;
  unsigned int subvenderid;
  unsigned int deviceid;
  unsigned int subdeviceid;
  int domain;
  unsigned int bdf_busid;
  unsigned int bdf_deviceid;
  unsigned int bdf_funcid;
  unsigned char reserve[32];
};
struct dcmi_hbm_info {
  unsigned long long memory_size;
  unsigned int freq;
  unsigned long long memory_usage;
  int temp;
  unsigned int bandwith_util_rate;
};
struct dcmi_get_memory_info_stru {
  unsigned long long memory_size;
  unsigned long long memory_available;
  unsigned int freq;
  unsigned long hugepagesize;
  unsigned long hugepages_total;
  unsigned long hugepages_free;
  unsigned int utiliza;
  unsigned char reserve[60];
};
struct dcmi_ecc_info {
  int enable_flag;
  unsigned int single_bit_error_cnt;
  unsigned int double_bit_error_cnt;
  unsigned int total_single_bit_error_cnt;
  unsigned int total_double_bit_error_cnt;
  unsigned int single_bit_isolated_pages_cnt;
  unsigned int double_bit_isolated_pages_cnt;
};
struct dcmi_proc_mem_info {
  int proc_id;
  unsigned long proc_mem_usage;
};

namespace {

constexpr int kNotSupported = -8255, kNotPermitted = -8002, kNoDevice = -8008;

bool mode_is(const char* mode) {
  const char* set = std::getenv("FAKE_DCMI");
  return set != nullptr && std::strcmp(set, mode) == 0;
}
void put(void* field, const char* text) {
  std::memcpy(field, text, std::strlen(text));
}

}  // namespace

extern "C" {

int dcmi_init() {
  return mode_is("no-init") ? -8005 : 0;
}
int dcmi_get_driver_version(char* text, unsigned length) {
  std::strncpy(text, "24.1.0", length);
  return 0;
}
int dcmi_get_card_list(int* count, int* cards, int) {
  *count = 2;
  cards[0] = 0;
  cards[1] = 4;
  return 0;
}
int dcmi_get_device_id_in_card(int, int* chips, int* mcu, int* cpu) {
  *chips = 1;
  *mcu = 1;
  *cpu = -1;
  return 0;
}
int dcmi_get_device_chip_info(int card, int, dcmi_chip_info* info) {
  put(info->chip_type, "Ascend");
  put(info->chip_name, card == 0 ? "910B3" : "310P3");
  info->aicore_cnt = 20;
  return 0;
}
int dcmi_get_device_pcie_info_v2(int card, int, dcmi_pcie_info_all* info) {
  static_assert(sizeof(dcmi_pcie_info_all) == 64);  // as its comment says
  info->venderid = 0x19e5;
  info->deviceid = card == 0 ? 0xd802 : 0xd500;
  info->domain = 0;
  info->bdf_busid = card == 0 ? 0xc1 : 0x01;
  return 0;
}
int dcmi_get_device_hbm_info(int card, int, dcmi_hbm_info* info) {
  if (mode_is("old")) return kNotSupported;
  info->memory_size = card == 0 ? 65536 : 0;  // boards without HBM answer 0 and no error
  info->memory_usage = card == 0 ? 3398 : 0;
  info->freq = 1600;
  info->temp = 41;
  return 0;
}
int dcmi_get_hbm_info(int card, int, dcmi_hbm_info* info) {
  info->memory_size = card == 0 ? 33554432 : 0;  // KB
  info->memory_usage = card == 0 ? 1048576 : 0;
  return 0;
}
int dcmi_get_device_memory_info_v3(int card, int, dcmi_get_memory_info_stru* info) {
  if (card == 0) return kNotSupported;
  info->memory_size = 21527;
  info->memory_available = 19000;
  info->freq = 2133;
  info->utiliza = 10;
  return 0;
}
int dcmi_get_device_utilization_rate(int card, int, int type, unsigned* rate) {
  if (type == 10 && card != 0) return kNotSupported;
  *rate = type == 2 ? 87 : type == 10 ? 33 : 12;
  return 0;
}
int dcmi_get_device_frequency(int, int, int type, unsigned* frequency) {
  *frequency = type == 7 ? 1650 : 1800;
  return 0;
}
int dcmi_get_device_temperature(int, int, int* celsius) {
  *celsius = 48;
  return 0;
}
int dcmi_get_device_power_info(int card, int, int* tenths) {
  if (card == 4) return kNotSupported;
  *tenths = 934;
  return 0;
}
int dcmi_get_device_health(int card, int, unsigned* health) {
  if (card == 4 && mode_is("lost")) return kNoDevice;
  if (card == 4 && mode_is("refused")) return kNotPermitted;
  *health = card == 4 && mode_is("alarm") ? 3 : 0;
  return 0;
}
int dcmi_get_device_errorcode_v2(int, int, int* count, unsigned* codes, unsigned) {
  *count = 1;
  codes[0] = 0x80e01801;
  return 0;
}
int dcmi_get_device_errorcode_string(int, int, unsigned, unsigned char* text, int) {
  put(text, "HBM multi-bit ECC error");
  return 0;
}
int dcmi_get_device_ecc_info(int card, int, int type, dcmi_ecc_info* info) {
  if ((card == 0) != (type == 2)) return kNotSupported;
  *info = {1, 2, 3, 4, 5, 6, 7};
  return 0;
}
int dcmi_get_device_resource_info(int card, int, dcmi_proc_mem_info* processes, int* count) {
  *count = card == 0 ? 1 : 0;
  if (card == 0) processes[0] = {4711, 2147483648UL};
  return 0;
}
int dcmi_get_device_logic_id(int* id, int card, int) {
  *id = card == 0 ? 0 : 1;
  return 0;
}

}  // extern "C"

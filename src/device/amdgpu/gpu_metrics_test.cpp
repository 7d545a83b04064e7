// The structs are those of Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h (v6.17), so that the compiler and not
// this room's table says where a field lies.
#include "device/amdgpu/gpu_metrics.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace gpuwright::device {
namespace {

struct Header {
  std::uint16_t structure_size;
  std::uint8_t format_revision, content_revision;
};
struct V1_3 {
  Header header;
  std::uint16_t temperature_edge, temperature_hotspot, temperature_mem, temperature_vrgfx, temperature_vrsoc,
      temperature_vrmem, average_gfx_activity, average_umc_activity, average_mm_activity, average_socket_power;
  std::uint64_t energy_accumulator, system_clock_counter;
  std::uint16_t average_gfxclk, average_socclk, average_uclk, average_vclk0, average_dclk0, average_vclk1,
      average_dclk1, current_gfxclk, current_socclk, current_uclk, current_vclk0, current_dclk0, current_vclk1,
      current_dclk1;
  std::uint32_t throttle_status;
  std::uint16_t current_fan_speed, pcie_link_width, pcie_link_speed, padding;
  std::uint32_t gfx_activity_acc, mem_activity_acc;
  std::uint16_t temperature_hbm[4];
  std::uint64_t firmware_timestamp;
  std::uint16_t voltage_soc, voltage_gfx, voltage_mem, padding1;
  std::uint64_t indep_throttle_status;
};
struct V1_5 {
  Header header;
  std::uint16_t temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity,
      average_umc_activity, vcn_activity[4], jpeg_activity[32];
  std::uint64_t energy_accumulator, system_clock_counter;
  std::uint32_t throttle_status, gfxclk_lock_status;
  std::uint16_t pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
  std::uint32_t gfx_activity_acc, mem_activity_acc;
  std::uint64_t pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov, pcie_replay_count_acc, pcie_replay_rover;
  std::uint32_t pcie_nak_sent, pcie_nak_rcvd;
  std::uint64_t xgmi_read_data_acc[8], xgmi_write_data_acc[8], firmware_timestamp;
  std::uint16_t current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk, padding;
};
struct V1_7 {
  Header header;
  std::uint16_t temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity,
      average_umc_activity;
  std::uint64_t mem_max_bandwidth, energy_accumulator, system_clock_counter;
  std::uint32_t accumulation_counter, prochot_residency_acc, ppt_residency_acc, socket_thm_residency_acc,
      vr_thm_residency_acc, hbm_thm_residency_acc, gfxclk_lock_status;
  std::uint16_t pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
  std::uint32_t gfx_activity_acc, mem_activity_acc;
  std::uint64_t pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov, pcie_replay_count_acc, pcie_replay_rover;
  std::uint32_t pcie_nak_sent, pcie_nak_rcvd;
  std::uint64_t xgmi_read_data_acc[8], xgmi_write_data_acc[8];
  std::uint16_t xgmi_link_status[8], padding;
  std::uint64_t firmware_timestamp;
  std::uint16_t current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk, num_partition;
};
// 1.6 as it has been since it lost the media activities (6.13); its partitions follow.
struct V1_6 {
  Header header;
  std::uint16_t temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity,
      average_umc_activity;
  std::uint64_t energy_accumulator, system_clock_counter;
  std::uint32_t accumulation_counter, prochot_residency_acc, ppt_residency_acc, socket_thm_residency_acc,
      vr_thm_residency_acc, hbm_thm_residency_acc, gfxclk_lock_status;
  std::uint16_t pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
  std::uint32_t gfx_activity_acc, mem_activity_acc;
  std::uint64_t pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov, pcie_replay_count_acc, pcie_replay_rover;
  std::uint32_t pcie_nak_sent, pcie_nak_rcvd;
  std::uint64_t xgmi_read_data_acc[8], xgmi_write_data_acc[8], firmware_timestamp;
  std::uint16_t current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk, num_partition;
  struct {
    std::uint32_t gfx_busy_inst[8];
    std::uint16_t jpeg_busy[32], vcn_busy[4];
    std::uint64_t gfx_busy_acc[8];
  } xcp_stats[8];
  std::uint32_t pcie_lc_perf_other_end_recovery;
};
struct V2_2 {
  Header header;
  std::uint16_t temperature_gfx, temperature_soc, temperature_core[8], temperature_l3[2], average_gfx_activity,
      average_mm_activity;
  std::uint64_t system_clock_counter;
  std::uint16_t average_socket_power, average_cpu_power, average_soc_power, average_gfx_power, average_core_power[8],
      average_gfxclk, average_socclk, average_uclk, average_fclk, average_vclk, average_dclk, current_gfxclk,
      current_socclk, current_uclk, current_fclk, current_vclk, current_dclk, current_coreclk[8], current_l3clk[2];
  std::uint32_t throttle_status;
  std::uint16_t fan_pwm, padding[3];
  std::uint64_t indep_throttle_status;
};

template <class Table>
Table unfilled(int format, int content) {
  Table table;
  std::memset(&table, 0xff, sizeof table);  // as smu_cmn_init_soft_gpu_metrics leaves what the firmware lacks
  table.header = {sizeof table, static_cast<std::uint8_t>(format), static_cast<std::uint8_t>(content)};
  return table;
}
template <class Table>
std::string bytes_of(const Table& table) {
  return std::string(reinterpret_cast<const char*>(&table), sizeof table);
}

TEST(GpuMetrics, OfADiscreteCard) {
  auto table = unfilled<V1_3>(1, 3);
  table.temperature_edge = 54;
  table.temperature_hotspot = 71;
  table.temperature_mem = 80;
  table.average_gfx_activity = 97;
  table.average_umc_activity = 41;
  table.average_mm_activity = 3;
  table.average_socket_power = 303;
  table.current_gfxclk = 2482;
  table.current_uclk = 1249;
  table.current_vclk0 = 513;
  table.current_fan_speed = 1480;
  table.pcie_link_width = 16;
  table.pcie_link_speed = 160;
  table.indep_throttle_status = (1ULL << 36) | (1ULL << 0);  // hot spot; PPT0
  const auto metrics = parse_gpu_metrics(bytes_of(table));
  ASSERT_TRUE(metrics);
  EXPECT_FALSE(metrics->is_apu);
  EXPECT_EQ(metrics->edge, Celsius{54});
  EXPECT_EQ(metrics->hotspot, Celsius{71});
  EXPECT_EQ(metrics->memory_temperature, Celsius{80});
  EXPECT_DOUBLE_EQ(metrics->graphics_activity->value, 0.97);
  EXPECT_DOUBLE_EQ(metrics->memory_activity->value, 0.41);
  EXPECT_DOUBLE_EQ(metrics->media_activity->value, 0.03);
  EXPECT_EQ(metrics->power, Watts{303});
  EXPECT_EQ(metrics->graphics_clock, Hertz{2482e6});
  EXPECT_EQ(metrics->memory_clock, Hertz{1249e6});
  EXPECT_EQ(metrics->video_clock, Hertz{513e6});
  EXPECT_EQ(metrics->fan_rpm, 1480);
  EXPECT_EQ(metrics->pcie_width, 16);
  EXPECT_EQ(metrics->pcie_generation, 4);
  EXPECT_EQ(metrics->throttle_reasons->bits, throttle::kSoftwarePowerCap | throttle::kSoftwareThermal);
  EXPECT_FALSE(metrics->energy);  // the header gives it no unit before 1.4
}

template <class Table>
void check_instinct(int content) {
  auto table = unfilled<Table>(1, content);
  table.temperature_hotspot = 64;
  table.temperature_mem = 51;
  table.curr_socket_power = 733;
  table.average_gfx_activity = 100;
  table.average_umc_activity = 62;
  table.energy_accumulator = 65536ULL * 5000;
  table.pcie_link_width = 16;
  table.pcie_link_speed = 320;
  table.pcie_replay_count_acc = 7;
  table.xgmi_read_data_acc[2] = 3;
  table.xgmi_write_data_acc[7] = 4;
  table.current_gfxclk[5] = 2101;
  table.current_vclk0[1] = 29;
  table.current_uclk = 1300;
  const auto metrics = parse_gpu_metrics(bytes_of(table));
  ASSERT_TRUE(metrics) << content;
  EXPECT_EQ(metrics->hotspot, Celsius{64});
  EXPECT_EQ(metrics->memory_temperature, Celsius{51});
  EXPECT_EQ(metrics->power, Watts{733});
  EXPECT_DOUBLE_EQ(metrics->graphics_activity->value, 1.0);
  EXPECT_DOUBLE_EQ(metrics->memory_activity->value, 0.62);
  EXPECT_DOUBLE_EQ(metrics->energy->value, 5000);  // "15.259uJ (2^-16) units"
  EXPECT_EQ(metrics->pcie_width, 16);
  EXPECT_EQ(metrics->pcie_generation, 5);
  EXPECT_EQ(metrics->pcie_replays, 7);
  EXPECT_EQ(metrics->xgmi_read[2], 3 * 1024);
  EXPECT_EQ(metrics->xgmi_written[7], 4 * 1024);
  EXPECT_FALSE(metrics->xgmi_read[0]);
  EXPECT_EQ(metrics->graphics_clock, Hertz{2101e6});
  EXPECT_EQ(metrics->video_clock, Hertz{29e6});
  EXPECT_EQ(metrics->memory_clock, Hertz{1300e6});
}

TEST(GpuMetrics, OfInstinctCards) {
  check_instinct<V1_5>(5);
  check_instinct<V1_6>(6);
  check_instinct<V1_7>(7);
  check_instinct<V1_7>(8);  // 1.8 differs behind the clocks
}

TEST(GpuMetrics, ThrottlingIsWhatTheResidenciesGainedBetweenTwoReads) {
  auto table = unfilled<V1_7>(1, 7);
  table.prochot_residency_acc = 1;
  table.ppt_residency_acc = 100;
  table.socket_thm_residency_acc = 5;
  table.vr_thm_residency_acc = 6;
  table.hbm_thm_residency_acc = 7;
  const auto before = parse_gpu_metrics(bytes_of(table));
  table.ppt_residency_acc = 130;
  const auto after = parse_gpu_metrics(bytes_of(table));
  ASSERT_TRUE(before->throttle_residency && after->throttle_residency);
  EXPECT_EQ(throttled_between(*before->throttle_residency, *after->throttle_residency).bits,
            throttle::kSoftwarePowerCap);
  EXPECT_EQ(throttled_between(*after->throttle_residency, *after->throttle_residency).bits, 0U);
}

TEST(GpuMetrics, OfAnApu) {
  auto table = unfilled<V2_2>(2, 2);
  table.current_gfxclk = 1600;
  table.current_uclk = 800;
  table.average_socket_power = 15;  // watts or milliwatts, as the firmware likes
  table.indep_throttle_status = 0;
  const auto metrics = parse_gpu_metrics(bytes_of(table));
  ASSERT_TRUE(metrics);
  EXPECT_TRUE(metrics->is_apu);
  EXPECT_EQ(metrics->graphics_clock, Hertz{1600e6});
  EXPECT_EQ(metrics->memory_clock, Hertz{800e6});
  EXPECT_EQ(metrics->throttle_reasons->bits, 0U);
  EXPECT_FALSE(metrics->power);
}

// gpu-monitoring-tools#152, device-metrics-exporter PR#557: a sentinel is no value.
TEST(GpuMetrics, BlankValuesAreNotExported) {
  const auto metrics = parse_gpu_metrics(bytes_of(unfilled<V1_7>(1, 7)));
  ASSERT_TRUE(metrics);
  EXPECT_FALSE(metrics->hotspot || metrics->power || metrics->graphics_activity || metrics->energy ||
               metrics->graphics_clock || metrics->pcie_width || metrics->pcie_replays || metrics->throttle_residency ||
               metrics->xgmi_read[0]);
  auto table = unfilled<V1_3>(1, 3);
  table.average_gfx_activity = 37100;  // percent
  table.temperature_edge = 65000;
  table.pcie_link_speed = 1;
  table.pcie_link_width = 4000;
  const auto impossible = parse_gpu_metrics(bytes_of(table));
  EXPECT_FALSE(impossible->graphics_activity || impossible->edge || impossible->pcie_generation ||
               impossible->pcie_width);
}

TEST(GpuMetrics, CutOffOrUnknownTables) {
  const std::string good = bytes_of(unfilled<V1_3>(1, 3));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse_gpu_metrics(good.substr(0, size)));
  EXPECT_FALSE(parse_gpu_metrics(std::string("\x10\x00\x01\x03", 4) + std::string(200, '\0')));  // says 16 bytes
  EXPECT_FALSE(parse_gpu_metrics(bytes_of(unfilled<V1_3>(9, 9))));
  EXPECT_FALSE(parse_gpu_metrics(bytes_of(unfilled<V1_3>(1, 0))));
}

}  // namespace
}  // namespace gpuwright::device

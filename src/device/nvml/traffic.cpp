// Traffic on PCI Express and NVLink, from counters of bytes.
#include "device/nvml/card.h"
#include "device/nvml/field_batch.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr double kKib = 1024;
constexpr unsigned kMostLinks = 64;

void choose_link_counters(Card& card, const FieldBatch& fields) {
  using Counters = Card::LinkCounters;
  if (card.link_counters != Counters::untried) return;
  const auto links = fields.number(nvml::field::kNvLinkCount);
  if (links && *links <= kMostLinks) card.link_count = static_cast<unsigned>(*links);
  if (fields.code(nvml::field::kNvLinkDataSent, nvml::field::kAllLinks) == nvml::kSuccess)
    card.link_counters = Counters::total;
  else
    card.link_counters = card.link_count.value_or(0) > 0 ? Counters::each : Counters::none;
}

// The sum over the links; links that are down do not tell.
Reading<std::uint64_t> sum_of_links(const Card& card, const FieldBatch& fields, unsigned id) {
  Reading<std::uint64_t> sum = Why::not_supported;
  for (unsigned link = 0; link < card.link_count.value_or(0); ++link)
    if (const auto value = fields.number(id, link)) sum = sum.value_or(0) + *value;
  return sum;
}

}  // namespace

void want_traffic(FieldBatch& fields, const Card& card) {
  fields.want({nvml::field::kPcieSentBytes, nvml::field::kPcieReceivedBytes});
  using Counters = Card::LinkCounters;
  if (card.link_counters == Counters::untried || card.link_counters == Counters::total)
    fields.want({nvml::field::kNvLinkDataSent, nvml::field::kNvLinkDataReceived}, nvml::field::kAllLinks);
  if (card.link_counters == Counters::untried) fields.want({nvml::field::kNvLinkCount});
  if (card.link_counters == Counters::each)
    for (unsigned link = 0; link < card.link_count.value_or(0); ++link)
      fields.want({nvml::field::kNvLinkSentBytes, nvml::field::kNvLinkReceivedBytes}, link);
}

void tell_traffic(Card& card, const FieldBatch& fields, std::int64_t now_ns) {
  Gpu& gpu = card.row;
  const auto bus = [&](ByteRate& rate, unsigned id) {
    return rate.take(fields.number(id), 1, fields.bits(id), now_ns);
  };
  gpu.pcie_sent = bus(card.pcie_sent, nvml::field::kPcieSentBytes);
  gpu.pcie_received = bus(card.pcie_received, nvml::field::kPcieReceivedBytes);
  card.pcie_needs_meter = !gpu.pcie_sent && gpu.pcie_sent.why() == Why::not_supported;
  choose_link_counters(card, fields);
  using Counters = Card::LinkCounters;
  if (card.link_counters == Counters::none) {
    gpu.nvlink_sent = gpu.nvlink_received = Why::not_supported;
  } else if (card.link_counters == Counters::total) {
    const auto total = [&](ByteRate& rate, unsigned id) {
      return rate.take(fields.number(id, nvml::field::kAllLinks), kKib, 64, now_ns);
    };
    gpu.nvlink_sent = total(card.link_sent, nvml::field::kNvLinkDataSent);
    gpu.nvlink_received = total(card.link_received, nvml::field::kNvLinkDataReceived);
  } else {
    const auto each = [&](ByteRate& rate, unsigned id) {
      const auto sum = sum_of_links(card, fields, id);
      // Asked for the first time in the round after the choice.
      return fields.code(id, 0) == nvml::kFunctionNotFound ? Reading<BytesPerSecond>(Why::needs_two_samples)
                                                           : rate.take(sum, 1, 64, now_ns);
    };
    gpu.nvlink_sent = each(card.link_sent, nvml::field::kNvLinkSentBytes);
    gpu.nvlink_received = each(card.link_received, nvml::field::kNvLinkReceivedBytes);
  }
}

}  // namespace gpuwright::device::nvidia

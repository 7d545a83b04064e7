// The ports of NVLink and what is at their other end.
#include <vector>

#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::int64_t kPeriod = 5'000'000'000;
constexpr unsigned kMostLinks = 64;

// "NVSwitch", or the PCI address of the neighbour; it does not change while the driver runs.
Reading<std::string> remote_of(Card& card, CardAsker& ask, unsigned link) {
  const Functions& f = ask.functions();
  const int number = static_cast<int>(link);
  if (const auto known = card.remotes.find(number); known != card.remotes.end()) return known->second;
  auto type = nvml::kNvLinkUnknown;
  if (ask.plain()(f.nvmlDeviceGetNvLinkRemoteDeviceType, card.handle, link, &type) == nvml::kSuccess &&
      type == nvml::kNvLinkSwitch)
    return card.remotes.emplace(number, "NVSwitch").first->second;
  nvml::PciInfo pci{};
  nvml::Return code = ask.plain()(f.nvmlDeviceGetNvLinkRemotePciInfo_v2, card.handle, link, &pci);
  if (try_the_older(code)) code = ask.plain()(f.nvmlDeviceGetNvLinkRemotePciInfo, card.handle, link, &pci);
  const Reading<std::string> address = text(code, pci.bus_id, sizeof pci.bus_id);
  if (!address) return address.why();
  return card.remotes.emplace(number, short_address(*address)).first->second;
}

}  // namespace

void read_links(Card& card, CardAsker& ask, const Round& round) {
  if (!round.wants.links || !due(card.links_read_ns, round.now_ns, kPeriod)) return;
  card.links_read_ns = round.now_ns;
  std::vector<Link> links;
  for (unsigned number = 0; number < kMostLinks && ask.fine(); ++number) {
    nvml::EnableState active = 0;
    const nvml::Return code = ask.plain()(ask.functions().nvmlDeviceGetNvLinkState, card.handle, number, &active);
    // Past the last link, and on boards without any.
    if (code == nvml::kInvalidArgument || try_the_older(code)) break;
    Link link;
    link.number = static_cast<int>(number);
    link.active = yes_or_no(code, active);
    link.remote = link.active.value_or(false) ? remote_of(card, ask, number) : Reading<std::string>(Why::no_data);
    links.push_back(std::move(link));
  }
  card.row.links = std::move(links);
}

}  // namespace gpuwright::device::nvidia

#include "device/sysfs/fdinfo.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostProcesses = 65536, kMostFiles = 65536, kMostClients = 65536;
constexpr std::size_t kMostFdinfoBytes = 16 << 10;
constexpr std::size_t kMostNames = 64;  // engines or regions of one client
constexpr std::int64_t kMostCapacity = 1024;

std::optional<std::int64_t> count_of(std::string_view text) {
  const auto value = to_integer(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// "4711", "23992 KiB", "16 MiB", "120 ns"; the factor of the unit, where there is one.
std::optional<std::int64_t> quantity_of(std::string_view text) {
  const std::size_t space = text.find_first_of(" \t");
  const auto number = count_of(text.substr(0, space));
  if (!number || space == std::string_view::npos) return number;
  const std::string_view unit = trim(text.substr(space));
  if (unit == "KiB" || unit == "kB") return checked_multiply(*number, 1 << 10);
  if (unit == "MiB") return checked_multiply(*number, 1 << 20);
  if (unit == "ns") return number;
  return std::nullopt;
}

// Regions are told in up to three ways; the nearest to "occupies now" wins.
enum class MemoryKind { total, memory, resident };

struct ClientText {
  DrmClient client;
  std::map<std::string, MemoryKind, std::less<>> kinds;

  DrmEngine* engine(std::string_view name) {
    if (client.engines.size() >= kMostNames && client.engines.find(name) == client.engines.end()) return nullptr;
    return &client.engines[std::string(name)];
  }
  void set_memory(std::string_view region, MemoryKind kind, std::string_view value) {
    const auto bytes = quantity_of(value);
    if (!bytes) return;
    if (kinds.size() >= kMostNames && kinds.find(region) == kinds.end()) return;
    const auto [entry, is_new] = kinds.try_emplace(std::string(region), kind);
    if (!is_new && entry->second >= kind) return;
    entry->second = kind;
    client.memory[std::string(region)] = Bytes{*bytes};
  }
  void take(std::string_view key, std::string_view value);
};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return !text.empty();
}

void ClientText::take(std::string_view key, std::string_view value) {
  if (key == "drm-driver") client.driver = value.substr(0, kMostNames);
  if (key == "drm-pdev") client.pci_address = lower(value.substr(0, kMostNames));
  if (key == "drm-client-id") client.id = count_of(value);
  if (std::string_view name = key; take_prefix(name, "drm-engine-capacity-")) {
    const auto capacity = count_of(value);
    if (DrmEngine* of = engine(name); of != nullptr && capacity && *capacity >= 1 && *capacity <= kMostCapacity)
      of->capacity = *capacity;
  } else if (name = key; take_prefix(name, "drm-engine-")) {
    if (DrmEngine* of = engine(name)) of->busy_ns = quantity_of(value);
  } else if (name = key; take_prefix(name, "drm-total-cycles-")) {
    if (DrmEngine* of = engine(name)) of->total_cycles = count_of(value);
  } else if (name = key; take_prefix(name, "drm-cycles-")) {
    if (DrmEngine* of = engine(name)) of->cycles = count_of(value);
  } else if (name = key; take_prefix(name, "drm-resident-")) {
    set_memory(name, MemoryKind::resident, value);
  } else if (name = key; take_prefix(name, "drm-memory-")) {
    set_memory(name, MemoryKind::memory, value);
  } else if (name = key; take_prefix(name, "drm-total-")) {
    set_memory(name, MemoryKind::total, value);
  }
}

// Counters may step back for a while: "userspace is expected to stay with that larger previous value".
DrmEngine larger(const DrmEngine& before, DrmEngine now) {
  now.busy_ns = std::max(now.busy_ns, before.busy_ns);
  now.cycles = std::max(now.cycles, before.cycles);
  now.total_cycles = std::max(now.total_cycles, before.total_cycles);
  return now;
}

}  // namespace

std::optional<DrmClient> parse_fdinfo(std::string_view text) {
  ClientText result;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with("drm-")) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    result.take(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }
  if (result.client.driver.empty()) return std::nullopt;
  return std::move(result.client);
}

void FdinfoScan::find_sleeping_nodes() {
  sleeping_nodes_.clear();
  const std::string folder = root_ + "/sys/class/drm/";
  for (const std::string_view prefix : {"card", "renderD"})
    for (const std::string& name : numbered_in(folder, prefix))
      if (read_attribute(folder + name + "/device/power/runtime_status") == std::string("suspended"))
        sleeping_nodes_.insert("/dev/dri/" + name);
}

void FdinfoScan::read_into(std::int64_t pid, const std::string& path) {
  const FileText file = read_start(path, kMostFdinfoBytes);
  if (!file) return;
  if (auto client = parse_fdinfo(file.text)) clients_.push_back({pid, std::move(*client)});
}

// Most descriptors are sockets and files: their links tell without opening anything.
void FdinfoScan::look_at(std::int64_t pid) {
  const std::string folder = root_ + "/proc/" + std::to_string(pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir((folder + "/fd").c_str()), &::closedir);
  if (!directory) {
    if (errno == EACCES || errno == EPERM) ++hidden_;
    if (errno == ENOENT) read_captured(pid, folder);
    return;
  }
  constexpr std::string_view kNodes = "/dev/dri/";
  std::array<char, 64> target;
  for (std::size_t files = 0; files < kMostFiles && clients_.size() < kMostClients; ++files) {
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) return;
    const ssize_t size = ::readlinkat(::dirfd(directory.get()), entry->d_name, target.data(), target.size());
    const std::string_view link(target.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (!link.starts_with(kNodes) || sleeping_nodes_.contains(std::string(link))) continue;
    read_into(pid, folder + "/fdinfo/" + entry->d_name);
  }
}

// A tree that was copied from another machine may have no links.
void FdinfoScan::read_captured(std::int64_t pid, const std::string& folder) {
  for (const std::string& descriptor : names_in(folder + "/fdinfo", kMostFiles))
    if (clients_.size() < kMostClients) read_into(pid, folder + "/fdinfo/" + descriptor);
}

void FdinfoScan::look() {
  constexpr std::int64_t kAgainAfter = 5'000'000'000;  // ns
  clients_.clear();
  hidden_ = 0;
  find_sleeping_nodes();
  std::map<std::int64_t, std::int64_t> without;
  for (const std::string& name : names_in(root_ + "/proc", kMostProcesses)) {
    const auto pid = number_after(name, "");
    if (!pid) continue;
    if (const auto seen = without_gpu_.find(*pid);
        seen != without_gpu_.end() && moment_ != 0 && moment_ >= seen->second && moment_ - seen->second < kAgainAfter) {
      without.insert(*seen);
      continue;
    }
    const std::size_t clients = clients_.size();
    const int hidden = hidden_;
    look_at(*pid);
    // Who is hidden is counted each time.
    if (clients_.size() == clients && hidden_ == hidden) without[*pid] = moment_;
  }
  without_gpu_ = std::move(without);
  std::stable_sort(clients_.begin(), clients_.end(),
                   [](const FoundClient& a, const FoundClient& b) { return a.pid < b.pid; });
}

const std::vector<FoundClient>& FdinfoScan::clients(std::int64_t moment) {
  if (moment != 0 && moment == moment_) return clients_;
  moment_ = moment;
  look();
  return clients_;
}

std::shared_ptr<FdinfoScan> shared_fdinfo_scan(const std::string& root) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<FdinfoScan>> scans;
  const std::lock_guard lock(mutex);
  std::erase_if(scans, [](const auto& item) { return item.second.expired(); });
  std::shared_ptr<FdinfoScan> scan = scans[root].lock();
  if (!scan) scans[root] = scan = std::make_shared<FdinfoScan>(root);
  return scan;
}

Reading<Ratio> DrmUsage::share(const DrmEngine& before, const DrmEngine& now, std::int64_t nanoseconds) {
  double busy = 0, all = 0;
  if (now.busy_ns && before.busy_ns) {
    busy = static_cast<double>(*now.busy_ns - *before.busy_ns);
    all = static_cast<double>(nanoseconds);
  } else if (now.cycles && before.cycles && now.total_cycles && before.total_cycles) {
    busy = static_cast<double>(*now.cycles - *before.cycles);
    all = static_cast<double>(*now.total_cycles - *before.total_cycles);
    if (busy == 0 && all == 0) return Ratio{0};  // the device slept: its clock stood still
  } else {
    return Why::needs_two_samples;
  }
  if (all <= 0) return Why::needs_two_samples;
  // Drivers add up at context switches, so that a short interval may hold the work of a longer one.
  return Ratio{std::clamp(busy / all / static_cast<double>(now.capacity), 0.0, 1.0)};
}

std::vector<DrmProcess> DrmUsage::update(const std::vector<FoundClient>& clients, std::string_view driver,
                                         std::int64_t now) {
  std::map<std::pair<std::string, std::int64_t>, DrmProcess> processes;
  std::map<Key, Counters> after;
  for (const FoundClient& found : clients) {
    const DrmClient& client = found.client;
    if (client.driver != driver || !client.id) continue;
    const Key key(client.pci_address, *client.id);
    if (after.contains(key)) continue;
    Counters& counters = after[key];
    counters.at = now;
    DrmProcess& process = processes[{client.pci_address, found.pid}];
    process.pid = found.pid;
    process.pci_address = client.pci_address;
    for (const auto& [region, bytes] : client.memory) {
      Bytes& sum = process.memory[region];
      sum = Bytes{checked_add(sum.count, bytes.count).value_or(sum.count)};
    }
    const auto before = before_.find(key);
    for (const auto& [name, engine] : client.engines) {
      Reading<Ratio> ratio = Why::needs_two_samples;
      if (engine.busy_ns.value_or(0) > 0 || engine.cycles.value_or(0) > 0) process.used.insert(name);
      counters.engines[name] = engine;
      if (before != before_.end()) {
        // amdgpu tells of an engine only once the client has used it.
        DrmEngine last = engine.busy_ns ? DrmEngine{0, std::nullopt, std::nullopt, 1} : DrmEngine{};
        if (const auto old = before->second.engines.find(name); old != before->second.engines.end()) last = old->second;
        counters.engines[name] = larger(last, engine);
        ratio = share(last, counters.engines[name], now - before->second.at);
      }
      auto [sum, is_new] = process.engines.try_emplace(name, ratio);
      if (!is_new && sum->second.known() && ratio.known())
        sum->second = Ratio{std::min(sum->second->value + ratio->value, 1.0)};
      else if (!is_new && ratio.known())
        sum->second = ratio;
    }
  }
  before_ = std::move(after);
  std::vector<DrmProcess> result;
  for (auto& [key, process] : processes) result.push_back(std::move(process));
  return result;
}

}  // namespace gpuwright::device

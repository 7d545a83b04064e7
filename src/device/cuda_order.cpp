#include "device/cuda_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "device/topology.h"

namespace gpuwright::device {
namespace {

bool speaks_cuda(const Gpu& gpu) {
  return gpu.vendor == Vendor::nvidia && gpu.state != State::no_driver;
}
bool counted_for_sure(const Gpu& gpu) {
  return gpu.state == State::ok || gpu.state == State::asleep;
}

// Positions of the GPUs that CUDA may count, in the order of their addresses (of one length, so text order is right).
std::vector<std::size_t> in_bus_order(const std::vector<Gpu>& gpus) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (speaks_cuda(gpus[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&gpus](std::size_t a, std::size_t b) {
    const auto key = [&gpus](std::size_t i) { return gpus[i].pci_address.value_or(""); };
    return key(a).size() != key(b).size() ? key(a).size() < key(b).size() : key(a) < key(b);
  });
  return order;
}

bool all_alike(const std::vector<Gpu>& gpus, const std::vector<std::size_t>& order) {
  return std::all_of(order.begin(), order.end(),
                     [&](std::size_t i) { return gpus[i].name.known() && gpus[i].name == gpus[order.front()].name; });
}

}  // namespace

std::vector<CudaNumbers> cuda_numbers(const std::vector<Gpu>& gpus) {
  std::vector<CudaNumbers> numbers(gpus.size(), {Why::not_supported, Why::not_supported});
  const std::vector<std::size_t> order = in_bus_order(gpus);
  const bool divided =
      std::any_of(order.begin(), order.end(), [&gpus](std::size_t i) { return gpus[i].mig_mode.value_or(false); });
  const bool alike = all_alike(gpus, order);
  bool sure = true;
  std::int64_t next = 0;
  for (const std::size_t i : order) {
    sure = sure && gpus[i].pci_address.known() && counted_for_sure(gpus[i]);
    CudaNumbers& mine = numbers[i];
    if (divided)
      mine.by_bus = Why::in_mig_mode;  // a program sees one instance only, which it has to name
    else if (!sure)
      mine.by_bus = Why::no_data;
    else
      mine.by_bus = next;
    mine.by_speed = alike || divided ? mine.by_bus : Reading<std::int64_t>(Why::no_data);
    ++next;
  }
  return numbers;
}

// ---------------------------------------------------------------- CUDA_VISIBLE_DEVICES

namespace {

// The GPU with that number, or that UUID or the start of it which no other GPU has.
std::optional<int> gpu_named(const Snapshot& snapshot, const std::vector<Reading<std::int64_t>>& numbers,
                             std::string_view word) {
  std::optional<int> found;
  const auto number = to_integer(word);
  for (std::size_t i = 0; i < snapshot.gpus.size(); ++i) {
    const Gpu& gpu = snapshot.gpus[i];
    if (!speaks_cuda(gpu)) continue;
    const bool this_one = number ? numbers[i].known() && *numbers[i] == *number
                                 : word.starts_with("GPU-") && gpu.uuid && gpu.uuid->starts_with(word);
    if (!this_one) continue;
    if (found) return std::nullopt;
    found = gpu.index;
  }
  return found;
}

CudaView all_in_order(const Snapshot& snapshot, const std::vector<Reading<std::int64_t>>& numbers) {
  CudaView view;
  std::vector<std::pair<std::int64_t, int>> known;
  for (std::size_t i = 0; i < snapshot.gpus.size(); ++i) {
    if (numbers[i].known()) known.emplace_back(*numbers[i], snapshot.gpus[i].index);
    if (!numbers[i] && speaks_cuda(snapshot.gpus[i]))
      view.note =
          fmt::format("CUDA's number of GPU {} is not known: {}", snapshot.gpus[i].index, to_string(numbers[i].why()));
  }
  std::sort(known.begin(), known.end());
  for (const auto& [number, index] : known) view.gpus.push_back(index);
  return view;
}

}  // namespace

CudaView cuda_view(const Snapshot& snapshot, const char* visible, const char* order) {
  const bool by_bus = order != nullptr && std::string_view(order) == "PCI_BUS_ID";
  std::vector<Reading<std::int64_t>> numbers;
  for (const CudaNumbers& both : cuda_numbers(snapshot.gpus)) numbers.push_back(by_bus ? both.by_bus : both.by_speed);
  if (visible == nullptr) return all_in_order(snapshot, numbers);
  CudaView view;
  if (trim(visible).empty()) {
    view.note = "CUDA_VISIBLE_DEVICES is empty: no GPU is visible";
    return view;
  }
  for (const std::string_view entry : split(visible, ',')) {
    const std::string_view word = trim(entry);
    if (word.starts_with("MIG-")) {
      view.mig_instances.emplace_back(word);
      continue;
    }
    const std::optional<int> gpu = gpu_named(snapshot, numbers, word);
    const bool twice = gpu && std::find(view.gpus.begin(), view.gpus.end(), *gpu) != view.gpus.end();
    if (!gpu || twice) {
      if (word != "-1")
        view.note =
            fmt::format("CUDA_VISIBLE_DEVICES: \"{}\" {}; CUDA ignores it and what comes after", printable(word),
                        twice ? "names a GPU that was named before" : "names no GPU here for sure");
      break;
    }
    view.gpus.push_back(*gpu);
  }
  return view;
}

}  // namespace gpuwright::device

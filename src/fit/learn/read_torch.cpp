// torch's messages when memory runs out and its table of the caching allocator; nvidia-smi's table. Formats:
// THC/generic/THCStorage.cu (0.4: no figures), c10/cuda/CUDACachingAllocator.cpp (1.0: "cached"; 1.4: "reserved in
// total by PyTorch"; 2.1: sentences), torch/cuda/memory.py memory_summary.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "fit/learn/readers.h"

namespace gpuwright::fit {
namespace {

using Merge = LogBook::Merge;

// The amount that stands before the marker: "1.72 GiB already allocated".
std::optional<Amount> amount_before(std::string_view text, std::string_view marker) {
  const auto end = text.find(marker);
  if (end == std::string_view::npos) return std::nullopt;
  // Number and unit: back over two words.
  const std::string_view head = trim(text.substr(0, end));
  const auto unit = head.find_last_of(' ');
  if (unit == std::string_view::npos) return std::nullopt;
  const auto number = head.find_last_of(" (", unit == 0 ? 0 : unit - 1);
  return scan_amount(head.substr(number == std::string_view::npos ? 0 : number + 1));
}

std::optional<int> gpu_number(std::string_view text) {
  const auto rest = after(text, "GPU ");
  const auto number = rest ? scan_integer(*rest) : std::nullopt;
  if (!number || *number >= static_cast<std::int64_t>(LogBook::kMostGpus)) return std::nullopt;
  return static_cast<int>(*number);
}

class TorchReader final : public LogReader {
 public:
  void line(std::string_view text, LogBook& book) override {
    summary(text, book);
    const bool begins = text.find("out of memory. Tried to allocate") != std::string_view::npos;
    if (begins) {
      finish(book);
      message_.assign(text);
      first_ = book.line_number();
      more_lines_ = kMostLines;
    } else if (!message_.empty()) {
      // People and terminals wrap the message.
      message_ += ' ';
      message_ += trim(text).substr(0, kMostWrapped);
      --more_lines_;
    }
    const bool whole = message_.find("reserved in total") != std::string::npos ||
                       message_.find("reserved by PyTorch but unallocated") != std::string::npos ||
                       message_.find(" cached)") != std::string::npos;
    if (!message_.empty() && (whole || more_lines_ == 0)) finish(book);
  }

  void finish(LogBook& book) override {
    if (message_.empty()) return;
    const std::string message = std::move(message_);
    message_.clear();
    book.at_line(first_, message, [&] { out_of_memory(message, book); });
  }

 private:
  static constexpr int kMostLines = 6;
  static constexpr std::size_t kMostWrapped = 512;

  static void out_of_memory(std::string_view text, LogBook& book) {
    const int gpu = gpu_number(text).value_or(0);
    const auto tried = amount_after(text, "Tried to allocate ");
    auto allocated = amount_before(text, " already allocated");
    if (!allocated) allocated = amount_before(text, " is allocated by PyTorch");
    const auto total = total_of(text);
    if (!tried || (!allocated && !total)) return;
    book.claim(LogProgram::torch);
    if (LogGpu* card = book.gpu(gpu); card != nullptr && total && !card->total) card->total = total->bytes;
    if (allocated) {
      Amount wanted = *allocated;
      wanted.bytes += tried->bytes;
      wanted.slack += tried->slack;
      book.total(Meter::allocated, gpu, wanted, Merge::most, true);
    }
    reserved(text, gpu, allocated, book);
    auto process = amount_after(text, "this process has ");
    if (process) book.total(Meter::device, gpu, *process, Merge::most, true);
    book.remark(fmt::format("GPU {}: an allocation of {} failed with {} allocated", gpu, to_string(tried->bytes),
                            allocated ? to_string(allocated->bytes) : "an unknown amount"));
  }

  static std::optional<Amount> total_of(std::string_view text) {
    if (const auto amount = amount_before(text, " total capacity")) return amount;
    for (const std::string_view marker : {"has a total capacity of ", "has a total capacty of "})
      if (const auto amount = amount_after(text, marker)) return amount;
    return std::nullopt;
  }

  static void reserved(std::string_view text, int gpu, const std::optional<Amount>& allocated, LogBook& book) {
    auto amount = amount_before(text, " reserved in total");
    if (!amount) {
      amount = amount_before(text, " is reserved by PyTorch but unallocated");
      if (!amount || !allocated) return;
      amount->bytes += allocated->bytes;
      amount->slack += allocated->slack;
    }
    book.total(Meter::reserved, gpu, *amount, Merge::most, true);
  }

  // "| Allocated memory      |  14336 MiB |  15002 MiB |  120 GiB |  106 GiB |": current, peak, sums. Rounded down.
  void summary(std::string_view text, LogBook& book) {
    if (text.find("PyTorch CUDA memory summary") != std::string_view::npos) {
      const auto device = after(text, "device ID ");
      const auto number = device ? scan_integer(*device) : std::nullopt;
      device_ = number && *number < static_cast<std::int64_t>(LogBook::kMostGpus) ? static_cast<int>(*number) : 0;
    }
    if (!trim(text).starts_with('|')) return;
    const auto cells = split(trim(text).substr(1), '|');
    if (cells.size() < 4) return;
    const std::string_view name = trim(cells[0]);
    const bool allocated = name == "Allocated memory", reserved = name == "GPU reserved memory";
    auto peak = allocated || reserved ? scan_amount(cells[2]) : std::nullopt;
    if (!peak) return;
    peak->bytes += Bytes{static_cast<std::int64_t>(peak->slack)};
    book.claim(LogProgram::torch);
    book.total(allocated ? Meter::allocated : Meter::reserved, device_, *peak, Merge::most, false);
  }

  std::string message_;
  std::int64_t first_ = 0;
  int more_lines_ = 0;
  int device_ = 0;
};

class NvidiaSmiReader final : public LogReader {
 public:
  void line(std::string_view text, LogBook& book) override {
    text = trim(text);
    if (!text.starts_with('|')) return comma_separated(text, book);
    const auto cells = split(text.substr(1), '|');
    if (cells.size() < 2) return;
    if (cells.size() >= 3 && looks_like_bus_id(cells[1])) return card(cells[0], book);
    if (cells.size() >= 3 && cells[1].find("MiB /") != std::string_view::npos) return usage(cells[1], book);
    if (cells.size() == 2 && cells[0].find("MiB") != std::string_view::npos) process(cells[0], book);
  }

 private:
  // nvidia-smi --query-gpu=index,name,memory.total,memory.used --format=csv[,nounits]: a line of names, then one of
  // values for each GPU.
  void comma_separated(std::string_view text, LogBook& book) {
    if (text.find("memory.used") != std::string_view::npos) {
      columns_.clear();
      for (const std::string_view cell : split(text, ',')) columns_.emplace_back(trim(cell));
      rows_ = 0;
    } else if (!columns_.empty() && text.find(',') != std::string_view::npos) {
      row(split(text, ','), book);
    }
  }

  void row(const std::vector<std::string_view>& cells, LogBook& book) {
    if (cells.size() != columns_.size()) return columns_.clear();
    const auto cell = [&](std::string_view name) -> std::optional<std::string_view> {
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if (std::string_view(columns_[i]).substr(0, name.size()) == name) return trim(cells[i]);
      return std::nullopt;
    };
    const auto amount = [&](std::string_view name) {
      const auto value = cell(name);
      const bool plain = value && value->find_first_not_of("0123456789") == std::string_view::npos;
      return value ? scan_amount(plain ? std::string(*value) + " MiB" : std::string(*value)) : std::nullopt;
    };
    const auto index = cell("index") ? scan_integer(*cell("index")) : std::optional(rows_);
    const auto used = amount("memory.used");
    ++rows_;
    if (!index || *index >= static_cast<std::int64_t>(LogBook::kMostGpus) || !used) return;
    number_ = static_cast<int>(*index);
    LogGpu* gpu = book.gpu(number_);
    if (gpu == nullptr) return;
    if (const auto name = cell("name"); name && gpu->name.empty()) gpu->name = std::string(name->substr(0, 128));
    if (const auto total = amount("memory.total")) gpu->total = total->bytes;
    book.claim(LogProgram::nvidia_smi);
    if (!by_process(book)) book.total(Meter::device, number_, *used, Merge::most, false, true);
  }

  // "00000000:01:00.0 Off"
  static bool looks_like_bus_id(std::string_view cell) {
    const std::string_view id = trim(cell).substr(0, trim(cell).find(' '));
    return id.size() >= 10 && id.find(':') != std::string_view::npos && id.find('.') != std::string_view::npos;
  }

  // "   0  NVIDIA GeForce RTX 4090        Off "
  void card(std::string_view cell, LogBook& book) {
    seen_card_ = false;
    cell = trim(cell);
    const auto number = scan_integer(cell);
    const auto space = cell.find(' ');
    if (!number || space == std::string_view::npos || *number >= static_cast<std::int64_t>(LogBook::kMostGpus)) return;
    std::string_view name = trim(cell.substr(space));
    for (const std::string_view mode : {" Off", " On", " N/A"})
      if (name.ends_with(mode)) name = trim(name.substr(0, name.size() - mode.size()));
    number_ = static_cast<int>(*number);
    seen_card_ = true;
    LogGpu* gpu = book.gpu(number_);
    if (gpu != nullptr && gpu->name.empty()) gpu->name = std::string(name.substr(0, 128));
  }

  // "  10240MiB / 24564MiB "
  void usage(std::string_view cell, LogBook& book) {
    LogGpu* gpu = seen_card_ ? book.gpu(number_) : nullptr;
    seen_card_ = false;
    const auto used = scan_amount(cell), total = amount_after(cell, "/");
    if (gpu == nullptr || !used) return;
    if (total) gpu->total = total->bytes;
    book.claim(LogProgram::nvidia_smi);
    if (!by_process(book)) book.total(Meter::device, number_, *used, Merge::most, false, true);
  }

  // "    0   N/A  N/A      1234      C   python                          10240MiB ": the last is the memory
  void process(std::string_view cell, LogBook& book) {
    cell = trim(cell);
    const auto space = cell.find_last_of(' ');
    const auto gpu = scan_integer(cell);
    const auto used = space == std::string_view::npos ? std::nullopt : scan_amount(cell.substr(space));
    const bool computes = cell.find(" C ") != std::string_view::npos;
    if (!gpu || !used || !computes || *gpu >= static_cast<std::int64_t>(LogBook::kMostGpus)) return;
    // The largest process is taken for the one that is meant.
    const int number = static_cast<int>(*gpu);
    std::erase_if(book.run().measurements,
                  [&](const Measurement& measurement) { return measurement.others && measurement.gpu == number; });
    book.claim(LogProgram::nvidia_smi);
    book.total(Meter::device, number, *used, Merge::most, false);
  }

  bool by_process(const LogBook& book) const {
    const auto& all = book.run().measurements;
    return std::any_of(all.begin(), all.end(), [&](const Measurement& measurement) {
      return measurement.what == Measurement::What::total && measurement.meter == Meter::device &&
             measurement.gpu == number_ && !measurement.others && !measurement.at_least;
    });
  }

  bool seen_card_ = false;
  int number_ = 0;
  std::vector<std::string> columns_;  // of the comma-separated form, while it lasts
  std::int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<LogReader> torch_reader() {
  return std::make_unique<TorchReader>();
}
std::unique_ptr<LogReader> nvidia_smi_reader() {
  return std::make_unique<NvidiaSmiReader>();
}

}  // namespace gpuwright::fit

// NVIDIA does not document the container. Its outline is that of CUDA's own fatbinary.h and of three independent
// readers (github.com/n-eiling/cuda-fatbin-decompression, ZLUDA's zluda_trace, nvopen-tools/fatbin); the bits for "a"
// and "f" were read off what fatbinary 13.5.37 writes for sm_90, sm_90a, sm_100, sm_100a and sm_100f. All
// little-endian:
//
//   container  u32 magic 0xBA55ED50, u16 version 1, u16 bytes of this header, u64 bytes of the images that follow
//   image      u16 kind (1 PTX, 2 ELF, 16 ELF of another make), u16 version, u32 bytes of this header (64 and more),
//              u64 bytes of the code with its padding, u32 ..., u32 ..., u16 minor, u16 major (of the format),
//              u32 at 28: capability (90, 121), ..., u64 at 40: flags (bit 20 "a", bit 21 "f")
//
// Containers are padded with zeros to the alignment of their section.
#include "doctor/fatbin/fatbin.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "doctor/elf/elf_bytes.h"

namespace gpuwright::doctor {
namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::int64_t kContainerHeader = 16, kImageHeader = 64;
constexpr std::int64_t kMostHeader = 64 << 10;
constexpr std::int64_t kAlignment = 8;  // of everything in the section
constexpr ElfKind kLittle{true, false, 0};
constexpr std::uint16_t kPtx = 1, kMachine = 2, kMachineOfMercury = 16;
constexpr std::uint64_t kExactFlag = 1U << 20, kFamilyFlag = 1U << 21;

class FatbinWalk {
 public:
  FatbinWalk(const ByteSource& source, std::int64_t begin, std::int64_t end, FatbinBounds bounds)
      : source_(source), begin_(begin), at_(begin), end_(end), bounds_(bounds) {}

  Result<Fatbins> walk() {
    while (end_ - at_ >= kContainerHeader) {
      const ElfBytes header = GW_TRY(read(at_, kContainerHeader));
      if (header.u32(0) != kMagic) {
        if (!GW_TRY(skip_to_magic())) break;
        continue;
      }
      const auto header_bytes = static_cast<std::int64_t>(header.u16(6));
      const std::uint64_t bytes = header.at(8, 8);
      if (header_bytes < kContainerHeader || bytes > static_cast<std::uint64_t>(end_ - at_) ||
          header_bytes > end_ - at_ - static_cast<std::int64_t>(bytes)) {
        found_.complete = false;
        break;
      }
      ++found_.containers;
      const std::int64_t next = at_ + header_bytes + static_cast<std::int64_t>(bytes);
      if (!GW_TRY(read_images(at_ + header_bytes, next))) break;
      at_ = std::min(end_, begin_ + (next - begin_ + kAlignment - 1) / kAlignment * kAlignment);
    }
    for (const auto& [code, count] : counts_) found_.codes.push_back({code, count});
    return std::move(found_);
  }

 private:
  Result<ElfBytes> read(std::int64_t offset, std::int64_t bytes) const {
    return elf_read(source_, kLittle, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(bytes));
  }

  // False when the bound of images is reached.
  Result<bool> read_images(std::int64_t at, std::int64_t end) {
    while (end - at >= kImageHeader) {
      if (++images_ > bounds_.images) {
        found_.complete = false;
        return false;
      }
      const ElfBytes image = GW_TRY(read(at, kImageHeader));
      const auto header = static_cast<std::int64_t>(image.u32(4));
      const std::uint64_t bytes = image.at(8, 8);
      if (header < kImageHeader || header > kMostHeader || header > end - at ||
          bytes > static_cast<std::uint64_t>(end - at - header)) {
        found_.complete = false;
        return true;
      }
      count(image);
      at += header + static_cast<std::int64_t>(bytes);
    }
    return true;
  }

  void count(const ElfBytes& image) {
    const std::uint16_t kind = image.u16(0);
    const std::uint32_t sm = image.u32(28);
    if ((kind != kPtx && kind != kMachine && kind != kMachineOfMercury) || sm < 10 || sm > 999) return;
    GpuCode code;
    code.form = kind == kPtx ? GpuCode::Form::ptx : GpuCode::Form::machine;
    code.sm = static_cast<Sm>(sm);
    const std::uint64_t flags = image.at(40, 8);
    if ((flags & kFamilyFlag) != 0) code.reach = GpuCode::Reach::family;
    if ((flags & kExactFlag) != 0) code.reach = GpuCode::Reach::exact;
    ++counts_[code];
  }

  // To the next container; false where there is none, or too much lies between.
  Result<bool> skip_to_magic() {
    constexpr std::int64_t kWindow = 4096;
    while (end_ - at_ >= kContainerHeader) {
      const ElfBytes window = GW_TRY(read(at_, std::min(kWindow, end_ - at_)));
      for (std::size_t i = 0; i + 4 <= window.size(); i += kAlignment) {
        if (window.u32(i) != kMagic) continue;
        at_ += static_cast<std::int64_t>(i);
        return true;
      }
      at_ += static_cast<std::int64_t>(window.size());
      skipped_ += static_cast<std::int64_t>(window.size());
      if (skipped_ <= bounds_.skipped_bytes) continue;
      found_.complete = false;
      return false;
    }
    return false;
  }

  const ByteSource& source_;
  std::int64_t begin_, at_, end_;
  FatbinBounds bounds_;
  std::int64_t images_ = 0, skipped_ = 0;
  std::map<GpuCode, std::int64_t> counts_;
  Fatbins found_;
};

void merge(const Fatbins& part, Fatbins& whole) {
  whole.containers += part.containers;
  whole.complete = whole.complete && part.complete;
  for (const GpuCodeCount& more : part.codes) {
    const auto at = std::lower_bound(whole.codes.begin(), whole.codes.end(), more.code,
                                     [](const GpuCodeCount& one, const GpuCode& code) { return one.code < code; });
    if (at != whole.codes.end() && at->code == more.code) {
      at->count += more.count;
    } else {
      whole.codes.insert(at, more);
    }
  }
}

bool of_tegra(Sm sm) {
  constexpr Sm kTegra[] = {32, 53, 62, 72, 87, 101, 110};
  return std::find(std::begin(kTegra), std::end(kTegra), sm) != std::end(kTegra);
}

}  // namespace

std::string to_string(GpuCode code) {
  constexpr const char* kSuffix[] = {"", "f", "a"};
  return fmt::format("{}_{}{}", code.form == GpuCode::Form::ptx ? "compute" : "sm", code.sm,
                     kSuffix[static_cast<std::size_t>(code.reach)]);
}

std::optional<GpuCode> gpu_code_named(std::string_view name) {
  GpuCode code;
  if (name.substr(0, 3) == "sm_") {
    name.remove_prefix(3);
  } else if (name.substr(0, 8) == "compute_") {
    code.form = GpuCode::Form::ptx;
    name.remove_prefix(8);
  } else {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code.sm);
  if (error != std::errc{} || code.sm < 10 || code.sm > 999) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
  if (rest == "a") code.reach = GpuCode::Reach::exact;
  if (rest == "f") code.reach = GpuCode::Reach::family;
  return rest.empty() || rest == "a" || rest == "f" ? std::optional(code) : std::nullopt;
}

bool runs_on(GpuCode code, Sm gpu) {
  if (code.sm == gpu) return true;
  if (code.reach == GpuCode::Reach::exact) return false;
  const bool later_minor = code.sm / 10 == gpu / 10 && code.sm < gpu;
  if (code.reach == GpuCode::Reach::family) return later_minor && of_tegra(code.sm) == of_tegra(gpu);
  if (code.form == GpuCode::Form::ptx) return code.sm < gpu;
  return later_minor && !of_tegra(code.sm) && !of_tegra(gpu);
}

std::vector<GpuCode> Fatbins::usual() const {
  std::int64_t most = 0;
  for (const GpuCodeCount& one : codes) most = std::max(most, one.count);
  std::vector<GpuCode> result;
  for (const GpuCodeCount& one : codes) {
    if (one.count * 4 >= most) result.push_back(one.code);
  }
  return result;
}

Coverage Fatbins::coverage(Sm gpu) const {
  Coverage best = Coverage::none;
  for (const GpuCode code : usual()) {
    if (!runs_on(code, gpu)) continue;
    best = std::max(best, code.form == GpuCode::Form::machine ? Coverage::native : Coverage::compiled_when_loaded);
  }
  return best;
}

Result<Fatbins> read_fatbins(const ByteSource& source, std::int64_t offset, std::int64_t bytes, FatbinBounds bounds) {
  if (offset < 0 || bytes < 0 || offset > source.size() || bytes > source.size() - offset) {
    return elf_failure(source, static_cast<std::uint64_t>(offset), "a section reaches beyond the end of the file");
  }
  return FatbinWalk(source, offset, offset + bytes, bounds).walk();
}

Result<Fatbins> read_fatbins(const ElfFile& library, FatbinBounds bounds) {
  Fatbins all;
  for (const ElfSection& section : library.sections) {
    if (section.name != ".nv_fatbin" && section.name != "__nv_relfatbin") continue;
    merge(GW_TRY(read_fatbins(library.source(), section.offset, section.size, bounds)), all);
  }
  return all;
}

}  // namespace gpuwright::doctor

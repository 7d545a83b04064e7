#include "doctor/elf/loader_cache.h"

#include <optional>

#include "doctor/elf/elf_bytes.h"

namespace gpuwright::doctor {
namespace {

constexpr std::string_view kOld = "ld.so-1.7.0", kNew = "glibc-ld.so.cache1.1";
constexpr std::size_t kOldHeader = 16, kOldEntry = 12, kNewHeader = 48, kNewEntry = 24;
constexpr std::uint64_t kMostLibraries = 65536;
constexpr std::size_t kBigEndianFlag = 28;  // of the header: 3 where the cache is in big-endian order

// The text up to its NUL; nothing where it reaches beyond the end.
std::optional<std::string> text_at(std::string_view bytes, std::size_t at) {
  if (at >= bytes.size()) return std::nullopt;
  const std::size_t end = bytes.find('\0', at);
  if (end == std::string_view::npos || end - at > 4096) return std::nullopt;
  return std::string(bytes.substr(at, end - at));
}

}  // namespace

Result<std::vector<CachedLibrary>> parse_loader_cache(std::string_view bytes, const std::string& name) {
  const auto damaged = [&](const char* what) {
    return fail_at(ErrorCode::bad_input, {name, std::nullopt, std::nullopt}, what, "run ldconfig");
  };
  if (bytes.starts_with(kOld)) {
    const ElfBytes old(std::string(bytes.substr(0, kOldHeader)), false);
    const std::uint64_t end = kOldHeader + std::uint64_t{old.u32(12)} * kOldEntry;
    const std::uint64_t aligned = (end + 7) / 8 * 8;
    if (aligned >= bytes.size()) return damaged("a loader's cache of the old form alone");
    bytes.remove_prefix(static_cast<std::size_t>(aligned));
  }
  if (!bytes.starts_with(kNew) || bytes.size() < kNewHeader) return damaged("not a loader's cache");
  const bool big_endian = bytes[kBigEndianFlag] == 3;
  const ElfBytes file(std::string(bytes), big_endian);
  const std::uint64_t count = file.u32(20);
  if (count > kMostLibraries || kNewHeader + count * kNewEntry > bytes.size()) return damaged("it is cut off");

  std::vector<CachedLibrary> libraries;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t at = kNewHeader + i * kNewEntry;
    auto library = text_at(bytes, file.u32(at + 4));
    auto path = text_at(bytes, file.u32(at + 8));
    if (!library || !path) return damaged("a name reaches beyond its end");
    libraries.push_back({std::move(*library), std::move(*path), file.u32(at), file.at(at + 16, 8) != 0});
  }
  return libraries;
}

}  // namespace gpuwright::doctor

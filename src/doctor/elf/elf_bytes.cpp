#include "doctor/elf/elf_bytes.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuwright::doctor {

tl::unexpected<Error> elf_failure(const ByteSource& source, std::uint64_t byte, std::string what) {
  return fail_at(ErrorCode::bad_input, {source.name(), std::nullopt, static_cast<std::int64_t>(byte & INT64_MAX)},
                 std::move(what), "the file is damaged or no ELF library");
}

Result<ElfBytes> elf_read(const ByteSource& source, ElfKind kind, std::uint64_t offset, std::uint64_t bytes,
                          std::uint64_t most) {
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(source.size(), 0));
  if (bytes > most) return elf_failure(source, offset, fmt::format("a table of {} bytes is too large", bytes));
  if (offset > size || bytes > size - offset) {
    return elf_failure(source, offset, fmt::format("a table of {} bytes reaches beyond the end", bytes));
  }
  std::string into(static_cast<std::size_t>(bytes), '\0');
  const std::size_t got = GW_TRY(
      source.read_at(static_cast<std::int64_t>(offset), std::as_writable_bytes(std::span(into.data(), into.size()))));
  if (got != into.size()) return elf_failure(source, offset, "the file ended while it was read");
  return ElfBytes(std::move(into), kind.big_endian);
}

Result<std::string> elf_text(const ByteSource& source, std::uint64_t offset, std::size_t most) {
  constexpr std::size_t kPiece = 256;  // most names are shorter
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(source.size(), 0));
  std::string text;
  while (text.size() < most) {
    const std::uint64_t begin = offset + text.size();
    if (begin < offset || begin >= size) break;
    std::string piece(std::min({kPiece, most - text.size(), static_cast<std::size_t>(size - begin)}), '\0');
    const std::size_t got = GW_TRY(source.read_at(static_cast<std::int64_t>(begin),
                                                  std::as_writable_bytes(std::span(piece.data(), piece.size()))));
    if (got == 0) break;
    piece.resize(got);
    const std::size_t end = piece.find('\0');
    if (end != std::string::npos) return text + piece.substr(0, end);
    text += piece;
  }
  return elf_failure(source, offset, "a name has no end");
}

}  // namespace gpuwright::doctor

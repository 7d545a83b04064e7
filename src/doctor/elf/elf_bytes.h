// Checked access to the fields of an ELF file, whatever its class and byte order. For the files of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "doctor/elf/elf.h"

namespace gpuwright::doctor {

// A table or record that was read whole. Reading a field outside of it gives 0: records are read at their full size.
class ElfBytes {
 public:
  ElfBytes(std::string bytes, bool big_endian) : bytes_(std::move(bytes)), big_endian_(big_endian) {}

  std::uint64_t at(std::size_t offset, std::size_t width) const {
    std::uint64_t value = 0;
    if (offset > bytes_.size() || width > bytes_.size() - offset) return 0;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t place = big_endian_ ? i : width - 1 - i;
      value = value << 8 | static_cast<unsigned char>(bytes_[offset + place]);
    }
    return value;
  }
  std::uint16_t u16(std::size_t offset) const { return static_cast<std::uint16_t>(at(offset, 2)); }
  std::uint32_t u32(std::size_t offset) const { return static_cast<std::uint32_t>(at(offset, 4)); }
  std::size_t size() const { return bytes_.size(); }
  std::string_view text() const { return bytes_; }

 private:
  std::string bytes_;
  bool big_endian_;
};

tl::unexpected<Error> elf_failure(const ByteSource& source, std::uint64_t byte, std::string what);

// Exactly so many bytes; bad_input when the file ends before, or they are more than `most`.
Result<ElfBytes> elf_read(const ByteSource& source, ElfKind kind, std::uint64_t offset, std::uint64_t bytes,
                          std::uint64_t most = std::uint64_t{64} << 20);

// The text up to its NUL, at most so many bytes long.
Result<std::string> elf_text(const ByteSource& source, std::uint64_t offset, std::size_t most = 4096);

}  // namespace gpuwright::doctor

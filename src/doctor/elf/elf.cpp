#include "doctor/elf/elf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "doctor/elf/elf_bytes.h"

namespace gpuwright::doctor {
namespace {

constexpr std::uint64_t kMostEntries = 65536;      // of program headers, sections, the dynamic section
constexpr std::size_t kMostNames = 16384;          // of one kind: libraries, folders, versions
constexpr std::size_t kMostSearchPath = 64 << 10;  // bytes of RPATH, which holds a whole list

// Program header and section types, and tags of the dynamic section.
constexpr std::uint32_t kLoad = 1, kDynamic = 2, kInterpreter = 3;
constexpr std::uint32_t kDynamicSymbols = 11, kNoBits = 8;
constexpr std::uint64_t kNeeded = 1, kSysvHash = 4, kStrings = 5, kSymbols = 6, kStringBytes = 10, kSoname = 14,
                        kRpath = 15, kRunpath = 29, kGnuHash = 0x6ffffef5, kFlags1 = 0x6ffffffb,
                        kVersionsDefined = 0x6ffffffc, kVersionsDefinedCount = 0x6ffffffd, kVersionsNeeded = 0x6ffffffe,
                        kVersionsNeededCount = 0x6fffffff;
constexpr std::uint64_t kNoDefaultLibraries = 0x800;  // DF_1_NODEFLIB

struct Segment {
  std::uint64_t offset, address, file_bytes;
};

std::vector<std::string> folders_of(const std::string& list) {
  std::vector<std::string> folders;
  for (const std::string_view folder : split(list, ':')) folders.emplace_back(folder);
  return folders;
}

}  // namespace

// Reads the headers in the order in which each tells where the next stands.
class ElfOpener {
 public:
  explicit ElfOpener(const ByteSource& source) : source_(source) { file_.source_ = &source; }

  Result<ElfFile> open() {
    GW_TRY(read_identity());
    GW_TRY(read_segments());
    GW_TRY(read_sections());
    if (file_.dynamic) GW_TRY(read_dynamic());
    return std::move(file_);
  }

 private:
  Status read_identity();
  Status read_segments();
  Status read_sections();
  Status read_section_names(const ElfBytes& table, std::uint64_t names);
  Status read_dynamic();
  Status read_names(const ElfBytes& table);
  Status read_defined_versions();
  Status read_needed_versions();
  Status read_tables();

  Result<ElfBytes> read(std::uint64_t offset, std::uint64_t bytes) const {
    return elf_read(source_, file_.kind, offset, bytes);
  }
  std::size_t word() const { return file_.kind.is_64 ? 8 : 4; }
  // Where an address of memory lies in the file; 0 where no segment holds it.
  std::uint64_t place_of(std::uint64_t address) const;
  std::uint64_t tag(std::uint64_t wanted) const;  // 0 where the dynamic section lacks it
  Result<std::string> name_at(std::uint64_t offset, std::size_t most = 4096) const;

  const ByteSource& source_;
  ElfFile file_;
  std::uint64_t segments_at_ = 0, sections_at_ = 0, section_names_ = 0;
  std::uint64_t segment_bytes_ = 0, segment_count_ = 0, section_bytes_ = 0, section_count_ = 0;
  std::vector<Segment> loaded_;
  std::uint64_t dynamic_at_ = 0, dynamic_bytes_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> tags_;
};

Status ElfOpener::read_identity() {
  const ElfBytes identity = GW_TRY(read(0, 16));
  const std::string_view text = identity.text();
  if (text.substr(0, 4) != "\177ELF") return elf_failure(source_, 0, "not an ELF file");
  const std::uint64_t bits = identity.at(4, 1), order = identity.at(5, 1);
  if (bits < 1 || bits > 2 || order < 1 || order > 2) return elf_failure(source_, 4, "an unknown ELF class or order");
  file_.kind.is_64 = bits == 2;
  file_.kind.big_endian = order == 2;

  const ElfBytes header = GW_TRY(read(0, file_.kind.is_64 ? 64 : 52));
  const std::uint16_t type = header.u16(16);
  file_.type = type <= 4 ? static_cast<ElfType>(type) : ElfType::other;
  file_.kind.machine = header.u16(18);
  const std::size_t places = 24 + word();  // after e_entry
  segments_at_ = header.at(places, word());
  sections_at_ = header.at(places + word(), word());
  const std::size_t counts = places + 2 * word() + 6;  // after e_flags and e_ehsize
  segment_bytes_ = header.u16(counts);
  segment_count_ = header.u16(counts + 2);
  section_bytes_ = header.u16(counts + 4);
  section_count_ = header.u16(counts + 6);
  section_names_ = header.u16(counts + 8);
  return {};
}

Status ElfOpener::read_segments() {
  const std::uint64_t least = file_.kind.is_64 ? 56 : 32;
  if (segment_count_ == 0) return {};
  if (segment_bytes_ < least) return elf_failure(source_, segments_at_, "program headers that are too short");
  const ElfBytes table = GW_TRY(read(segments_at_, segment_bytes_ * segment_count_));
  for (std::uint64_t i = 0; i < segment_count_; ++i) {
    const std::size_t row = i * segment_bytes_;
    const std::uint32_t type = table.u32(row);
    const std::size_t offset = row + (file_.kind.is_64 ? 8 : 4);
    const Segment segment{table.at(offset, word()), table.at(offset + word(), word()),
                          table.at(offset + 3 * word(), word())};
    if (type == kLoad) loaded_.push_back(segment);
    if (type == kInterpreter && segment.file_bytes <= 4096)
      file_.interpreter = GW_TRY(elf_text(source_, segment.offset));
    if (type == kDynamic && !file_.dynamic) {
      file_.dynamic = true;
      dynamic_at_ = segment.offset;
      dynamic_bytes_ = segment.file_bytes;
    }
  }
  return {};
}

Status ElfOpener::read_sections() {
  const std::uint64_t least = file_.kind.is_64 ? 64 : 40;
  if (sections_at_ == 0 || section_bytes_ < least) return {};
  if (section_count_ == 0) {  // more than the header's field can hold: the first section tells
    const ElfBytes first = GW_TRY(read(sections_at_, section_bytes_));
    section_count_ = first.at(8 + 3 * word(), word());
    if (section_names_ == 0xffff) section_names_ = first.u32(8 + 4 * word());
  }
  if (section_count_ > kMostEntries) return elf_failure(source_, sections_at_, "too many sections");
  const ElfBytes table = GW_TRY(read(sections_at_, section_bytes_ * section_count_));
  return read_section_names(table, section_names_);
}

Status ElfOpener::read_section_names(const ElfBytes& table, std::uint64_t names) {
  const auto field = [&](std::uint64_t row, std::size_t words) {  // sh_flags and what follows: words
    return table.at(row * section_bytes_ + 8 + words * word(), word());
  };
  std::string all;
  if (names < section_count_) {
    const ElfBytes bytes = GW_TRY(read(field(names, 2), field(names, 3)));
    all = bytes.text();
  }
  for (std::uint64_t i = 0; i < section_count_; ++i) {
    ElfSection section;
    section.type = table.u32(i * section_bytes_ + 4);
    section.offset = static_cast<std::int64_t>(field(i, 2) & INT64_MAX);
    if (section.type != kNoBits) section.size = static_cast<std::int64_t>(field(i, 3) & INT64_MAX);
    const std::uint32_t name = table.u32(i * section_bytes_);
    if (name < all.size()) section.name = all.substr(name, std::min(all.find('\0', name), all.size()) - name);
    if (section.type == kDynamicSymbols) {
      const std::uint64_t row = file_.kind.is_64 ? 24 : 16;
      file_.table_.count = static_cast<std::uint64_t>(section.size) / row;
    }
    file_.sections.push_back(std::move(section));
  }
  return {};
}

std::uint64_t ElfOpener::place_of(std::uint64_t address) const {
  for (const Segment& segment : loaded_) {
    if (address >= segment.address && address - segment.address < segment.file_bytes) {
      return address - segment.address + segment.offset;
    }
  }
  return 0;
}

std::uint64_t ElfOpener::tag(std::uint64_t wanted) const {
  for (const auto& [name, value] : tags_) {
    if (name == wanted) return value;
  }
  return 0;
}

Result<std::string> ElfOpener::name_at(std::uint64_t offset, std::size_t most) const {
  const ElfSymbolTable& table = file_.table_;
  if (table.strings == 0 || offset >= table.string_bytes) {
    return elf_failure(source_, dynamic_at_, "a name outside of the string table");
  }
  return elf_text(source_, table.strings + offset, most);
}

Status ElfOpener::read_dynamic() {
  const std::uint64_t row = 2 * word();
  const std::uint64_t bytes = std::min(dynamic_bytes_, kMostEntries * row) / row * row;
  const ElfBytes table = GW_TRY(read(dynamic_at_, bytes));
  for (std::size_t at = 0; at < bytes; at += row) {
    const std::uint64_t name = table.at(at, word());
    if (name == 0) break;
    tags_.emplace_back(name, table.at(at + word(), word()));
  }
  ElfSymbolTable& symbols = file_.table_;
  symbols.strings = place_of(tag(kStrings));
  symbols.string_bytes = tag(kStringBytes);
  symbols.symbols = place_of(tag(kSymbols));
  symbols.gnu_hash = place_of(tag(kGnuHash));
  symbols.sysv_hash = place_of(tag(kSysvHash));
  file_.skips_default_folders = (tag(kFlags1) & kNoDefaultLibraries) != 0;
  return read_tables();
}

Status ElfOpener::read_tables() {
  for (const auto& [name, value] : tags_) {
    if (name == kNeeded) file_.needed.push_back(GW_TRY(name_at(value)));
    if (name == kSoname) file_.soname = GW_TRY(name_at(value));
    if (name == kRpath) file_.rpath = folders_of(GW_TRY(name_at(value, kMostSearchPath)));
    if (name == kRunpath) file_.runpath = folders_of(GW_TRY(name_at(value, kMostSearchPath)));
    if (file_.needed.size() > kMostNames) return elf_failure(source_, dynamic_at_, "too many libraries are needed");
  }
  if (file_.table_.count == 0 && file_.table_.sysv_hash != 0) {
    const ElfBytes header = GW_TRY(read(file_.table_.sysv_hash, 8));
    file_.table_.count = header.u32(4);
  }
  GW_TRY(read_defined_versions());
  return read_needed_versions();
}

// A chain of records, each with the distance to the next. vd_version, vd_flags, vd_ndx, vd_cnt, vd_hash, vd_aux,
// vd_next; the first auxiliary record (vda_name, vda_next) has the version's own name.
Status ElfOpener::read_defined_versions() {
  std::uint64_t at = place_of(tag(kVersionsDefined));
  const std::uint64_t count = std::min<std::uint64_t>(tag(kVersionsDefinedCount), kMostNames);
  constexpr std::uint16_t kBase = 1;  // names the library itself
  for (std::uint64_t i = 0; i < count && at != 0; ++i) {
    const ElfBytes record = GW_TRY(read(at, 20));
    const ElfBytes name = GW_TRY(read(at + record.u32(12), 8));
    if ((record.u16(2) & kBase) == 0) file_.defined_versions.push_back(GW_TRY(name_at(name.u32(0))));
    if (record.u32(16) == 0) break;
    at += record.u32(16);
  }
  return {};
}

// vn_version, vn_cnt, vn_file, vn_aux, vn_next; each with vn_cnt of vna_hash, vna_flags, vna_other, vna_name, vna_next.
Status ElfOpener::read_needed_versions() {
  std::uint64_t at = place_of(tag(kVersionsNeeded));
  const std::uint64_t count = std::min<std::uint64_t>(tag(kVersionsNeededCount), kMostNames);
  std::size_t names = 0;
  for (std::uint64_t i = 0; i < count && at != 0; ++i) {
    const ElfBytes record = GW_TRY(read(at, 16));
    NeededVersions needed;
    needed.library = GW_TRY(name_at(record.u32(4)));
    std::uint64_t part = at + record.u32(8);
    for (std::uint16_t j = 0; j < record.u16(2); ++j) {
      if (++names > kMostNames) return elf_failure(source_, part, "too many symbol versions");
      const ElfBytes version = GW_TRY(read(part, 16));
      needed.versions.push_back(GW_TRY(name_at(version.u32(8))));
      if (version.u32(12) == 0) break;
      part += version.u32(12);
    }
    file_.needed_versions.push_back(std::move(needed));
    if (record.u32(12) == 0) break;
    at += record.u32(12);
  }
  return {};
}

Result<ElfFile> ElfFile::open(const ByteSource& source) {
  return ElfOpener(source).open();
}

const ElfSection* ElfFile::section(std::string_view name) const {
  const auto found =
      std::find_if(sections.begin(), sections.end(), [&](const ElfSection& s) { return s.name == name; });
  return found == sections.end() ? nullptr : &*found;
}

}  // namespace gpuwright::doctor

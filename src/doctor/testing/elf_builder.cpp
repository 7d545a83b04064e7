#include "doctor/testing/elf_builder.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/text.h"

namespace gpuwright::doctor::testing {
namespace {

// Bytes in little-endian order.
class Writer {
 public:
  Writer& put(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return *this;
  }
  Writer& align(std::size_t to) {
    while (bytes.size() % to != 0) bytes.push_back('\0');
    return *this;
  }
  std::string bytes;
};

// NUL-ended names; each is added once.
class Names {
 public:
  std::uint32_t add(const std::string& name) {
    const auto known = std::find_if(places_.begin(), places_.end(), [&](const auto& p) { return p.first == name; });
    if (known != places_.end()) return known->second;
    const auto place = static_cast<std::uint32_t>(bytes.size());
    bytes += name + '\0';
    places_.emplace_back(name, place);
    return place;
  }
  std::string bytes = std::string(1, '\0');

 private:
  std::vector<std::pair<std::string, std::uint32_t>> places_;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ":") + word;
  return text;
}

std::uint32_t gnu_hash(const std::string& name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

std::string symbols_of(const ElfSpec& spec, Names& names) {
  Writer table;
  table.bytes.resize(24, '\0');
  const auto add = [&](const std::string& name, bool defined) {
    table.put(names.add(name), 4).put(0x12, 1).put(0, 1).put(defined ? 1 : 0, 2).put(defined ? 64 : 0, 8).put(0, 8);
  };
  for (const std::string& name : spec.imports) add(name, false);
  for (const std::string& name : spec.exports) add(name, true);
  return table.bytes;
}

// One bucket, one filter word that lets everything through.
std::string hash_of(const ElfSpec& spec) {
  const std::size_t first = 1 + spec.imports.size();
  Writer table;
  table.put(1, 4).put(first, 4).put(1, 4).put(0, 4).put(~std::uint64_t{0}, 8);
  table.put(spec.exports.empty() ? 0 : first, 4);
  for (std::size_t i = 0; i < spec.exports.size(); ++i) {
    table.put((gnu_hash(spec.exports[i]) & ~1U) | (i + 1 == spec.exports.size() ? 1 : 0), 4);
  }
  return table.bytes;
}

std::string needed_versions_of(const ElfSpec& spec, Names& names) {
  Writer table;
  for (std::size_t i = 0; i < spec.needs_versions.size(); ++i) {
    const NeededVersions& needed = spec.needs_versions[i];
    const std::size_t count = needed.versions.size();
    const bool last = i + 1 == spec.needs_versions.size();
    table.put(1, 2).put(count, 2).put(names.add(needed.library), 4).put(16, 4).put(last ? 0 : 16 + 16 * count, 4);
    for (std::size_t j = 0; j < count; ++j) {
      table.put(0, 4).put(0, 2).put(2, 2).put(names.add(needed.versions[j]), 4).put(j + 1 == count ? 0 : 16, 4);
    }
  }
  return table.bytes;
}

std::string defined_versions_of(const ElfSpec& spec, Names& names) {
  Writer table;
  for (std::size_t i = 0; i < spec.defines_versions.size(); ++i) {
    const bool last = i + 1 == spec.defines_versions.size();
    table.put(1, 2).put(0, 2).put(i + 2, 2).put(1, 2).put(0, 4).put(20, 4).put(last ? 0 : 28, 4);
    table.put(names.add(spec.defines_versions[i]), 4).put(0, 4);
  }
  return table.bytes;
}

struct Part {
  std::string name;
  std::uint32_t type = 1;
  std::string bytes;
  std::uint64_t offset = 0;
};

constexpr std::size_t kHeader = 64, kSegment = 56, kSection = 64;

// The dynamic section; the places of the tables are known by then.
std::string dynamic_of(const ElfSpec& spec, Names& names, const std::vector<Part>& parts, std::size_t string_bytes) {
  Writer table;
  const auto tag = [&](std::uint64_t name, std::uint64_t value) { table.put(name, 8).put(value, 8); };
  for (const std::string& name : spec.needed) tag(1, names.add(name));
  if (!spec.soname.empty()) tag(14, names.add(spec.soname));
  if (!spec.rpath.empty()) tag(15, names.add(joined(spec.rpath)));
  if (!spec.runpath.empty()) tag(29, names.add(joined(spec.runpath)));
  tag(5, parts[0].offset);
  tag(10, string_bytes);
  tag(6, parts[1].offset);
  tag(11, 24);
  tag(0x6ffffef5, parts[2].offset);
  if (!spec.needs_versions.empty()) tag(0x6ffffffe, parts[3].offset);
  if (!spec.needs_versions.empty()) tag(0x6fffffff, spec.needs_versions.size());
  if (!spec.defines_versions.empty()) tag(0x6ffffffc, parts[4].offset);
  if (!spec.defines_versions.empty()) tag(0x6ffffffd, spec.defines_versions.size());
  tag(0, 0);
  return table.bytes;
}

std::string header_of(const ElfSpec& spec, std::uint64_t sections_at, std::size_t sections) {
  Writer header;
  header.bytes = "\177ELF\2\1\1";
  header.align(16).put(3, 2).put(spec.machine, 2).put(1, 4).put(0, 8).put(kHeader, 8).put(sections_at, 8).put(0, 4);
  header.put(kHeader, 2).put(kSegment, 2).put(2, 2).put(kSection, 2).put(sections, 2).put(sections - 1, 2);
  return header.bytes;
}

std::string segments_of(const Part& dynamic, std::uint64_t file_bytes) {
  Writer segments;
  const auto add = [&](std::uint32_t type, std::uint64_t offset, std::uint64_t bytes, std::uint64_t alignment) {
    segments.put(type, 4).put(4, 4).put(offset, 8).put(offset, 8).put(offset, 8).put(bytes, 8).put(bytes, 8);
    segments.put(alignment, 8);
  };
  add(1, 0, file_bytes, 4096);
  add(2, dynamic.offset, dynamic.bytes.size(), 8);
  return segments.bytes;
}

std::string sections_of(const std::vector<Part>& parts, Names& names) {
  Writer table;
  table.bytes.resize(kSection, '\0');
  for (const Part& part : parts) {
    const bool symbols = part.type == 11;
    table.put(names.add(part.name), 4).put(part.type, 4).put(2, 8).put(part.offset, 8).put(part.offset, 8);
    table.put(part.bytes.size(), 8).put(symbols ? 1 : 0, 4).put(symbols ? 1 : 0, 4).put(8, 8).put(symbols ? 24 : 0, 8);
  }
  return table.bytes;
}

std::vector<GpuCode> codes_of(std::string_view list, std::string_view prefix) {
  std::vector<GpuCode> codes;
  for (const std::string_view number : split(list, ',')) {
    const auto code = gpu_code_named(std::string(prefix) + std::string(number));
    if (code) codes.push_back(*code);
  }
  return codes;
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ',')) words.emplace_back(word);
  return words;
}

// "libstdc++.so.6:GLIBCXX_3.4.30,libc.so.6:GLIBC_2.34"
std::vector<NeededVersions> needed_versions_in(std::string_view text) {
  std::vector<NeededVersions> result;
  for (const std::string_view pair : split(text, ',')) {
    const std::size_t colon = pair.find(':');
    if (colon == std::string_view::npos) continue;
    result.push_back({std::string(pair.substr(0, colon)), {std::string(pair.substr(colon + 1))}});
  }
  return result;
}

}  // namespace

std::string build_elf(const ElfSpec& spec) {
  Names names;
  const std::string symbols = symbols_of(spec, names);
  const std::string wanted = needed_versions_of(spec, names), offered = defined_versions_of(spec, names);
  std::vector<Part> parts = {{".dynstr", 3, {}},
                             {".dynsym", 11, symbols},
                             {".gnu.hash", 0x6ffffff6, hash_of(spec)},
                             {".gnu.version_r", 0x6ffffffe, wanted},
                             {".gnu.version_d", 0x6ffffffd, offered}};
  dynamic_of(spec, names, parts, 0);  // for its names
  parts[0].bytes = names.bytes;
  const auto place = [&](std::uint64_t at) {
    for (Part& part : parts) {
      part.offset = at = (at + 7) / 8 * 8;
      at += part.bytes.size();
    }
    return at;
  };
  std::uint64_t end = place(kHeader + 2 * kSegment);
  parts.push_back({".dynamic", 6, dynamic_of(spec, names, parts, names.bytes.size())});
  for (const auto& [name, bytes] : spec.sections) parts.push_back({name, 1, bytes});
  Names section_names;
  for (const Part& part : parts) section_names.add(part.name);
  section_names.add(".shstrtab");
  parts.push_back({".shstrtab", 3, section_names.bytes});
  end = place(kHeader + 2 * kSegment);
  const std::uint64_t sections_at = (end + 7) / 8 * 8;

  Writer file;
  file.bytes = header_of(spec, sections_at, parts.size() + 1) + segments_of(parts[5], end);
  for (const Part& part : parts) {
    file.bytes.resize(part.offset, '\0');
    file.bytes += part.bytes;
  }
  file.bytes.resize(sections_at, '\0');
  return file.bytes + sections_of(parts, section_names);
}

std::string build_fatbin(const std::vector<GpuCode>& codes) {
  Writer images;
  for (const GpuCode code : codes) {
    const bool ptx = code.form == GpuCode::Form::ptx;
    std::uint64_t flags = 0x11;
    if (code.reach == GpuCode::Reach::exact) flags |= 1U << 20;
    if (code.reach == GpuCode::Reach::family) flags |= 1U << 21;
    images.put(ptx ? 1 : 2, 2).put(0x101, 2).put(64, 4).put(16, 8).put(0, 8).put(8, 2).put(1, 2);
    images.put(static_cast<std::uint64_t>(code.sm), 4).put(0, 8).put(flags, 8).put(0, 8).put(0, 8);
    images.bytes += ptx ? std::string("// no code here\n") : "\177ELF" + std::string(12, '\0');
  }
  Writer container;
  container.put(0xBA55ED50, 4).put(1, 2).put(16, 2).put(images.bytes.size(), 8);
  return container.bytes + images.bytes;
}

std::string build_elf_from(std::string_view words) {
  ElfSpec spec;
  std::vector<GpuCode> codes;
  int containers = 1;
  for (const std::string_view word : split(words, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "soname") spec.soname = value;
    if (name == "needed") spec.needed = list_of(value);
    if (name == "runpath") spec.runpath = list_of(value);
    if (name == "rpath") spec.rpath = list_of(value);
    if (name == "exports") spec.exports = list_of(value);
    if (name == "imports") spec.imports = list_of(value);
    if (name == "versions") spec.defines_versions = list_of(value);
    if (name == "wants") spec.needs_versions = needed_versions_in(value);
    if (name == "machine") spec.machine = value == "aarch64" ? 183 : 62;
    if (name == "containers") containers = std::atoi(std::string(value).c_str());
    for (const std::string_view form : {"sm", "ptx"}) {
      if (name != form) continue;
      const auto more = codes_of(value, form == "sm" ? "sm_" : "compute_");
      codes.insert(codes.end(), more.begin(), more.end());
    }
  }
  std::string fatbins;
  for (int i = 0; i < containers && !codes.empty(); ++i) fatbins += build_fatbin(codes);
  if (!fatbins.empty()) spec.sections.emplace_back(".nv_fatbin", fatbins);
  return build_elf(spec);
}

}  // namespace gpuwright::doctor::testing

// The dynamic symbols. A library of a framework has a hundred thousand names in fifty megabytes, so a question for one
// is answered as the loader answers it: by the hash table, with a handful of small reads.
//
// DT_GNU_HASH (Linux Standard Base; binutils bfd/elflink.c, glibc elf/dl-lookup.c): four words (buckets, first hashed
// symbol, words of the Bloom filter, its shift), the filter, the buckets, and one word a hashed symbol: its hash, whose
// lowest bit ends the chain. The symbols before the first hashed one are wanted from others, or local.
#include <algorithm>

#include "doctor/elf/elf_bytes.h"

namespace gpuwright::doctor {
namespace {

constexpr std::uint64_t kMostSymbols = std::uint64_t{2} << 20;
constexpr std::uint64_t kMostNameBytes = std::uint64_t{256} << 20;
constexpr std::uint32_t kMostChain = 4096;  // of one bucket; linkers aim at a few
constexpr std::size_t kMostSymbolName = 64 << 10;

struct Symbol {
  std::uint32_t name = 0;
  std::uint16_t section = 0;  // 0: wanted from others
  bool weak = false, local = false;
};

std::size_t row_bytes(ElfKind kind) {
  return kind.is_64 ? 24 : 16;
}

Symbol symbol_at(const ElfBytes& table, ElfKind kind, std::size_t row) {
  const std::size_t at = row * row_bytes(kind);
  const std::uint64_t info = table.at(at + (kind.is_64 ? 4 : 12), 1);
  return {table.u32(at), table.u16(at + (kind.is_64 ? 6 : 14)), info >> 4 == 2, info >> 4 == 0};
}

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

std::uint32_t sysv_hash(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const std::uint32_t top = hash & 0xf0000000;
    hash = (hash ^ top >> 24) & ~top;
  }
  return hash;
}

// The names of many symbols, read in the order of the string table so that each part of it is read once.
class NameReader {
 public:
  NameReader(const ByteSource& source, ElfKind kind, const ElfSymbolTable& table)
      : source_(source), kind_(kind), table_(table) {}

  Result<std::vector<std::string>> names(const std::vector<std::uint32_t>& offsets) {
    std::vector<std::size_t> order(offsets.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
    std::vector<std::string> names(offsets.size());
    std::uint64_t bytes = 0;
    for (const std::size_t i : order) {
      names[i] = GW_TRY(name(offsets[i]));
      bytes += names[i].size();
      if (bytes > kMostNameBytes) return elf_failure(source_, table_.strings, "the names of symbols are too many");
    }
    return names;
  }

 private:
  Result<std::string> name(std::uint32_t offset) {
    if (offset >= table_.string_bytes) return elf_failure(source_, table_.strings, "a name outside of its table");
    if (offset < begin_ || offset >= begin_ + window_.size()) GW_TRY(read_window(offset));
    std::size_t end = window_.find('\0', offset - begin_);
    if (end == std::string::npos) {  // it reaches beyond the window
      GW_TRY(read_window(offset));
      end = window_.find('\0');
    }
    if (end == std::string::npos) return elf_failure(source_, table_.strings + offset, "a name has no end");
    return window_.substr(offset - begin_, end - (offset - begin_));
  }

  Status read_window(std::uint32_t offset) {
    const std::uint64_t bytes = std::min<std::uint64_t>(table_.string_bytes - offset, kMostSymbolName);
    const ElfBytes read = GW_TRY(elf_read(source_, kind_, table_.strings + offset, bytes));
    window_ = read.text();
    begin_ = offset;
    return {};
  }

  const ByteSource& source_;
  ElfKind kind_;
  const ElfSymbolTable& table_;
  std::string window_;
  std::uint32_t begin_ = 0;
};

// What a search in a hash table needs to know of the file.
struct Search {
  const ByteSource& source;
  ElfKind kind;
  const ElfSymbolTable& table;
  std::string_view wanted;

  Result<ElfBytes> read(std::uint64_t offset, std::uint64_t bytes) const {
    return elf_read(source, kind, offset, bytes);
  }
  // Whether this symbol has the name and is the file's own.
  Result<bool> is_it(std::uint64_t number) const {
    const std::size_t row = row_bytes(kind);
    const ElfBytes bytes = GW_TRY(read(table.symbols + number * row, row));
    const Symbol symbol = symbol_at(bytes, kind, 0);
    if (symbol.section == 0 || symbol.local || symbol.name >= table.string_bytes) return false;
    const std::uint64_t length = wanted.size() + 1;
    if (length > table.string_bytes - symbol.name) return false;
    const ElfBytes name = GW_TRY(read(table.strings + symbol.name, length));
    return name.text().substr(0, wanted.size()) == wanted && name.text().back() == '\0';
  }
  Result<bool> in_gnu_table() const;
  Result<bool> in_sysv_table() const;
};

Result<bool> Search::in_gnu_table() const {
  const ElfBytes header = GW_TRY(read(table.gnu_hash, 16));
  const std::uint64_t buckets = header.u32(0), first = header.u32(4), filter_words = header.u32(8);
  if (buckets == 0) return false;
  const std::uint64_t buckets_at = table.gnu_hash + 16 + filter_words * (kind.is_64 ? 8 : 4);
  const std::uint32_t hash = gnu_hash(wanted);
  const ElfBytes bucket = GW_TRY(read(buckets_at + hash % buckets * 4, 4));
  std::uint64_t number = bucket.u32(0);
  if (number < first || number == 0) return false;
  for (std::uint32_t steps = 0; steps < kMostChain; ++steps, ++number) {
    const ElfBytes link = GW_TRY(read(buckets_at + (buckets + number - first) * 4, 4));
    if ((link.u32(0) | 1) == (hash | 1) && GW_TRY(is_it(number))) return true;
    if ((link.u32(0) & 1) != 0) return false;
  }
  return elf_failure(source, buckets_at, "a chain of the hash table has no end");
}

Result<bool> Search::in_sysv_table() const {
  const ElfBytes header = GW_TRY(read(table.sysv_hash, 8));
  const std::uint64_t buckets = header.u32(0), symbols = header.u32(4);
  if (buckets == 0) return false;
  const ElfBytes bucket = GW_TRY(read(table.sysv_hash + 8 + sysv_hash(wanted) % buckets * 4, 4));
  std::uint64_t number = bucket.u32(0);
  for (std::uint32_t steps = 0; steps < kMostChain && number != 0 && number < symbols; ++steps) {
    if (GW_TRY(is_it(number))) return true;
    const ElfBytes next = GW_TRY(read(table.sysv_hash + 8 + (buckets + number) * 4, 4));
    number = next.u32(0);
  }
  return false;
}

// How many symbols there are. Where the sections were stripped, the GNU hash table tells: by the end of the chain that
// begins last.
Result<std::uint64_t> count_of(const Search& search) {
  if (search.table.count != 0 || search.table.gnu_hash == 0) return search.table.count;
  const ElfBytes header = GW_TRY(search.read(search.table.gnu_hash, 16));
  const std::uint64_t buckets = header.u32(0), first = header.u32(4), filter_words = header.u32(8);
  const std::uint64_t buckets_at = search.table.gnu_hash + 16 + filter_words * (search.kind.is_64 ? 8 : 4);
  const ElfBytes all = GW_TRY(search.read(buckets_at, buckets * 4));
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < buckets; ++i) last = std::max<std::uint64_t>(last, all.u32(i * 4));
  if (last < first || last == 0) return first;
  for (std::uint32_t steps = 0; steps < kMostChain; ++steps, ++last) {
    const ElfBytes link = GW_TRY(search.read(buckets_at + (buckets + last - first) * 4, 4));
    if ((link.u32(0) & 1) != 0) return last + 1;
  }
  return elf_failure(search.source, buckets_at, "a chain of the hash table has no end");
}

// Names of the symbols that `takes` accepts.
template <class Takes>
Result<std::vector<std::string>> names_of(const Search& search, Takes takes) {
  const std::uint64_t count = GW_TRY(count_of(search));
  if (search.table.symbols == 0 || count < 2) return std::vector<std::string>{};
  if (count > kMostSymbols) return elf_failure(search.source, search.table.symbols, "too many symbols");
  const std::size_t row = row_bytes(search.kind);
  const ElfBytes rows =
      GW_TRY(elf_read(search.source, search.kind, search.table.symbols, count * row, kMostSymbols * 24));
  std::vector<std::uint32_t> offsets;
  for (std::size_t i = 1; i < count; ++i) {
    const Symbol symbol = symbol_at(rows, search.kind, i);
    if (!symbol.local && takes(symbol)) offsets.push_back(symbol.name);
  }
  return NameReader(search.source, search.kind, search.table).names(offsets);
}

}  // namespace

Result<bool> ElfFile::defines(std::string_view symbol) const {
  const Search search{*source_, kind, table_, symbol};
  if (table_.symbols == 0 || table_.strings == 0) return false;
  if (table_.gnu_hash != 0) return search.in_gnu_table();
  if (table_.sysv_hash != 0) return search.in_sysv_table();
  return false;
}

Result<std::vector<std::string>> ElfFile::undefined_symbols() const {
  return names_of(Search{*source_, kind, table_, {}},
                  [](const Symbol& symbol) { return symbol.section == 0 && !symbol.weak; });
}

Result<std::vector<std::string>> ElfFile::defined_symbols() const {
  return names_of(Search{*source_, kind, table_, {}}, [](const Symbol& symbol) { return symbol.section != 0; });
}

}  // namespace gpuwright::doctor

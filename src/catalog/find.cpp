// How people write the names of GPUs. Names and queries become sets of words ("RTX A6000 48GB" -> a6000, 48gb); words
// that only say whose card it is (geforce, rtx, tesla, radeon) must fit the vendor and otherwise do not matter. A row
// matches when it has every word of the query. Of several matches the ones with the fewest words beyond the query win:
// first counted without words that tell the amount of memory, then with them. So "4090" is the RTX 4090 and not the
// 4090 D, "3060" is the 3060 and not the 3060 Ti, and "a100", whose four variants are equally near, stays open. Where
// no name is the query itself ("orin", "rtx 5000") and several rows match, it stays open too: the shortest name is no
// better guess than the others. A PCI id, as lspci prints it, is a name as well.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>

#include "base/text.h"
#include "catalog/catalog.h"

namespace gpuwright::catalog {
namespace {

using Words = std::set<std::string, std::less<>>;

constexpr std::size_t kMaxQuery = 128;
constexpr std::size_t kMaxListed = 12;

struct Brand {
  std::string_view word;
  std::string_view vendor;  // empty: says nothing about it
};
constexpr std::array kBrands = {
    Brand{"nvidia", "NVIDIA"}, Brand{"geforce", "NVIDIA"},
    Brand{"rtx", "NVIDIA"},    Brand{"gtx", "NVIDIA"},
    Brand{"tesla", "NVIDIA"},  Brand{"amd", "AMD"},
    Brand{"radeon", "AMD"},    Brand{"rx", "AMD"},
    Brand{"instinct", "AMD"},  Brand{"intel", "Intel"},
    Brand{"arc", "Intel"},     Brand{"huawei", "Huawei"},
    Brand{"ascend", "Huawei"}, Brand{"cambricon", "Cambricon"},
    Brand{"apple", "Apple"},   Brand{"google", "Google"},
    Brand{"aws", "AWS"},       Brand{"gpu", ""},
    Brand{"graphics", ""},     Brand{"card", ""},
    Brand{"generation", ""},   Brand{"edition", ""},
    Brand{"accelerator", ""},
};

const Brand* brand_of(std::string_view word) {
  const auto found =
      std::find_if(kBrands.begin(), kBrands.end(), [&](const Brand& brand) { return brand.word == word; });
  return found == kBrands.end() ? nullptr : &*found;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
}
// "80gb"
bool is_memory(std::string_view word) {
  return word.size() > 2 && word.ends_with("gb") && is_number(word.substr(0, word.size() - 2));
}

// Lower-case runs of letters and digits, with every spelling of an amount of memory made "80gb".
std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool open = false;
  for (const char c : lower(text)) {
    const bool part = (c >= 'a' && c <= 'z') || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
    if (part && !open) words.emplace_back();
    if (part) words.back() += c;
    open = part;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const bool unit = word == "gb" || word == "gib";
    if (unit && i > 0 && is_number(words[i - 1])) {
      words[i - 1] += "gb";
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i--));
    } else if (word.size() > 3 && word.ends_with("gib") && is_number(word.substr(0, word.size() - 3))) {
      word = word.substr(0, word.size() - 3) + "gb";
    } else if (word.size() > 2 && word.back() == 'g' && is_number(word.substr(0, word.size() - 1))) {
      word += 'b';
    }
  }
  return words;
}

Words words_of(std::string_view text) {
  const auto words = split_words(text);
  return {words.begin(), words.end()};
}

Words without_brands(const Words& words) {
  Words rest;
  for (const std::string& word : words)
    if (brand_of(word) == nullptr) rest.insert(word);
  return rest.empty() ? words : rest;
}

// A row as it can be called: the words of each of its names, and those that hold whatever the name.
struct Callable {
  const Accelerator* gpu = nullptr;
  std::vector<Words> names;
  Words always;
};

// "sxm5" is also called "sxm".
void add_family_words(Words& words) {
  Words shorter;
  for (const std::string& word : words)
    if (word.size() > 3 && is_digit(word.back()) && std::none_of(word.begin(), word.end() - 1, is_digit))
      shorter.insert(word.substr(0, word.size() - 1));
  words.merge(shorter);
}

Callable callable(const Accelerator& gpu) {
  Callable row{&gpu, {without_brands(words_of(gpu.name))}, words_of(gpu.architecture)};
  for (const std::string& alias : gpu.aliases) row.names.push_back(without_brands(words_of(alias)));
  const auto gib = static_cast<long>(gpu.nominal_memory.gib());
  row.always.insert(fmt::format("{}gb", gib));
  row.always.insert(fmt::format("{}gb", gib * gpu.devices_per_board));
  for (const Words& name : row.names) row.always.insert(name.begin(), name.end());
  add_family_words(row.always);
  return row;
}

Words vocabulary_of(const std::vector<Callable>& rows) {
  Words vocabulary;
  for (const Callable& row : rows) vocabulary.insert(row.always.begin(), row.always.end());
  for (const Brand& brand : kBrands) vocabulary.emplace(brand.word);
  return vocabulary;
}

// "3090ti" -> 3090, ti when all pieces are known words; the fewest pieces win. Unknown words stay whole.
std::vector<std::string> pieces_of(const std::string& word, const Words& vocabulary) {
  constexpr std::size_t kNone = 1000;
  if (vocabulary.contains(word) || word.size() > 32) return {word};
  std::vector<std::size_t> fewest(word.size() + 1, kNone), from(word.size() + 1, 0);
  fewest[0] = 0;
  for (std::size_t end = 1; end <= word.size(); ++end)
    for (std::size_t begin = 0; begin < end; ++begin)
      if (fewest[begin] + 1 < fewest[end] && vocabulary.contains(std::string_view(word).substr(begin, end - begin))) {
        fewest[end] = fewest[begin] + 1;
        from[end] = begin;
      }
  if (fewest.back() >= kNone) return {word};
  std::vector<std::string> pieces;
  for (std::size_t end = word.size(); end > 0; end = from[end])
    pieces.insert(pieces.begin(), word.substr(from[end], end - from[end]));
  return pieces;
}

// "4090 mobile" and "4090 laptop" are the same chip.
std::string plain_word(std::string_view word) {
  return std::string(word == "mobile" || word == "notebook" ? "laptop" : word);
}

struct Query {
  Words words;  // without brands, unless there is nothing else
  std::vector<const Brand*> brands;

  bool fits_vendor(const Callable& row) const {
    return std::all_of(brands.begin(), brands.end(),
                       [&](const Brand* brand) { return brand->vendor.empty() || brand->vendor == row.gpu->vendor; });
  }
  bool fits(const Callable& row) const {
    if (!fits_vendor(row)) return false;
    return std::all_of(words.begin(), words.end(), [&](const std::string& word) { return row.always.contains(word); });
  }
};

Query query_from(std::string_view text, const Words& vocabulary) {
  Query query;
  Words all;
  for (const std::string& word : split_words(text))
    for (std::string& piece : pieces_of(plain_word(word), vocabulary)) {
      if (const Brand* brand = brand_of(piece)) query.brands.push_back(brand);
      all.insert(std::move(piece));
    }
  query.words = without_brands(all);
  if (std::all_of(all.begin(), all.end(), [](const std::string& word) { return brand_of(word) != nullptr; }))
    query.words.clear();
  return query;
}

// How far the nearest of the row's names is beyond the query: (other words, words of memory).
std::pair<std::size_t, std::size_t> distance(const Callable& row, const Query& query) {
  std::pair<std::size_t, std::size_t> best{1000, 1000};
  for (const Words& name : row.names) {
    std::pair<std::size_t, std::size_t> beyond{0, 0};
    for (const std::string& word : name) {
      const bool meant = query.words.contains(word) ||
                         std::any_of(query.words.begin(), query.words.end(), [&](const std::string& short_word) {
                           return word.size() == short_word.size() + 1 && word.starts_with(short_word) &&
                                  is_digit(word.back()) && !is_digit(short_word.back());
                         });
      if (!meant) ++(is_memory(word) ? beyond.second : beyond.first);
    }
    best = std::min(best, beyond);
  }
  return best;
}

std::vector<const Accelerator*> nearest_rows(const std::vector<Callable>& rows, const Query& query) {
  std::vector<const Accelerator*> nearest, all;
  std::pair<std::size_t, std::size_t> best{1000, 1000};
  for (const Callable& row : rows) {
    if (!query.fits(row)) continue;
    all.push_back(row.gpu);
    const auto beyond = distance(row, query);
    if (beyond < best) nearest.clear();
    if (beyond <= best) {
      best = beyond;
      nearest.push_back(row.gpu);
    }
  }
  return best.first > 0 ? all : nearest;
}

// Rows with words that begin like those of the query: "mi300" -> MI300A, MI300X.
std::vector<const Accelerator*> rows_beginning_like(const std::vector<Callable>& rows, const Query& query) {
  const auto begins = [](const Callable& row, const std::string& word) {
    if (word.size() < 3) return row.always.contains(word);
    const auto next = row.always.lower_bound(word);
    return next != row.always.end() && next->starts_with(word);
  };
  std::vector<const Accelerator*> found;
  for (const Callable& row : rows)
    if (!query.words.empty() && query.fits_vendor(row) &&
        std::all_of(query.words.begin(), query.words.end(), [&](const auto& word) { return begins(row, word); }))
      found.push_back(row.gpu);
  return found;
}

tl::unexpected<Error> ambiguous(std::string_view name, const std::vector<const Accelerator*>& rows) {
  std::vector<std::string> ids;
  for (const Accelerator* gpu : rows)
    if (ids.size() < kMaxListed) ids.push_back(gpu->id);
  std::string list = fmt::format("{}", fmt::join(ids, ", "));
  if (rows.size() > ids.size()) list += fmt::format(" and {} more", rows.size() - ids.size());
  if (rows.size() == 1)
    return fail(ErrorCode::not_found, fmt::format("no GPU is called \"{}\"", name),
                fmt::format("did you mean {}?", list));
  return fail(ErrorCode::bad_input, fmt::format("\"{}\" may be any of {} GPUs", name, rows.size()),
              "say which: " + list);
}

tl::unexpected<Error> not_known(std::string_view name, const std::vector<Accelerator>& rows) {
  std::vector<std::string> names;
  for (const Accelerator& gpu : rows) {
    names.push_back(gpu.name);
    names.push_back(gpu.id);
    names.insert(names.end(), gpu.aliases.begin(), gpu.aliases.end());
    const Words words = without_brands(words_of(gpu.name));
    names.push_back(fmt::format("{}", fmt::join(words, " ")));
  }
  const auto near = nearest_name(name, names);
  return fail(ErrorCode::not_found, fmt::format("no GPU is called \"{}\"", name),
              near ? fmt::format("did you mean {}?", *near) : "`gpuwright gpus` lists them all");
}

// "10de:2684", or with the subsystem behind a slash.
std::optional<PciId> pci_id_from(std::string_view text) {
  const auto parts = split(text, '/');
  if (parts.size() > 2) return std::nullopt;
  std::array<std::uint16_t, 4> numbers{};
  std::size_t next = 0;
  for (const std::string_view part : parts)
    for (const std::string_view digits : split(part, ':')) {
      if (digits.size() != 4 || next == 2 * parts.size()) return std::nullopt;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + 4, numbers[next++], 16);
      if (error != std::errc() || end != digits.data() + 4) return std::nullopt;
    }
  if (next != 2 * parts.size()) return std::nullopt;
  return PciId{numbers[0], numbers[1], numbers[2], numbers[3]};
}

// A laptop's chip that is not known must not pass for the desktop one of that name, which is another chip.
tl::unexpected<Error> no_such_laptop(std::string_view name, const Accelerator& desktop) {
  return fail(ErrorCode::not_found, fmt::format("the laptop GPU \"{}\" is not in the catalogue", name),
              fmt::format("the desktop {} ({} of memory) is another chip; give the memory instead, as --gpu 8GiB",
                          desktop.name, to_string(desktop.nominal_memory)));
}

}  // namespace

Result<const Accelerator*> Catalog::find(std::string_view name) const {
  const std::string_view wanted = trim(name);
  if (wanted.empty()) return fail(ErrorCode::bad_input, "the name of a GPU is empty");
  if (wanted.size() > kMaxQuery) return fail(ErrorCode::bad_input, "the name of a GPU is too long");
  const std::string plain = lower(wanted);
  for (const Accelerator& gpu : accelerators_)
    if (lower(gpu.id) == plain || lower(gpu.name) == plain) return &gpu;

  if (const auto id = pci_id_from(wanted)) {
    const auto boards = all_by_pci_id(*id);
    if (boards.size() == 1) return boards.front();
    if (boards.size() > 1) return ambiguous(wanted, boards);
    return fail(ErrorCode::not_found, fmt::format("no GPU of the catalogue has the PCI id {}", to_string(*id)));
  }

  std::vector<Callable> rows;
  for (const Accelerator& gpu : accelerators_) rows.push_back(callable(gpu));
  Query query = query_from(wanted, vocabulary_of(rows));
  if (query.words.empty() && query.brands.empty()) return not_known(wanted, accelerators_);
  const auto nearest = nearest_rows(rows, query);
  if (nearest.empty() && query.words.erase("laptop") > 0)
    if (const auto desktop = nearest_rows(rows, query); !desktop.empty())
      return no_such_laptop(wanted, *desktop.front());
  if (nearest.empty()) {
    const auto alike = rows_beginning_like(rows, query);
    return alike.empty() ? not_known(wanted, accelerators_) : ambiguous(wanted, alike);
  }
  if (nearest.size() > 1) return ambiguous(wanted, nearest);
  return nearest.front();
}

}  // namespace gpuwright::catalog

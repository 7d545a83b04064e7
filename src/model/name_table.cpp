#include "model/name_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

namespace gpuwright::model {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t process_seed() {
  static const std::uint64_t kSeed = [] {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device() | 1;
  }();
  return kSeed;
}

// Multiply-and-fold over 16 bytes a step, after wyhash (Wang Yi, public domain); the seed enters both operands.
std::uint64_t hash_of(std::string_view name) {
  constexpr std::uint64_t kA = 0xa0761d6478bd642f;
  constexpr std::uint64_t kB = 0xe7037ed1a0b428db;
  const std::uint64_t seed = process_seed();
  std::uint64_t hash = seed ^ folded_product(name.size() ^ kA, seed ^ kB);
  while (!name.empty()) {
    std::uint64_t words[2] = {0, 0};
    const std::size_t step = std::min<std::size_t>(name.size(), sizeof words);
    std::memcpy(words, name.data(), step);
    hash = folded_product(words[0] ^ hash ^ kA, words[1] ^ seed ^ kB) + step;
    name.remove_prefix(step);
  }
  return folded_product(hash ^ kA, seed ^ kB);
}

}  // namespace

std::size_t NameTable::slot_of(std::string_view name, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    const Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && entry.name == name) break;
  }
  return at;
}

void NameTable::grow(std::size_t slots) {
  slots_.assign(slots, 0);
  const std::size_t mask = slots - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = entries_[i].hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

void NameTable::reserve(std::size_t count) {
  entries_.reserve(count);
  if (slots_.size() < 2 * count) grow(std::bit_ceil(2 * count));
}

void NameTable::clear() {
  entries_.clear();
  std::fill(slots_.begin(), slots_.end(), 0);
}

NameTable::Insertion NameTable::insert(std::string_view name) {
  if (slots_.size() < 2 * (entries_.size() + 1)) grow(std::max<std::size_t>(64, 2 * slots_.size()));
  const std::uint64_t hash = hash_of(name);
  std::uint32_t& slot = slots_[slot_of(name, hash)];
  if (slot != 0) return {slot - 1, false};
  entries_.push_back({name, hash});
  slot = static_cast<std::uint32_t>(entries_.size());
  return {slot - 1, true};
}

std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t number = slots_[slot_of(name, hash_of(name))];
  return number == 0 ? std::nullopt : std::optional(number - 1);
}

}  // namespace gpuwright::model

// A set of names that numbers them in the order of their arrival: 0, 1, 2... Readers of headers with 100,000 tensors
// use it to find duplicates and to match an index with its shards; it costs one probe a name and no allocation each.
// Names are views: whatever they point into must outlive the table. The hash is seeded once a process, so that a file
// cannot be made whose names all collide.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gpuwright::model {

class NameTable {
 public:
  struct Insertion {
    std::uint32_t number;
    bool added;  // false: the name was there before, under that number
  };
  Insertion insert(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const;  // thread-safe while nobody inserts
  std::string_view name(std::uint32_t number) const { return entries_[number].name; }
  std::size_t size() const { return entries_.size(); }
  void reserve(std::size_t count);
  void clear();  // keeps the memory

 private:
  struct Entry {
    std::string_view name;
    std::uint64_t hash;
  };
  std::size_t slot_of(std::string_view name, std::uint64_t hash) const;
  void grow(std::size_t slots);

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // number + 1, 0 when free; a power of two of them, at most half used
};

}  // namespace gpuwright::model

// data/gpus.toml, with ~/.config/gpuwright/gpus.toml over it (by id, field by field), as a searchable list.
// Umbrella of the room: Accelerator (accelerator.h), what architectures brought (architecture.h), the GPUs of this
// machine (host_gpus.h). Knows nothing of models.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/accelerator.h"

namespace gpuwright::catalog {

class Catalog {
 public:
  // The built-in facts with the user's file over them. An error names the file and line of the user's mistake.
  static Result<Catalog> load();
  static Result<Catalog> from_toml(std::string_view text, std::string_view name);
  // Lays another file over this one: a row with a known id replaces the fields it names, one with a new id is added
  // (and must have vendor, name and memory_gib). On an error this catalogue is as before.
  Status overlay(std::string_view text, std::string_view name);

  const std::vector<Accelerator>& accelerators() const { return accelerators_; }

  // By id, or by how people write it: "4090", "h100 sxm", "RTX A6000", "3090ti". The plain card wins over its
  // variants ("4090" is not the 4090 D). Ambiguous names ("a100") give bad_input listing the candidates; unknown ones
  // not_found with the nearest.
  Result<const Accelerator*> find(std::string_view name) const;
  // Nothing when no row or several rows have the id.
  const Accelerator* find_by_pci_id(PciId id) const;
  // Rows that carry the id. A row that names a subsystem matches only that subsystem.
  std::vector<const Accelerator*> all_by_pci_id(PciId id) const;

 private:
  std::vector<Accelerator> accelerators_;
};

// A condition on accelerators: "vram>=24 and arch=ada", "vendor=amd or not (tdp>300W)", fields listed by
// filter_fields(). Comparisons are >= <= > < = !=, and ~ for "contains"; = on text also takes one whole word of it
// (arch=ada). Yes/no fields may stand alone ("mig and vram>=80"). Units that fit the field may follow a number.
// An unknown value satisfies neither a comparison nor its opposite.
class Filter {
 public:
  static Result<Filter> parse(std::string_view text);
  bool matches(const Accelerator& accelerator) const;
  ~Filter();
  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;

 private:
  friend class FilterParser;
  struct Node;
  explicit Filter(std::unique_ptr<Node> root);
  std::unique_ptr<Node> root_;
};

std::vector<std::string> filter_fields();

// "vram: memory of one device as sold, GiB", one line a field, for help texts.
std::vector<std::string> filter_field_descriptions();

// Puts the list into the order of a field, "-field" for descending; unknown values come last, equal ones stay as they
// were. Unknown fields suggest the nearest.
Status sort_by(std::vector<const Accelerator*>& list, std::string_view field);

}  // namespace gpuwright::catalog

// data/gpus.toml, with ~/.config/gpuwright/gpus.toml over it (by id, field by field), as a searchable list.
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

  const std::vector<Accelerator>& accelerators() const { return accelerators_; }

  // By id, or by how people write it: "4090", "h100 sxm", "RTX A6000", "a100 80gb". Ambiguous names give bad_input
  // listing the candidates; unknown ones not_found with the nearest.
  Result<const Accelerator*> find(std::string_view name) const;
  const Accelerator* find_by_pci_id(PciId id) const;

 private:
  std::vector<Accelerator> accelerators_;
};

// A condition on accelerators: "vram>=24 and arch=ada", "vendor=amd or tdp<=75", fields listed by filter_fields().
// Unknown values match no comparison.
class Filter {
 public:
  static Result<Filter> parse(std::string_view text);
  bool matches(const Accelerator& accelerator) const;
  ~Filter();
  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;

 private:
  struct Node;
  explicit Filter(std::unique_ptr<Node> root);
  std::unique_ptr<Node> root_;
};

std::vector<std::string> filter_fields();

}  // namespace gpuwright::catalog

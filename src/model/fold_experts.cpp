#include "model/fold_experts.h"

#include <string_view>
#include <unordered_map>

namespace gpuwright::model {
namespace {

constexpr std::string_view kMark = "experts.";

// Where the expert's number stands in the name; empty when there is none.
struct Number {
  std::size_t begin = 0, end = 0;
};
Number expert_number(std::string_view name) {
  const std::size_t mark = name.find(kMark);
  if (mark == std::string_view::npos) return {};
  Number number{mark + kMark.size(), mark + kMark.size()};
  while (number.end < name.size() && name[number.end] >= '0' && name[number.end] <= '9') ++number.end;
  return number;
}

std::size_t hash_of(const Tensor& tensor, Number number) {
  const std::string_view name = tensor.name;
  const std::hash<std::string_view> hash;
  return hash(name.substr(0, number.begin)) * 31 + hash(name.substr(number.end));
}

bool may_fold(const Tensor& a, Number at_a, const Tensor& b, Number at_b) {
  const std::string_view x = a.name, y = b.name;
  return a.layer == b.layer && a.role == b.role && a.dtype == b.dtype && a.rows == b.rows && a.columns == b.columns &&
         a.weights_per_element == b.weights_per_element && x.substr(0, at_a.begin) == y.substr(0, at_b.begin) &&
         x.substr(at_a.end) == y.substr(at_b.end);
}

}  // namespace

void fold_experts(std::vector<Tensor>& tensors) {
  std::unordered_map<std::size_t, std::size_t> first_of_kind;  // hash -> index into the kept tensors
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor& tensor = tensors[i];
    const Number number = expert_number(tensor.name);
    if (number.end > number.begin) {
      const auto [entry, is_new] = first_of_kind.try_emplace(hash_of(tensor, number), kept);
      Tensor& first = tensors[entry->second];
      if (!is_new && may_fold(first, expert_number(first.name), tensor, number)) {
        first.copies += tensor.copies;
        first.bytes += tensor.bytes;
        continue;
      }
    }
    if (kept != i) tensors[kept] = std::move(tensor);
    ++kept;
  }
  tensors.resize(kept);
  for (Tensor& tensor : tensors)
    if (const Number number = expert_number(tensor.name); tensor.copies > 1 && number.end > number.begin)
      tensor.name.replace(number.begin, number.end - number.begin, "*");
}

}  // namespace gpuwright::model

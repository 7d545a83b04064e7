// Experts come one after the other, each with the same few tensors in the same order. So after the tensor B has
// followed A once, it is tried first when A comes again; a hit costs two comparisons, no hashing and no allocation.
#include "model/placed_tensors.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace gpuwright::model {
namespace {

// "model.layers.3.mlp.experts.17.up_proj.weight" -> the texts before and after "17"; both empty for other names.
struct ExpertName {
  std::string_view before;
  std::string_view after;
};

ExpertName split_expert(std::string_view name) {
  constexpr std::string_view kMark = "experts.";
  const std::size_t mark = name.find(kMark);
  if (mark == std::string_view::npos) return {};
  const std::size_t begin = mark + kMark.size();
  std::size_t end = begin;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  if (end == begin || end == name.size() || name[end] != '.') return {};
  return {name.substr(0, begin), name.substr(end)};
}

bool matches(std::string_view masked, const ExpertName& expert) {
  return masked.size() == expert.before.size() + 1 + expert.after.size() && masked.starts_with(expert.before) &&
         masked.ends_with(expert.after);
}

class Placer {
 public:
  void add(const StoredTensor& stored) {
    const ExpertName expert = split_expert(stored.name);
    if (expert.before.empty()) {
      append(stored, std::string(stored.name));
      return;
    }
    const std::uint32_t number = number_of(stored, expert);
    if (number == kNone) return;
    if (last_ != kNone) successor_[last_] = number;
    last_ = number;
  }

  std::vector<Tensor> take() { return std::move(tensors_); }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  static bool equal(const Tensor& tensor, const StoredTensor& stored) {
    return tensor.dtype == stored.dtype && tensor.rows == stored.rows && tensor.columns == stored.columns &&
           tensor.bytes.count / tensor.copies == stored.bytes.count;
  }

  // Counts the tensor in; kNone when it differs from its kin and stands alone.
  std::uint32_t number_of(const StoredTensor& stored, const ExpertName& expert) {
    std::uint32_t number = last_ == kNone ? kNone : successor_[last_];
    if (number == kNone || !matches(tensors_[number].name, expert)) {
      std::string masked = std::string(expert.before) + "*" + std::string(expert.after);
      const auto [known, added] = numbers_.try_emplace(masked, static_cast<std::uint32_t>(tensors_.size()));
      number = known->second;
      if (added) {
        append(stored, std::move(masked));
        return number;
      }
    }
    Tensor& tensor = tensors_[number];
    if (!equal(tensor, stored)) {
      append(stored, std::string(stored.name));
      return kNone;
    }
    ++tensor.copies;
    tensor.bytes += stored.bytes;
    return number;
  }

  void append(const StoredTensor& stored, std::string name) {
    const TensorPlace place = place_of(stored.name);
    Tensor& tensor = tensors_.emplace_back();
    tensor.name = std::move(name);
    tensor.role = place.role;
    tensor.layer = place.layer;
    tensor.dtype = stored.dtype;
    tensor.rows = stored.rows;
    tensor.columns = stored.columns;
    tensor.bytes = stored.bytes;
    successor_.push_back(kNone);
  }

  std::vector<Tensor> tensors_;
  std::vector<std::uint32_t> successor_;  // of tensors_, by number
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::uint32_t last_ = kNone;
};

}  // namespace

std::vector<Tensor> placed_tensors(const std::vector<StoredTensor>& stored) {
  Placer placer;
  for (const StoredTensor& tensor : stored) placer.add(tensor);
  return placer.take();
}

}  // namespace gpuwright::model

#include "device/nvml/field_batch.h"

#include <cmath>

namespace gpuwright::device::nvidia {
namespace {

Reading<std::uint64_t> whole(std::uint64_t value) {
  return is_blank(value) ? Reading<std::uint64_t>(Why::implausible) : Reading<std::uint64_t>(value);
}
// Counters that may stand at any value of their 32 bits.
bool wraps(unsigned id) {
  return id == nvml::field::kPcieSentBytes || id == nvml::field::kPcieReceivedBytes;
}

Reading<std::uint64_t> value_of(const nvml::FieldValue& field) {
  switch (field.value_type) {
    case nvml::kDouble:
      if (!std::isfinite(field.value.as_double) || field.value.as_double < 0 || field.value.as_double > 9e18)
        return Why::implausible;
      return static_cast<std::uint64_t>(field.value.as_double);
    case nvml::kUnsignedInt:
      if (is_blank32(field.value.as_unsigned) && !wraps(field.field_id)) return Why::implausible;
      return std::uint64_t{field.value.as_unsigned};
    case nvml::kUnsignedLong:
      return whole(field.value.as_unsigned_long);
    case nvml::kUnsignedLongLong:
      return whole(field.value.as_unsigned_long_long);
    case nvml::kSignedLongLong:
      if (field.value.as_long_long < 0) return Why::implausible;
      return whole(static_cast<std::uint64_t>(field.value.as_long_long));
    case nvml::kSignedInt:
      if (field.value.as_int < 0) return Why::implausible;
      return static_cast<std::uint64_t>(field.value.as_int);
    case nvml::kUnsignedShort:
      return std::uint64_t{field.value.as_unsigned_short};
  }
  return Why::implausible;
}

nvml::FieldValue unasked() {
  nvml::FieldValue value{};
  value.result = nvml::kFunctionNotFound;
  return value;
}

}  // namespace

void FieldBatch::want(std::initializer_list<unsigned> ids, unsigned scope) {
  for (const unsigned id : ids) {
    nvml::FieldValue value = unasked();
    value.field_id = id;
    value.scope_id = scope;
    values_.push_back(value);
  }
}

void FieldBatch::ask(Asker& ask, nvml::Device device) {
  const auto& function = ask.functions().nvmlDeviceGetFieldValues;
  if (values_.empty() || !function) return;
  const nvml::Return all = ask(function, device, static_cast<int>(values_.size()), values_.data());
  if (all == nvml::kSuccess || !ask.fine()) return;
  // Some drivers refuse the whole list for one field that they do not know.
  for (nvml::FieldValue& value : values_) {
    const nvml::Return code = ask(function, device, 1, &value);
    if (code != nvml::kSuccess) value.result = code;
    if (!ask.fine()) return;
  }
}

Reading<std::uint64_t> FieldBatch::number(unsigned id, unsigned scope) const {
  const nvml::FieldValue& field = find(id, scope);
  return field.result == nvml::kSuccess ? value_of(field) : Reading<std::uint64_t>(why_of(field.result));
}

Reading<std::int64_t> FieldBatch::count(unsigned id) const {
  const Reading<std::uint64_t> value = number(id);
  return value ? nvidia::count(nvml::kSuccess, *value) : Reading<std::int64_t>(value.why());
}

Reading<bool> FieldBatch::flag(unsigned id) const {
  const Reading<std::uint64_t> value = number(id);
  return value ? yes_or_no(nvml::kSuccess, static_cast<std::int64_t>(*value)) : Reading<bool>(value.why());
}

int FieldBatch::bits(unsigned id, unsigned scope) const {
  return find(id, scope).value_type == nvml::kUnsignedInt ? 32 : 64;
}

const nvml::FieldValue& FieldBatch::find(unsigned id, unsigned scope) const {
  for (const nvml::FieldValue& value : values_)
    if (value.field_id == id && value.scope_id == scope) return value;
  static const nvml::FieldValue kUnasked = unasked();
  return kUnasked;
}

}  // namespace gpuwright::device::nvidia

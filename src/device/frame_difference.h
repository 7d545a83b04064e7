// A frame as what changed since the frame before: from one second to the next most of a snapshot stays, and a recording
// of differences is a seventh of the size. docs/recording.md has the bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwright::device {

// Both are whole frames of encode_frame(). The result is a frame, too, but one that needs the one before to be read.
std::string encode_difference(std::string_view frame, std::string_view before);
bool is_difference(std::string_view frame);

// The whole frame that the difference stands for. bad_input when `before` is not the frame that it was made against, or
// when it is damaged; never larger than a frame may be.
Result<std::string> apply_difference(std::string_view difference, std::string_view before, std::string_view name);

}  // namespace gpuwright::device

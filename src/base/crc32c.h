// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), the checksum of iSCSI and ext4: RFC 3720, appendix B.4.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuwright {

// Of `bytes`; `before` is the checksum of what comes before them, so that parts can be summed one after the other.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

}  // namespace gpuwright

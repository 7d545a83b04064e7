// Bytes that wait for a slower reader, first in, first out: in a file without a name, which ends with us.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuwright::cli {

// Not thread-safe. The file is made when the first bytes come, in $TMPDIR, /var/tmp or /tmp.
class Spill {
 public:
  Spill() = default;
  ~Spill();
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  // False, and nothing is added: there is no room for it.
  bool add(std::string_view bytes);
  bool empty() const { return read_ == written_; }
  std::int64_t size() const { return written_ - read_; }
  // The next bytes, at most so many. False: they cannot be read, and are lost.
  bool take(std::string& into, std::size_t most);

 private:
  bool open();

  int descriptor_ = -1;
  bool tried_ = false;
  std::int64_t read_ = 0, written_ = 0;  // offsets in the file
};

}  // namespace gpuwright::cli

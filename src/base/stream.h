// Bytes that come one after the other: a file, a pipe, standard input. What is compressed by gzip is unpacked on the
// way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace gpuwright {

class InputStream {
 public:
  // "-" is standard input. Folders are refused; a FIFO waits for its writer.
  static Result<InputStream> open(const std::string& path);
  ~InputStream();
  InputStream(InputStream&&) noexcept;
  InputStream& operator=(InputStream&&) noexcept;

  // The next bytes into `into`, at most `capacity`; 0 at the end. A damaged gzip file gives what came before the
  // damage, then bad_input.
  Result<std::size_t> read(char* into, std::size_t capacity);
  const std::string& name() const;
  // Bytes read from the file so far, and its size where it has one (for progress).
  std::int64_t bytes_read() const;
  std::int64_t size() const;  // 0 = not known

 private:
  struct State;
  explicit InputStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpuwright

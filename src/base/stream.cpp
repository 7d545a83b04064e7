#include "base/stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace gpuwright {
namespace {

constexpr std::size_t kPacked = 256 << 10;
// zlib: 15 bits of window, 16 more for a gzip header.
constexpr int kGzip = 15 + 16;

}  // namespace

struct InputStream::State {
  std::string name;
  int descriptor = -1;
  std::int64_t bytes_read = 0, size = 0;
  std::vector<char> head;  // read to see whether it is gzip, not yet given
  std::size_t head_given = 0;
  bool gzip = false;
  z_stream packed = {};
  std::vector<unsigned char> input;
  bool end = false;

  ~State() {
    if (gzip) inflateEnd(&packed);
    if (descriptor > 0) close(descriptor);
  }

  Result<std::size_t> read_plain(char* into, std::size_t capacity) {
    if (head_given < head.size()) {
      const std::size_t count = std::min(capacity, head.size() - head_given);
      std::memcpy(into, head.data() + head_given, count);
      head_given += count;
      return count;
    }
    while (true) {
      const ssize_t count = ::read(descriptor, into, capacity);
      if (count >= 0) {
        bytes_read += count;
        return static_cast<std::size_t>(count);
      }
      if (errno != EINTR) return fail(ErrorCode::unavailable, fmt::format("{}: {}", name, std::strerror(errno)));
    }
  }

  Result<std::size_t> unpack(char* into, std::size_t capacity) {
    packed.next_out = reinterpret_cast<unsigned char*>(into);
    packed.avail_out = static_cast<unsigned>(capacity);
    while (packed.avail_out == capacity && !end) {
      if (packed.avail_in == 0) {
        const std::size_t count = GW_TRY(read_plain(reinterpret_cast<char*>(input.data()), input.size()));
        if (count == 0) return fail(ErrorCode::bad_input, name + ": the gzip file ends too early");
        packed.next_in = input.data();
        packed.avail_in = static_cast<unsigned>(count);
      }
      const int code = inflate(&packed, Z_NO_FLUSH);
      if (code == Z_STREAM_END)
        GW_TRY(next_member());
      else if (code != Z_OK && code != Z_BUF_ERROR)
        return fail(ErrorCode::bad_input, fmt::format("{}: damaged gzip file", name));
    }
    return capacity - packed.avail_out;
  }

  // A gzip file may be several, one after the other (rotated logs that were joined).
  Status next_member() {
    if (packed.avail_in == 0) {
      const std::size_t count = GW_TRY(read_plain(reinterpret_cast<char*>(input.data()), input.size()));
      packed.next_in = input.data();
      packed.avail_in = static_cast<unsigned>(count);
    }
    end = packed.avail_in == 0 || packed.next_in[0] != 0x1f || inflateReset(&packed) != Z_OK;
    return {};
  }
};

InputStream::InputStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
InputStream::~InputStream() = default;
InputStream::InputStream(InputStream&&) noexcept = default;
InputStream& InputStream::operator=(InputStream&&) noexcept = default;

Result<InputStream> InputStream::open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->name = path == "-" ? "standard input" : path;
  state->descriptor = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (state->descriptor < 0)
    return fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
                fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat about = {};
  if (fstat(state->descriptor, &about) == 0) {
    if (S_ISDIR(about.st_mode)) return fail(ErrorCode::bad_input, path + " is a folder");
    if (S_ISREG(about.st_mode)) state->size = about.st_size;
  }
  state->head.resize(2);
  std::size_t got = 0;
  while (got < 2) {
    const ssize_t count = ::read(state->descriptor, state->head.data() + got, 2 - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::unavailable, fmt::format("{}: {}", state->name, std::strerror(errno)));
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  state->head.resize(got);
  state->bytes_read = static_cast<std::int64_t>(got);
  state->gzip = got == 2 && state->head[0] == '\x1f' && state->head[1] == '\x8b';
  if (state->gzip) {
    state->input.resize(kPacked);
    if (inflateInit2(&state->packed, kGzip) != Z_OK) return fail(ErrorCode::internal, "zlib did not start");
  }
  return InputStream(std::move(state));
}

Result<std::size_t> InputStream::read(char* into, std::size_t capacity) {
  return state_->gzip ? state_->unpack(into, capacity) : state_->read_plain(into, capacity);
}

const std::string& InputStream::name() const {
  return state_->name;
}
std::int64_t InputStream::bytes_read() const {
  return state_->bytes_read;
}
std::int64_t InputStream::size() const {
  return state_->size;
}

}  // namespace gpuwright

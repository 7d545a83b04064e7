#include "base/json_reader.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace gpuwright {
namespace {

// Where a string has something to look at: its closing quote, a backslash or a control character, which JSON forbids.
// Eight bytes at a time; the bit tricks are "haszero" and "hasless" of Sean Eron Anderson's Bit Twiddling Hacks, whose
// lowest hit is exact. `not_ascii` collects the high bits of what was passed over.
char* find_special(char* at, const char* end, std::uint64_t& not_ascii) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  const auto zeros = [](std::uint64_t word) { return (word - kOnes) & ~word & kHighs; };
  if constexpr (std::endian::native == std::endian::little) {
    for (; end - at >= 8; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      const std::uint64_t control = (word - 0x20 * kOnes) & ~word & kHighs;
      const std::uint64_t hits = control | zeros(word ^ ('"' * kOnes)) | zeros(word ^ ('\\' * kOnes));
      if (hits == 0) {
        not_ascii |= word;
        continue;
      }
      const int passed = std::countr_zero(hits) & ~7;
      not_ascii |= word & ~(~std::uint64_t{0} << passed);
      return at + passed / 8;
    }
  }
  for (; at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20; ++at)
    not_ascii |= static_cast<unsigned char>(*at);
  return at;
}

bool has_high_bit(std::uint64_t bytes) {
  return (bytes & 0x8080808080808080) != 0;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Four hexadecimal digits; -1 for anything else.
int hexadecimal(const char* digits) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits, digits + 4, value, 16);
  return error == std::errc() && end == digits + 4 ? static_cast<int>(value) : -1;
}

void append_utf8(std::uint32_t code, char*& to) {
  const auto put = [&](std::uint32_t byte) { *to++ = static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

}  // namespace

bool JsonReader::read_key(std::string_view& key) {
  if (peek() != '"') return fail("a member has no name in quotes");
  if (!read_string(key)) return false;
  if (peek() != ':') return fail("':' is missing");
  ++at_;
  return true;
}

bool JsonReader::read_string(std::string_view& value) {
  char* const start = ++at_;
  std::uint64_t not_ascii = 0;
  char* stop = find_special(start, end_, not_ascii);
  if (stop != end_ && *stop == '\\') {
    if (!unescape(start, value)) return false;
    not_ascii = ~std::uint64_t{0};
  } else {
    at_ = stop;
    if (stop == end_) return fail("a string does not end");
    if (*stop != '"') return fail("a string holds a control character");
    ++at_;
    value = {start, static_cast<std::size_t>(stop - start)};
  }
  return !has_high_bit(not_ascii) || is_utf8(value) || fail("a string is not UTF-8");
}

// What escapes stand for is never longer than they are, so that the text can be written over.
bool JsonReader::unescape(char* from, std::string_view& value) {
  char* const start = from;
  char* to = from;
  for (std::uint64_t unused = 0;;) {
    char* const stop = find_special(from, end_, unused);
    std::memmove(to, from, static_cast<std::size_t>(stop - from));
    to += stop - from;
    from = at_ = stop;
    if (stop == end_) return fail("a string does not end");
    if (*stop == '"') break;
    if (*stop != '\\') return fail("a string holds a control character");
    if (!append_escape(from, to)) return fail("a string holds an escape that does not exist");
  }
  ++at_;
  value = {start, static_cast<std::size_t>(to - start)};
  return true;
}

// `from` stands at the backslash, and behind the escape afterwards.
bool JsonReader::append_escape(char*& from, char*& to) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (end_ - from < 2) return false;
  if (const std::size_t letter = kLetters.find(from[1]); letter != std::string_view::npos) {
    from += 2;
    *to++ = kMeanings[letter];
    return true;
  }
  if (from[1] != 'u' || end_ - from < 6) return false;
  const int first = hexadecimal(from + 2);
  if (first < 0 || (first >= 0xdc00 && first < 0xe000)) return false;
  from += 6;
  if (first < 0xd800 || first >= 0xe000) return append_utf8(static_cast<std::uint32_t>(first), to), true;
  if (end_ - from < 6 || from[0] != '\\' || from[1] != 'u') return false;
  const int second = hexadecimal(from + 2);
  if (second < 0xdc00 || second >= 0xe000) return false;
  from += 6;
  append_utf8(static_cast<std::uint32_t>(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)), to);
  return true;
}

bool JsonReader::integer(std::int64_t& value) {
  if (!ok()) return false;
  skip_blanks();
  const char* at = at_;
  const bool negative = at != end_ && *at == '-';
  if (negative) ++at;
  const char* const digits = at;
  std::uint64_t size = 0;
  for (; at != end_ && is_digit(*at); ++at) {
    if (at - digits == 19) return false;
    size = 10 * size + static_cast<std::uint64_t>(*at - '0');
  }
  if (at == digits || (*digits == '0' && at - digits > 1)) return false;
  if (at != end_ && (*at == '.' || *at == 'e' || *at == 'E')) return false;
  if (size > (std::uint64_t{1} << 63) - (negative ? 0 : 1)) return false;
  value = static_cast<std::int64_t>(negative ? 0 - size : size);
  at_ += at - at_;
  return true;
}

const char* JsonReader::number_end() const {
  const char* at = at_;
  const auto digits = [&] {
    const char* const first = at;
    while (at != end_ && is_digit(*at)) ++at;
    return at != first;
  };
  if (at != end_ && *at == '-') ++at;
  if (at != end_ && *at == '0') {
    ++at;
  } else if (!digits()) {
    return nullptr;
  }
  if (at != end_ && *at == '.' && (++at, !digits())) return nullptr;
  if (at != end_ && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end_ && (*at == '+' || *at == '-')) ++at;
    if (!digits()) return nullptr;
  }
  return at;
}

bool JsonReader::number(double& value) {
  if (!ok()) return false;
  skip_blanks();
  const char* const stop = number_end();
  if (stop == nullptr) return false;
  double read = 0;
  // Too small for a double is zero, too large is no number.
  if (const auto result = std::from_chars(at_, stop, read); result.ec == std::errc::result_out_of_range) {
    const std::string_view text(at_, static_cast<std::size_t>(stop - at_));
    const std::size_t exponent = text.find_first_of("eE");
    if (exponent == std::string_view::npos || text.substr(exponent + 1, 1) != "-") return false;
  }
  value = read;
  at_ += stop - at_;
  return true;
}

bool JsonReader::word(std::string_view word) {
  if (!ok()) return false;
  skip_blanks();
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::skip(int levels) {
  if (!ok()) return false;
  if (levels == 0) return fail("it is nested too deeply");
  std::string_view text;
  if (begin_object()) {
    while (next_member(text)) skip(levels - 1);
    return ok();
  }
  if (begin_array()) {
    while (next_item()) skip(levels - 1);
    return ok();
  }
  if (string(text)) return true;
  double number_read = 0;
  return number(number_read) || word("true") || word("false") || word("null") || fail("a value is missing");
}

}  // namespace gpuwright

// Walks through a JSON text (RFC 8259) without building a tree: Json is made by it, and headers with 100,000 tensors
// are read by it directly. The text is not trusted: no read goes beyond it, nothing recurses deeper than asked for, and
// every string is checked to be UTF-8.
//
//   JsonReader reader(text);
//   if (reader.begin_object())
//     for (std::string_view key; reader.next_member(key);) reader.skip();
//   if (!reader.ok()) ... reader.reason(), reader.position()
//
// The first failure sticks: from then on everything gives false. A member's value must be read (or skipped) before the
// next member is asked for. Strings are views of the text: escapes are resolved in place, for which it is written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gpuwright {

class JsonReader {
 public:
  explicit JsonReader(std::span<char> text) : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  bool ok() const { return reason_ == nullptr; }
  const char* reason() const { return reason_; }  // null while ok
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }

  // The first character of the value to come ('{', '[', '"', '-', a digit, 't', 'f', 'n'); 0 at the end.
  char peek() {
    skip_blanks();
    return at_ == end_ ? '\0' : *at_;
  }
  // Nothing but blanks follows.
  bool at_end() { return ok() && peek() == '\0' && at_ == end_; }

  // False where the value to come is of another kind, which is no failure: it can still be read as what it is.
  bool begin_object() { return begin('{'); }
  bool begin_array() { return begin('['); }
  // False at the end of the object or array, and after a failure.
  bool next_member(std::string_view& key) { return next('}') && read_key(key); }
  bool next_item() { return next(']'); }

  // Each is false, and nothing is read, where the value to come is of another kind. A number with a fraction or an
  // exponent, or beyond 63 bits, is no integer.
  bool string(std::string_view& value) { return ok() && peek() == '"' && read_string(value); }
  bool integer(std::int64_t& value);
  bool number(double& value);        // also an integer, of any size that a double can come near to
  bool word(std::string_view word);  // true, false, null

  // Any value, checked to be well-formed, of at most so many levels.
  bool skip(int levels = 64);

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  bool fail(const char* reason) {
    if (reason_ == nullptr) reason_ = reason;
    return false;
  }
  bool begin(char bracket) {
    if (!ok() || peek() != bracket) return false;
    ++at_;
    first_ = true;
    return true;
  }
  // Consumes the comma before a further element, or the closing bracket.
  bool next(char closing) {
    if (!ok()) return false;
    const char c = peek();
    if (c == closing) {
      ++at_;
      first_ = false;
      return false;
    }
    if (first_) {
      first_ = false;
      return true;
    }
    if (c != ',') return fail(closing == '}' ? "',' or '}' is missing" : "',' or ']' is missing");
    ++at_;
    return true;
  }
  bool read_key(std::string_view& key);
  bool read_string(std::string_view& value);
  bool unescape(char* from, std::string_view& value);
  bool append_escape(char*& from, char*& to);
  const char* number_end() const;  // null where no number begins

  char* begin_;
  char* at_;
  char* end_;
  const char* reason_ = nullptr;
  bool first_ = false;  // the next element is the first of its object or array
};

}  // namespace gpuwright

// Errors are values: every function that can fail returns Result<T>, and the error says what is wrong, where, and
// what to do about it. Exceptions stay inside the .cpp that wraps a throwing library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace gpuwright {

// Decides the exit code of the command line (see exit_code_for in cli/command.h).
enum class ErrorCode {
  bad_input,    // the user's words or a file's contents are wrong
  not_found,    // a file, GPU, model or option that was named does not exist
  unsupported,  // understood, but not something gpuwright can answer truthfully
  unavailable,  // something needed is missing or unreachable: network, library, permission
  internal,     // a fault of gpuwright itself
};

// Where in which input the error was seen. Line counts from 1; byte is an offset from 0.
struct Location {
  std::string file;
  std::optional<std::int64_t> line;
  std::optional<std::int64_t> byte;
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string what;
  Location where;
  std::string hint;  // what the reader can do; may be empty

  // "model.gguf: byte 24: the header says 9e18 tensors (hint: ...)", one line, control characters made visible.
  std::string message() const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string what, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(what), {}, std::move(hint)});
}
inline tl::unexpected<Error> fail_at(ErrorCode code, Location where, std::string what, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(where), std::move(hint)});
}

namespace detail {
template <class T>
T take(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace detail
}  // namespace gpuwright

#define GW_CONCAT_(a, b) a##b
#define GW_CONCAT(a, b) GW_CONCAT_(a, b)
// auto value = GW_TRY(f());  hands f's error to the caller, else gives its value.
#define GW_TRY_(result, expression)                                                      \
  __extension__({                                                                        \
    auto result = (expression);                                                          \
    if (!result) return ::tl::unexpected<::gpuwright::Error>(std::move(result.error())); \
    ::gpuwright::detail::take(std::move(result));                                        \
  })
#define GW_TRY(expression) GW_TRY_(GW_CONCAT(gw_result_, __COUNTER__), (expression))

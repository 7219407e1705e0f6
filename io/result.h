// Errors that callers handle: `Result<T>` holds either a value or an `Error` (a kind to branch on and a text for people).
// Bugs do not travel this way (NARAD_CHECK), nor does the end of a fiber (the exception io::Cancelled).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "io/check.h"

namespace io {

enum class ErrorKind {
  no_space,   // ENOSPC, EDQUOT: room may come back
  io,         // the device or the connection failed (EIO, reset, refused)
  corrupt,    // bytes are not what was written
  not_found,  // no such file, nobody listens there
  exists,     // already there
  busy,       // locked by another, or a bound is reached
  timed_out,  // the deadline passed; the operation may still take effect
  cancelled,  // the operation was given up; it may still take effect
  invalid,    // the request itself is wrong (a bad address, a closed handle)
  denied,     // no permission
};

std::string_view to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::io;
  std::string message;  // names the object ("raft/000001.log: no space left on device")

  std::string to_text() const;  // "<kind>: <message>"
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    NARAD_CHECK(ok(), "value of a failed result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    NARAD_CHECK(ok(), "value of a failed result");
    return std::get<0>(state_);
  }
  T&& value() && {
    NARAD_CHECK(ok(), "value of a failed result");
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    NARAD_CHECK(!ok(), "error of a successful result");
    return std::get<1>(state_);
  }
  bool is(ErrorKind kind) const { return !ok() && error().kind == kind; }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    NARAD_CHECK(error_.has_value(), "error of a successful result");
    return *error_;
  }
  bool is(ErrorKind kind) const { return error_.has_value() && error_->kind == kind; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

inline Error fail(ErrorKind kind, std::string message) { return Error{kind, std::move(message)}; }

}  // namespace io

#include "io/result.h"

namespace io {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::no_space: return "no space";
    case ErrorKind::io: return "io";
    case ErrorKind::corrupt: return "corrupt";
    case ErrorKind::not_found: return "not found";
    case ErrorKind::exists: return "exists";
    case ErrorKind::busy: return "busy";
    case ErrorKind::timed_out: return "timed out";
    case ErrorKind::cancelled: return "cancelled";
    case ErrorKind::invalid: return "invalid";
    case ErrorKind::denied: return "denied";
  }
  return "unknown";
}

std::string Error::to_text() const { return std::string(to_string(kind)) + ": " + message; }

}  // namespace io

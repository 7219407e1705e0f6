#include "io/real/errno.h"

#include <cerrno>
#include <cstring>

namespace io::real {

namespace {

ErrorKind kind_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:  // a limit on file sizes
      return ErrorKind::no_space;
    case ENOENT:
      return ErrorKind::not_found;
    case EEXIST:
    case ENOTEMPTY:
      return ErrorKind::exists;
    case EADDRINUSE:
    case EBUSY:
    case ETXTBSY:
    case EMFILE:
    case ENFILE:
      return ErrorKind::busy;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorKind::denied;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EXDEV:
    case EBADF:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return ErrorKind::invalid;
    case ETIMEDOUT:
      return ErrorKind::timed_out;
    default:
      return ErrorKind::io;
  }
}

}  // namespace

std::string errno_text(int error) {
  char buffer[128];
  std::string text = strerror_r(error, buffer, sizeof buffer);  // the GNU variant: returns the text
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

Error error_from_errno(int error, std::string_view object) {
  return fail(kind_of(error), std::string(object) + ": " + errno_text(error));
}

}  // namespace io::real

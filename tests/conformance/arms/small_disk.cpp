#include "tests/conformance/arms/small_disk.h"

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

namespace tests {

namespace {

// A mount namespace of our own: the mounts vanish with the process, however it ends.
int enter_own_namespace() {
  static const int result = [] {
    if (unshare(CLONE_NEWNS) != 0) {
      return errno;
    }
    return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno;
  }();
  return result;
}

}  // namespace

std::unique_ptr<SmallDisk> SmallDisk::mount(const std::string& directory, uint64_t bytes, std::string& why_not) {
  if (const int error = enter_own_namespace(); error != 0) {
    why_not = std::string("no mount namespace: ") + strerror(error);
    return nullptr;
  }
  const std::string options = "size=" + std::to_string(bytes) + ",mode=0755";
  if (::mount("narad-test", directory.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    why_not = std::string("no small tmpfs: ") + strerror(errno);
    return nullptr;
  }
  return std::unique_ptr<SmallDisk>(new SmallDisk(directory));
}

SmallDisk::~SmallDisk() { umount2(directory_.c_str(), MNT_DETACH); }

}  // namespace tests

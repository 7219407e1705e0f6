// A tmpfs of a given size for one test, invisible to the rest of the machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tests {

class SmallDisk {
 public:
  // Mounts at `directory`, which exists. Null, and `why_not` says why, without the privilege to mount.
  static std::unique_ptr<SmallDisk> mount(const std::string& directory, uint64_t bytes, std::string& why_not);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  explicit SmallDisk(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

}  // namespace tests

// The three worlds that the conformance suite compares: io_uring, epoll and the simulator. A test runs node code in an
// arm and sees only io::Env; what it needs besides (a slow disk, a small one, an address that never answers) the arm
// arranges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/env.h"

namespace tests {

enum class ArmKind { uring, epoll, sim };

inline constexpr ArmKind kAllArms[] = {ArmKind::uring, ArmKind::epoll, ArmKind::sim};

std::string_view to_string(ArmKind kind);

struct ArmSettings {
  // Size of the disk; nullopt: ample. Real arms mount a small tmpfs of their own for it.
  std::optional<uint64_t> disk_bytes;
  // The test calls stall_next. Real arms then lead each file operation over a thread where it can be held.
  bool may_stall = false;
};

class Arm {
 public:
  virtual ~Arm() = default;

  // Runs `body` as the main fiber of a process, to its end. A further call is a new process on the same data directory.
  virtual void run(std::function<void(io::Env&)> body) = 0;

  // The next file operation `operation` ("write", "sync") on `path` hangs until release(). Called inside run.
  virtual void stall_next(std::string_view operation, std::string_view path) = 0;
  virtual void release() = 0;

  // An address that answers no attempt to connect, neither by yes nor by no.
  virtual std::string silent_address() = 0;
};

// Null, and `why_not` says why, where this machine cannot provide the arm.
std::unique_ptr<Arm> make_arm(ArmKind kind, const ArmSettings& settings, std::string& why_not);

}  // namespace tests

// What the controller needs of raft beside proposals: who the servers are and how they are, and the two steps that take one out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/result.h"
#include "io/time.h"

namespace raft {
class RaftServer;
}
namespace io {
struct Env;
}

namespace engine::cluster {

struct ServerFact {
  std::string id;
  std::string address;
  bool is_voter = false;
  // Answered this leader within kServerContactMax; this server itself: true. On a server that does not lead: true, it cannot tell.
  bool is_in_contact = true;
};

inline constexpr io::Duration kServerContactMax = std::chrono::seconds(2);

class Servers {
 public:
  virtual ~Servers() = default;
  // Of the newest configuration, by id.
  virtual std::vector<ServerFact> list() const = 0;
  virtual std::string_view self() const = 0;
  // Takes `id` out of the configuration; ok also when it is not in it. Waits for the commit. Errors: why not, or `timed_out` when the
  // outcome is unknown. Fiber only; throws Cancelled.
  virtual io::Status remove(std::string_view id, io::Instant deadline) = 0;
  // Hands leadership to another voter. Ok: another server leads. Fiber only; throws Cancelled.
  virtual io::Status hand_over(io::Instant deadline) = 0;

  bool has(std::string_view id) const;
  std::vector<std::string> voters() const;
};

class RaftServers final : public Servers {
 public:
  // Keeps references; `raft` is open.
  RaftServers(io::Env& env, raft::RaftServer& raft, std::string self) : env_(env), raft_(raft), self_(std::move(self)) {}

  std::vector<ServerFact> list() const override;
  std::string_view self() const override { return self_; }
  io::Status remove(std::string_view id, io::Instant deadline) override;
  io::Status hand_over(io::Instant deadline) override;

 private:
  io::Env& env_;
  raft::RaftServer& raft_;
  const std::string self_;
};

}  // namespace engine::cluster

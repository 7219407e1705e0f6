// A follower's dealings with the leader: writes that it forwards, and how it brings its own replica level with the leader's.
//
// Promises (narad/node-protocol.md section 9; scenarios CL-01, CL-02, CL-06):
//  - the leader's status, content type and body pass through unchanged;
//  - every forward ends within its bound; a write that may have been received and was not answered is 503 with the text that
//    says so, and is never sent again. Only a write that certainly never left is sent once more, when another leader is known;
//  - after a success the caller is answered when this node's replica holds the write, after at most 3 s, and at once when the
//    leader cannot be asked.
// The leader is dialled at the address that the raft configuration gives it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/node_client.h"
#include "engine/cluster/node_frames.h"
#include "io/env.h"
#include "io/fiber.h"
#include "raft/server.h"

namespace engine::cluster {

// The leader bounds its own work on a request to kWriteTimeout; the forwarder waits a little longer for the answer.
inline constexpr io::Duration kWriteTimeout = std::chrono::seconds(10);
inline constexpr io::Duration kForwardTimeout = std::chrono::seconds(12);
inline constexpr io::Duration kReadYourWriteWait = std::chrono::seconds(3);
// The answer to a write, as plain text, of a node that knows of no leader: nothing was sent to anybody.
inline constexpr std::string_view kNoLeaderText = "no raft leader known";

class Forwarder {
 public:
  Forwarder(io::Env& env, raft::RaftServer& raft, NodeClientPool& clients)
      : env_(env), raft_(raft), clients_(clients) {}

  // Sends a write to the leader, then waits for this node's replica. `payload`: a request of the node protocol. `older`: the same as
  // releases know it that refuse `payload` as trailing data; sent at once after such a refusal, unless it is empty. Throws Cancelled.
  NodeReply write(std::string_view payload, std::string_view older = {});

  // Waits until this node's replica has applied what the leader had applied at some moment after the call. False when the
  // leader cannot be asked, does not answer, or the deadline passes. Concurrent callers share the question.
  bool catch_up_with_leader(io::Instant deadline);

 private:
  struct Question;
  NodeReply forward(std::string_view payload);
  std::optional<raft::Index> ask_leader_index(io::Instant deadline);
  std::optional<raft::Index> leader_index(io::Instant deadline);

  io::Env& env_;
  raft::RaftServer& raft_;
  NodeClientPool& clients_;
  std::shared_ptr<Question> asking_;  // sent: too early for who comes now
  std::shared_ptr<Question> next_;    // to be sent when that one has been answered
};

// {"applied_index":n}
std::string applied_index_json(raft::Index index);
std::optional<raft::Index> parse_applied_index_json(std::string_view body);

}  // namespace engine::cluster

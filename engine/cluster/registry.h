// The leader's side of heartbeats: RegisterMember (narad/node-protocol.md section 6).
//
// Each heartbeat replaces the member's whole record but for its draining mark: address, build and newest entry type are what the
// member says now, and a release that says nothing of itself leaves nothing of what a newer one said before.
//
// The stamp is the leader's: max(its calendar clock, the stored stamp + 1), whatever clock the sender has. So the stamps of a member only
// ever grow, and a dead mark that carries the heartbeat it saw (type 31) is refused once a newer one is stored, also where a leader's
// clock has been put back or a new leader's is behind (scenarios CK-03, HB-02).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/cluster_frames.h"
#include "engine/metastore/reader.h"
#include "engine/metastore/records.h"
#include "engine/topics/proposer.h"
#include "io/env.h"

namespace engine::cluster {

inline constexpr io::Duration kRegisterTimeout = std::chrono::seconds(5);
inline constexpr std::string_view kMemberRemovedText = "member was removed from the cluster";

class Registry {
 public:
  // Keeps references.
  Registry(io::Env& env, metastore::Reader& reader, Proposer& proposer) : env_(env), reader_(reader), proposer_(proposer) {}

  // 204; 400 for what the request gets wrong; 410 for a member that was removed; 409 when it was not registered for any other reason,
  // also since this node does not lead or does not know. Within kRegisterTimeout. Waits; throws Cancelled.
  NodeReply register_member(const io::Result<RegisterMemberRequest>& request);

  // The newest stamp that was given to the member in the term under way, whether or not it is stored yet; 0 for none.
  int64_t newest_given(std::string_view id) const;

 private:
  NodeReply record(metastore::Member member);
  // Behind a barrier once a term, so that the stored stamp is the newest.
  io::Result<int64_t> next_stamp(const std::string& id, io::Instant deadline);

  io::Env& env_;
  metastore::Reader& reader_;
  Proposer& proposer_;
  raft::Term term_ = 0;                               // in which a barrier has passed
  std::map<std::string, int64_t, std::less<>> given_;  // in that term: the newest stamp of each member, stored or on its way
};

// "alive" where it says nothing; nothing for a word that is no status.
std::optional<metastore::MemberStatus> parse_member_status(std::string_view text);

}  // namespace engine::cluster

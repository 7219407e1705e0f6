#include "engine/cluster/servers.h"

#include <algorithm>

#include "io/env.h"
#include "raft/server.h"

namespace engine::cluster {

bool Servers::has(std::string_view id) const {
  const std::vector<ServerFact> servers = list();
  return std::any_of(servers.begin(), servers.end(), [&](const ServerFact& server) { return server.id == id; });
}

std::vector<std::string> Servers::voters() const {
  std::vector<std::string> ids;
  for (const ServerFact& server : list()) {
    if (server.is_voter) {
      ids.push_back(server.id);
    }
  }
  return ids;
}

std::vector<ServerFact> RaftServers::list() const {
  const bool leads = raft_.is_leader();
  const std::vector<raft::PeerStatus> peers = leads ? raft_.status().peers : std::vector<raft::PeerStatus>();
  std::vector<ServerFact> servers;
  for (const raft::Server& server : raft_.core().configuration().servers) {
    ServerFact fact{server.id, server.address, server.voter, true};
    if (leads && server.id != self_) {
      const auto peer = std::find_if(peers.begin(), peers.end(), [&](const raft::PeerStatus& status) { return status.id == server.id; });
      fact.is_in_contact =
          peer != peers.end() && peer->last_contact.has_value() && env_.now() - *peer->last_contact <= kServerContactMax;
    }
    servers.push_back(std::move(fact));
  }
  return servers;
}

io::Status RaftServers::remove(std::string_view id, io::Instant deadline) {
  if (raft_.core().configuration().find(id) == nullptr) {
    return {};
  }
  raft::ConfigurationChange change;
  change.kind = raft::ConfigurationChange::Kind::remove;
  change.id = std::string(id);
  const raft::Proposed removed = raft_.change_configuration(change, deadline);
  if (removed.ok()) {
    return {};
  }
  return io::fail(removed.outcome == raft::Outcome::unknown ? io::ErrorKind::timed_out : io::ErrorKind::busy, removed.reason);
}

io::Status RaftServers::hand_over(io::Instant deadline) {
  const raft::Transferred transferred = raft_.transfer_leadership(raft::ServerId(), deadline);
  return transferred.ok() ? io::Status() : io::fail(io::ErrorKind::busy, transferred.reason);
}

}  // namespace engine::cluster

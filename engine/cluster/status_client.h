// Asks other nodes what they say of themselves (node protocol, NodeStatus). Fiber only; throws Cancelled.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/admin_json.h"
#include "engine/cluster/decommission_rules.h"
#include "engine/cluster/node_client.h"
#include "engine/cluster/servers.h"
#include "engine/metastore/records.h"
#include "io/env.h"

namespace engine::cluster {

inline constexpr io::Duration kStatusTimeout = std::chrono::seconds(2);

struct AskedStatus {
  NodeBacklog::Kind kind = NodeBacklog::Kind::unavailable;
  std::string json;  // told: the object, as it came
  NodeStatusFacts facts;
  std::string error;  // of anything but `told`, for people
};

class StatusClient {
 public:
  // This node's own status, for itself is asked without a call.
  using OwnStatus = std::function<NodeStatusFacts()>;

  StatusClient(io::Env& env, NodeClientPool& clients, const Servers& servers, OwnStatus own)
      : env_(env), clients_(clients), servers_(servers), own_(std::move(own)) {}

  // Within kStatusTimeout, however late the deadline.
  AskedStatus ask(const metastore::Member& member, io::Instant deadline);
  // All of them side by side, within kStatusTimeout in total; by member id.
  std::map<std::string, AskedStatus> ask_all(const std::vector<metastore::Member>& members, io::Instant deadline);
  NodeBacklog ask_backlog(const metastore::Member& member, io::Instant deadline);

 private:
  std::string address_of(const metastore::Member& member) const;

  io::Env& env_;
  NodeClientPool& clients_;
  const Servers& servers_;
  const OwnStatus own_;
};

}  // namespace engine::cluster

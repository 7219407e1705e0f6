// The cluster's administration on this node: admin.h by the replica, raft and the controller.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/admin.h"
#include "engine/cluster/admin_json.h"
#include "engine/cluster/decommission.h"
#include "engine/cluster/moves.h"
#include "engine/cluster/picture.h"
#include "engine/cluster/servers.h"
#include "engine/cluster/status_client.h"

namespace engine::cluster {

class AdminService final : public Admin {
 public:
  struct Parts {
    io::Env& env;
    metastore::Reader& reader;
    Proposer& proposer;
    Servers& servers;
    Moves& moves;
    Decommission& decommission;
    StatusClient& statuses;
    std::function<std::string()> leader;  // the id of whoever leads; empty: nobody known
    std::function<NodeStatusFacts()> own_status;
  };
  explicit AdminService(Parts parts) : parts_(std::move(parts)) {}

  Reply members(bool detail, io::Instant deadline) override;
  Reply moves(bool detail, io::Instant deadline) override;
  Reply decommission_dry_run(std::string_view id, io::Instant deadline) override;
  Reply decommission_here(std::string_view id, bool cancel, io::Instant deadline) override;
  Reply abort_move_here(std::string_view topic, int32_t partition, std::string_view target, io::Instant deadline) override;
  Reply complete_move_here(std::string_view topic, int32_t partition, std::string_view expected_owner, std::string_view target,
                           io::Instant deadline) override;
  Reply assignment_here(std::string_view topic, int32_t partition, io::Instant deadline) override;
  Reply node_status() override;

 private:
  Parts parts_;
};

}  // namespace engine::cluster

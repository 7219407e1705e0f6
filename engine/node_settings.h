// What a node's parts are given, from its configuration: pure conversions, one a part.
#pragma once

#include "engine/api/http_server.h"
#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/entry_gate.h"
#include "engine/cluster/joiner.h"
#include "engine/config.h"
#include "engine/metastore/fsm.h"
#include "engine/topics/rules.h"
#include "raft/server.h"

namespace engine {

// Which release this node is: this build, or in a simulation another one (Config::Tuning::Release).
Config::Tuning::Release release_of(const Config& config);

raft::ServerOptions raft_options(const Config& config);
metastore::FsmSettings fsm_settings(const Config& config);
// This node as the gate counts it: by its own build.
cluster::GateSelf gate_self(const Config& config);
cluster::JoinerSettings joiner_settings(const Config& config);
// What every heartbeat of this node says. `http_address`: as bound.
cluster::RegisterMemberRequest member_of(const Config& config, std::string_view http_address);
api::HttpServerSettings http_settings(const Config& config);
topics::Limits topic_limits(const Config& config);

}  // namespace engine

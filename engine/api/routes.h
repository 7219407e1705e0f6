// The HTTP API of this release: topics, schemas, fan-out links (topic_routes.cpp), the cluster (cluster_routes.cpp), health, metrics,
// raft's status and hand-over (raft_routes.h). Routes of later releases answer 501 in the API's error shape. docs/http.md lists them all.
//
// Reads are answered from this node's replica. A topic that it does not know is "not found" only once the replica has reached
// the leader's applied index (on the leader: behind a barrier); until then, or when the leader cannot be asked, 503. The list of topics
// is given once the replica has been as far as the leader's since the start: a node that has never heard of a leader has no list.
// Writes are carried out here when this node leads, else forwarded. A write that certainly changed nothing because leadership was
// on its way from one node to another is tried again, for kLeadershipWait at most: a planned hand-over is a pause, not an error.
#pragma once

#include <functional>
#include <string>

#include "engine/api/http_types.h"
#include "engine/api/router.h"
#include "engine/cluster/admin.h"
#include "engine/cluster/forward.h"
#include "engine/cluster/link_frames.h"
#include "engine/metastore/replica.h"
#include "engine/metrics.h"
#include "engine/readiness.h"
#include "engine/topics/manager.h"
#include "io/env.h"
#include "raft/server.h"

namespace engine::api {

inline constexpr io::Duration kLeadershipWait = std::chrono::seconds(1);

class Api {
 public:
  // What it serves from; all outlive it.
  struct Parts {
    io::Env& env;
    topics::Manager& manager;
    topics::Limits limits;
    raft::RaftServer& raft;
    const metastore::Replica& replica;
    cluster::Forwarder& forwarder;
    cluster::Admin& admin;
    // Forgets a server on the leader (cluster/forget_service.h).
    std::function<cluster::NodeReply(std::string_view id)> forget;
    Readiness& readiness;
    Metrics& metrics;
    std::function<std::string()> metrics_text;
  };

  explicit Api(Parts parts);

  // Answers one request and counts it. May wait; throws Cancelled.
  HttpResponse handle(const HttpRequest& request);

 private:
  void add_topics();
  void add_links();
  void add_cluster();
  void add_operations();
  void add_later();

  HttpResponse create_topic(const Call& call);
  HttpResponse alter_topic(const Call& call);
  HttpResponse delete_topic(const Call& call);
  HttpResponse list_topics(const Call& call);
  HttpResponse attach_child(const Call& call);
  HttpResponse detach_child(const Call& call);
  HttpResponse list_children(const Call& call);

  HttpResponse decommission(const Call& call);
  HttpResponse cancel_decommission(const Call& call);
  HttpResponse abort_move(const Call& call);
  HttpResponse forget_server(const Call& call);

  // `here` carries the write out on a leader, `frames` is what is sent to one.
  HttpResponse write(const std::function<Reply()>& here, const cluster::WriteFrames& frames);
  // Waits for a leader that takes writes, after `answer` was given in term `seen`. False when it is not a matter of leadership, or
  // the time is up.
  bool wait_for_leadership(raft::Term seen, const HttpResponse& answer, io::Instant give_up);
  // A read of one topic: its 404 is given only by a replica that holds everything that was committed before.
  HttpResponse read(const std::function<Reply(io::Instant deadline)>& read_here);
  // Whether this replica holds everything that was committed when the call began.
  bool replica_is_current(io::Instant deadline);

  Parts parts_;
  Router router_;
};

HttpResponse to_response(Reply reply);
HttpResponse to_response(cluster::NodeReply reply);

// A query value that is true or false: absent or empty is false; 1, t, true, 0, f, false in the three spellings. Nullopt: none of these.
std::optional<bool> flag(const Call& call, std::string_view name);
// 400 for one that is none of these.
HttpResponse bad_flag(std::string_view name);

}  // namespace engine::api

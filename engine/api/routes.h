// The HTTP API of this release: topics, health, metrics, raft's status and hand-over (raft_routes.h). Routes of later releases answer 501 in the API's error shape.
//
// Reads are answered from this node's replica. A topic that it does not know is "not found" only once the replica has reached
// the leader's applied index (on the leader: behind a barrier); until then, or when the leader cannot be asked, 503.
// Writes are carried out here when this node leads, else forwarded. A write that certainly changed nothing because leadership was
// on its way from one node to another is tried again, for kLeadershipWait at most: a planned hand-over is a pause, not an error.
#pragma once

#include "engine/api/http_types.h"
#include "engine/api/router.h"
#include "engine/cluster/forward.h"
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
    cluster::Forwarder& forwarder;
    Readiness& readiness;
    Metrics& metrics;
    std::function<std::string()> metrics_text;
  };

  explicit Api(Parts parts);

  // Answers one request and counts it. May wait; throws Cancelled.
  HttpResponse handle(const HttpRequest& request);

 private:
  void add_topics();
  void add_operations();
  void add_later();
  HttpResponse create_topic(const Call& call);
  HttpResponse alter_topic(const Call& call);
  HttpResponse delete_topic(const Call& call);
  HttpResponse get_topic(const Call& call);
  HttpResponse list_topics(const Call& call);
  // `here` carries the write out on a leader, `payload` is what is sent to one.
  HttpResponse write(const std::function<Reply()>& here, const std::string& payload);
  // Waits for a leader that takes writes, after `answer` was given in term `seen`. False when it is not a matter of leadership, or
  // the time is up.
  bool wait_for_leadership(raft::Term seen, const HttpResponse& answer, io::Instant give_up);
  // Whether this replica holds everything that was committed when the call began.
  bool replica_is_current(io::Instant deadline);

  Parts parts_;
  Router router_;
};

}  // namespace engine::api

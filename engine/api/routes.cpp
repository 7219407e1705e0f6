#include "engine/api/routes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/api/raft_routes.h"
#include "io/probe.h"

namespace engine::api {

HttpResponse to_response(Reply reply) {
  HttpResponse response;
  response.status = reply.status;
  if (!reply.body.empty()) {
    response.content_type = "application/json";
    response.body = std::move(reply.body);
  }
  return response;
}

HttpResponse to_response(cluster::NodeReply reply) {
  HttpResponse response;
  response.status = reply.status;
  response.content_type = std::move(reply.content_type);
  response.body = std::move(reply.body);
  return response;
}

std::optional<bool> flag(const Call& call, std::string_view name) {
  const std::optional<std::string> value = call.target.value(name);
  if (!value || value->empty()) {
    return false;
  }
  for (const char* yes : {"1", "t", "T", "true", "True", "TRUE"}) {
    if (*value == yes) {
      return true;
    }
  }
  for (const char* no : {"0", "f", "F", "false", "False", "FALSE"}) {
    if (*value == no) {
      return false;
    }
  }
  return std::nullopt;
}

HttpResponse bad_flag(std::string_view name) {
  return error_response(400, "invalid argument: " + std::string(name) + " must be true or false");
}

namespace {

// What the node protocol says where another node leads; clients are never told that.
constexpr int kNotLeader = 421;

// Whether a write's answer says that certainly nothing was changed, because nobody was there to take it.
bool changed_nothing(const HttpResponse& response) {
  return is_unavailable(response.status, response.body) ||
         (response.status == 503 && response.body.starts_with(cluster::kNoLeaderText)) || response.status == kNotLeader;
}

constexpr io::Duration kHandOverPoll = std::chrono::milliseconds(25);

}  // namespace

Api::Api(Parts parts) : parts_(std::move(parts)) {
  add_topics();
  add_links();
  add_cluster();
  add_operations();
  add_later();
}

HttpResponse Api::handle(const HttpRequest& request) {
  const io::Instant begin = parts_.env.now();
  Router::Routed routed = router_.dispatch(request);
  parts_.metrics.http_request({routed.route, request.method, routed.response.status}, parts_.env.now() - begin,
                              request.body.size(), routed.response.body.size());
  return std::move(routed.response);
}

void Api::add_operations() {
  router_.add("GET", "/healthz", [this](const Call&) {
    return parts_.readiness.is_leaving() ? error_response(503, "shutting down")
                                          : json_response(200, "{\"status\":\"ok\"}\n");
  });
  router_.add("GET", "/readyz", [this](const Call&) {
    const std::optional<std::string> reason = parts_.readiness.why_not_ready();
    return reason.has_value() ? error_response(503, *reason) : json_response(200, "{\"status\":\"ready\"}\n");
  });
  router_.add("GET", "/metrics", [this](const Call&) {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = parts_.metrics_text();
    return response;
  });
  router_.add("GET", "/v1/cluster/raft", [this](const Call&) {
    return json_response(200, raft_status_json(parts_.raft.status(), parts_.raft.counters(), parts_.env.now()));
  });
  router_.add("POST", "/v1/cluster/raft/transfer",
              [this](const Call& call) { return transfer_leadership(parts_.env, parts_.raft, call.request.body); });
}

void Api::add_later() {
  static constexpr struct {
    const char* method;
    const char* pattern;
    const char* what;
  } kLater[] = {
      {"POST", "/v1/topics/{topic}/children/{child}/{rest...}", "remote children"},
      {"POST", "/v1/topics/{topic}/produce", "producing"},
      {"POST", "/v1/topics/{topic}/produce/batch", "producing"},
      {"GET", "/v1/topics/{topic}/consume", "consuming"},
      {"POST", "/v1/topics/{topic}/ack", "consuming"},
      {"GET", "/v1/users", "users"},
      {"POST", "/v1/users", "users"},
      {"GET", "/v1/users/{user}", "users"},
      {"DELETE", "/v1/users/{user}", "users"},
      {"PUT", "/v1/users/{user}/{rest...}", "users"},
      {"POST", "/v1/cluster/reencrypt-remotes", "remotes"},
      {"GET", "/v1/remotes", "remotes"},
      {"POST", "/v1/remotes", "remotes"},
      {"GET", "/v1/remotes/{remote}", "remotes"},
      {"PATCH", "/v1/remotes/{remote}", "remotes"},
      {"DELETE", "/v1/remotes/{remote}", "remotes"},
      {"POST", "/v1/remotes/{remote}/test", "remotes"},
  };
  for (const auto& route : kLater) {
    router_.add(route.method, route.pattern, [what = route.what](const Call&) {
      return error_response(501, std::string("this release does not serve ") + what);
    });
  }
}

// ---- Writes ----------------------------------------------------------------------------------------------------------------

HttpResponse Api::write(const std::function<Reply()>& here, const cluster::WriteFrames& frames) {
  const io::Instant give_up = parts_.env.after(kLeadershipWait);
  for (;;) {
    const raft::Term seen = parts_.raft.core().term();
    HttpResponse response = parts_.raft.is_leader() ? to_response(here()) : to_response(parts_.forwarder.write(frames.payload, frames.older));
    if (!changed_nothing(response) || !wait_for_leadership(seen, response, give_up)) {
      return response.status == kNotLeader ? to_response(unavailable_reply("leadership has just moved")) : response;
    }
    SOMETIMES("api: a write is tried again because leadership moved");
  }
}

bool Api::wait_for_leadership(raft::Term seen, const HttpResponse& answer, io::Instant give_up) {
  raft::RaftServer& raft = parts_.raft;
  if (parts_.env.now() >= give_up) {
    return false;
  }
  if (raft.is_handing_over() || raft.leader().id.empty() || raft.core().term() != seen) {
    return raft.wait_leadership_settled(give_up);
  }
  // Followers learn of a hand-over that ends when the next term begins; of one that fails, by asking again.
  if (answer.body.find(raft::to_string(raft::Refusal::transfer_in_progress)) == std::string::npos) {
    return false;
  }
  raft.wait_newer_term(seen, std::min(give_up, parts_.env.after(kHandOverPoll)));
  return true;
}

// ---- Reads -----------------------------------------------------------------------------------------------------------------

HttpResponse Api::read(const std::function<Reply(io::Instant deadline)>& read_here) {
  const io::Instant deadline = parts_.env.after(topics::kBarrierTimeout);
  Reply reply = read_here(deadline);
  if (reply.status != 404) {
    return to_response(std::move(reply));
  }
  if (!replica_is_current(deadline)) {
    return to_response(unavailable_reply("this node could not catch up with the leader to tell whether the topic exists"));
  }
  return to_response(read_here(deadline));
}

bool Api::replica_is_current(io::Instant deadline) {
  if (parts_.raft.is_leader()) {
    return parts_.raft.barrier(deadline).ok();
  }
  return parts_.forwarder.catch_up_with_leader(std::min(deadline, parts_.env.after(cluster::kReadYourWriteWait)));
}

}  // namespace engine::api

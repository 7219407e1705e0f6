// The topic manager: what the leader does with a topic request, and how any node answers a read.
//
// A write goes: body checked by rules.h; the name's lock (letter case ignored), so that two requests for one name take turns;
// a barrier, once a term and after each unknown outcome, before this node's own replica is trusted; checks against the stored
// record, a refusal confirmed by a barrier within the request; the proposal; the state machine's answer turned into a status.
// Both transports (HTTP on the leader, the node protocol from a follower) come here, so a forwarded request is judged by the
// same rules.
//
// Statuses: 201, 200, 204; 400 for what the request itself gets wrong; 404; 409 when the stored state forbids it; 501 for what a
// later release brings; 503 when this node does not lead, cannot reach a quorum, has stopped applying, or does not know the fate
// of the entry (kOutcomeUnknownText).
//
// Left to the caller: authentication, body size, content type, forwarding to the leader, and waiting for this node's replica
// before a 404 is believed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/metastore/answer.h"
#include "engine/metastore/reader.h"
#include "engine/topics/proposer.h"
#include "engine/topics/reply.h"
#include "engine/topics/rules.h"
#include "io/env.h"

namespace engine::topics {

inline constexpr io::Duration kProposeTimeout = std::chrono::seconds(5);
inline constexpr io::Duration kBarrierTimeout = std::chrono::seconds(5);

class Manager {
 public:
  // All references must outlive the manager.
  Manager(io::Env& env, metastore::Reader& reader, Proposer& proposer, Limits limits);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // ---- Writes: on the leader. Fiber only; throw Cancelled. `deadline` bounds the whole request: a lock or barrier that is not
  // reached by then is a 503, a proposal not answered by then has an unknown outcome.
  //
  // POST /v1/topics: 201 and the topic as created (without role).
  Reply create(std::string_view body, io::Instant deadline);
  // PATCH /v1/topics/{name}: 200 and the topic as changed. The groups retention, caps, partitions are checked in this order and
  // proposed as one entry: nobody reads half of a request.
  Reply alter(std::string_view name, std::string_view body, io::Instant deadline);
  // DELETE /v1/topics/{name}: 204. With `id`, only that incarnation.
  Reply remove(std::string_view name, const std::optional<std::string>& id, io::Instant deadline);

  // ---- Reads: on any node, from its own replica ----------------------------------------------------------------------------
  // GET /v1/topics/{name}?partition=N: 200, 400 (partition), 404, 503. The detailed form.
  Reply get(std::string_view name, const std::optional<std::string>& partition, io::Instant deadline);
  // The plain record, as the node protocol's GetTopic answers: 200, 404, 503.
  Reply get_record(std::string_view name, io::Instant deadline);
  // GET /v1/topics?limit=&page_token=: 200, 400, 503.
  Reply list(const std::optional<std::string>& limit, const std::optional<std::string>& page_token, io::Instant deadline);

  // What a leader does before it answers from its own replica: a barrier where one is due. Ok, or why it cannot be trusted now.
  io::Status trust_local_state(io::Instant deadline);

 private:
  class NameLock;
  class Distrust;
  struct NameSlot;

  // How far the replica's state is known to be the cluster's. `trusted`: a barrier once in this term, enough to propose on, as a
  // deposed leader's proposal never commits. `confirmed`: a barrier within this request, needed to refuse on: a deposed leader
  // that does not know it yet would refuse by a state that the cluster has left.
  enum class State { trusted, confirmed };
  Reply create_locked(const CreateRequest& request, State state, io::Instant deadline);
  Reply alter_locked(std::string_view name, const AlterRequest& request, State state, io::Instant deadline);
  Reply remove_locked(std::string_view name, const std::optional<std::string>& id, State state, io::Instant deadline);
  // A barrier, then `again`, which judges anew; 503 when the barrier fails.
  Reply confirm(io::Instant deadline, const std::function<Reply()>& again);
  // The record behind a barrier, or the reply that says why not.
  Checked<std::shared_ptr<const metastore::Topic>> current(std::string_view name, io::Instant deadline);
  // Proposes and, unless it was applied or refused by the state machine, fills `failure`.
  std::optional<metastore::Answer> propose(std::string command, io::Instant deadline, Reply& failure);
  std::string draw_topic_id();

  io::Env& env_;
  metastore::Reader& reader_;
  Proposer& proposer_;
  const Limits limits_;
  io::RandomStream ids_;
  std::map<std::string, NameSlot, std::less<>> locks_;  // by folded name; only names in use
  // The term in which a barrier has succeeded; 0 again after a proposal of unknown outcome, since an entry of our own may then
  // still change what the replica shows.
  raft::Term trusted_term_ = 0;
  uint64_t distrusts_ = 0;  // how often it was taken back
};

// The status of a state machine's refusal. narad/entry-types.md section 7.
int status_of(metastore::Code code);

}  // namespace engine::topics

// The topic manager: what the leader does with a topic request, and how any node answers a read.
//
// Bodies are checked by rules.h, schemas by schema_rules.h; what every write stands on (locks, trust, retries) is write_ground.h. What
// depends on stored records is judged by the state machine's own rules, foreseen on this replica, so that a request is refused here for
// the reason for which the entry would be. Both transports (HTTP on the leader, the node protocol from a follower) come here, so a
// forwarded request is judged by the same rules.
//
// Each write has the entry of releases from 3.1 on, which carries what it was checked against, and the older one that is proposed while
// the gate holds the newer back: a create is then three entries, and what a refused later one leaves is deleted again, unless its fate is
// unknown: nothing is undone that may still come true.
//
// Statuses: 201, 200, 204; 400 for what the request itself gets wrong; 403 (rights.h); 404; 409 when the stored state forbids it; 501 for
// what a later release brings; 503 when this node does not lead, cannot reach a quorum, has stopped applying, takes no new partitions,
// or does not know the fate of the entry (kOutcomeUnknownText).
//
// Left to the caller: authentication, body size, content type, forwarding to the leader, and waiting for this node's replica
// before a 404 is believed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/metastore/ownership.h"
#include "engine/topics/placer.h"
#include "engine/topics/reply.h"
#include "engine/topics/rights.h"
#include "engine/topics/rules.h"
#include "engine/topics/topic_json.h"
#include "engine/topics/write_ground.h"

namespace engine::topics {

class CreateGate;

// Where a new child's copy begins in each partition of `parent`: at its high watermark.
std::vector<int64_t> attach_offsets(const metastore::Topic& parent);

class Manager {
 public:
  // All references outlive the manager.
  struct Parts {
    io::Env& env;
    metastore::Reader& reader;
    Proposer& proposer;
    cluster::EntryGate& gate;
    Placer& placer;
    Limits limits;
    // Tells owners of partitions once this replica may; null: always (tests).
    metastore::Ownership* ownership = nullptr;
    // Holds creates back while the node starts; null: never (tests).
    CreateGate* create_gate = nullptr;
  };
  explicit Manager(Parts parts);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // ---- Writes: on the leader. Fiber only; throw Cancelled. `deadline` bounds the whole request: a lock or barrier that is not
  // reached by then is a 503, a proposal not answered by then has an unknown outcome. `actor`: rights.h.
  //
  // POST /v1/topics: 201 and the topic as created (without role, unless it is a child). Parks while the node starts (create_gate.h).
  Reply create(std::string_view body, const Actor& actor, io::Instant deadline);
  // PATCH /v1/topics/{name}: 200 and the topic as changed. The groups retention, caps, partitions, schema are judged in this order,
  // all of them before anything is written; the first three are one entry, so that nobody reads half of them, and the schema is one.
  Reply alter(std::string_view name, std::string_view body, const Actor& actor, io::Instant deadline);
  // DELETE /v1/topics/{name}: 204. With `id`, only that incarnation.
  Reply remove(std::string_view name, const std::optional<std::string>& id, const Actor& actor, io::Instant deadline);
  // POST /v1/topics/{parent}/children: 200 and the parent as it is then.
  Reply attach(std::string_view parent, const AttachRequest& request, const Actor& actor, io::Instant deadline);
  // DELETE /v1/topics/{parent}/children/{child}: 204.
  Reply detach(std::string_view parent, std::string_view child, const Actor& actor, io::Instant deadline);

  // ---- Reads: on any node, from its own replica ----------------------------------------------------------------------------
  // GET /v1/topics/{name}?partition=N: 200, 400 (partition), 404, 503. The detailed form.
  Reply get(std::string_view name, const std::optional<std::string>& partition, io::Instant deadline);
  // The plain record, as the node protocol's GetTopic answers: 200, 404, 503.
  Reply get_record(std::string_view name, io::Instant deadline);
  // GET /v1/topics?limit=&page_token=: 200, 400, 503.
  Reply list(const std::optional<std::string>& limit, const std::optional<std::string>& page_token, io::Instant deadline);
  // GET /v1/topics/{name}/schema: 200, 404, 503.
  Reply schemas(std::string_view name, io::Instant deadline);
  // GET /v1/topics/{name}/children: 200, 404, 503.
  Reply children(std::string_view name, io::Instant deadline);

  io::Status trust_local_state(io::Instant deadline) { return ground_.trust_local_state(deadline); }

 private:
  using TopicPtr = std::shared_ptr<const metastore::Topic>;
  using Outcome = WriteGround::Outcome;
  struct Creation;
  struct Alteration;
  struct SchemaStep;

  Attempt try_create(const CreateRequest& request, const Actor& actor, Creation& progress, const Turn& turn);
  Outcome create_in_steps(const metastore::CreateTopicLinked& entry, const Turn& turn);
  Outcome undo_create(const metastore::Topic& topic, Outcome why, const Turn& turn);
  Attempt try_alter(std::string_view name, const AlterRequest& request, const Actor& actor, Alteration& progress, const Turn& turn);
  std::optional<Attempt> alter_record(const metastore::Topic& changed, const AlterRequest& request, Alteration& progress,
                                      const Turn& turn);
  std::optional<Attempt> judge_schema(const metastore::Topic& topic, const AlterRequest& request, SchemaStep& step, const Turn& turn);
  Attempt try_remove(std::string_view name, const std::optional<std::string>& id, const Actor& actor, const Turn& turn);
  Attempt try_attach(std::string_view parent, const AttachRequest& request, const Actor& actor, const Turn& turn);
  Attempt try_detach(std::string_view parent, std::string_view child, const Actor& actor, const Turn& turn);

  // The two ends of a link. A reply instead when one is missing (refused) or cannot be read.
  struct Ends {
    TopicPtr parent;
    TopicPtr child;
    std::optional<Attempt> failure;
  };
  Ends read_ends(std::string_view parent, std::string_view child, io::Instant deadline);
  // The attempt to end with because the state machine would refuse the command, or nullopt.
  std::optional<Attempt> foresee_refusal(const std::string& command, io::Instant deadline);
  // Who owns which partition of it, `only` that one if given.
  io::Result<std::vector<PartitionRow>> partition_rows(const metastore::Topic& topic, std::optional<int32_t> only, io::Instant deadline);

  WriteGround ground_;
  metastore::Reader& reader_;
  Placer& placer_;
  const Limits limits_;
  metastore::Ownership* const ownership_;
  CreateGate* const create_gate_;
};

}  // namespace engine::topics

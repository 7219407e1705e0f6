#include "engine/cluster/entry_gate.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "engine/metastore/reader.h"
#include "engine/metastore/records_reader.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/server.h"

namespace engine::cluster {

namespace {

// Reads of the members that entries overtook before the gate gives up.
constexpr int kReadsMax = 8;
// Only the defect gate-drops-stopped-report knows it: two heartbeats behind the newest, a node counts as stopped.
constexpr int64_t kForgottenAfterS = 10;

std::string up_to(uint32_t newest) { return "applies Raft entry types up to " + std::to_string(newest); }

std::string build_of(const metastore::Member& member) { return member.build.empty() ? "unknown build" : member.build; }

uint32_t newest_type_of(const metastore::Member& member) {
  return member.entry_types == 0 ? metastore::kEveryReleaseEntryType : member.entry_types;
}

HeldBack unrecorded(const std::string& id, uint32_t type) {
  return {id, "raft server \"" + id + "\" has no member record, so its release is unknown; Raft entry type " + std::to_string(type) +
                  " waits until it registers or is removed"};
}

HeldBack own_release(const GateSelf& self, uint32_t type) {
  return {self.id, "this node \"" + self.id + "\" (" + self.build + ") " + up_to(self.newest_type) + ", not entry type " + std::to_string(type)};
}

HeldBack older_member(const metastore::Member& member, uint32_t type) {
  return {member.id, "member \"" + member.id + "\" (" + build_of(member) + ") " + up_to(newest_type_of(member)) + "; Raft entry type " +
                         std::to_string(type) + " waits until it is upgraded or removed"};
}

HeldBack unreadable(const std::string& why) { return {"", "the cluster's members could not be read: " + why}; }

// Whether a member's report is passed over: never, unless a defect is switched on.
bool is_passed_over(const metastore::Member& member, int64_t newest_heartbeat) {
  if (member.status == metastore::MemberStatus::dead && !io::defence(io::Defence::gate_ignores_dead)) {
    return true;
  }
  return newest_heartbeat - member.last_heartbeat > kForgottenAfterS && !io::defence(io::Defence::gate_drops_stopped_report);
}

void probe_holder(const metastore::Member& member) {
  if (member.status == metastore::MemberStatus::dead) {
    SOMETIMES("gate: a dead member holds a type back");
  } else if (member.draining) {
    SOMETIMES("gate: a draining member holds a type back");
  } else {
    SOMETIMES("gate: a member of an older release holds a type back");
  }
}

}  // namespace

std::optional<HeldBack> hold_back(uint32_t type, const std::vector<std::string>& servers, const std::vector<metastore::Member>& members,
                                  const GateSelf& self) {
  if (type <= metastore::kEveryReleaseEntryType) {
    return std::nullopt;
  }
  std::map<std::string, const metastore::Member*> examined;  // null: a server without a record
  for (const std::string& id : servers) {
    examined.emplace(id, nullptr);
  }
  int64_t newest_heartbeat = 0;
  for (const metastore::Member& member : members) {
    examined[member.id] = &member;
    newest_heartbeat = std::max(newest_heartbeat, member.last_heartbeat);
  }
  examined.emplace(self.id, nullptr);
  for (const auto& [id, member] : examined) {
    if (id == self.id) {
      if (self.newest_type < type) {
        SOMETIMES("gate: the leader's own release holds a type back");
        return own_release(self, type);
      }
    } else if (member == nullptr) {
      if (io::defence(io::Defence::gate_ignores_unrecorded)) {
        SOMETIMES("gate: a server without a member record holds a type back");
        return unrecorded(id, type);
      }
    } else if (newest_type_of(*member) < type && !is_passed_over(*member, newest_heartbeat)) {
      probe_holder(*member);
      return older_member(*member, type);
    }
  }
  return std::nullopt;
}

ClusterGate::ClusterGate(io::Env& env, metastore::Reader& reader, raft::RaftServer& raft, GateSelf self)
    : env_(env), reader_(reader), raft_(raft), self_(std::move(self)), held_back_lines_(std::chrono::minutes(1)) {}

GateAnswer ClusterGate::judge(uint32_t type, io::Instant deadline) {
  if (type <= metastore::kEveryReleaseEntryType) {
    return {};
  }
  std::optional<HeldBack> held = look(type, deadline);
  if (!held) {
    note_used(type);
    return {};
  }
  note_held_back(type, *held);
  return {false, std::move(held->id), std::move(held->reason)};
}

std::optional<HeldBack> ClusterGate::look(uint32_t type, io::Instant deadline) {
  const io::Result<raft::Term> term = reach_own_log(deadline);
  if (!term.ok()) {
    return unreadable(term.error().message);
  }
  io::Result<std::vector<metastore::Member>> records = members(deadline);
  if (!records.ok()) {
    SOMETIMES("gate: the members cannot be read");
    return unreadable(records.error().to_text());
  }
  if (!raft_.is_leader() || raft_.core().term() != *term) {
    SOMETIMES("gate: leadership was lost while the members were read");
    return unreadable("this node does not lead any more");
  }
  std::vector<std::string> servers;
  for (const raft::Server& server : raft_.core().configuration().servers) {
    servers.push_back(server.id);
  }
  return hold_back(type, servers, *records, self_);
}

// A replica that has been elected may not have applied yet what others reported to the leaders before it. The term in which it has.
io::Result<raft::Term> ClusterGate::reach_own_log(io::Instant deadline) {
  if (!raft_.is_leader()) {
    return io::fail(io::ErrorKind::busy, "this node does not lead");
  }
  // Of this request: what others ask meanwhile may be asked in a later term.
  const raft::Term term = raft_.core().term();
  if (term != term_) {
    term_ = term;
    must_apply_ = raft_.core().last_index();
  }
  if (raft_.applied_index() >= must_apply_) {
    return term;
  }
  SOMETIMES("gate: a new leader waits for its replica");
  if (!raft_.wait_applied(must_apply_, deadline)) {
    return io::fail(io::ErrorKind::timed_out, "this leader has not applied yet what its log holds");
  }
  return term;
}

// As they are now: a read that waited while entries were applied is made again.
io::Result<std::vector<metastore::Member>> ClusterGate::members(io::Instant deadline) {
  for (int reads = 0; reads < kReadsMax; ++reads) {
    const raft::Index applied = raft_.applied_index();
    io::Result<std::vector<metastore::Member>> records = metastore::list_members(reader_, deadline);
    if (!records.ok() || raft_.applied_index() == applied) {
      return records;
    }
    SOMETIMES("gate: the members are read again, entries were applied meanwhile");
  }
  return io::fail(io::ErrorKind::busy, "entries are applied faster than they are read");
}

void ClusterGate::note_held_back(uint32_t type, const HeldBack& held) {
  // Who does not lead proposes nothing, older or newer.
  if (!raft_.is_leader() || !held_back_lines_.admit(std::to_string(type), env_.now())) {
    return;
  }
  env_.log.info("metastore: not using a new raft entry type yet; proposing the entries every member applies",
                {{"entry_type", type}, {"name", metastore::name_of(static_cast<metastore::EntryType>(type))}, {"reason", held.reason}});
}

void ClusterGate::note_used(uint32_t type) {
  if (!used_.insert(type).second) {
    return;
  }
  SOMETIMES("gate: the first use of a type that is not of every release");
  env_.log.info("metastore: every member applies raft entry type " + std::to_string(type) + "; using " +
                std::string(metastore::name_of(static_cast<metastore::EntryType>(type))));
}

}  // namespace engine::cluster

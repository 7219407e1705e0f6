#include "sim/liveness.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/metastore/fsm.h"
#include "engine/metastore/replica.h"
#include "io/sim/world.h"
#include "raft/server.h"
#include "sim/client.h"
#include "sim/linearizability.h"
#include "sim/placement_check.h"

namespace sim {
namespace {

using namespace std::chrono_literals;

std::string seconds(io::Duration duration) { return std::to_string(duration / std::chrono::milliseconds(1)) + " ms"; }

// Somebody leads, and whoever belongs to its configuration is in its term.
bool one_leader(const World& world) {
  const int leader = world.leader();
  if (leader < 0) {
    return false;
  }
  const raft::Core& core = world.view(leader)->raft.core();
  for (int i = 0; i < world.node_count(); ++i) {
    if (core.configuration().find(world.node_id(i)) == nullptr) {
      continue;
    }
    if (world.view(i) == nullptr || world.view(i)->raft.core().term() != core.term()) {
      return false;
    }
  }
  return true;
}

bool every_node_votes(const World& world) {
  for (int node = 0; node < world.node_count(); ++node) {
    // An operator's decommission that is still on its way would take the node out again.
    if (world.is_draining(node) || world.is_removed(node)) return false;
  }
  const int leader = world.leader();
  if (leader < 0) {
    return false;
  }
  const raft::Core& core = world.view(leader)->raft.core();
  return core.configurations().current_index() <= core.commit_index() &&
         core.configuration().voter_count() == static_cast<size_t>(world.node_count());
}

bool all_level(const World& world) {
  for (int i = 0; i < world.node_count(); ++i) {
    if (world.view(i) == nullptr || world.applied(i) != world.applied(0)) {
      return false;
    }
  }
  return true;
}

std::string_view currency_name(engine::metastore::Currency currency) {
  using engine::metastore::Currency;
  switch (currency) {
    case Currency::caught_up: return "caught up";
    case Currency::stopped: return "stopped";
    case Currency::no_leader: return "knows no leader";
    case Currency::no_contact: return "has had no contact with its leader";
    case Currency::old_contact: return "last contact with its leader is long ago";
    case Currency::unheard: return "has not heard what is committed";
    case Currency::behind: return "is behind what it has heard";
  }
  return "";
}

std::string where_all_are(const World& world) {
  std::string text;
  for (int i = 0; i < world.node_count(); ++i) {
    text += i == 0 ? "" : ", ";
    text += "n" + std::to_string(i);
    const engine::NodeView* view = world.view(i);
    if (view == nullptr) {
      text += " is not up";
      continue;
    }
    const raft::Core& core = view->raft.core();
    text += std::string(" is ") + raft::to_string(core.role()) + " in term " + std::to_string(core.term()) + " at commit " +
            std::to_string(core.commit_index()) + ", applied " + std::to_string(core.applied_index()) + ", last " +
            std::to_string(core.last_index());
    const auto currency = view->replica.currency();
    if (currency != engine::metastore::Currency::caught_up) {
      text += std::string(" (") + std::string(currency_name(currency)) + ")";
    }
    if (!view->replica.has_caught_up()) {
      text += " (has not caught up since its start)";
    }
    if (!view->raft.is_admitted()) {
      text += " (is not admitted)";
    }
  }
  return text;
}

// Runs until `done` or the bound; a bound that passes is a violation of `rule`.
bool within(World& world, io::Duration bound, const char* rule, const std::function<bool()>& done) {
  const io::Instant end = world.now() + bound;
  world.io().run_while([&] { return !done(); }, end);
  if (world.violation()) {
    return false;
  }
  if (!done()) {
    world.fail(rule, "not within " + seconds(bound) + " after the faults ended: " + where_all_are(world));
    return false;
  }
  return true;
}

// Runs `body` in a fiber of the clients' process until it has ended.
bool in_fiber(World& world, io::Duration bound, const char* rule, std::function<void(io::Env&)> body) {
  auto done = std::make_shared<bool>(false);
  io::sim::Incarnation* process = world.client_machine().process();
  NARAD_CHECK(process != nullptr, "the clients' process runs to the end");
  process->spawn("duty", [process, done, body = std::move(body)] {
    body(process->env());
    *done = true;
  });
  return within(world, bound, rule, [done] { return *done; });
}

// The configuration that the leader goes by; nothing while nobody leads.
const raft::Configuration* configuration_of(const World& world) {
  const int leader = world.leader();
  return leader < 0 ? nullptr : &world.view(leader)->raft.core().configuration();
}

bool all_placed(const World& world) { return !unplaced_partition(world.book().replica().rows()); }

bool no_orphans(const World& world) {
  const raft::Configuration* configuration = configuration_of(world);
  return configuration != nullptr && !orphan_row(world.book().replica().rows(), *configuration);
}

void wait_until_ready(World& world, io::Env& env) {
  Client client(world, env, 9'000);
  for (int node = 0; node < world.node_count(); ++node) {
    while (client.get_status(node, "/readyz") != 200) {
      io::sleep_for(100ms);
    }
  }
}

// The commands that the load proposes may leave every member on record draining: then nothing takes new partitions, and no create is
// possible.
bool has_no_place(const Call& call) { return call.status == 503 && call.error.find("every live node is being decommissioned") != std::string::npos; }

void write_and_read_everywhere(World& world, io::Env& env) {
  Client client(world, env, 9'001);
  for (int node = 0; node < world.node_count(); ++node) {
    while (true) {
      Call wish;
      wish.kind = CallKind::create;
      wish.node = node;
      wish.name = "after-the-heal-" + std::to_string(world.calls().size());
      const Call& created = client.ask(wish);
      if (created.outcome == Outcome::ok) {
        break;
      }
      // A delete of what does not exist is refused behind a barrier, which needs all that a write needs.
      wish.kind = CallKind::remove;
      if (has_no_place(created) && client.ask(std::move(wish)).outcome == Outcome::refused) {
        break;
      }
      io::sleep_for(100ms);
    }
  }
}

void read_everything(World& world, io::Env& env) {
  Client client(world, env, 9'002);
  for (int node = 0; node < world.node_count(); ++node) {
    std::string after;
    size_t shown = 0;
    do {
      Call wish;
      wish.kind = CallKind::list;
      wish.node = node;
      wish.name = after;
      wish.limit = 1'000;
      const Call& call = client.ask(std::move(wish));
      if (call.outcome != Outcome::ok) {
        world.fail("every node shows every acknowledged write at the end", to_text(call) + " failed: " + call.error);
        return;
      }
      shown += call.topics.size();
      after = call.next_page;
    } while (!after.empty());
    if (shown != world.book().model().count_now()) {
      world.fail("every node shows every acknowledged write at the end",
                 "n" + std::to_string(node) + " shows " + std::to_string(shown) + " topics, the log made " +
                     std::to_string(world.book().model().count_now()));
    }
  }
}

// The digest kept beside the rows is the digest of the rows, on every node.
void audit_everywhere(World& world) {
  auto left = std::make_shared<int>(world.node_count());
  for (int node = 0; node < world.node_count(); ++node) {
    if (world.view(node) == nullptr) {
      continue;
    }
    world.machine(node).process()->spawn("audit", [&world, left, node] {
      const auto audit = world.view(node)->fsm.audit();
      if (!audit.ok()) {
        world.fail("a database adds up", "n" + std::to_string(node) + ": " + audit.error().to_text());
      } else if (audit->digest_of_rows != audit->stored.digest) {
        world.fail("a database adds up", "n" + std::to_string(node) + ": the rows do not have the digest kept beside them");
      }
      --*left;
    });
  }
  within(world, 30s, "liveness: an audit ends", [left] { return *left == 0; });
}

}  // namespace

void check_liveness(World& world, const LivenessBounds& bounds) {
  if (!within(world, bounds.leader, "liveness: one leader", [&] { return one_leader(world); }) ||
      !within(world, bounds.promotion, "liveness: every node is a voter again", [&] { return every_node_votes(world); }) ||
      !within(world, bounds.leader, "liveness: one leader", [&] { return one_leader(world); })) {
    return;
  }
  if (!in_fiber(world, bounds.ready, "liveness: every node is ready without a write",
                [&world](io::Env& env) { wait_until_ready(world, env); }) ||
      !within(world, bounds.ready, "liveness: every node catches up", [&] { return all_level(world); }) ||
      !within(world, world.options().load.call_bound + 1s, "liveness: every call is answered",
              [&] { return world.calls_pending() == 0; }) ||
      !in_fiber(world, bounds.write * world.node_count(), "liveness: a write through every node succeeds",
                [&world](io::Env& env) { write_and_read_everywhere(world, env); }) ||
      !within(world, bounds.ready, "liveness: every node catches up", [&] { return all_level(world); }) ||
      !in_fiber(world, 60s, "liveness: reads are answered", [&world](io::Env& env) { read_everything(world, env); }) ||
      !within(world, bounds.placed, "liveness: every partition has an owner", [&] { return all_placed(world); }) ||
      !within(world, bounds.pruned, "liveness: rows that belong to no partition go", [&] { return no_orphans(world); })) {
    return;
  }
  audit_everywhere(world);
}

// ---- history ---------------------------------------------------------------------------------------------------------------

namespace {

// State of one group of names that are equal but for letter case: "name=tag;" for each that stands, in order of name.
using Names = std::map<std::string, int64_t>;

Names read_state(const std::string& state) {
  Names names;
  size_t at = 0;
  while (at < state.size()) {
    const size_t equals = state.find('=', at);
    const size_t end = state.find(';', equals);
    names[state.substr(at, equals - at)] = std::stoll(state.substr(equals + 1, end - equals - 1));
    at = end + 1;
  }
  return names;
}

std::string write_state(const Names& names) {
  std::string state;
  for (const auto& [name, tag] : names) {
    state += name + "=" + std::to_string(tag) + ";";
  }
  return state;
}

bool apply_known(const Call& call, Names& names) {
  const auto found = names.find(call.name);
  const bool ok = call.outcome == Outcome::ok;
  switch (call.kind) {
    case CallKind::create:
      // One with a parent or a schema may be refused on their account.
      if (ok ? !names.empty() : names.empty() && call.parent.empty() && !call.has_schema) {
        return false;
      }
      if (ok) {
        names[call.name] = call.tag();
      }
      return true;
    case CallKind::patch:
      if (call.status == 404 || ok) {
        if (ok != (found != names.end())) {
          return false;
        }
        if (ok) {
          found->second = call.tag();
        }
      }
      return true;
    case CallKind::remove:
      if (ok != (found != names.end())) {
        return false;
      }
      if (ok) {
        names.erase(found);
      }
      return true;
    default: return true;
  }
}

void apply_unknown(const Call& call, Names& names) {
  const auto found = names.find(call.name);
  if (call.kind == CallKind::create && names.empty()) {
    names[call.name] = call.tag();
  } else if (call.kind == CallKind::patch && found != names.end()) {
    found->second = call.tag();
  } else if (call.kind == CallKind::remove && found != names.end()) {
    names.erase(found);
  }
}

Step step_of(const Call& call) {
  const bool known = call.outcome == Outcome::ok || call.outcome == Outcome::refused;
  return {call.asked, known ? call.answered : io::kNever, [&call, known](std::string& state) {
            Names names = read_state(state);
            if (known && !apply_known(call, names)) {
              return false;
            }
            if (!known) {
              apply_unknown(call, names);
            }
            state = write_state(names);
            return true;
          }};
}

}  // namespace

uint64_t check_history(World& world, bool search, uint64_t steps_max) {
  CallCheck check(world.book());
  std::map<std::string, std::vector<Step>> histories;
  std::set<std::string> half_made;  // names of which a create by several entries was taken back, or may be: others have seen it
  for (const auto& call : world.calls()) {
    if (const auto wrong = check.judge_refused_again(*call)) {
      world.fail(*wrong);
      return 0;
    }
    const bool has_parts = call->kind == CallKind::create && (!call->parent.empty() || call->has_schema);
    if (has_parts && call->outcome != Outcome::ok && world.book().model().effect_of(call->id)) {
      half_made.insert(fold_case(call->name));
    }
    const bool writes = call->kind == CallKind::create || call->kind == CallKind::patch || call->kind == CallKind::remove;
    if (search && writes && call->outcome != Outcome::nothing) {
      histories[fold_case(call->name)].push_back(step_of(*call));
    }
  }
  uint64_t undecided = 0;
  for (const auto& [name, history] : histories) {
    if (half_made.contains(name)) {
      continue;
    }
    const Linearizable verdict = is_linearizable(history, "", steps_max);
    if (verdict == Linearizable::no) {
      world.fail("writes to one name are linearizable", "no order explains the " + std::to_string(history.size()) +
                                                            " calls on " + name + " and its spellings");
      return undecided;
    }
    undecided += verdict == Linearizable::unknown ? 1 : 0;
  }
  return undecided;
}

}  // namespace sim

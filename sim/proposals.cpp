#include "sim/proposals.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/cluster/entry_gate.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "engine/node.h"
#include "sim/world.h"

namespace sim {

namespace {

using namespace std::chrono_literals;

constexpr io::Duration kProposeFor = 5s;
constexpr uint64_t kUndecodableEvery = 60;   // commands
constexpr uint64_t kHypotheticalEvery = 12;  // commands, once every node knows that type
constexpr int64_t kEpochSeconds = 1'700'000'000;

// Tells what became of a proposal, also when its fiber is unwound by the node's end.
class Teller {
 public:
  explicit Teller(std::function<void(const engine::Proposed&)> tell) : tell_(std::move(tell)) {}
  ~Teller() { tell_(proposed); }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;

  engine::Proposed proposed;  // unknown until it is answered

 private:
  std::function<void(const engine::Proposed&)> tell_;
};

}  // namespace

Proposals::Proposals(World& world, uint64_t per_minute)
    : world_(world),
      pause_(io::Duration(1min) / static_cast<int64_t>(per_minute)),
      timing_(io::SeededRandom(world.options().seed).stream("sim/proposals/timing", 0)),
      draws_(io::SeededRandom(world.options().seed).stream("sim/proposals/commands", 0),
             world.options().load.schema_bytes, world.options().load.crowd) {}

void Proposals::start() {
  world_.io().after(timing_.between(pause_ / 2, pause_ * 3 / 2), [this] { tick(); });
}

void Proposals::tick() {
  if (world_.load_over() || world_.violation()) {
    return;
  }
  // Mostly where it is carried out; elsewhere it is refused.
  const int drawn = static_cast<int>(timing_.below(static_cast<uint64_t>(world_.node_count())));
  const int leader = timing_.below(8) == 0 ? -1 : world_.leader();
  propose(leader >= 0 ? leader : drawn);
  start();
}

namespace {

// Entries that a leader proposes by itself, so that the log may hold more of one than the load asked for: placements, prunes, moves, dead
// marks, heartbeats, and what an administrator's steps come to.
bool is_proposed_by_nodes(uint32_t type) {
  using engine::metastore::EntryType;
  switch (static_cast<EntryType>(type)) {
    case EntryType::assign_partition:
    case EntryType::register_member:
    case EntryType::mark_member_dead:
    case EntryType::set_move_target:
    case EntryType::complete_move:
    case EntryType::abort_move:
    case EntryType::set_member_draining:
    case EntryType::remove_member:
    case EntryType::readmit_member:
    case EntryType::place_partition:
    case EntryType::prune_assignment:
    case EntryType::mark_member_dead_if: return true;
    default: return false;
  }
}

}  // namespace

void Proposals::propose(int node) {
  if (world_.view(node) == nullptr) {
    return;
  }
  world_.machine(node).process()->spawn("sim/propose", [this, node] {
    const engine::NodeView* view = world_.view(node);
    if (view == nullptr) {
      return;
    }
    view->scope.spawn("sim/propose", [this, node, view = *view] {
      // Nothing waits between the gate's answer and the proposal.
      std::string bytes = draw(newest_type(node, view));
      const uint64_t content = io::stable_hash(bytes);
      const auto envelope = engine::metastore::read_envelope(bytes);
      Fate& fate = fates_[content];
      ++fate.unknown;
      fate.is_of_nodes_too = envelope && is_proposed_by_nodes(envelope->type);
      Teller teller([this, node, content](const engine::Proposed& proposed) { judge(node, content, proposed); });
      teller.proposed = view.proposer.propose(std::move(bytes), world_.now() + kProposeFor);
    });
  });
}

uint32_t Proposals::newest_type(int node, const engine::NodeView& view) const {
  namespace ms = engine::metastore;
  if (!world_.options().is_gated) {
    return world_.running_release(node).newest_type;
  }
  for (const uint32_t type : {ms::kHypotheticalEntryType, ms::kNewestEntryType, ms::kNewestEntryTypeOf31}) {
    if (view.gate.judge(type, world_.now() + kProposeFor).may_use) {
      return type;
    }
  }
  return ms::kEveryReleaseEntryType;
}

std::string Proposals::draw(uint32_t newest) {
  namespace ms = engine::metastore;
  if (newest > ms::kNewestEntryType && timing_.below(kHypotheticalEvery) == 0) {
    return hypothetical_command(++hypothetical_);
  }
  const int64_t seconds = kEpochSeconds + world_.now().time_since_epoch() / 1s;
  std::string bytes = ms::encode_command(draws_.draw(world_.book().replica().rows(), std::min(newest, ms::kNewestEntryType), seconds));
  return timing_.below(kUndecodableEvery) == 0 ? undecodable(bytes) : bytes;
}

// A command of a type that everybody knows, whose bytes are none: without a header, or cut short in the payload.
std::string Proposals::undecodable(const std::string& command) {
  constexpr size_t kHeader = engine::metastore::kEnvelopeHeaderBytes;
  return timing_.below(2) == 0 ? command.substr(1) : command.substr(0, kHeader + timing_.below(std::min<size_t>(command.size() - kHeader, 8)));
}

void Proposals::judge(int node, uint64_t content, const engine::Proposed& proposed) {
  Fate& fate = fates_[content];
  if (proposed.outcome == engine::Proposed::Outcome::unknown) {
    return;
  }
  --fate.unknown;
  if (proposed.outcome != engine::Proposed::Outcome::applied || world_.violation()) {
    return;
  }
  ++fate.answered;
  const std::string where = "a proposal at node " + std::to_string(node) + " was answered for index " + std::to_string(proposed.index);
  if (!acknowledged_.insert(proposed.index).second) {
    world_.fail("each answered proposal is an entry of its own", where + ", which answers another one too");
    return;
  }
  const LogBook& book = world_.book();
  if (proposed.index == 0 || proposed.index > book.last_index() || book.line(proposed.index).content != content) {
    world_.fail("a proposal is answered with its own entry", where + ", where the log does not hold it");
    return;
  }
  if (book.line(proposed.index).answer != io::stable_hash(proposed.answer)) {
    world_.fail("a proposal is answered with its own entry", where + ", with another answer than that entry has");
    return;
  }
  if (const engine::NodeView* view = world_.view(node); view != nullptr && view->fsm.applied_index() < proposed.index) {
    world_.fail("a read on the node that answered a write is never behind it",
                where + ", and the node has applied " + std::to_string(view->fsm.applied_index()));
  }
}

void Proposals::check_history() const {
  std::map<uint64_t, uint64_t> seen;
  const LogBook& book = world_.book();
  for (raft::Index index = 1; index <= book.last_index(); ++index) {
    if (fates_.contains(book.line(index).content)) ++seen[book.line(index).content];
  }
  for (const auto& [content, fate] : fates_) {
    const auto found = seen.find(content);
    if (!fate.is_of_nodes_too && found != seen.end() && found->second > fate.answered + fate.unknown) {
      world_.fail("what was certainly not appended is not in the log",
                  std::to_string(found->second) + " entries of one command, of which " + std::to_string(fate.answered) +
                      " were answered and " + std::to_string(fate.unknown) + " have an unknown fate");
      return;
    }
  }
}

}  // namespace sim

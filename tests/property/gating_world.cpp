#include "tests/property/gating_world.h"

#include <algorithm>
#include <utility>

#include "engine/cluster/dead_marking.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/records.h"
#include "tests/support/topics.h"

namespace tests::gating {

namespace {

namespace ms = engine::metastore;
namespace cluster = engine::cluster;

using Change = raft::ConfigurationChange;

constexpr int64_t kStepSeconds = 4;

std::string address_of(const std::string& id) { return id + ":7943"; }

bool bit(uint32_t bits, unsigned at) { return (bits >> at & 1) != 0; }

bool is_first(const sim::Release& release) { return release.newest_type == ms::kEveryReleaseEntryType; }

// A command of each type, whose effects tell one from another where that is simple.
template <size_t... I>
ms::Command any_of(uint32_t type, std::index_sequence<I...>) {
  ms::Command command;
  ((type == I + 1 ? void(command = std::variant_alternative_t<I, ms::Command>{}) : void()), ...);
  return command;
}

std::string command_of(uint32_t type, uint64_t number) {
  if (type == ms::kHypotheticalEntryType) {
    return sim::hypothetical_command(number);
  }
  ms::Command command = any_of(type, std::make_index_sequence<std::variant_size_v<ms::Command>>());
  if (auto* create = std::get_if<ms::CreateTopicLinked>(&command)) {
    create->topic = make_topic("t" + std::to_string(number));
  } else if (auto* remote = std::get_if<ms::CreateRemote>(&command)) {
    remote->record.name = "r" + std::to_string(number);
  }
  return ms::encode_command(command);
}

}  // namespace

void showValue(const Step& step, std::ostream& out) {
  constexpr const char* kNames[] = {"join",    "heartbeat", "stop",  "restart",   "remove", "forget",
                                    "lead", "propose",   "apply", "mark_dead", "wipe"};
  out << kNames[static_cast<size_t>(step.what)] << " n" << step.node % kNodes + 1 << " " << step.bits;
}

void showValue(const Sequence& sequence, std::ostream& out) {
  out << sequence.voters << " voters of " << sim::releases()[sequence.release].name << (sequence.is_supported ? "" : ", any release") << ":";
  for (const Step& step : sequence.steps) {
    out << "\n  ";
    showValue(step, out);
  }
}

// ---- The cluster ---------------------------------------------------------------------------------------------------------------

World::World(uint32_t voters, uint32_t release, bool keeps_to_rules) : keeps_to_rules_(keeps_to_rules) {
  std::vector<std::pair<raft::ServerId, std::string>> first;
  for (size_t i = 0; i < kNodes; ++i) {
    Node node;
    node.id = "n" + std::to_string(i + 1);
    node.release = &sim::releases()[release];
    if (i < voters) {
      first.emplace_back(node.id, address_of(node.id));
      node.is_running = node.has_volume = node.was_admitted = true;
      node.is_index_trusted = node.release->writes_meta;
    }
    nodes_.push_back(std::move(node));
  }
  bootstrap_ = raft::bootstrap_configuration(std::move(first));
  oracle_.append(bootstrap_);
}

const raft::Configuration& World::configuration() const {
  for (size_t i = log_.size(); i > 0; --i) {
    if (log_[i - 1].configuration) {
      return *log_[i - 1].configuration;
    }
  }
  return bootstrap_;
}

World::Node* World::node_of(const std::string& id) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.id == id; });
  return found == nodes_.end() ? nullptr : &*found;
}

bool World::would_have_quorum(const raft::Configuration& next) const {
  const auto votes = [&](const Node& node) { return node.is_running && node.has_volume && next.is_voter(node.id); };
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), votes)) >= next.quorum();
}

bool World::has_quorum() const { return would_have_quorum(configuration()); }

void World::violate(const std::string& what) {
  if (violation_.empty()) {
    violation_ = "step " + std::to_string(now_) + ": " + what;
  }
}

void World::harm(const std::string& what) {
  violate(what);
  if (harm_.empty()) {
    harm_ = "step " + std::to_string(now_) + ": " + what;
  }
}

void World::end_leader() { leader_.reset(); }

// What the last leader appended and nobody has confirmed yet: the next one has it, or cuts it.
void World::settle_tail(bool is_kept) {
  if (!is_kept && committed_ < log_.size()) {
    log_.resize(committed_);
    oracle_.append(configuration());
    ++seen_.lost;
  }
}

World::Node* World::ready_leader(uint32_t bits) {
  if (leader() != nullptr && (!leader()->is_running || !has_quorum())) {
    end_leader();
  }
  if (leader() == nullptr) {
    settle_tail(bit(bits, 20));
    std::vector<size_t> candidates;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (may_vote(nodes_[i])) {
        candidates.push_back(i);
      }
    }
    if (!has_quorum()) {
      return nullptr;
    }
    leader_ = candidates[(bits >> 21) % candidates.size()];
    ++term_;
    ++seen_.leaders;
    led_since_ = now_;
    commit_all();
  }
  apply(*leader(), committed_);
  if (leader() != nullptr && !leader()->is_running) {
    end_leader();
  }
  if (leader() != nullptr) {
    look();
  }
  return leader();
}

void World::append(Entry entry, bool is_lost) {
  entry.raft.term = term_;
  entry.raft.index = log_.size() + 1;
  if (entry.configuration) {
    oracle_.append(*entry.configuration);
  }
  log_.push_back(std::move(entry));
  if (is_lost) {
    leader()->is_running = false;
    end_leader();
    return;
  }
  // Without a majority it stays in the log of a leader that has just lost its own.
  if (has_quorum()) {
    commit_all();
  } else {
    end_leader();
  }
}

void World::append_command(uint32_t type, std::string bytes, Said said, bool is_lost) {
  Entry entry;
  entry.raft = make_entry(0, std::move(bytes));
  entry.type = type;
  entry.said = std::move(said);
  append(std::move(entry), is_lost);
}

bool World::change(const raft::ConfigurationChange& change, bool is_lost) {
  raft::Configuration next = configuration();
  if (raft::apply(change, next) != raft::ChangeVerdict::changed || next.voter_count() == 0) {
    return false;
  }
  // The core refuses a removal or a new voter that would leave no live majority; a change waits for one in any case.
  if (!would_have_quorum(next)) {
    return false;
  }
  Entry entry;
  entry.raft = raft::Entry{0, 0, raft::EntryType::configuration, std::make_shared<const std::string>(raft::encode(next))};
  entry.configuration = std::move(next);
  append(std::move(entry), is_lost);
  return true;
}

void World::commit_all() {
  for (; committed_ < log_.size(); ++committed_) {
    const Said& said = log_[committed_].said;
    if (oracle_.commit(said)) {
      Node& node = *node_of(said.id);
      node.is_rolled_back = node.is_rolled_back && oracle_.types_of(said.id) != node.release->newest_type;
    }
  }
}

// ---- A node --------------------------------------------------------------------------------------------------------------------

// An entry, an image or a database of a release that the node does not run.
void World::meet_unknown(Node& node, const std::string& what) {
  if (node.release->skips_unknown) {
    ++seen_.skips;
  } else {
    ++seen_.stops;
    node.is_running = false;
  }
  if (!is_unsupported_) {
    harm(node.id + " (" + node.release->name + ") meets " + what + " in a sequence that the upgrade rules support");
  }
}

void World::apply(Node& node, size_t up_to) {
  up_to = std::min(up_to, committed_);
  if (!node.is_running || !node.has_volume || node.now.applied >= up_to) {
    return;
  }
  std::vector<raft::Entry> entries;
  std::optional<size_t> unknown;
  for (size_t i = node.now.applied; i < up_to; ++i) {
    if (log_[i].type > node.release->newest_type) {
      unknown = unknown.value_or(i);
    }
    entries.push_back(log_[i].raft);
  }
  const ms::FsmState before = node.now.state;
  ms::Evaluation run = ms::evaluate(node.now.rows, before, entries, node.release->newest_type, node.release->skips_unknown);
  node.now.rows.take(run.rows);
  node.now.state = run.state;
  node.now.applied = up_to;
  if (!unknown) {
    if (run.unknown) {
      violate(node.id + " stops at an entry that it applies");
    }
    return;
  }
  const std::string what = "an entry of type " + std::to_string(log_[*unknown].type);
  if (!node.release->skips_unknown) {
    if (!run.unknown || run.unknown->index != *unknown + 1 || run.state.applied_index > *unknown) {
      harm(node.id + " (" + node.release->name + ") passes over " + what);
    }
    node.now.applied = *unknown;
  }
  meet_unknown(node, what);
}

// A database whose index cannot be trusted is made anew from the snapshot or from nothing, and the log brings the rest.
void World::start(Node& node, const sim::Release& release) {
  node.release = &release;
  node.is_running = true;
  if (!node.has_volume) {
    return;
  }
  if (!node.is_index_trusted || !release.writes_meta) {
    node.now = node.snapshot.value_or(Image{});
  }
  node.is_index_trusted = release.writes_meta;
  if (release.writes_meta && node.now.state.newest_type > release.newest_type) {
    meet_unknown(node, "a database that has applied type " + std::to_string(node.now.state.newest_type));
  }
}

std::optional<ms::Member> World::record(Node& at, const std::string& id) const {
  const std::optional<std::string> bytes = at.now.rows.read(ms::row_key(ms::Bucket::members, id));
  return bytes ? ms::decode_member(*bytes) : std::nullopt;
}

// ---- What must hold ------------------------------------------------------------------------------------------------------------

// Crossing a boundary while a node that went back has not said so yet is what the upgrade rules forbid too.
void World::look() {
  oracle_.look(leader()->id, leader()->release->newest_type);
  for (const Node& node : nodes_) {
    if (node.is_rolled_back && node.release->newest_type < oracle_.boundary()) {
      leave_the_rules();
    }
  }
}

// Asks the gate as a leader does, and holds its answer against the book.
bool World::judge(Node& leader, uint32_t type) {
  std::vector<std::string> servers;
  for (const raft::Server& server : configuration().servers) {
    servers.push_back(server.id);
  }
  std::vector<ms::Member> members;
  const std::string begin = ms::row_key(ms::Bucket::members, "");
  const auto& rows = leader.now.rows.rows();
  for (auto row = rows.lower_bound(begin); row != rows.end() && row->first.starts_with(begin); ++row) {
    members.push_back(*ms::decode_member(row->second));
  }
  const std::string& build = leader.release->name;
  const std::optional<cluster::HeldBack> held =
      cluster::hold_back(type, servers, members, {leader.id, build, leader.release->newest_type});
  const std::optional<std::string> holder = oracle_.holder(type, leader.id, leader.release->newest_type);
  const std::string asked = "entry type " + std::to_string(type) + " at " + leader.id + ": ";
  if (!held && holder) {
    harm(asked + "may be used although " + *holder + " has not reported it (" + oracle_.build_of(*holder) + ")");
  }
  if (held && !holder) {
    violate(asked + "is held back although everybody reports it: " + held->reason);
  }
  if (!held || !holder) {
    return !held;
  }
  const std::string named = *holder == leader.id ? build : oracle_.build_of(*holder);
  if (held->id != *holder || held->reason.find("\"" + *holder + "\"") == std::string::npos || held->reason.find(named) == std::string::npos) {
    violate(asked + "the reason does not name " + *holder + " (" + named + "): " + held->reason);
  }
  if (*holder == leader.id) {
    ++seen_.held_by_leader;
  } else if (!oracle_.has_record(*holder)) {
    ++seen_.held_by_unrecorded;
  } else if (record(leader, *holder)->status == ms::MemberStatus::dead) {
    ++seen_.held_by_dead;
  } else {
    ++seen_.held_by_member;
  }
  return false;
}

// ---- Steps ---------------------------------------------------------------------------------------------------------------------

bool World::take(const Step& step) {
  ++now_;
  clock_s_ += kStepSeconds;
  Node& node = nodes_[step.node % kNodes];
  const auto taken = [&] {
    switch (step.what) {
      case Step::What::join: return join(node, step.bits);
      case Step::What::heartbeat: return heartbeat(node, step.bits);
      case Step::What::stop: return stop(node);
      case Step::What::restart: return restart(node, step.bits);
      case Step::What::remove: return remove(node, step.bits);
      case Step::What::forget: return forget(node);
      case Step::What::lead: return lead(node, step.bits);
      case Step::What::propose: return propose(step.bits);
      case Step::What::apply: return apply_some(node, step.bits);
      case Step::What::mark_dead: return mark_dead(node);
      case Step::What::wipe: return wipe(node);
    }
    return false;
  }();
  seen_.steps += taken ? 1 : 0;
  return taken;
}

cluster::JoinFacts World::facts_for(const Node& joiner, Node& leader) const {
  cluster::JoinFacts facts;
  facts.has_configuration = true;
  facts.is_leader = true;
  if (const raft::Server* server = configuration().find(joiner.id)) {
    facts.server = cluster::JoinFacts::Server{server->address, server->voter, false};
  }
  facts.is_self = joiner.id == leader.id;
  facts.is_tombstoned = leader.now.rows.read(ms::row_key(ms::Bucket::removed_members, joiner.id)).has_value();
  if (const std::optional<ms::Member> member = record(leader, joiner.id)) {
    facts.record = cluster::JoinFacts::Record{member->status == ms::MemberStatus::alive, member->draining};
  }
  facts.led_for = std::chrono::seconds(kStepSeconds * static_cast<int64_t>(now_ - led_since_));
  // A leader of 3.0 asks nobody for a release.
  if (!is_first(*leader.release)) {
    facts.member_types_min = leader.release->newest_type;
    for (const auto& [id, said] : oracle_.records()) {
      if (id != joiner.id && id != leader.id) {
        facts.member_types_min = std::min(facts.member_types_min, oracle_.types_of(id));
      }
    }
    facts.types_used = leader.now.state.newest_type;
  }
  return facts;
}

void World::admit(Node& node, bool by_image) {
  node.was_admitted = leader() != nullptr;  // else nobody has told it
  if (node.has_volume) {
    return;
  }
  node.has_volume = true;
  node.now = Image{};
  node.snapshot.reset();
  node.is_index_trusted = node.release->writes_meta;
  const Node* from = leader();
  if (!by_image || from == nullptr) {
    return;
  }
  if (from->now.state.newest_type > node.release->newest_type) {
    meet_unknown(node, "an image that holds type " + std::to_string(from->now.state.newest_type));
    return;
  }
  node.now = from->now;
  node.snapshot = from->now;
}

// Asks to join, and again for promotion; the loop that asks every 2 s is more such steps.
bool World::join(Node& node, uint32_t bits) {
  if (!node.has_volume && !node.is_running) {
    start(node, sim::releases()[bits % sim::releases().size()]);
  }
  Node* at = ready_leader(bits);
  if (!node.is_running || at == nullptr || at == &node) {
    return false;
  }
  cluster::JoinClusterRequest request{node.id, address_of(node.id), !node.was_admitted, std::nullopt};
  if (!is_first(*node.release)) {
    request.entry_types = node.release->newest_type;
  }
  const bool is_lost = (bits >> 8) % 8 == 0;
  for (int tries = 0; tries < 3; ++tries) {
    using Outcome = cluster::JoinDecision::Outcome;
    const cluster::JoinDecision decision = cluster::decide_join(io::Result<cluster::JoinClusterRequest>(request), facts_for(node, *at));
    switch (decision.outcome) {
      case Outcome::older_release:
        if (decision.reply.status != 409) {
          violate("an older joiner is refused with " + std::to_string(decision.reply.status));
        }
        ++seen_.older_joiners;
        return true;
      case Outcome::readmit:
        append_command(static_cast<uint32_t>(ms::EntryType::readmit_member), ms::encode_command(ms::ReadmitMember{node.id, clock_s_}),
                       {Said::What::readmits, node.id, {}, 0});
        at = ready_leader(bits);
        if (at == nullptr) {
          return true;
        }
        continue;
      case Outcome::add:
        if (!change({Change::Kind::add, node.id, address_of(node.id), {}}, is_lost)) {
          return false;
        }
        ++seen_.joins;
        admit(node, bit(bits, 12));
        if (Node* leads = leader(); leads != nullptr && is_first(*leads->release)) {
          change({Change::Kind::promote, node.id, {}, {}});
        }
        return true;
      case Outcome::promote:
        return change({Change::Kind::promote, node.id, {}, {}}, is_lost);
      default:
        return false;
    }
  }
  return false;
}

bool World::heartbeat(Node& node, uint32_t bits) {
  Node* at = ready_leader(bits);
  if (at == nullptr || !node.is_running || !is_server(node)) {
    return false;
  }
  const bool is_reported = !is_first(*node.release) && !is_first(*at->release);
  const std::optional<ms::Member> stored = record(*at, node.id);
  ms::Member member;
  member.id = node.id;
  member.addr = node.id + ":7942";
  member.cluster_addr = address_of(node.id);
  member.last_heartbeat = std::max(clock_s_, stored ? stored->last_heartbeat + 1 : 0);
  member.build = is_reported ? node.release->name : "";
  member.entry_types = is_reported ? node.release->newest_type : 0;
  append_command(static_cast<uint32_t>(ms::EntryType::register_member), ms::encode_command(ms::RegisterMember{member}),
                 {Said::What::registers, node.id, member.build, member.entry_types}, (bits >> 8) % 16 == 0);
  return true;
}

bool World::stop(Node& node) {
  if (!node.is_running) {
    return false;
  }
  node.is_running = false;
  if (leader() == &node) {
    end_leader();
  }
  return true;
}

// Mostly on the same release or a newer one; sometimes on an older one.
bool World::restart(Node& node, uint32_t bits) {
  if (!node.has_volume) {
    return false;
  }
  const auto releases = sim::releases();
  const auto current = static_cast<size_t>(node.release - releases.data());
  const size_t last = releases.size() - 1;
  const uint32_t draw = bits % 8;
  const size_t next = draw < 2 ? current : draw < 6 ? std::min(current + 1 + draw % 2, last) : (bits >> 4) % (current + 1);
  const sim::Release& release = releases[next];
  const uint32_t ran = std::max(oracle_.types_of(node.id), node.release->newest_type);
  const bool is_rollback = release.newest_type < ran;
  if (is_rollback && release.newest_type < oracle_.boundary()) {
    if (keeps_to_rules_) {
      return false;
    }
    leave_the_rules();
  }
  stop(node);
  seen_.rollbacks += next < current ? 1 : 0;
  node.is_rolled_back = is_rollback;
  start(node, release);
  return true;
}

// The server first, then its record; a leader that ends between the two leaves the record.
bool World::remove(Node& node, uint32_t bits) {
  Node* at = ready_leader(bits);
  if (at == nullptr || at == &node || !(is_server(node) || oracle_.has_record(node.id))) {
    return false;
  }
  if (is_server(node) && !change({Change::Kind::remove, node.id, {}, {}})) {
    return false;
  }
  at = leader();
  if (at == nullptr || (bits >> 8) % 4 == 0) {
    return true;
  }
  append_command(static_cast<uint32_t>(ms::EntryType::remove_member), ms::encode_command(ms::RemoveMember{node.id, clock_s_}),
                 {Said::What::removes, node.id, {}, 0});
  return true;
}

bool World::forget(Node& node) {
  const Node* at = ready_leader(0);
  if (at == nullptr || at == &node || !is_server(node) || oracle_.has_record(node.id)) {
    return false;
  }
  return change({Change::Kind::remove, node.id, {}, {}});
}

bool World::lead(Node& node, uint32_t bits) {
  if (ready_leader(bits) == nullptr || leader() == &node || !may_vote(node)) {
    return false;
  }
  leader_ = static_cast<size_t>(&node - nodes_.data());
  ++term_;
  ++seen_.leaders;
  led_since_ = now_;
  return ready_leader(bits) != nullptr;
}

// A type that is not of every release where the gate lets it pass, else the entry that it is replaced by.
bool World::propose(uint32_t bits) {
  Node* at = ready_leader(bits);
  if (at == nullptr) {
    return false;
  }
  const uint32_t type = ms::kEveryReleaseEntryType + 1 + bits % (ms::kHypotheticalEntryType - ms::kEveryReleaseEntryType);
  const uint64_t number = ++number_;
  if (judge(*at, type)) {
    ++seen_.uses;
    append_command(type, command_of(type, number), {}, (bits >> 8) % 8 == 0);
  } else if (type <= ms::kNewestEntryTypeOf31) {
    append_command(1, ms::encode_create_topic(make_topic("t" + std::to_string(number))));
  }
  return true;
}

bool World::apply_some(Node& node, uint32_t bits) {
  if (!node.is_running || !node.has_volume || !is_server(node) || node.now.applied >= committed_) {
    return false;
  }
  const size_t behind = committed_ - node.now.applied;
  apply(node, node.now.applied + (bit(bits, 0) ? behind : (behind + 1) / 2));
  return true;
}

bool World::mark_dead(Node& node) {
  Node* at = ready_leader(0);
  if (at == nullptr || node.is_running) {
    return false;
  }
  const std::optional<ms::Member> seen = record(*at, node.id);
  if (!seen || seen->status == ms::MemberStatus::dead) {
    return false;
  }
  const cluster::DeadMark mark{node.id, seen->last_heartbeat};
  const bool carries = judge(*at, static_cast<uint32_t>(ms::EntryType::mark_member_dead_if));
  const auto type = carries ? ms::EntryType::mark_member_dead_if : ms::EntryType::mark_member_dead;
  seen_.uses += carries ? 1 : 0;
  append_command(static_cast<uint32_t>(type), cluster::dead_mark_command(mark, carries));
  return true;
}

bool World::wipe(Node& node) {
  if (is_server(node) || !(node.has_volume || node.is_running)) {
    return false;
  }
  const std::string id = node.id;
  node = Node{};
  node.id = id;
  node.release = &sim::releases()[0];
  return true;
}

// ---- The end -------------------------------------------------------------------------------------------------------------------

void World::finish() {
  const sim::Release& newest = sim::releases().back();
  for (Node& node : nodes_) {
    if (is_server(node) && node.has_volume && (!node.is_running || node.release != &newest)) {
      stop(node);
      node.is_rolled_back = false;
      start(node, newest);
    }
  }
  Node* at = ready_leader(0);
  if (at == nullptr) {
    violate("no leader although everybody runs");
    return;
  }
  for (Node& node : nodes_) {
    if (is_server(node)) {
      heartbeat(node, 1u << 8);
    } else if (oracle_.has_record(node.id)) {
      remove(node, 1u << 8);
    }
  }
  at = ready_leader(0);
  if (at == nullptr) {
    violate("no leader although everybody runs");
    return;
  }
  if (!judge(*at, newest.newest_type)) {
    violate("a type is not used although everybody has reported it since its last start");
  }
  append_command(newest.newest_type, command_of(newest.newest_type, ++number_));
  std::optional<uint64_t> digest;
  for (Node& node : nodes_) {
    if (!is_server(node)) {
      continue;
    }
    apply(node, committed_);
    if (!node.is_running || node.now.state.applied_index == 0 || seen_.skips > 0) {
      continue;
    }
    if (digest.value_or(node.now.state.digest) != node.now.state.digest) {
      violate("two replicas differ");
    }
    digest = node.now.state.digest;
  }
}

}  // namespace tests::gating

#include "engine/offline/inspect.h"

#include <optional>
#include <string>

#include "engine/metastore/active_file.h"
#include "engine/metastore/fsm_home.h"
#include "engine/offline/directory.h"
#include "engine/version.h"
#include "raft/restart.h"
#include "raft/server.h"
#include "raft/snapshot_store.h"
#include "raft/stable_store.h"

namespace engine::offline {

namespace {

using Line = std::function<void(std::string_view)>;

class NoLog final : public io::Log {
 public:
  void write(io::LogLevel, std::string_view, const std::vector<io::LogField>&) override {}
  bool enabled(io::LogLevel) const override { return false; }
};

// Tells what was decided, and opens nothing.
class LookingHome final : public raft::StateMachineHome {
 public:
  explicit LookingHome(metastore::FsmHome& home) : home_(home) {}
  raft::StateMachineBuild build() const override { return home_.build(); }
  io::Result<raft::StateMachineFacts> look() override { return home_.look(); }
  io::Result<std::uint32_t> newest_type_of(raft::ImageSource& image) override { return home_.newest_type_of(image); }
  void decided(const raft::RestartFacts& facts, const raft::RestartDecision&) override { facts_ = facts; }
  io::Status set_aside(const std::string&) override { return looking(); }
  io::Result<raft::StateMachine*> open(const Opening&) override { return looking(); }

  const std::optional<raft::RestartFacts>& facts() const { return facts_; }

 private:
  static io::Error looking() { return io::fail(io::ErrorKind::invalid, "a directory that is looked at is not changed"); }

  metastore::FsmHome& home_;
  std::optional<raft::RestartFacts> facts_;
};

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string at(raft::Index index, raft::Term term) {
  return "index " + number(index) + (term == 0 ? std::string() : " (term " + number(term) + ")");
}

const char* yes_no(bool value) { return value ? "yes" : "no"; }

void show_state_machine(io::Env& env, metastore::FsmHome& home, const Line& line) {
  const io::Result<std::optional<std::string>> directory = metastore::find_active(env.disk);
  if (!directory.ok()) {
    line("fsm.db: cannot be read: " + directory.error().message);
    return;
  }
  if (!*directory) {
    line("fsm.db: none");
    return;
  }
  const bool is_missing = env.disk.stat(**directory + "/CURRENT").is(io::ErrorKind::not_found);
  line("fsm.db: " + **directory + (is_missing ? " (there is no database, although ACTIVE names it)" : ""));
  const io::Result<raft::StateMachineFacts> facts = home.look();
  if (!facts.ok()) {
    line("fsm.db cannot be read: " + facts.error().message);
    return;
  }
  line(std::string("fsm.db holds anything: ") + yes_no(facts->holds_anything));
  line("fsm.db applied: " + at(facts->index, facts->term));
  line("fsm.db newest entry type: " + number(facts->newest_type));
  line(facts->is_trusted ? std::string("fsm.db index trusted: yes")
                         : "fsm.db index trusted: no" + (facts->distrust.empty() ? "" : " (" + facts->distrust + ")"));
  line("fsm.db store id: " + (facts->store.is_known() ? facts->store.to_string() : std::string("none")));
  line("fsm.db cluster id: " + (facts->cluster.is_known() ? facts->cluster.to_string() : std::string("none")));
}

void show_term_record(io::Env& env, const Line& line) {
  const auto stable = raft::StableStore::open(env.disk, raft::StoreId{1, 1});
  if (!stable.ok()) {
    line("raft term record: cannot be read: " + stable.error().message);
    return;
  }
  if ((*stable)->is_new()) {
    line("raft term record: none");
    return;
  }
  const raft::StableRecord& record = (*stable)->record();
  line("raft term record: term " + number(record.hard_state.term) +
       (record.hard_state.vote.empty() ? std::string(", no vote") : ", voted for " + record.hard_state.vote));
  line("raft store id: " + record.store.to_string());
  line("raft cluster id: " + (record.cluster.is_known() ? record.cluster.to_string() : std::string("none")));
  line(std::string("raft bootstrapped: ") + yes_no(record.is_bootstrapped));
  const auto snapshots = raft::SnapshotStore::open(env.disk, env.clock, record.store, {});
  if (!snapshots.ok()) {
    line("raft snapshots: cannot be read: " + snapshots.error().message);
    return;
  }
  if ((*snapshots)->kept().empty()) {
    line("raft snapshot: none");
  }
  for (const raft::SnapshotInfo& each : (*snapshots)->kept()) {
    line("raft snapshot: " + at(each.label.index, each.label.term) + ", " + number(each.bytes) + " bytes");
  }
  for (const raft::SnapshotStore::Damaged& each : (*snapshots)->damaged()) {
    line("raft snapshot damaged: " + each.path + ": " + each.reason);
  }
}

void show_log(const raft::RestartFacts& facts, const Line& line) {
  if (facts.log_last == facts.log_base) {
    line("raft log: empty" + (facts.log_base == 0 ? std::string() : ", begins behind index " + number(facts.log_base)));
  } else {
    line("raft log: entries " + number(facts.log_base + 1) + " to " + number(facts.log_last));
  }
  if (facts.log_term_at_index) {
    line("raft log's term at fsm.db's index: " + number(*facts.log_term_at_index));
  }
}

const char* to_text(raft::RestartDecision::Action action) {
  using Action = raft::RestartDecision::Action;
  switch (action) {
    case Action::start: return "begins as a new node";
    case Action::keep: return "keeps fsm.db and replays what it does not hold";
    case Action::rebase: return "keeps fsm.db as it is and replays the log onto it";
    case Action::restore: return "restores the newest snapshot over fsm.db and replays the log behind it";
    case Action::set_aside: return "sets fsm.db aside and rebuilds it";
    case Action::reset: return "sets fsm.db aside, drops log and snapshots and is rebuilt by the cluster";
    case Action::refuse: return "refuses";
  }
  return "refuses";
}

void show_decision(std::string_view who, const raft::RestartDecision& decision, const Line& line) {
  line("a start as " + std::string(who) + ": row " + number(static_cast<std::uint64_t>(decision.row)) + " (" +
       to_string(decision.row) + "): " + to_text(decision.action) + (decision.resets_log ? "; the log begins anew behind the snapshot" : "") +
       (decision.reason.empty() ? std::string() : ": " + decision.reason));
}

}  // namespace

io::Status inspect(io::Env& loud, const Line& line) {
  const io::Result<Directory> held = open_directory(loud);
  if (!held.ok()) {
    return held.error();
  }
  NoLog no_log;
  io::Env env{loud.clock, loud.random, loud.disk, loud.net, loud.store_lane, loud.pool, loud.kv, no_log};
  line("format: " + number(held->format));
  metastore::FsmSettings settings;
  settings.build = std::string(kVersion);
  metastore::FsmHome home(env, settings);
  show_state_machine(env, home, line);
  show_term_record(env, line);
  raft::ServerOptions options;
  options.id = "inspect";
  options.address = "inspect:0";
  raft::RaftServer raft(env, options);
  if (const io::Status read = raft.read(); !read.ok()) {
    line("a start: refused: raft: " + read.error().message);
    return {};
  }
  LookingHome looking(home);
  bool is_log_shown = false;
  for (const bool is_joining : {true, false}) {
    const std::string_view who = is_joining ? "a node that joins a running cluster" : "any other node";
    const io::Result<raft::RestartDecision> decision = raft.judge(looking, is_joining);
    if (looking.facts() && !is_log_shown) {
      is_log_shown = true;
      show_log(*looking.facts(), line);
    }
    if (decision.ok()) {
      show_decision(who, *decision, line);
    } else {
      line("a start as " + std::string(who) + ": refused: " + decision.error().message);
    }
  }
  return {};
}

}  // namespace engine::offline

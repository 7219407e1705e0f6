#include "chaos/stores.h"

#include <rocksdb/db.h>

#include <algorithm>
#include <memory>

#include "engine/metastore/active_file.h"
#include "engine/metastore/fsm.h"
#include "engine/node.h"
#include "raft/server.h"

namespace chaos {

namespace {

// How long after the fault its echo may be heard: retries of the start, and of the metastore.
constexpr io::Duration kEcho = std::chrono::seconds(45);

constexpr const char* kSnapshots = "raft/snapshots";

std::vector<std::string> paths_of(Store store) {
  switch (store) {
    case Store::raft: return {"raft"};
    case Store::metastore: return {"fsm.db"};
    case Store::images: return {"fsm.db", kSnapshots};
    case Store::log:
    case Store::term: return {"raft"};
  }
  return {};
}

// Raft's state without its log, or without its record of term and vote.
io::sim::FileTree::Image without(Store store, io::sim::FileTree::Image raft) {
  std::erase_if(raft.files, [store](const auto& file) {
    return store == Store::log ? file.first.starts_with("log/") : file.first.starts_with("stable");
  });
  return raft;
}

bool is_of_raft(Store store) { return store == Store::raft || store == Store::log || store == Store::term; }

// Another program: it knows RocksDB, and nothing of us.
int write_row(io::Env& env) {
  const auto active = engine::metastore::find_active(env.disk);
  if (!active.ok() || !*active) {
    return 0;
  }
  (void)env.store_lane.run([&kv = env.kv, directory = **active] {
    rocksdb::Options options;
    options.env = kv.env();
    options.max_file_opening_threads = 1;
    options.stats_dump_period_sec = 0;
    options.stats_persist_period_sec = 0;
    options.fail_if_options_file_error = false;
    rocksdb::DB* raw = nullptr;
    if (!rocksdb::DB::Open(options, kv.path(directory), &raw).ok()) {
      return 0;  // a crash left it in need of more than this program can do
    }
    const std::unique_ptr<rocksdb::DB> database(raw);
    (void)database->Put(rocksdb::WriteOptions(), "topics/by-another-program", "x");
    kv.pump();
    (void)database->Close();
    return 0;
  });
  return 0;
}

}  // namespace

// Whether the node will notice that the store is not what it was.
bool Stores::may_go(int node, Store store, raft::Index reaches, bool is_for_good) const {
  const engine::NodeView* view = world_.view(node);
  if (view == nullptr || is_restoring_ || is_damaged_(node)) {
    return false;
  }
  for (const Away& away : away_) {
    if (away.node == node && !away.is_over) return false;
  }
  if ((node == joined_ || renewed_.contains(node) || !world_.is_initial(node)) && !is_for_good) {
    return false;  // it would not refuse: it would give up what the others may need, at a moment when no operator takes it out
  }
  if (store == Store::term) {
    return view->raft.core().last_index() > 0;  // what is there beside it tells
  }
  // A release that keeps no trusted index cannot tell.
  if (is_of_raft(store) && !(world_.release(node).writes_meta && world_.running_release(node).writes_meta)) {
    return false;
  }
  return !is_of_raft(store) || (!touched_.contains(node) && view->fsm.durable_index() > reaches);
}

void Stores::put_back(int node, Store store, io::Duration age, io::Duration down, io::Duration span) {
  const engine::NodeView* view = world_.view(node);
  if (view == nullptr) {
    return;
  }
  const auto copy = std::make_shared<io::sim::FileTree::Image>(world_.machine(node).volume().tree().copy(paths_of(store).front()));
  const raft::Index reaches = view->raft.core().last_index();
  world_.io().after(age, [this, node, store, copy, reaches, down, span] {
    if (may_go(node, store, reaches)) {
      replace(node, store, *copy, down, span);
    }
  });
}

void Stores::take_away(int node, Store store, io::Duration down, io::Duration span) {
  if (!may_go(node, store, left_by(node, store))) {
    return;
  }
  const bool is_part = store == Store::log || store == Store::term;
  replace(node, store, is_part ? without(store, world_.machine(node).volume().tree().copy("raft")) : io::sim::FileTree::Image{}, down, span);
}

// The last index that raft's state still shows when the store is gone.
raft::Index Stores::left_by(int node, Store store) const {
  const engine::NodeView* view = world_.view(node);
  return store == Store::log && view != nullptr ? view->raft.core().snapshot().index : 0;
}

// Ends the node, keeps what it has there for later, and leaves nothing.
Stores::Away& Stores::take(int node, std::vector<std::string> paths, io::Duration down, io::Duration span) {
  world_.explain(node, world_.now() + down + span + kEcho);
  world_.note_trouble(world_.now() + down + span + kEcho);
  world_.kill(node, down);
  io::sim::FileTree& tree = world_.machine(node).volume().tree();
  Away& away = away_.emplace_back();
  away.node = node;
  away.starts = world_.good_starts(node);
  for (std::string& path : paths) {
    io::sim::FileTree::Image original = tree.copy(path);
    tree.erase(path);
    away.originals.emplace_back(std::move(path), std::move(original));
  }
  world_.io().after(down + span, [this, &away] { end(away); });
  return away;
}

void Stores::replace(int node, Store store, const io::sim::FileTree::Image& image, io::Duration down, io::Duration span) {
  if (!is_of_raft(store)) {
    touched_.insert(node);
  }
  const Away& away = take(node, paths_of(store), down, span);
  if (!image.files.empty()) {
    world_.machine(node).volume().tree().put(away.originals.front().first, image);
  }
}

void Stores::end(Away& away) {
  if (away.is_over) {
    return;
  }
  if (world_.good_starts(away.node) != away.starts) {
    away.is_over = true;
    give_snapshots_back(away);
    return;  // it has made do with what it found
  }
  give_back(away);
}

void Stores::give_back(Away& away) {
  away.is_over = true;
  if (away.is_blind) world_.set_distrusted(away.node, false);
  world_.kill(away.node, std::chrono::milliseconds(10));
  io::sim::FileTree& tree = world_.machine(away.node).volume().tree();
  for (const auto& [path, original] : away.originals) {
    tree.erase(path);
    tree.put(path, original);
  }
}

// A node without a snapshot and with a cut log does not know who votes, until a leader tells; where the others are no quorum without it,
// none ever will. Its log still reaches back to what is lost, or it has a newer one.
void Stores::give_snapshots_back(const Away& away) {
  io::sim::FileTree& tree = world_.machine(away.node).volume().tree();
  for (const auto& [path, original] : away.originals) {
    if (path != kSnapshots || !tree.copy(path).files.empty()) continue;
    world_.kill(away.node, std::chrono::milliseconds(10));
    tree.erase(path);
    tree.put(path, original);
  }
}

void Stores::give_back(int node) {
  for (Away& away : away_) {
    if (away.node == node && !away.is_over) give_back(away);
  }
}

void Stores::blind(int node, io::Duration down, io::Duration span) {
  if (!may_go(node, Store::metastore, 0) || world_.view(node)->fsm.applied_index() == 0) {
    return;
  }
  touched_.insert(node);
  Away& away = take(node, {kSnapshots, "fsm.db"}, down, span);
  away.is_blind = true;
  // A life that ends before it tells how it began leaves a metastore that the next one takes for its own.
  world_.set_distrusted(node, true);
  world_.machine(node).volume().tree().put("fsm.db", away.originals.back().second);
  world_.kill_and_run(node, down, write_row);
}

void Stores::exchange(int node, int other, io::Duration down, io::Duration span) {
  const engine::NodeView* theirs = world_.view(other);
  // One that holds nothing yet is nobody's.
  if (node == other || theirs == nullptr || theirs->fsm.applied_index() == 0 || !may_go(node, Store::metastore, 0)) {
    return;
  }
  replace(node, Store::metastore, world_.machine(other).volume().tree().copy("fsm.db"), down, span);
}

// One copy in a run, of several.
bool Stores::may_lose(int node) const {
  return (joined_ < 0 || joined_ == node) && world_.node_count() >= 3 && world_.view(node) != nullptr && do_others_hold(node);
}

// A quorum of the others has on disk whatever this node has: nothing rests on its copy (seed 1667).
bool Stores::do_others_hold(int node) const {
  // By the newest configuration that anybody has, too: what has just been appended counts at once.
  const int leader = world_.leader();
  const bool is_led = leader >= 0 && leader != node;
  return do_others_hold(node, world_.view(node)->raft.core().configuration()) &&
         (!is_led || do_others_hold(node, world_.view(leader)->raft.core().configuration()));
}

bool Stores::do_others_hold(int node, const raft::Configuration& configuration) const {
  const raft::Core& own = world_.view(node)->raft.core();
  const raft::Index last = own.last_index();
  size_t holders = 0;
  for (int other = 0; other < world_.node_count(); ++other) {
    const engine::NodeView* view = other == node ? nullptr : world_.view(other);
    if (view == nullptr || !configuration.is_voter(world_.node_id(other))) continue;
    const raft::Core& core = view->raft.core();
    const auto term = core.log().term(last);
    const bool is_same = term ? *term == own.log().last_term() : core.commit_index() >= last;
    holders += !core.is_rebuilding() && core.durable_index() >= last && is_same ? 1 : 0;
  }
  return holders >= configuration.quorum();
}

void Stores::lose_for_good(int node, io::Duration down) {
  joined_ = node;
  touched_.insert(node);
  world_.explain(node, world_.now() + down + kEcho);
  world_.note_trouble(world_.now() + down + kEcho);
  world_.kill(node, down);
}

bool Stores::is_known_to_all(int node) const {
  for (int other = 0; other < world_.node_count(); ++other) {
    if (other == node || !world_.has_begun(other)) continue;
    const engine::NodeView* view = world_.view(other);
    const raft::Server* server = view == nullptr ? nullptr : view->raft.core().configuration().find(world_.node_id(node));
    if (server == nullptr || !server->store.is_known()) return false;
  }
  return true;
}

bool Stores::wipe(int node, io::Duration down) {
  if (!may_go(node, Store::images, 0, true) || !may_lose(node) || !is_known_to_all(node)) {
    return false;
  }
  lose_for_good(node, down);
  world_.machine(node).volume().wipe();
  return true;
}

bool Stores::may_renew(int node) const { return world_.view(node) != nullptr && is_known_to_all(node); }

bool Stores::renew(int node, io::Duration down) {
  const auto is_away = [node](const Away& away) { return away.node == node && !away.is_over; };
  if (is_damaged_(node) || std::any_of(away_.begin(), away_.end(), is_away)) {
    return false;
  }
  renewed_.insert(node);
  touched_.insert(node);
  world_.explain(node, world_.now() + down + kEcho);
  world_.note_trouble(world_.now() + down + kEcho);
  world_.kill(node, down);
  world_.machine(node).volume().wipe();
  return true;
}

bool Stores::lose(int node, Store store, int other, io::Duration down) {
  const bool is_there = world_.view(other) != nullptr && world_.view(other)->fsm.applied_index() > 0;
  if (!may_go(node, store, 0, true) || !may_lose(node) || (store == Store::metastore && (node == other || !is_there))) {
    return false;
  }
  lose_for_good(node, down);
  world_.set_joining(node);
  io::sim::FileTree& tree = world_.machine(node).volume().tree();
  for (const std::string& path : paths_of(store)) {
    tree.erase(path);
  }
  if (store == Store::metastore) {
    tree.put("fsm.db", world_.machine(other).volume().tree().copy("fsm.db"));
  }
  return true;
}

void Stores::write_foreign_row(int node, io::Duration down) {
  // A node whose log holds nothing yet would rightly take the row for another cluster's metadata.
  if (!may_go(node, Store::metastore, 0) || world_.view(node)->fsm.applied_index() == 0) {
    return;
  }
  touched_.insert(node);
  world_.explain(node, world_.now() + down + kEcho);
  world_.kill_and_run(node, down, write_row);
}

void Stores::restore() {
  is_restoring_ = true;
  for (Away& away : away_) {
    end(away);
  }
}

}  // namespace chaos

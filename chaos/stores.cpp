#include "chaos/stores.h"

#include <rocksdb/db.h>

#include <memory>

#include "engine/metastore/active_file.h"
#include "engine/metastore/fsm.h"
#include "engine/node.h"
#include "raft/server.h"

namespace chaos {

namespace {

// How long after the fault its echo may be heard: retries of the start, and of the metastore.
constexpr io::Duration kEcho = std::chrono::seconds(45);

const char* path_of(Store store) { return store == Store::raft ? "raft" : "fsm.db"; }

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
bool Stores::may_go(int node, Store store, raft::Index reaches) const {
  const engine::NodeView* view = world_.view(node);
  if (view == nullptr || is_restoring_) {
    return false;
  }
  for (const Away& away : away_) {
    if (away.node == node && !away.is_over) return false;
  }
  return store == Store::metastore || (!touched_.contains(node) && view->fsm.durable_index() > reaches);
}

void Stores::put_back(int node, Store store, io::Duration age, io::Duration down, io::Duration span) {
  const engine::NodeView* view = world_.view(node);
  if (view == nullptr) {
    return;
  }
  const auto copy = std::make_shared<io::sim::FileTree::Image>(world_.machine(node).volume().tree().copy(path_of(store)));
  const raft::Index reaches = view->raft.core().last_index();
  world_.io().after(age, [this, node, store, copy, reaches, down, span] {
    if (may_go(node, store, reaches)) {
      replace(node, store, *copy, down, span);
    }
  });
}

void Stores::take_away(int node, Store store, io::Duration down, io::Duration span) {
  if (may_go(node, store, 0)) {
    replace(node, store, {}, down, span);
  }
}

void Stores::replace(int node, Store store, const io::sim::FileTree::Image& image, io::Duration down, io::Duration span) {
  if (store == Store::metastore) {
    touched_.insert(node);
  }
  world_.explain(node, world_.now() + down + span + kEcho);
  world_.note_trouble(world_.now() + down + span + kEcho);
  world_.kill(node, down);
  io::sim::FileTree& tree = world_.machine(node).volume().tree();
  Away& away = away_.emplace_back();
  away.node = node;
  away.path = path_of(store);
  away.original = tree.copy(away.path);
  away.starts = world_.good_starts(node);
  tree.erase(away.path);
  if (!image.files.empty()) {
    tree.put(away.path, image);
  }
  world_.io().after(down + span, [this, &away] { end(away); });
}

void Stores::end(Away& away) {
  if (away.is_over) {
    return;
  }
  away.is_over = true;
  if (world_.good_starts(away.node) != away.starts) {
    return;  // it has made do with what it found
  }
  world_.kill(away.node, std::chrono::milliseconds(10));
  io::sim::FileTree& tree = world_.machine(away.node).volume().tree();
  tree.erase(away.path);
  tree.put(away.path, away.original);
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

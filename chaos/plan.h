// A plan: everything that a run adds to the source and the seed. Which cluster, which settings, which load, which faults at
// which moments, which defects are switched on. A plan is drawn from a seed (plan_draw.h) or read from a text file
// (plan_text.h); both replay alike, and every failing run stores its plan.
//
// Each decision is one line with an id that never changes while the plan is edited or cut down, and draws of its own (keyed by
// seed and id): removing one decision leaves what the others do as it was.
//
// This header is pure data; chaos/driver.* carries a plan out.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/defence.h"
#include "io/time.h"

namespace chaos {

// What a decision does. The word in a plan file is kind_name().
enum class Kind {
  kill,        // node, down: the process ends, what it wrote stays; started again after `down`
  power_loss,  // node, down: what was not durable is lost
  stop,        // node, down: a graceful stop
  freeze,      // node, for: the process does not run, its clocks do
  slow,        // node, for, percent: everything it computes costs that much
  kill_at,     // node, nth, how, down: ends at its nth operation that changes the disk from now on
  fault_at,    // node, work, nth, fault, down, for: the nth operation of that work that changes the disk, from now on: the process ends
               // (kill, power_loss), it fails (error), the disk is full (no_space) or hangs (stall) from there on
  restart_loop,  // node, times, down, gap: killed so many times, `gap` after each start
  rolling,     // down, gap: every node once, one after another, gracefully
  cut,         // node, peers, way, for: no bytes between `node` and `peers` (one way: from node to peers)
  partition,   // shape, for: half, ring, isolate (the leader), bridge
  heal,        // every cut ends
  loss,        // ppm, for: message loss in the whole network
  tail,        // ppm, delay, for: that share of messages takes up to `delay`
  slow_reader,  // node, delay, for: reads what it is sent that much later
  disk_full,   // node, bytes, for: that much room is left
  disk_shrink,  // node, bytes, for: that much room is left, and less and less of it
  disk_error,  // node, op, nth: the nth such operation from now on fails once (on=install: on a snapshot); after a sync the pages are clean
  disk_stall,  // node, for: operations hang
  disk_slow,   // node, ppm, for: that share of operations takes long
  disk_damage,  // node, down, for: a bit of a synced log entry flips and the process ends; the bit is right again after `for`
  snapshot_damage,  // node, down, for: a bit of the newest snapshot flips and the process ends; right again after `for`
  store_old,   // node, op, gap, down, for: a store (raft, metastore) is put back to what it was `gap` before
  store_gone,  // node, op, down, for: a store is not there any more
  store_blind,  // node, down, for: raft's snapshots are gone, and another program has written into the metastore
  store_foreign,  // node, peers, down, for: the metastore of the first of `peers` stands in its place
  grow,    // node: one that is not an initial node is started for the first time, and joins
  rejoin,  // node, store, peers, down: a store is lost for good (metastore: that of the first of `peers` stands there); it starts as a
           // node that joins, and an operator takes it out and in again
  wipe,    // node, down: the whole volume is lost; the node starts on an empty one under its old name, and an operator takes it out and in
  foreign_write,  // node, down: another program writes a row into the metastore
  release,     // node, release, down: stopped and started as another release; at 0s it begins as that
  move,        // node, down: stopped, and comes back under another address, which an operator tells the cluster
  wall_jump,   // node, by: the calendar clock moves
  transfer,    // node, peers: `node` is asked to hand leadership over, to the first of `peers`
  take_out,    // node, for: an operator demotes and removes the node, and after `for` adds and promotes it again
  decommission,  // node, for, down, times: an operator decommissions the node, cancels after `for`, and brings one that is out back on an
                 // empty volume after `down`; with times=2 it is started with its old one first
  abort_moves,   // node: an operator aborts, through the node, the moves whose destination is not alive
  forget,      // node, peers: an operator asks, through the node, that the first of `peers` be forgotten
  drift,       // node, rate, for: both clocks run that many ppm fast (negative: slow)
};

std::string_view kind_name(Kind kind);

// Who a decision is about: a node number from 0, or a role found out at the moment the decision is carried out.
inline constexpr int kLeader = -1;    // the leader of the highest term; nobody leads: the node with the most votes sought
inline constexpr int kFollower = -2;  // drawn among the others
inline constexpr int kAnyNode = -3;   // drawn among all
inline constexpr int kVoter = -4;     // only with `on=vote`: whoever voted
inline constexpr int kAll = -5;       // every node at once

// When an armed decision strikes, from `at` on. `now` strikes at `at` itself; `install` when a node has received an image and is
// about to install it.
enum class Trigger { now, elected, campaign, vote, append, install };

std::string_view trigger_name(Trigger trigger);

struct Decision {
  uint32_t id = 0;       // unique in the plan, > 0
  io::Duration at{0};    // from the start of the run
  Kind kind = Kind::kill;
  Trigger on = Trigger::now;
  io::Duration wait{0};  // between the trigger and the strike
  std::vector<int> node;
  std::vector<int> peers;
  io::Duration down{0};
  io::Duration span{0};  // "for" in the text
  io::Duration gap{0};
  io::Duration delay{0};
  io::Duration by{0};
  int64_t rate = 0;
  uint64_t ppm = 0;
  uint64_t percent = 100;
  uint64_t bytes = 0;
  uint64_t nth = 1;
  uint64_t times = 1;
  std::string way;    // one, both
  std::string shape;  // half, ring, isolate, bridge
  std::string op;     // read, write, sync
  std::string store;  // raft, metastore, images, log, term
  std::string how;    // kill, power_loss
  std::string work;   // the names of disk_work.h: append, compaction, ...
  std::string fault;  // kill, power_loss, no_space, error, stall
  std::string release;  // 3.0.1, 3.1.0, 3.2.0, next

  friend bool operator==(const Decision&, const Decision&) = default;
};

// How the run is set up. Each is one line of the file; plan_text.cpp has the names, ranges and meanings.
struct Setup {
  uint64_t nodes = 3;
  uint64_t initial = 0;  // of them begin, the others join; 0: all begin
  uint64_t clients = 4;
  // phases
  io::Duration safety = std::chrono::seconds(60);    // faults and load
  io::Duration healing = std::chrono::seconds(40);   // at most, after the heal: every duty has its own bound within it
  // raft
  io::Duration heartbeat = std::chrono::milliseconds(50);
  io::Duration election_min = std::chrono::milliseconds(400);
  io::Duration election_max = std::chrono::milliseconds(700);
  uint64_t append_entries_max = 4096;  // in one request
  uint64_t segment_bytes = 0;          // of the raft log; 0: the node's default
  // network, one way
  io::Duration net_low = std::chrono::microseconds(60);
  io::Duration net_high = std::chrono::microseconds(250);
  uint64_t loss_ppm = 0;
  uint64_t tail_ppm = 0;
  io::Duration tail_max = std::chrono::milliseconds(100);
  // disk
  io::Duration sync_low = std::chrono::microseconds(100);
  io::Duration sync_high = std::chrono::microseconds(400);
  uint64_t sync_tail_ppm = 10'000;
  io::Duration sync_tail = std::chrono::milliseconds(12);
  uint64_t scattered_ppm = 0;  // 1,000,000: sectors of unsynced log writes survive a power loss in any order
  uint64_t bit_flip_ppm = 0;   // of a surviving unsynced sector
  uint64_t late_ppm = 350'000;   // operations that were given up: land late
  uint64_t never_ppm = 250'000;  // ... and never
  uint64_t snapshot_threshold = 8192;  // entries applied since the last snapshot that make the next one due
  io::Duration snapshot_interval = std::chrono::seconds(120);
  uint64_t trailing = 10'240;          // entries that stay in the log below the older kept snapshot
  uint64_t chunk_bytes = 1u << 20;     // of a snapshot
  uint64_t tail_bytes = 16u << 20;     // of the log that stays in memory
  // bounds of a server's queues
  uint64_t unapplied_bytes = 64u << 20;  // entries that wait to be applied: no more are taken
  uint64_t applying_bytes = 4u << 20;    // entries handed to the state machine at a time
  uint64_t link_queue_bytes = 8u << 20;  // messages that wait for a connection
  // load
  uint64_t ops_per_minute = 600;
  uint64_t create = 30;  // weights
  uint64_t patch = 25;
  uint64_t remove = 15;
  uint64_t read = 40;
  uint64_t list = 5;
  uint64_t race = 5;     // several clients create one name at one moment on different nodes
  uint64_t names = 20;   // the names that the load works on
  uint64_t proposals_per_minute = 0;  // metadata commands of every type, proposed beside the clients' requests
  uint64_t schema_bytes = 0;  // of half of the schemas among them: images of several slices
  uint64_t crowd = 0;  // one kind of thing is filled up to its limit by those commands (command_draws.h); 0: none
  uint64_t gate = 1;  // 1: an entry type is proposed only when every node's release applies it
  io::Duration call_bound = std::chrono::seconds(20);  // a client gives up on an answer after this

  friend bool operator==(const Setup&, const Setup&) = default;
};

struct Plan {
  uint64_t seed = 0;
  uint64_t salt = 0;  // another schedule for the same plan
  Setup setup;
  std::set<io::Defence> defects;
  std::vector<Decision> decisions;  // ordered by (at, id)

  friend bool operator==(const Plan&, const Plan&) = default;
};

// Orders the decisions. Call after filling them by hand.
void normalise(Plan& plan);
// The next unused id.
uint32_t next_id(const Plan& plan);

}  // namespace chaos

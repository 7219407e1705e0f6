#include "chaos/plan_draw.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "io/check.h"
#include "io/random.h"

namespace chaos {
namespace {

using namespace std::chrono_literals;

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(io::mix(seed, io::stable_hash("plan"))) { plan_.seed = seed; }

  Plan draw() {
    draw_cluster();
    draw_timing();
    draw_storage();
    draw_snapshots();
    draw_bounds();
    draw_load();
    draw_faults();
    normalise(plan_);
    return std::move(plan_);
  }

 private:
  using Stream = io::RandomStream;

  // A stream of its own for each subject, so that a change of one leaves the others' draws as they are.
  Stream stream(std::string_view subject) { return random_.stream(subject, 0); }

  template <typename T>
  static T pick(Stream& draws, const std::vector<std::pair<uint32_t, T>>& table) {
    uint64_t sum = 0;
    for (const auto& row : table) {
      sum += row.first;
    }
    uint64_t at = draws.below(sum);
    for (const auto& row : table) {
      if (at < row.first) {
        return row.second;
      }
      at -= row.first;
    }
    NARAD_CHECK(false, "a draw beyond its table");
  }

  static io::Duration between(Stream& draws, io::Duration low, io::Duration high) {
    // Whole microseconds read well in a plan file.
    return std::chrono::floor<std::chrono::microseconds>(draws.between(low, high));
  }
  static io::Duration between_ms(Stream& draws, int64_t low, int64_t high) {
    return std::chrono::milliseconds(draws.between(low, high));
  }

  void draw_cluster() {
    Stream draws = stream("cluster");
    plan_.setup.nodes = pick<uint64_t>(draws, {{5, 1}, {7, 2}, {50, 3}, {5, 4}, {33, 5}});
    plan_.setup.safety = between_ms(draws, 60'000, 100'000);
    plan_.setup.healing = 60s;
    draw_growth();
    draw_departures();
    draw_calm();
  }

  // Hardly anything happens: a leader leads long enough to miss a member that is down for a minute, and an older release among the members
  // holds the newer entries back.
  void draw_calm() {
    Stream draws = stream("calm");
    if (draws.below(25) != 0 || plan_.setup.initial != 0 || is_quiet_) {
      return;
    }
    plan_.setup.nodes = 3 + draws.below(3);
    plan_.setup.safety = between_ms(draws, 110'000, 160'000);
    calm_ = pick<Calm>(draws, {{3, Calm::silences}, {1, Calm::late_starts}, {2, Calm::lost_destination}});
    if (calm_ == Calm::lost_destination) {
      plan_.setup.nodes = std::max<uint64_t>(plan_.setup.nodes, 4);
      plan_.setup.safety = between_ms(draws, 270'000, 300'000);
    }
  }

  void draw_calm_faults() {
    Stream draws = stream("calm/faults");
    plan_.setup.loss_ppm = 0;
    plan_.setup.tail_ppm = 0;
    plan_.setup.sync_tail_ppm = 0;
    plan_.setup.proposals_per_minute = std::max<uint64_t>(plan_.setup.proposals_per_minute, 240);
    if (calm_ == Calm::lost_destination) {
      return draw_lost_destination(draws);
    }
    const int older = draws.below(3) == 0 ? -1 : static_cast<int>(draws.below(plan_.setup.nodes));
    if (older >= 0) {
      add_release(0s, older, draws.below(2) == 0 ? "3.0.1" : "3.1.0", 0s);
    }
    for (io::Duration at = between_ms(draws, 15'000, 30'000); at < plan_.setup.safety - 65s; at += between_ms(draws, 70'000, 90'000)) {
      const int node = static_cast<int>(draws.below(plan_.setup.nodes));
      Decision& down = add(at, draws.below(2) == 0 ? Kind::kill : Kind::stop, node);
      if (calm_ == Calm::silences) {
        down.down = between_ms(draws, 45'000, 60'000);
      } else {
        down.down = between_ms(draws, 10, 2'000);
        cut_off(at + between_ms(draws, 0, 1'000), node, between_ms(draws, 62'000, 68'000));
      }
    }
  }

  // A node that is being decommissioned gives its partitions to one that goes down then, and stays down until it is given up.
  void draw_lost_destination(Stream& draws) {
    plan_.setup.names = std::max<uint64_t>(plan_.setup.names, 20);
    plan_.setup.remove = std::min<uint64_t>(plan_.setup.remove, 5);
    const uint64_t nodes = plan_.setup.nodes;
    const auto leaving = static_cast<int>(draws.below(nodes));
    const auto lost = static_cast<int>((static_cast<uint64_t>(leaving) + 1 + draws.below(nodes - 1)) % nodes);
    const io::Duration at = between_ms(draws, 20'000, 40'000);
    Decision& leave = add(at, Kind::decommission, leaving);
    leave.span = plan_.setup.safety - at - 10s;
    leave.down = 100ms;
    add(at + between_ms(draws, 50, 12'000), Kind::kill, lost).down = between_ms(draws, 195'000, 210'000);
  }

  // Valid until the next one is added.
  Decision& add(io::Duration at, Kind kind, int node) {
    Decision decision;
    decision.id = next_id(plan_);
    decision.at = at;
    decision.kind = kind;
    decision.node = {node};
    plan_.decisions.push_back(std::move(decision));
    return plan_.decisions.back();
  }

  void cut_off(io::Duration at, int node, io::Duration span) {
    Decision& cut = add(at, Kind::cut, node);
    for (int other = 0; other < static_cast<int>(plan_.setup.nodes); ++other) {
      if (other != node) {
        cut.peers.push_back(other);
      }
    }
    cut.way = "both";
    cut.span = span;
  }

  // A cluster large enough to lose a node for good, and quiet enough that it comes to that: a decommission takes three passes of the
  // controller, each a quorum and the member's own word.
  void draw_departures() {
    Stream draws = stream("departures");
    if (draws.below(10) != 0 || plan_.setup.initial != 0) {
      return;
    }
    is_quiet_ = true;
    plan_.setup.nodes = 4 + draws.below(2);
    plan_.setup.safety = between_ms(draws, 90'000, 130'000);
    for (io::Duration at = between_ms(draws, 8'000, 15'000); at < plan_.setup.safety - 20s; at += between_ms(draws, 15'000, 60'000)) {
      Decision decision;
      decision.id = next_id(plan_);
      decision.at = at;
      decision.kind = Kind::decommission;
      fill(decision, draws);
      plan_.decisions.push_back(std::move(decision));
    }
  }

  // A cluster that begins with one node or three, and grows to five.
  void draw_growth() {
    Stream draws = stream("growth");
    if (draws.below(6) != 0) {
      return;
    }
    plan_.setup.nodes = 5;
    plan_.setup.initial = draws.below(2) == 0 ? 1 : 3;
    io::Duration at = between_ms(draws, 2'000, 30'000);
    const bool is_crowded = plan_.setup.initial == 3 && stream("growth/door").below(3) == 0;
    if (is_crowded) {
      crowd_the_door(at);
    }
    for (int node = static_cast<int>(plan_.setup.initial); node < 5; ++node) {
      add(at, Kind::grow, node);
      at += draws.below(3) == 0 || is_crowded ? 0ms : between_ms(draws, 100, 15'000);
    }
  }

  // Several ask to be let in while nothing commits: the disks of two of three nodes hang from then on for some seconds.
  void crowd_the_door(io::Duration at) {
    Stream draws = stream("growth/hang");
    const auto spared = static_cast<int>(draws.below(3));
    at -= between_ms(draws, 1, 1'000);
    const io::Duration span = between_ms(draws, 6'500, 9'000);
    for (int node = 0; node < 3; ++node) {
      if (node != spared) {
        add(at, Kind::disk_stall, node).span = span;
      }
    }
  }

  void draw_timing() {
    Stream draws = stream("timing");
    Setup& setup = plan_.setup;
    if (draws.below(2) == 0) {
      setup.election_min = std::chrono::milliseconds(pick<int64_t>(draws, {{3, 150}, {2, 250}, {1, 400}, {1, 1000}}));
      setup.election_max = setup.election_min + std::chrono::milliseconds(pick<int64_t>(draws, {{2, 30}, {2, 100}, {2, 300}}));
      setup.heartbeat = std::chrono::milliseconds(pick<int64_t>(draws, {{1, 25}, {2, 50}}));
    }
    setup.append_entries_max = pick<uint64_t>(draws, {{6, 4096}, {5, 1}, {1, 3}});
    const auto net = pick<std::pair<io::Duration, io::Duration>>(
        draws, {{5, {60us, 250us}}, {2, {200us, 2ms}}, {3, {1ms, 15ms}}, {2, {5ms, 40ms}}});
    setup.net_low = net.first;
    setup.net_high = net.second;
    setup.loss_ppm = pick<uint64_t>(draws, {{4, 0}, {3, 1'000}, {2, 10'000}, {1, 40'000}});
    setup.tail_ppm = pick<uint64_t>(draws, {{4, 0}, {3, 2'000}, {2, 20'000}});
    setup.tail_max = pick<io::Duration>(draws, {{3, 50ms}, {2, 300ms}, {1, 2s}});
  }

  void draw_storage() {
    Stream draws = stream("storage");
    Setup& setup = plan_.setup;
    const auto sync = pick<std::pair<io::Duration, io::Duration>>(
        draws, {{5, {100us, 400us}}, {3, {1ms, 8ms}}, {4, {10ms, 80ms}}});
    setup.sync_low = sync.first;
    setup.sync_high = sync.second;
    setup.sync_tail_ppm = pick<uint64_t>(draws, {{2, 1'000}, {3, 10'000}, {2, 60'000}});
    setup.sync_tail = pick<io::Duration>(draws, {{3, 20ms}, {2, 120ms}, {1, 600ms}});
    setup.segment_bytes = pick<uint64_t>(draws, {{3, 0}, {2, 65'536}, {1, 262'144}});
    setup.scattered_ppm = pick<uint64_t>(draws, {{1, 0}, {1, 1'000'000}});
    setup.bit_flip_ppm = pick<uint64_t>(draws, {{3, 0}, {1, 20'000}});
  }

  // In most runs a snapshot every few entries, in little chunks, with hardly any log kept behind it.
  void draw_snapshots() {
    Stream draws = stream("snapshots");
    Setup& setup = plan_.setup;
    if (draws.below(4) == 0) {
      return;
    }
    setup.snapshot_threshold = pick<uint64_t>(draws, {{4, draws.below(8) + 1}, {2, 30}, {1, 8'192}});
    setup.snapshot_interval = pick<io::Duration>(draws, {{2, 20ms}, {3, 300ms}, {2, 2s}});
    setup.trailing = pick<uint64_t>(draws, {{3, 0}, {2, draws.below(8) + 1}, {1, 100}});
    setup.chunk_bytes = pick<uint64_t>(draws, {{3, 512}, {1, 4'096}, {1, 1u << 20}});
    setup.tail_bytes = pick<uint64_t>(draws, {{2, 1}, {2, 2'000}, {2, 16u << 20}});
    if (draws.below(2) == 0) {
      setup.segment_bytes = 4'096;
    }
  }

  // Queues so short that the bounds on them are met.
  void draw_bounds() {
    Stream draws = stream("bounds");
    Setup& setup = plan_.setup;
    if (draws.below(6) == 0) {
      setup.unapplied_bytes = pick<uint64_t>(draws, {{2, 1'000}, {2, 6'000}, {1, 30'000}, {1, setup.unapplied_bytes}});
      setup.applying_bytes = pick<uint64_t>(draws, {{2, 1}, {2, 1'000}, {1, setup.applying_bytes}});
      setup.link_queue_bytes = pick<uint64_t>(draws, {{2, 1'500}, {2, 8'000}, {1, setup.link_queue_bytes}});
    }
    if (draws.below(4) == 0) {
      setup.late_ppm = pick<uint64_t>(draws, {{1, 0}, {2, 500'000}});
      setup.never_ppm = pick<uint64_t>(draws, {{2, 0}, {1, 500'000}});
    }
  }

  // The settings of production, and entries enough to reach them.
  void draw_production() {
    is_production_ = true;
    Setup& setup = plan_.setup;
    const Setup defaults;
    setup.unapplied_bytes = defaults.unapplied_bytes;
    setup.applying_bytes = defaults.applying_bytes;
    setup.link_queue_bytes = defaults.link_queue_bytes;
    setup.snapshot_threshold = defaults.snapshot_threshold;
    setup.snapshot_interval = 2s;
    setup.trailing = defaults.trailing;
    setup.chunk_bytes = defaults.chunk_bytes;
    setup.tail_bytes = defaults.tail_bytes;
    setup.segment_bytes = 1u << 20;
    setup.append_entries_max = defaults.append_entries_max;
    setup.ops_per_minute = 240;
    setup.proposals_per_minute = 12'000;
    setup.schema_bytes = 0;
  }

  // One kind of thing is filled up to its limit, by commands enough.
  void draw_crowd(Stream& draws) {
    Setup& setup = plan_.setup;
    setup.crowd = draws.below(5) + 1;
    setup.schema_bytes = 0;
    setup.proposals_per_minute = std::max<uint64_t>(setup.proposals_per_minute, setup.crowd == 5 ? 3'600 : 1'200);
    if (setup.crowd >= 4) {  // large images: not of every few entries
      setup.snapshot_threshold = std::max<uint64_t>(setup.snapshot_threshold, 100);
      setup.snapshot_interval = std::max<io::Duration>(setup.snapshot_interval, 2s);
      setup.chunk_bytes = std::max<uint64_t>(setup.chunk_bytes, 65'536);
    }
  }

  void draw_load() {
    Stream draws = stream("load");
    Setup& setup = plan_.setup;
    setup.clients = draws.below(8) + 3;
    setup.ops_per_minute = pick<uint64_t>(draws, {{6, 240}, {8, 420}, {6, 720}, {2, 1'500}, {1, 3'000}});
    setup.create = draws.below(50) + 10;
    setup.patch = draws.below(50);
    setup.remove = draws.below(35);
    setup.read = draws.below(60) + 5;
    setup.list = draws.below(12);
    setup.race = draws.below(3) == 0 ? 0 : draws.below(15) + 1;
    setup.proposals_per_minute = pick<uint64_t>(draws, {{1, 0}, {2, 120}, {3, 400}, {1, 1'200}});
    if (stream("schemas").below(25) == 0) {
      setup.schema_bytes = 100'000;
      // Large images, and each chunk waits for the answer to the one before (seed 1324).
      setup.chunk_bytes = std::max<uint64_t>(setup.chunk_bytes, 16'384);
      setup.proposals_per_minute = std::max<uint64_t>(setup.proposals_per_minute, 400);
    }
    Stream extremes = stream("extremes");
    const uint64_t extreme = extremes.below(100);
    if (extreme < 3) {
      draw_production();
    } else if (extreme < 10) {
      draw_crowd(extremes);
    }
    // A dense load on few names: only there does the next request for a name come before a new leader has caught up.
    setup.names = setup.ops_per_minute >= 3'000 ? 2 : pick<uint64_t>(draws, {{2, 4}, {4, 20}, {2, 120}});
  }

  // ---- faults --------------------------------------------------------------------------------------------------------------

  static io::Duration down_time(Stream& draws) {
    const auto range = pick<std::pair<int64_t, int64_t>>(draws, {{4, {1, 60}}, {4, {100, 1500}}, {2, {1500, 8000}}});
    return between_ms(draws, range.first, range.second);
  }

  std::vector<int> target(Stream& draws) const {
    const uint64_t nodes = plan_.setup.nodes;
    const uint64_t choice = draws.below(10);
    if (choice < 3) {
      return {kLeader};
    }
    if (choice < 4) {
      return {kFollower};
    }
    if (choice < 5 && nodes >= 2) {  // two nodes together
      const int first = static_cast<int>(draws.below(nodes));
      const int second = static_cast<int>((first + 1 + draws.below(nodes - 1)) % nodes);
      return {std::min(first, second), std::max(first, second)};
    }
    if (choice < 6) {
      return {kAll};
    }
    return {static_cast<int>(draws.below(nodes))};
  }

  // One disk at a time: whatever its faults destroy, the others' copies stay.
  std::vector<int> one_node(Stream& draws) const { return {static_cast<int>(draws.below(plan_.setup.nodes))}; }

  void fill(Decision& decision, Stream& draws) const {
    decision.span = between_ms(draws, 200, 6'000);
    switch (decision.kind) {
      case Kind::kill:
      case Kind::power_loss:
        decision.node = target(draws);
        decision.down = down_time(draws);
        arm(decision, draws);
        break;
      case Kind::stop:
        decision.node = one_node(draws);
        decision.down = down_time(draws);
        break;
      case Kind::freeze:
        decision.node = draws.below(2) == 0 ? std::vector<int>{kLeader} : one_node(draws);
        break;
      case Kind::slow:
        decision.node = target(draws);
        decision.percent = pick<uint64_t>(draws, {{2, 300}, {2, 1'000}, {1, 2'000}});
        break;
      case Kind::kill_at:
        decision.node = one_node(draws);
        decision.nth = draws.below(40) + 1;
        decision.how = draws.below(2) == 0 ? "kill" : "power_loss";
        decision.down = down_time(draws);
        break;
      case Kind::fault_at:
        fault_at(decision, draws);
        break;
      case Kind::move:
        decision.node = one_node(draws);
        decision.down = down_time(draws);
        break;
      case Kind::restart_loop:
        decision.node = one_node(draws);
        decision.times = draws.below(6) + 3;
        decision.down = between_ms(draws, 1, 300);
        decision.gap = between_ms(draws, 1, 1'500);
        break;
      case Kind::rolling:
        decision.down = between_ms(draws, 50, 2'000);
        decision.gap = between_ms(draws, 500, 4'000);
        break;
      case Kind::cut:
        cut(decision, draws);
        break;
      case Kind::partition:
        decision.shape = pick<std::string>(draws, {{3, "half"}, {2, "ring"}, {6, "isolate"}, {2, "bridge"}});
        decision.span = pick<bool>(draws, {{3, false}, {1, true}}) ? between_ms(draws, 5'000, 12'000)
                                                                     : between_ms(draws, 300, 4'000);
        arm(decision, draws);
        break;
      case Kind::heal:
        break;
      case Kind::transfer:
        decision.node = draws.below(8) == 0 ? one_node(draws) : std::vector<int>{kLeader};
        decision.peers = draws.below(3) == 0 ? one_node(draws) : std::vector<int>{kFollower};
        arm_at_elections(decision, draws);
        break;
      case Kind::take_out:
        decision.node = pick<std::vector<int>>(draws, {{2, {kLeader}}, {4, {kFollower}}, {1, {kAnyNode}}});
        decision.span = pick<bool>(draws, {{3, true}, {1, false}}) ? between_ms(draws, 0, 3'000) : between_ms(draws, 3'000, 15'000);
        arm_at_elections(decision, draws);
        break;
      case Kind::decommission:
        decision.node = draws.below(3) == 0 ? std::vector<int>{kLeader} : one_node(draws);
        decision.span = draws.below(3) == 0 ? between_ms(draws, 500, 12'000) : between_ms(draws, 15'000, 60'000);
        decision.down = down_time(draws);
        decision.times = draws.below(2) + 1;
        break;
      case Kind::abort_moves:
        decision.node = one_node(draws);
        break;
      case Kind::forget:
        decision.node = one_node(draws);
        decision.peers = draws.below(3) == 0 ? std::vector<int>{kFollower} : one_node(draws);
        if (draws.below(2) == 0) {  // before everyone has registered
          decision.at = between_ms(draws, 200, 15'000);
        }
        break;
      case Kind::slow_reader:
        decision.node = one_node(draws);
        decision.delay = pick<io::Duration>(draws, {{3, 50ms}, {2, 300ms}, {1, 2s}});
        break;
      case Kind::loss:
        decision.ppm = pick<uint64_t>(draws, {{2, 10'000}, {2, 50'000}, {1, 200'000}});
        break;
      case Kind::tail:
        decision.ppm = pick<uint64_t>(draws, {{2, 10'000}, {2, 100'000}});
        decision.delay = pick<io::Duration>(draws, {{2, 200ms}, {2, 1s}, {1, 5s}});
        break;
      default:
        fill_storage(decision, draws);
    }
  }

  void fill_storage(Decision& decision, Stream& draws) const {
    decision.node = one_node(draws);
    switch (decision.kind) {
      case Kind::disk_full:
        decision.bytes = pick<uint64_t>(draws, {{2, 0}, {1, 5'000}, {1, 100'000}});
        if (draws.below(3) == 0) {  // long enough to use up what the log has prepared
          decision.span = between_ms(draws, 6'000, 25'000);
        }
        break;
      case Kind::disk_error:
        decision.op = pick<std::string>(draws, {{1, "read"}, {2, "write"}, {3, "sync"}});
        decision.nth = draws.below(20) + 1;
        if (draws.below(2) == 0) {  // the image that is being installed
          decision.on = Trigger::install;
          decision.node = {kLeader};
          decision.op = "read";
        }
        break;
      case Kind::disk_shrink:
        decision.bytes = pick<uint64_t>(draws, {{2, 20'000}, {1, 200'000}});
        break;
      case Kind::disk_damage:
      case Kind::snapshot_damage:
        decision.down = between_ms(draws, 1, 500);
        break;
      case Kind::store_old:
        decision.gap = between_ms(draws, 500, 15'000);
        [[fallthrough]];
      case Kind::store_gone:
        decision.store = pick<std::string>(draws, {{1, "raft"}, {2, "metastore"}});
        if (decision.kind == Kind::store_gone) {
          decision.store = pick<std::string>(draws, {{2, "raft"}, {4, "metastore"}, {3, "images"}, {2, "log"}, {1, "term"}});
        }
        decision.down = between_ms(draws, 1, 500);
        break;
      case Kind::rejoin:
        decision.at = std::max<io::Duration>(decision.at, 15s);  // its store is known by then
        decision.store = pick<std::string>(draws, {{1, "raft"}, {1, "metastore"}, {1, "images"}});
        [[fallthrough]];
      case Kind::store_foreign:
        decision.peers = {static_cast<int>(draws.below(plan_.setup.nodes))};
        decision.down = between_ms(draws, 1, 500);
        break;
      case Kind::wipe:
        decision.at = std::max<io::Duration>(decision.at, 15s);  // its store is known by then
        [[fallthrough]];
      case Kind::store_blind:
      case Kind::foreign_write:
        decision.down = between_ms(draws, 1, 500);
        break;
      case Kind::disk_stall:
        decision.span = between_ms(draws, 100, 8'000);
        break;
      case Kind::disk_slow:
        decision.ppm = pick<uint64_t>(draws, {{1, 20'000}, {2, 200'000}});
        break;
      case Kind::wall_jump:
        decision.by = std::chrono::seconds(draws.between(-3'600 * 24, 3'600 * 24));
        break;
      case Kind::drift:
        decision.rate = draws.between(-20'000, 20'000);
        break;
      default:
        NARAD_CHECK(false, "a kind that nothing fills in");
    }
  }

  // How many operations the work is made of is a guess; one that is not reached strikes in the next such work.
  void fault_at(Decision& decision, Stream& draws) const {
    using Reach = std::pair<std::string, uint64_t>;
    decision.node = one_node(draws);
    const Reach reach = pick<Reach>(draws, {{3, {"append", 40}}, {4, {"compaction", 6}}, {4, {"snapshot", 12}}, {5, {"install", 40}},
                                            {2, {"vote", 8}}, {3, {"apply", 40}}, {2, {"start", 40}}});
    decision.work = reach.first;
    decision.nth = draws.below(draws.below(3) == 0 ? 3 : reach.second) + 1;
    decision.fault = pick<std::string>(draws, {{3, "kill"}, {3, "power_loss"}, {2, "no_space"}, {2, "error"}, {1, "stall"}});
    decision.down = down_time(draws);
  }

  // Moments at which a loss hurts most: right after a vote, an election, an append.
  void arm(Decision& decision, Stream& draws) const {
    decision.on = pick<Trigger>(draws, {{5, Trigger::now}, {3, Trigger::elected}, {2, Trigger::campaign},
                                        {decision.kind == Kind::partition ? 0u : 4u, Trigger::vote}, {2, Trigger::append}});
    if (decision.on == Trigger::now) {
      return;
    }
    decision.wait = pick<bool>(draws, {{1, true}, {2, false}}) ? 0ms : between(draws, 100us, 60ms);
    if (decision.kind != Kind::partition) {
      decision.node = pick<std::vector<int>>(
          draws, {{4, {decision.on == Trigger::vote ? kVoter : kLeader}}, {1, {kLeader}}, {1, {kAnyNode}}, {1, {kAll}}});
      decision.down = pick<bool>(draws, {{3, true}, {1, false}}) ? between_ms(draws, 1, 40) : down_time(draws);
    }
  }

  // A change asked for at once by a leader that has committed nothing yet, and later.
  static void arm_at_elections(Decision& decision, Stream& draws) {
    decision.on = pick<Trigger>(draws, {{3, Trigger::now}, {2, Trigger::elected}, {1, Trigger::append}});
    if (decision.on != Trigger::now) {
      decision.wait = pick<bool>(draws, {{1, true}, {2, false}}) ? 0ms : between(draws, 100us, 200ms);
    }
  }

  void cut(Decision& decision, Stream& draws) const {
    const int nodes = static_cast<int>(plan_.setup.nodes);
    std::vector<int> order;
    for (int i = 0; i < nodes; ++i) {
      order.push_back(i);
    }
    draws.shuffle(order);
    const int first = nodes == 1 ? 1 : static_cast<int>(draws.below(nodes - 1)) + 1;
    decision.node.assign(order.begin(), order.begin() + first);
    decision.peers.assign(order.begin() + first, order.end());
    if (draws.below(2) == 0) {
      decision.peers.resize(std::min<size_t>(decision.peers.size(), 1));
    }
    std::sort(decision.node.begin(), decision.node.end());
    std::sort(decision.peers.begin(), decision.peers.end());
    decision.way = draws.below(2) == 0 ? "one" : "both";
  }

  void draw_faults() {
    if (calm_ != Calm::none) {
      return draw_calm_faults();
    }
    struct Choice {
      Kind kind;
      uint32_t enabled_percent;
      uint32_t least_nodes;
    };
    static constexpr Choice kChoices[] = {
        {Kind::kill, 60, 1},       {Kind::power_loss, 65, 1}, {Kind::stop, 25, 1},       {Kind::freeze, 30, 1},
        {Kind::slow, 25, 1},       {Kind::kill_at, 35, 1},    {Kind::rolling, 15, 1},    {Kind::cut, 40, 2},
        {Kind::partition, 60, 2},  {Kind::heal, 25, 2},       {Kind::loss, 30, 2},       {Kind::tail, 30, 2},
        {Kind::disk_full, 20, 1},  {Kind::disk_error, 25, 1}, {Kind::disk_stall, 20, 1}, {Kind::disk_slow, 25, 1},
        {Kind::wall_jump, 20, 1},  {Kind::drift, 20, 1},
        {Kind::transfer, 30, 2},   {Kind::take_out, 35, 3},
        {Kind::slow_reader, 20, 1}, {Kind::restart_loop, 15, 1}, {Kind::disk_shrink, 15, 1}, {Kind::disk_damage, 15, 1},
        {Kind::snapshot_damage, 20, 1}, {Kind::store_old, 20, 1}, {Kind::store_gone, 15, 1}, {Kind::foreign_write, 20, 1},
        {Kind::store_blind, 6, 1}, {Kind::store_foreign, 8, 2}, {Kind::rejoin, 8, 3}, {Kind::wipe, 6, 3},
        {Kind::fault_at, 45, 1},   {Kind::move, 14, 3},      {Kind::decommission, 15, 3}, {Kind::abort_moves, 15, 3},
        {Kind::forget, 12, 3},
    };
    Stream choices = stream("faults");
    Stream quiet = stream("quiet");
    for (const Choice& choice : kChoices) {
      const bool enabled = choices.below(100) < choice.enabled_percent;
      const auto mean = pick<int64_t>(choices, {{2, 3'000}, {4, 9'000}, {4, 25'000}});
      const bool is_drawn = enabled && (!is_quiet_ || (choice.kind != Kind::decommission && quiet.below(3) == 0));
      if (is_drawn && plan_.setup.nodes >= choice.least_nodes) {
        draw_kind(choice.kind, mean);
      }
    }
    keep_stores_of_the_moved();
    draw_duels();
    draw_releases();
  }

  // A server that has lost what it knew goes by the addresses of its first start: no servers move where stores are lost.
  void keep_stores_of_the_moved() {
    const auto loses_store = [](const Decision& decision) {
      return decision.kind == Kind::store_old || decision.kind == Kind::store_gone || decision.kind == Kind::store_blind ||
             decision.kind == Kind::store_foreign || decision.kind == Kind::rejoin || decision.kind == Kind::wipe ||
             decision.kind == Kind::decommission;
    };
    if (std::any_of(plan_.decisions.begin(), plan_.decisions.end(), loses_store)) {
      std::erase_if(plan_.decisions, [](const Decision& decision) { return decision.kind == Kind::move; });
    }
  }

  // Two leaders in turn are cut off right after what they did last: the first with an entry that nobody else has, the next one
  // with the first entry of its term. When the first comes back and leads again, it holds an entry of an old term while somebody
  // else holds a newer one: the place where counting replicas of an old entry loses it.
  void draw_duels() {
    Stream draws = stream("duels");
    if (plan_.setup.nodes < 3 || draws.below(3) != 0) {
      return;
    }
    if (draws.below(3) != 0 && !is_production_) {
      plan_.setup.append_entries_max = 1;
    }
    const io::Duration round = plan_.setup.election_max;
    const io::Duration end = plan_.setup.safety - 5s;
    for (io::Duration at = 4s; at < end; at += between_ms(draws, 6'000, 15'000)) {
      Decision first;
      first.id = next_id(plan_);
      first.at = at;
      first.kind = Kind::partition;
      first.shape = "isolate";
      first.on = Trigger::append;
      first.span = between(draws, round * 2, round * 4);
      plan_.decisions.push_back(first);
      Decision second = first;
      second.id = next_id(plan_);
      second.at = at + 10ms;
      second.on = Trigger::elected;
      second.span = between(draws, round * 4, round * 10);
      plan_.decisions.push_back(second);
    }
  }

  // ---- releases ------------------------------------------------------------------------------------------------------------

  void add_release(io::Duration at, int node, const std::string& release, io::Duration down) {
    Decision decision;
    decision.id = next_id(plan_);
    decision.at = at;
    decision.kind = Kind::release;
    decision.node = {node};
    decision.release = release;
    decision.down = down;
    plan_.decisions.push_back(std::move(decision));
  }

  // In part of the runs: a mix of releases that stays; a rolling upgrade with nodes that go back on the way; a rollback
  // past the boundary, which ends in a stop; or types proposed although somebody does not know them, likewise.
  void draw_releases() {
    Stream draws = stream("releases");
    if (draws.below(10) >= 3) {
      return;
    }
    const int nodes = static_cast<int>(plan_.setup.nodes);
    plan_.setup.proposals_per_minute = std::max<uint64_t>(plan_.setup.proposals_per_minute, 240);
    switch (pick<int>(draws, {{3, 0}, {4, 1}, {2, 2}, {2, 3}})) {
      case 0:
        for (int node = 0; node < nodes; ++node) {
          add_release(0s, node, pick<std::string>(draws, {{2, "3.0.1"}, {2, "3.1.0"}, {2, "3.2.0"}, {1, "next"}}), 0s);
        }
        return;
      case 1: return draw_upgrade(draws, nodes);
      case 2: {
        const bool is_next = draws.below(3) == 0;
        for (int node = 0; node < nodes && is_next; ++node) {
          add_release(0s, node, "next", 0s);
        }
        for (io::Duration at = between_ms(draws, 5'000, 30'000); at < plan_.setup.safety - 10s; at += between_ms(draws, 10'000, 40'000)) {
          const int node = static_cast<int>(draws.below(plan_.setup.nodes));
          add_release(at, node, is_next ? "3.2.0" : "3.1.0", down_time(draws));
          add_release(at + between_ms(draws, 1'000, 9'000), node, is_next ? "next" : "3.2.0", down_time(draws));
        }
        return;
      }
      default:
        plan_.setup.gate = 0;
        for (int node = 0; node < nodes; ++node) {
          add_release(0s, node, pick<std::string>(draws, {{1, "3.1.0"}, {2, "3.2.0"}, {1, "next"}}), 0s);
        }
        for (io::Duration at = between_ms(draws, 8'000, 30'000); at < plan_.setup.safety; at += between_ms(draws, 5'000, 30'000)) {
          add_release(at, static_cast<int>(draws.below(plan_.setup.nodes)), draws.below(3) == 0 ? "3.2.0" : "next", down_time(draws));
        }
    }
  }

  // One release after another, each node by node.
  void draw_upgrade(Stream& draws, int nodes) {
    using Way = std::vector<std::string>;
    const Way way = pick<Way>(draws, {{3, {"3.0.1", "3.1.0"}}, {3, {"3.0.1", "3.2.0"}}, {3, {"3.1.0", "3.2.0"}}, {2, {"3.2.0", "next"}},
                                      {3, {"3.0.1", "3.1.0", "3.2.0", "next"}}});
    for (int node = 0; node < nodes; ++node) {
      add_release(0s, node, way.front(), 0s);
    }
    if (way.size() > 2) {
      plan_.setup.safety = std::max<io::Duration>(plan_.setup.safety, 110s);
    }
    io::Duration at = between_ms(draws, 4'000, 25'000);
    for (size_t next = 1; next < way.size(); ++next) {
      at = draw_upgrade_step(draws, nodes, {way[next - 1], way[next]}, at);
    }
  }

  // Returns when it is over.
  io::Duration draw_upgrade_step(Stream& draws, int nodes, const std::pair<std::string, std::string>& step, io::Duration at) {
    for (int node = 0; node < nodes; ++node) {
      add_release(at, node, step.second, down_time(draws));
      at += between_ms(draws, 1'000, 8'000);
      if (draws.below(3) == 0) {  // back, and on again
        add_release(at, node, step.first, down_time(draws));
        at += between_ms(draws, 1'000, 8'000);
        add_release(at, node, step.second, down_time(draws));
        at += between_ms(draws, 1'000, 8'000);
      }
    }
    return at;
  }

  void draw_kind(Kind kind, int64_t mean_ms) {
    Stream draws = stream(std::string("faults/") + std::string(kind_name(kind)));
    const int64_t end = std::chrono::floor<std::chrono::milliseconds>(plan_.setup.safety).count() - 1'000;
    int64_t at = 1'500 + draws.between(0, 2 * mean_ms);
    for (int count = 0; at < end && count < 30; ++count) {
      Decision decision;
      decision.id = next_id(plan_);
      decision.at = std::chrono::milliseconds(at);
      decision.kind = kind;
      fill(decision, draws);
      plan_.decisions.push_back(std::move(decision));
      at += draws.between(mean_ms / 4, 2 * mean_ms);
    }
  }

  io::SeededRandom random_;
  Plan plan_;
  bool is_production_ = false;
  bool is_quiet_ = false;  // few kinds of faults
  // Hardly any fault: members that are silent for a while, starts that no leader is heard at, or a move to a node that is lost.
  enum class Calm { none, silences, late_starts, lost_destination };
  Calm calm_ = Calm::none;
};

}  // namespace

Plan draw_plan(uint64_t seed) { return Drawer(seed).draw(); }

}  // namespace chaos

// What a simulated world costs and how long things take: integers and tables, equal in every build and on every
// machine.
//
// A LatencyTable is a distribution as rows of (weight, low, high): a draw picks a row by weight and a value between its
// ends. The defaults are a small cluster in one building with NVMe disks; a plan may replace any of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/random.h"
#include "io/time.h"

namespace io::sim {

struct LatencyTable {
  struct Row {
    uint32_t weight;  // share of this row; the weights of a table add up to what they add up to
    Duration low;
    Duration high;  // included
  };
  std::vector<Row> rows;

  // Consumes one draw. An empty table is zero.
  Duration draw(RandomStream& stream) const;
};

// What work costs its node's loop or lane. A fiber's slice happens at one instant and then holds the loop for its cost.
struct CostSettings {
  Duration slice{2us};           // running one fiber until it waits
  Duration stream_call{2us};     // one read or write of a stream, connect, accept
  int64_t stream_byte_ps = 300;  // each byte read or written, picoseconds
  Duration disk_call{1us};       // handing one file operation to the kernel
  Duration lane_call{3us};       // hand-over to the lane and back
  Duration lane_cpu_low{4us};    // what a lane call computes, drawn between the two
  Duration lane_cpu_high{12us};
  Duration pool_call_low{20us};
  Duration pool_call_high{200us};
};

struct DiskSettings {
  LatencyTable read{{{950, 5us, 30us}, {45, 60us, 200us}, {5, 500us, 4ms}}};
  LatencyTable write{{{970, 4us, 15us}, {25, 20us, 200us}, {5, 500us, 3ms}}};
  LatencyTable sync{{{900, 100us, 400us}, {90, 400us, 1500us}, {9, 2ms, 12ms}, {1, 20ms, 60ms}}};
  LatencyTable metadata{{{980, 5us, 30us}, {20, 50us, 500us}}};  // open, rename, remove, make directory, list, stat
  LatencyTable slow{{{80, 5ms, 50ms}, {18, 50ms, 300ms}, {2, 300ms, 1500ms}}};  // added when a `slow` fault is drawn
  int64_t byte_ps = 500;  // each byte read or written, picoseconds
  // An operation whose handle died before it ended: lands at its time, lands later (late_landing), or never.
  uint32_t orphan_never_ppm = 250'000;
  uint32_t orphan_late_ppm = 350'000;
  LatencyTable late_landing{{{70, 100us, 20ms}, {25, 20ms, 500ms}, {5, 500ms, 3s}}};
};

struct NetSettings {
  LatencyTable latency{
      {{940, 60us, 250us}, {50, 250us, 2ms}, {9, 2ms, 20ms}, {1, 20ms, 120ms}}};  // one way, two machines
  LatencyTable loopback{{{990, 10us, 30us}, {10, 30us, 300us}}};                  // one way, one machine
  int64_t byte_ps = 8'000;           // transfer time of each byte, picoseconds (1 Gbit/s)
  size_t buffer_bytes = 256 * 1024;  // sent and not yet read by the far side, each way; a writer waits beyond it
  uint32_t short_read_ppm = 50'000;  // reads that return less than has arrived: a stream keeps no boundaries
  size_t accept_backlog = 128;       // connections not yet accepted; beyond it attempts are dropped and tried again
  // A lost segment comes again after this long, and everything behind it on its connection waits.
  LatencyTable retransmission{{{900, 200us, 4ms}, {90, 200ms, 260ms}, {10, 600ms, 800ms}}};
  // After a cut heals or a machine is back: when what was held is sent again.
  LatencyTable resumption{{{700, 1ms, 300ms}, {300, 300ms, 1500ms}}};
  Duration connect_timeout{127s};  // an attempt without an answer, when the caller gave no earlier deadline
};

struct WorldSettings {
  CostSettings cost;
  DiskSettings disk;
  NetSettings net;
  uint64_t events_at_one_instant_max = 1'000'000;  // more is a violation: something spins
};

struct MachineSettings {
  std::string name;                     // its host name on the network, unique in the world
  uint64_t disk_capacity = 8ULL << 30;  // bytes
  int64_t clock_drift_ppm = 0;  // both of its clocks run this much fast (slow when negative), |drift| <= 100,000
  Duration clock_offset{0};     // what its monotonic clock reads when the machine is made, >= 0
  WallTime wall_at_start{1'700'000'000s};  // what its calendar clock reads then
  uint32_t slow_percent = 100;             // its costs, in percent of the world's
  // Files below these prefixes may keep any sectors of their unsynced writes after a power loss, in any order (a log
  // must detect that). Elsewhere a prefix of the unsynced writes stays and the next one may be cut short.
  std::vector<std::string> scattered_prefixes;
  // In scattered files: the chance that a sector of an unsynced write lands with a flipped bit.
  uint32_t unsynced_bit_flip_ppm = 0;
};

}  // namespace io::sim

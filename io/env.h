// The only door to the outside. Everything a node does to the world, and everything it learns from it, goes through one Env;
// production gives it real clocks, disks and sockets, the simulator seeded ones, and the node cannot tell which.
#pragma once

#include "io/disk.h"
#include "io/executor.h"
#include "io/fiber.h"
#include "io/kv_host.h"
#include "io/log.h"
#include "io/net.h"
#include "io/random.h"
#include "io/time.h"

namespace io {

// References only: owned by the backend, valid while the node's fibers run.
struct Env {
  Clock& clock;
  Random& random;
  Disk& disk;            // the node's data directory
  Net& net;
  Executor& store_lane;  // one thread, first in first out: RocksDB
  Executor& pool;        // a few threads: long computations
  KvHost& kv;
  Log& log;

  Instant now() const { return clock.now(); }
  Instant after(Duration duration) const { return clock.now() + duration; }
};

}  // namespace io

// What one process's Env refers to: its doors to clock, disk, network, lanes, RocksDB and log. Dies when the process is
// buried; events that may fire later hold the Incarnation and ask whether it is live before they touch these.
#pragma once

#include "io/env.h"
#include "io/sim/lane.h"
#include "io/sim/process_disk.h"
#include "io/sim/process_log.h"
#include "io/sim/rocksdb_host.h"

namespace io::sim {

class Incarnation;

class ProcessNet final : public Net {
 public:
  explicit ProcessNet(Incarnation& process) : process_(process) {}
  Result<std::unique_ptr<Listener>> listen(std::string_view address) override;
  Result<std::unique_ptr<Stream>> connect(std::string_view address, Instant deadline) override;

 private:
  Incarnation& process_;
};

struct ProcessParts {
  explicit ProcessParts(Incarnation& process);

  SeededRandom random;
  ProcessDisk disk;
  ProcessNet net;
  RocksdbHost kv;
  ProcessLog log;
  Lane store_lane;  // after kv: what waits in a lane may own a database
  Lane pool;
  Env env;
};

}  // namespace io::sim

// Replaces RocksDB's source of unique ids (time, process id, random device), which would make every run different: the
// library calls this one where a program defines it, which only the shared library allows.

#include <cstdint>

#include "io/sim/process.h"
#include "io/sim/world.h"

namespace rocksdb {

void GenerateRawUniqueId(uint64_t* high, uint64_t* low, bool exclude_port_uuid);

void GenerateRawUniqueId(uint64_t* high, uint64_t* low, bool) {
  io::sim::World* world = io::sim::World::current();
  if (world != nullptr && world->running() != nullptr) {
    io::sim::RocksdbHost& host = world->running()->parts().kv;
    *high = host.next_unique();
    *low = host.next_unique();
    return;
  }
  // Outside every simulated process (a test's own database): distinct within this thread.
  thread_local uint64_t drawn = 0;
  *high = io::mix(0, ++drawn);
  *low = drawn;
}

}  // namespace rocksdb

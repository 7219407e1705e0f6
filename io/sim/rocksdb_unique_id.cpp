// Replaces what RocksDB asks of the machine behind its Env's back, which would make every run different: unique ids (time, process id,
// random device), how much memory an allocation really took (which follows from everything that was allocated before, and moves what a
// full cache gives up), and the processor that it runs on. The library calls these where a program defines them, which only the shared
// library allows.

#include <dlfcn.h>
#include <malloc.h>

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

// 0: not known. RocksDB then counts what it asked for, or nothing.
extern "C" size_t malloc_usable_size(void* memory) noexcept {
  if (io::sim::World::current() != nullptr) return 0;
  using Function = size_t (*)(void*);
  static const auto kReal = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "malloc_usable_size"));
  return kReal == nullptr ? 0 : kReal(memory);
}

extern "C" int sched_getcpu() noexcept {
  if (io::sim::World::current() != nullptr) return 0;
  using Function = int (*)();
  static const auto kReal = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "sched_getcpu"));
  return kReal == nullptr ? 0 : kReal();
}

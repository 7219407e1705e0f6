// rocksdb::FileSystem on a simulated volume (rocksdb_host.h). Private to io/sim.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace io::sim {

class Incarnation;

std::shared_ptr<rocksdb::FileSystem> make_rocksdb_file_system(Incarnation& process);

}  // namespace io::sim

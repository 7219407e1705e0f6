// Who owns a partition, as this node's replica has it: not told before the replica has once caught up since the start (replica.h), since
// until then the owners are those of some past moment. `busy` meanwhile, which every caller takes for transient; otherwise what
// records_reader.h promises.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/metastore/reader.h"
#include "engine/metastore/records.h"
#include "engine/metastore/replica.h"
#include "io/result.h"
#include "io/time.h"

namespace engine::metastore {

class Ownership {
 public:
  // Keeps references to both.
  Ownership(const Replica& replica, Reader& reader) : replica_(replica), reader_(reader) {}

  // nullopt when the partition is not placed. May wait.
  io::Result<std::optional<Assignment>> of_partition(std::string_view topic, int32_t partition, io::Instant deadline = io::kNever);
  // The placed partitions of a topic, in order. May wait.
  io::Result<std::vector<Assignment>> of_topic(std::string_view topic, io::Instant deadline = io::kNever);

 private:
  const Replica& replica_;
  Reader& reader_;
};

}  // namespace engine::metastore

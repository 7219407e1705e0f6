#include "engine/metastore/ownership.h"

#include "engine/metastore/records_reader.h"

namespace engine::metastore {

io::Result<std::optional<Assignment>> Ownership::of_partition(std::string_view topic, int32_t partition, io::Instant deadline) {
  if (io::Status served = replica_.may_serve_ownership(); !served.ok()) {
    return served.error();
  }
  return get_assignment(reader_, topic, partition, deadline);
}

io::Result<std::vector<Assignment>> Ownership::of_topic(std::string_view topic, io::Instant deadline) {
  if (io::Status served = replica_.may_serve_ownership(); !served.ok()) {
    return served.error();
  }
  return list_assignments(reader_, topic, deadline);
}

}  // namespace engine::metastore

// Member and assignment records for tests.
#pragma once

#include <string>
#include <utility>

#include "engine/metastore/records.h"

namespace tests {

inline engine::metastore::Member make_member(std::string id, engine::metastore::MemberStatus status = engine::metastore::MemberStatus::alive,
                                             bool draining = false) {
  engine::metastore::Member member;
  member.addr = id + ":7942";
  member.cluster_addr = id + ":7943";
  member.id = std::move(id);
  member.status = status;
  member.last_heartbeat = 1'700'000'000;
  member.draining = draining;
  member.build = "3.2.0";
  member.entry_types = 37;
  return member;
}

inline engine::metastore::Member make_dead(std::string id) {
  return make_member(std::move(id), engine::metastore::MemberStatus::dead);
}
inline engine::metastore::Member make_draining(std::string id) {
  return make_member(std::move(id), engine::metastore::MemberStatus::alive, true);
}

inline engine::metastore::Assignment make_row(std::string topic, int32_t partition, std::string owner, std::string target = {}) {
  return {std::move(topic), partition, std::move(owner), std::move(target)};
}

}  // namespace tests

#include "tests/property/gating_oracle.h"

#include <algorithm>

namespace tests::gating {

namespace {

// The newest types of 3.0, 3.1, 3.2 and of the release to come. Written down here once more: the book does not trust the code's table.
constexpr uint32_t kNewestTypes[] = {22, 32, 37, 38};

}  // namespace

bool Oracle::commit(const Said& said) {
  switch (said.what) {
    case Said::What::nothing:
      return false;
    case Said::What::registers:
      if (tombstones_.contains(said.id)) {
        return false;
      }
      records_[said.id] = said;
      return true;
    case Said::What::removes:
      records_.erase(said.id);
      tombstones_.insert(said.id);
      return false;
    case Said::What::readmits:
      tombstones_.erase(said.id);
      return false;
  }
  return false;
}

void Oracle::append(const raft::Configuration& configuration) {
  servers_.clear();
  for (const raft::Server& server : configuration.servers) {
    servers_.push_back(server.id);
  }
}

uint32_t Oracle::types_of(const std::string& id) const {
  const auto found = records_.find(id);
  if (found == records_.end()) {
    return 0;
  }
  return found->second.types == 0 ? 22 : found->second.types;
}

std::string Oracle::build_of(const std::string& id) const {
  const auto found = records_.find(id);
  if (found == records_.end()) {
    return "no member record";
  }
  return found->second.build.empty() ? "unknown build" : found->second.build;
}

std::optional<std::string> Oracle::holder(uint32_t type, const std::string& leader, uint32_t own) const {
  std::set<std::string> everybody(servers_.begin(), servers_.end());
  for (const auto& [id, said] : records_) {
    everybody.insert(id);
  }
  everybody.insert(leader);
  for (const std::string& id : everybody) {
    if ((id == leader ? own : types_of(id)) < type) {
      return id;
    }
  }
  return std::nullopt;
}

void Oracle::look(const std::string& leader, uint32_t own) {
  for (const uint32_t newest : kNewestTypes) {
    if (newest > boundary_ && !holder(newest, leader, own)) {
      boundary_ = newest;
    }
  }
}

}  // namespace tests::gating

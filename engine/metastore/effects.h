// What an entry's handler says beside its answer: which versions move, and whether a refusal keeps what was written.
#pragma once

#include <string>
#include <vector>

#include "engine/metastore/domain_versions.h"

namespace engine::metastore {

struct Effects {
  std::vector<Bump> bumps;   // of an accepted entry; a refused one moves nothing
  bool keeps_rows = false;   // although it is refused: the seal of a credential counts, whatever became of the change

  void moved(Domain domain, std::string name = {}) { bumps.push_back({domain, std::move(name), false}); }
  void retired(Domain domain, std::string name) { bumps.push_back({domain, std::move(name), true}); }
};

}  // namespace engine::metastore

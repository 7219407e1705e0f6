#include "engine/metastore/domain_versions.h"

#include "io/check.h"

namespace engine::metastore {

uint64_t DomainVersions::keyed(Domain domain, std::string_view name) const {
  NARAD_CHECK(is_keyed(domain), "a name asked of a domain without names");
  const Keyed& keyed = keyed_[static_cast<size_t>(domain)];
  auto found = keyed.cells.find(name);
  return found == keyed.cells.end() ? keyed.floor : found->second.version;
}

void DomainVersions::apply(const std::vector<Bump>& bumps) {
  for (const Bump& bump : bumps) {
    move(bump);
  }
  ++metadata_;
}

void DomainVersions::move(const Bump& bump) {
  uint64_t version = ++counter_;
  latest_[static_cast<size_t>(bump.domain)] = version;
  if (!is_keyed(bump.domain)) {
    return;
  }
  Keyed& keyed = keyed_[static_cast<size_t>(bump.domain)];
  Cell& cell = keyed.cells[bump.name];
  keyed.retired -= cell.is_retired ? 1 : 0;
  cell = Cell{version, bump.is_retired};
  if (bump.is_retired && ++keyed.retired > kRetiredMax) {
    prune(keyed);
  }
  if (keyed.cells.size() > kCellsMax) {
    keyed.cells.clear();
    keyed.retired = 0;
    keyed.floor = ++counter_;
  }
}

void DomainVersions::prune(Keyed& keyed) {
  keyed.floor = ++counter_;
  std::erase_if(keyed.cells, [](const auto& entry) { return entry.second.is_retired; });
  // Live cells stay at their own versions: only names without a cell read the floor.
  keyed.retired = 0;
}

void DomainVersions::raise_all() {
  for (Keyed& keyed : keyed_) {
    keyed.cells.clear();
    keyed.retired = 0;
    keyed.floor = ++counter_;
  }
  for (uint64_t& latest : latest_) {
    latest = ++counter_;
  }
  ++metadata_;
}

size_t DomainVersions::cells() const {
  size_t count = 0;
  for (const Keyed& keyed : keyed_) {
    count += keyed.cells.size();
  }
  return count;
}

}  // namespace engine::metastore

#include "engine/metastore/domain_versions.h"

#include <utility>

#include "io/check.h"

namespace engine::metastore {

const DomainVersions::Keyed& DomainVersions::keyed_of(Domain domain) const {
  NARAD_CHECK(is_keyed(domain), "a name asked of a domain without names");
  return keyed_[static_cast<size_t>(domain)];
}

DomainVersions::Keyed& DomainVersions::keyed_of(Domain domain) {
  return const_cast<Keyed&>(std::as_const(*this).keyed_of(domain));
}

DomainVersions::Cell& DomainVersions::cell_of(Keyed& keyed, std::string_view name) {
  Cell& cell = keyed.cells.add(name).value;
  if (cell.version == nullptr) {
    cell.version = std::make_shared<uint64_t>(keyed.floor);
  }
  return cell;
}

uint64_t DomainVersions::keyed(Domain domain, std::string_view name) const {
  const Keyed& keyed = keyed_of(domain);
  const auto* found = keyed.cells.find(name);
  return found == nullptr ? keyed.floor : *found->value.version;
}

VersionCell DomainVersions::watch(Domain domain, std::string_view name) { return VersionCell(cell_of(keyed_of(domain), name).version); }

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
  Keyed& keyed = keyed_of(bump.domain);
  Cell& cell = cell_of(keyed, bump.name);
  keyed.retired -= cell.is_retired ? 1 : 0;
  *cell.version = version;
  cell.is_retired = bump.is_retired;
  if (bump.is_retired && ++keyed.retired > kRetiredMax) {
    drop(keyed, [](const Cell& each) { return each.is_retired; });
  }
  if (keyed.cells.size() > kCellsMax) {
    drop(keyed, [](const Cell&) { return true; });
  }
}

// Raises the floor, and drops the cells that are `unwanted`; whoever still watches one of them sees it move. The others stay at their
// own versions: only names without a cell read the floor.
template <typename Unwanted>
void DomainVersions::drop(Keyed& keyed, Unwanted unwanted) {
  keyed.floor = ++counter_;
  keyed.cells.erase_if([&](const auto& cell) {
    const bool is_dropped = unwanted(cell.value);
    if (is_dropped) {
      *cell.value.version = keyed.floor;
    }
    return is_dropped;
  });
  keyed.retired = 0;
}

void DomainVersions::raise_all() {
  for (Keyed& keyed : keyed_) {
    drop(keyed, [](const Cell&) { return true; });
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

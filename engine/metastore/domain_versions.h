// Domain versions: counters that move when metadata of a kind changed, so that caches know what to read again.
//
// One counter supplies all values, so a value is never used twice and "newer" is a comparison. Keyed cells (one a topic name)
// exist only for names that changed since the start or are watched; any other name reads as the floor. A deleted name is retired:
// its cell moves once more and is dropped later, in batches of more than kRetiredMax; the floor then rises, so that the dropped
// name still reads as newer than any value seen before.
//
// Who keeps a record that it has read watches its name: whether the record still holds is then one load, without a lookup.
//
//   VersionCell cell = versions.watch(Domain::topics, name);
//   uint64_t seen = cell.value();          // before the record is read
//   ... cell.value() == seen               // the record is as it was; else read again, and watch again
//
// One thread's: the loop's, as all of the metastore's published state. Source: narad/entry-types.md section 8.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/metastore/name_table.h"

namespace engine::metastore {

enum class Domain : uint8_t { topics, assignments, schemas, routing_members, users, remotes };

inline constexpr size_t kDomainCount = 6;
// Retired cells that may be kept before a batch of them is dropped.
inline constexpr size_t kRetiredMax = 1024;
// Cells of one domain, whatever has changed since the start. Past it all are dropped and the floor rises: what was read under any of
// these names is read again, once.
inline constexpr size_t kCellsMax = 32'768;

// One movement, as an accepted entry asks for it.
struct Bump {
  Domain domain = Domain::topics;
  std::string name;  // of the keyed domains (topics, assignments, schemas); empty otherwise
  bool is_retired = false;

  friend bool operator==(const Bump&, const Bump&) = default;
};

// One name's version, for as long as the holder likes. Once it has moved, watch again: a name that was dropped and came back has
// another cell.
class VersionCell {
 public:
  uint64_t value() const { return *value_; }

 private:
  friend class DomainVersions;
  explicit VersionCell(std::shared_ptr<const uint64_t> value) : value_(std::move(value)) {}

  std::shared_ptr<const uint64_t> value_;
};

class DomainVersions {
 public:
  // Version of one name in a keyed domain.
  uint64_t keyed(Domain domain, std::string_view name) const;
  // Its cell. Only for names that exist: a cell that never changes again is kept for ever.
  VersionCell watch(Domain domain, std::string_view name);
  // The last movement anywhere in a domain.
  uint64_t latest(Domain domain) const { return latest_[static_cast<size_t>(domain)]; }
  // Rises by one with every accepted entry.
  uint64_t metadata() const { return metadata_; }

  // One accepted entry's movements. To be called once its effects can be read, never before.
  void apply(const std::vector<Bump>& bumps);
  // Everything may have changed (another database is in place).
  void raise_all();

  size_t cells() const;

 private:
  struct Cell {
    std::shared_ptr<uint64_t> version;
    bool is_retired = false;
  };
  struct Keyed {
    NameTable<Cell> cells;
    uint64_t floor = 0;
    size_t retired = 0;
  };

  static bool is_keyed(Domain domain) { return domain <= Domain::schemas; }
  Keyed& keyed_of(Domain domain);
  const Keyed& keyed_of(Domain domain) const;
  Cell& cell_of(Keyed& keyed, std::string_view name);
  void move(const Bump& bump);
  template <typename Unwanted>
  void drop(Keyed& keyed, Unwanted unwanted);

  uint64_t counter_ = 0;
  uint64_t metadata_ = 0;
  uint64_t latest_[kDomainCount] = {};
  Keyed keyed_[3];
};

}  // namespace engine::metastore

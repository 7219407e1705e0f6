// What upgrade gating must hold to, told by a plain book of reports: nothing here asks the code under test.
//
// The book knows the newest configuration of the log and, from the committed entries in their order, which release each member reported
// last. From it follows who holds an entry type back, and which boundary has been crossed: once everybody had reported a release that
// adds types, going back to a release without them is unsupported for good, whether one of them was used or not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "raft/configuration.h"

namespace tests::gating {

// What a committed entry says about a member.
struct Said {
  enum class What { nothing, registers, removes, readmits };
  What what = What::nothing;
  std::string id;
  std::string build;   // registers; empty: none
  uint32_t types = 0;  // registers; 0: none
};

class Oracle {
 public:
  // A committed entry. True: the registration was taken.
  bool commit(const Said& said);
  // In force from the moment it is appended.
  void append(const raft::Configuration& configuration);

  // The first in the order of ids that may not apply `type`, when `leader` asks, whose own build applies types up to `own`; nothing: all do.
  std::optional<std::string> holder(uint32_t type, const std::string& leader, uint32_t own) const;
  // What the reason must say of a holder beside its id.
  std::string build_of(const std::string& id) const;
  bool has_record(const std::string& id) const { return records_.contains(id); }
  uint32_t types_of(const std::string& id) const;  // 0: no record
  const std::map<std::string, Said>& records() const { return records_; }
  bool is_tombstoned(const std::string& id) const { return tombstones_.contains(id); }

  // Notes what everybody has reported by now. `leader` as in holder().
  void look(const std::string& leader, uint32_t own);
  // The newest type that everybody had reported at some moment.
  uint32_t boundary() const { return boundary_; }

 private:
  std::map<std::string, Said> records_;
  std::set<std::string> tombstones_;
  std::vector<std::string> servers_;
  uint32_t boundary_ = 22;
};

}  // namespace tests::gating

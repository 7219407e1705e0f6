// What the topics of the cluster were after every log index: a plain replay of the applied entries, apart from the node's own
// state machine, with every version of every name kept.
//
// Entry types 1 to 3 and 23 to 25 (narad/entry-types.md): create refuses a name that exists, update keeps what a request must not change,
// delete refuses a name that does not exist; the later three refuse another incarnation than they were checked against, a create also a
// name that differs in letter case alone. Refused entries change nothing. What links and schemas make of an entry is told (follow(),
// note_*): the rules for those are the metastore's model tests' business.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/topic.h"
#include "sim/history.h"

namespace sim {

enum class ChangeKind { create, update, remove };

// One entry of the log, decoded.
struct Change {
  ChangeKind kind = ChangeKind::create;
  Topic topic;  // remove: only the name
  bool is_checked = false;                 // types 23 to 25
  std::optional<std::string> expected_id = {};  // update, remove of these types
  bool has_more = false;                   // a create that carries a schema or a link too: it may be refused on their account
};

// The fields of a record that clients see.
Topic model_topic(const engine::metastore::Topic& record);

enum class Verdict { done, already_exists, not_found, changed };

const char* to_string(Verdict verdict);

class TopicModel {
 public:
  // Indexes rise; those without a change need not be told.
  Verdict apply(Index index, const Change& change);
  // What apply() would say, and nothing changes.
  Verdict judge(const Change& change) const;
  // What an entry of another kind made of the name's topic; nothing: it is gone.
  void follow(Index index, const std::string& name, std::optional<Topic> topic);
  // An entry linked `child` to `parent`, or took the link away, and did nothing else.
  void note_link(Index index, const std::string& parent, const std::string& child, bool is_attach);
  // The name has these schemas from `index` on.
  void note_schemas(Index index, const std::string& name, Schemas schemas);

  // The topic as it is after `index`; nullptr when there is none.
  const Topic* at(const std::string& name, Index index) const;
  const Topic* now(const std::string& name) const { return at(name, ~Index{0}); }
  // A name equal to `name` but for the case of ASCII letters, itself included, that stands after `index`; "" when none does.
  std::string clash_at(const std::string& name, Index index) const;

  // Every index in [low, high] at which the name's topic may have changed, `low` itself first: between two of them it is as at
  // the first. At most all of them.
  std::vector<Index> moments(const std::string& name, Index low, Index high) const;
  // The same for any name at all.
  std::vector<Index> moments(Index low, Index high) const;

  // Up to `limit` topics after `index` in the order of their names, from the first one greater than `after`.
  std::vector<const Topic*> list(Index index, std::string_view after, size_t limit) const;
  size_t count_now() const;

  // The index at which the topic of this id was created, and the one at which `call` (see call_of_tag) had its effect.
  std::optional<Index> created_at(const std::string& id) const;
  std::optional<Index> effect_of(uint64_t call) const;
  // Every index in (low, high] at which a topic of this name was deleted.
  std::vector<Index> deletions(const std::string& name, Index low, Index high) const;
  // Every index at which an entry of attaching (else detaching) linked the two (else parted them).
  std::vector<Index> links(const std::string& parent, const std::string& child, bool is_attach) const;

  // The name's schemas as they are after `index`.
  Schemas schemas_at(const std::string& name, Index index) const;
  // As moments(), for its schemas.
  std::vector<Index> schema_moments(const std::string& name, Index low, Index high) const;

 private:
  struct Version {
    Index index = 0;
    std::optional<Topic> topic;
  };
  const Version* version_at(const std::string& name, Index index) const;
  void put(Index index, const std::string& name, std::optional<Topic> topic);

  std::map<std::string, std::vector<Version>> names_;
  std::map<std::string, std::vector<std::string>> folded_;  // lower-case -> names
  std::vector<Index> changes_;                              // in order
  std::map<std::string, Index> created_;
  std::map<uint64_t, Index> effects_;
  std::map<std::string, std::vector<Index>> links_;  // by kind, parent and child
  std::map<std::string, std::vector<std::pair<Index, Schemas>>> schemas_;
};

// ASCII letters in lower case, everything else as it is.
std::string fold_case(std::string_view name);

}  // namespace sim

// What the topics of the cluster were after every log index: a plain replay of the applied entries, apart from the node's own
// state machine, with every version of every name kept.
//
// Entry types 1 to 3 (narad/entry-types.md): create refuses a name that exists, update keeps what a request must not change,
// delete refuses a name that does not exist. Refused entries change nothing.
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
};

// The fields of a record that clients see.
Topic model_topic(const engine::metastore::Topic& record);

enum class Verdict { done, already_exists, not_found };

const char* to_string(Verdict verdict);

class TopicModel {
 public:
  // Indexes rise; those without a change need not be told.
  Verdict apply(Index index, const Change& change);
  // What an entry of another kind made of the name's topic; nothing: it is gone.
  void follow(Index index, const std::string& name, std::optional<Topic> topic);

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
};

// ASCII letters in lower case, everything else as it is.
std::string fold_case(std::string_view name);

}  // namespace sim

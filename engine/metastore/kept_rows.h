// Rows that are kept beside the records, in the same batch, so that no handler needs a scan: what a handler would have to look
// for is counted, listed or chained when it comes and goes.
//
//   topic_names/<folded name>        the names that differ in letter case only
//   schema_heads/<topic>             how many schema versions the name has (1, 2, ... without a gap) and their bytes
//   placed_partitions/<topic>        which partitions have an assignment row
//   owners/<user>, owned_topics/<topic>  the topics of an owner, as a chain: coming and going costs the same however many there are
//   counters/schema_bytes            the bytes of all schema versions in the cluster
//   counters/remotes                 remotes on record
//   counters/remote_children/<remote>           stubs that name a remote
//   counters/remote_targets/<n>/<remote>/<topic>  stubs with that remote and topic there; n: bytes of the remote's name
//
// A counter or list that comes to nothing has no row. All functions are content to find their work done, and to find a row
// missing: rows that cannot be read look absent, and their batch is then thrown away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/topic.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

// ---- Row keys of composed names --------------------------------------------------------------------------------------------

// "orders:3". The part behind the last ':' is the number, so no two pairs share a key.
std::string schema_key(std::string_view topic, int64_t version);
std::string assignment_key(std::string_view topic, int32_t partition);

// ---- Names -----------------------------------------------------------------------------------------------------------------

// The topics whose names fold like `name`, in byte order.
std::vector<std::string> names_like(Transaction& rows, std::string_view name);
void add_name(Transaction& rows, const std::string& name);
void drop_name(Transaction& rows, const std::string& name);
// The names in a topic_names row.
std::vector<std::string> decode_names(std::string_view bytes);

// ---- Schemas ---------------------------------------------------------------------------------------------------------------

struct SchemaHead {
  int64_t versions = 0;  // the latest version; 0: none
  uint64_t bytes = 0;    // of all of them

  friend bool operator==(const SchemaHead&, const SchemaHead&) = default;
};

std::string encode_schema_head(const SchemaHead& head);
std::optional<SchemaHead> decode_schema_head(std::string_view bytes);

SchemaHead schema_head(Transaction& rows, std::string_view topic);
// Empty when there is no such version.
std::string schema_at(Transaction& rows, std::string_view topic, int64_t version);
// `version`: the one after the latest; nothing happens when the name has it already.
void add_schema(Transaction& rows, std::string_view topic, int64_t version, std::string schema);
// False: there were none.
bool drop_schemas(Transaction& rows, std::string_view topic);
uint64_t cluster_schema_bytes(Transaction& rows);

// ---- Assignments -----------------------------------------------------------------------------------------------------------

std::vector<int32_t> placed_partitions(Transaction& rows, std::string_view topic);
void add_placed(Transaction& rows, std::string_view topic, int32_t partition);
void drop_placed(Transaction& rows, std::string_view topic, int32_t partition);
// All assignment rows of a name. False: there were none.
bool drop_assignments(Transaction& rows, std::string_view topic);
// The partitions in a placed_partitions row, in order; nullopt when it is no such row.
std::optional<std::vector<int32_t>> decode_placed(std::string_view bytes);

// ---- Owners ----------------------------------------------------------------------------------------------------------------

// The topics that name `owner`, the newest claim first. An empty owner is nobody: such topics are in no chain.
std::vector<std::string> owned_topics(Transaction& rows, std::string_view owner);
void join_owner(Transaction& rows, const std::string& owner, const std::string& topic);
void leave_owner(Transaction& rows, const std::string& owner, const std::string& topic);

// ---- Counters --------------------------------------------------------------------------------------------------------------

inline constexpr std::string_view kSchemaBytes = "schema_bytes";
inline constexpr std::string_view kRemotes = "remotes";
std::string remote_children_counter(std::string_view remote);
std::string remote_target_counter(std::string_view remote, std::string_view topic);

uint64_t counter(Transaction& rows, Bucket bucket, std::string_view name);
void set_counter(Transaction& rows, Bucket bucket, std::string_view name, uint64_t value);
inline uint64_t counter(Transaction& rows, std::string_view name) { return counter(rows, Bucket::counters, name); }
inline void set_counter(Transaction& rows, std::string_view name, uint64_t value) {
  set_counter(rows, Bucket::counters, name, value);
}
std::optional<uint64_t> decode_counter(std::string_view bytes);

// ---- Topics, with all of the above -----------------------------------------------------------------------------------------

std::optional<Topic> load_topic(Transaction& rows, std::string_view name);
void add_topic(Transaction& rows, const Topic& topic);
// The record under `before.name`, which is `after.name` too.
void replace_topic(Transaction& rows, const Topic& before, const Topic& after);
// The record with its schemas and assignments.
void drop_topic(Transaction& rows, const Topic& topic);
// Clears the owner of every topic that names it; their names, the newest claim first.
std::vector<std::string> release_owned_topics(Transaction& rows, const std::string& owner);

}  // namespace engine::metastore

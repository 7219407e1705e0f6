// Local reads of every record beside the topic, on top of a Reader: point reads and lists. What Reader promises holds for each call;
// two calls may see two moments. Errors are the Reader's, and `corrupt` for a row that cannot be decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/kept_rows.h"
#include "engine/metastore/reader.h"
#include "engine/metastore/records.h"
#include "io/result.h"
#include "io/time.h"

namespace engine::metastore {

// ---- Point reads: nullopt when there is no such record ---------------------------------------------------------------------

io::Result<std::optional<Assignment>> get_assignment(Reader& reader, std::string_view topic, int32_t partition,
                                                     io::Instant deadline = io::kNever);
io::Result<std::optional<Member>> get_member(Reader& reader, std::string_view id, io::Instant deadline = io::kNever);
io::Result<std::optional<Tombstone>> get_tombstone(Reader& reader, std::string_view member_id, io::Instant deadline = io::kNever);
io::Result<std::optional<User>> get_user(Reader& reader, std::string_view name, io::Instant deadline = io::kNever);
io::Result<std::optional<Remote>> get_remote(Reader& reader, std::string_view name, io::Instant deadline = io::kNever);
// The cluster's salt for credentials; nullopt before the first remote.
io::Result<std::optional<std::string>> get_salt(Reader& reader, io::Instant deadline = io::kNever);
// How many credentials a key has sealed.
io::Result<uint64_t> get_seals(Reader& reader, std::string_view fingerprint, io::Instant deadline = io::kNever);
// Latest version and bytes; all zero for a topic without schemas.
io::Result<SchemaHead> get_schema_head(Reader& reader, std::string_view topic, io::Instant deadline = io::kNever);
io::Result<std::optional<std::string>> get_schema(Reader& reader, std::string_view topic, int64_t version,
                                                  io::Instant deadline = io::kNever);
// Bytes of all schema versions in the cluster.
io::Result<uint64_t> get_cluster_schema_bytes(Reader& reader, io::Instant deadline = io::kNever);

// ---- Lists -----------------------------------------------------------------------------------------------------------------

// Of one topic, by partition. A topic has one row a partition, so what does not fit kListMax rows is cut off.
io::Result<std::vector<Assignment>> list_assignments(Reader& reader, std::string_view topic, io::Instant deadline = io::kNever);
// Of all topics from a row key on: up to `limit` (1 to kListMax) behind `after` ("" at first, then the last row's key), in the order
// of the keys.
struct AssignmentRow {
  std::string key;
  Assignment assignment;
};
io::Result<std::vector<AssignmentRow>> list_all_assignments(Reader& reader, std::string_view after, size_t limit,
                                                            io::Instant deadline = io::kNever);
// The rest by id or name. Read in pages, each of one moment.
io::Result<std::vector<Member>> list_members(Reader& reader, io::Instant deadline = io::kNever);
// Ids of the members that were removed.
io::Result<std::vector<std::string>> list_removed_members(Reader& reader, io::Instant deadline = io::kNever);
io::Result<std::vector<User>> list_users(Reader& reader, io::Instant deadline = io::kNever);
io::Result<std::vector<Remote>> list_remotes(Reader& reader, io::Instant deadline = io::kNever);
// All versions of a topic, from 1 on; the element at i is version i + 1.
io::Result<std::vector<std::string>> list_schemas(Reader& reader, std::string_view topic, io::Instant deadline = io::kNever);

}  // namespace engine::metastore

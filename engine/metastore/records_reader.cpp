#include "engine/metastore/records_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/metastore/apply_remotes.h"

namespace engine::metastore {

namespace {

template <typename Value>
using Decode = std::optional<Value> (*)(std::string_view);

io::Error corrupt(Bucket bucket, std::string_view key) {
  return io::fail(io::ErrorKind::corrupt, "the row " + row_key(bucket, key) + " cannot be decoded");
}

template <typename Value>
io::Result<std::optional<Value>> get(Reader& reader, Bucket bucket, std::string_view key, Decode<Value> decode,
                                     io::Instant deadline) {
  io::Result<std::optional<std::string>> bytes = reader.get_row(bucket, key, deadline);
  if (!bytes.ok()) {
    return bytes.error();
  }
  if (!*bytes) {
    return std::optional<Value>();
  }
  std::optional<Value> value = decode(**bytes);
  return value ? io::Result<std::optional<Value>>(std::move(value)) : io::Result<std::optional<Value>>(corrupt(bucket, key));
}

// Every row of a bucket that begins with `prefix`, page by page.
io::Result<std::vector<Reader::Row>> all_rows(Reader& reader, Bucket bucket, std::string_view prefix, io::Instant deadline) {
  std::vector<Reader::Row> rows;
  while (true) {
    const std::string after = rows.empty() ? std::string() : rows.back().key;
    io::Result<std::vector<Reader::Row>> page = reader.list_rows(bucket, prefix, after, kListMax, deadline);
    if (!page.ok()) {
      return page.error();
    }
    const bool is_last = page->size() < kListMax;
    std::move(page->begin(), page->end(), std::back_inserter(rows));
    if (is_last) {
      return rows;
    }
  }
}

template <typename Value>
io::Result<std::vector<Value>> list(Reader& reader, Bucket bucket, Decode<Value> decode, io::Instant deadline) {
  io::Result<std::vector<Reader::Row>> rows = all_rows(reader, bucket, "", deadline);
  if (!rows.ok()) {
    return rows.error();
  }
  std::vector<Value> values;
  for (const Reader::Row& row : *rows) {
    if (bucket == Bucket::remotes && row.key.starts_with('_')) {
      continue;
    }
    std::optional<Value> value = decode(row.value);
    if (!value) {
      return corrupt(bucket, row.key);
    }
    values.push_back(std::move(*value));
  }
  return values;
}

io::Result<uint64_t> count(Reader& reader, Bucket bucket, std::string_view key, io::Instant deadline) {
  io::Result<std::optional<uint64_t>> value = get<uint64_t>(reader, bucket, key, decode_counter, deadline);
  return value.ok() ? io::Result<uint64_t>(value->value_or(0)) : io::Result<uint64_t>(value.error());
}

}  // namespace

io::Result<std::optional<Assignment>> get_assignment(Reader& reader, std::string_view topic, int32_t partition, io::Instant deadline) {
  return get<Assignment>(reader, Bucket::assignments, assignment_key(topic, partition), decode_assignment, deadline);
}

io::Result<std::optional<Member>> get_member(Reader& reader, std::string_view id, io::Instant deadline) {
  return get<Member>(reader, Bucket::members, id, decode_member, deadline);
}

io::Result<std::optional<Tombstone>> get_tombstone(Reader& reader, std::string_view member_id, io::Instant deadline) {
  return get<Tombstone>(reader, Bucket::removed_members, member_id, decode_tombstone, deadline);
}

io::Result<std::optional<User>> get_user(Reader& reader, std::string_view name, io::Instant deadline) {
  return get<User>(reader, Bucket::users, name, decode_user, deadline);
}

io::Result<std::optional<Remote>> get_remote(Reader& reader, std::string_view name, io::Instant deadline) {
  // Rows that begin with '_' are no remotes.
  return name.starts_with('_') ? io::Result<std::optional<Remote>>(std::optional<Remote>())
                               : get<Remote>(reader, Bucket::remotes, name, decode_remote, deadline);
}

io::Result<std::optional<std::string>> get_salt(Reader& reader, io::Instant deadline) {
  return reader.get_row(Bucket::remotes, kSaltRow, deadline);
}

io::Result<uint64_t> get_seals(Reader& reader, std::string_view fingerprint, io::Instant deadline) {
  return count(reader, Bucket::remotes, seals_row(fingerprint), deadline);
}

io::Result<SchemaHead> get_schema_head(Reader& reader, std::string_view topic, io::Instant deadline) {
  io::Result<std::optional<SchemaHead>> head = get<SchemaHead>(reader, Bucket::schema_heads, topic, decode_schema_head, deadline);
  return head.ok() ? io::Result<SchemaHead>(head->value_or(SchemaHead())) : io::Result<SchemaHead>(head.error());
}

io::Result<std::optional<std::string>> get_schema(Reader& reader, std::string_view topic, int64_t version, io::Instant deadline) {
  return reader.get_row(Bucket::schemas, schema_key(topic, version), deadline);
}

io::Result<uint64_t> get_cluster_schema_bytes(Reader& reader, io::Instant deadline) {
  return count(reader, Bucket::counters, kSchemaBytes, deadline);
}

io::Result<std::vector<Assignment>> list_assignments(Reader& reader, std::string_view topic, io::Instant deadline) {
  io::Result<std::vector<Reader::Row>> rows =
      reader.list_rows(Bucket::assignments, std::string(topic) + ":", "", kListMax, deadline);
  if (!rows.ok()) {
    return rows.error();
  }
  std::vector<Assignment> found;
  for (const Reader::Row& row : *rows) {
    std::optional<Assignment> assignment = decode_assignment(row.value);
    if (!assignment) {
      return corrupt(Bucket::assignments, row.key);
    }
    // A name with a ':' of its own may begin alike.
    if (assignment->topic == topic) {
      found.push_back(std::move(*assignment));
    }
  }
  std::sort(found.begin(), found.end(), [](const Assignment& a, const Assignment& b) { return a.partition < b.partition; });
  return found;
}

io::Result<std::vector<AssignmentRow>> list_all_assignments(Reader& reader, std::string_view after, size_t limit,
                                                            io::Instant deadline) {
  io::Result<std::vector<Reader::Row>> rows = reader.list_rows(Bucket::assignments, "", after, limit, deadline);
  if (!rows.ok()) {
    return rows.error();
  }
  std::vector<AssignmentRow> found;
  for (Reader::Row& row : *rows) {
    std::optional<Assignment> assignment = decode_assignment(row.value);
    if (!assignment) {
      return corrupt(Bucket::assignments, row.key);
    }
    found.push_back({std::move(row.key), std::move(*assignment)});
  }
  return found;
}

io::Result<std::vector<Member>> list_members(Reader& reader, io::Instant deadline) {
  return list<Member>(reader, Bucket::members, decode_member, deadline);
}

io::Result<std::vector<std::string>> list_removed_members(Reader& reader, io::Instant deadline) {
  io::Result<std::vector<Reader::Row>> rows = all_rows(reader, Bucket::removed_members, "", deadline);
  if (!rows.ok()) {
    return rows.error();
  }
  std::vector<std::string> ids;
  for (Reader::Row& row : *rows) {
    ids.push_back(std::move(row.key));
  }
  return ids;
}

io::Result<std::vector<User>> list_users(Reader& reader, io::Instant deadline) {
  return list<User>(reader, Bucket::users, decode_user, deadline);
}

io::Result<std::vector<Remote>> list_remotes(Reader& reader, io::Instant deadline) {
  return list<Remote>(reader, Bucket::remotes, decode_remote, deadline);
}

io::Result<std::vector<std::string>> list_schemas(Reader& reader, std::string_view topic, io::Instant deadline) {
  // At most 1,000 of them: one page, so all of one moment.
  const std::string prefix = std::string(topic) + ":";
  io::Result<std::vector<Reader::Row>> rows = reader.list_rows(Bucket::schemas, prefix, "", kListMax, deadline);
  if (!rows.ok()) {
    return rows.error();
  }
  std::map<int64_t, std::string> by_version;
  for (Reader::Row& row : *rows) {
    const std::string number = row.key.substr(prefix.size());
    if (number.find(':') == std::string::npos) {
      by_version.emplace(std::stoll(number), std::move(row.value));
    }
  }
  std::vector<std::string> versions;
  for (auto& [version, text] : by_version) {
    versions.push_back(std::move(text));
  }
  return versions;
}

}  // namespace engine::metastore

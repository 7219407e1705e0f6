#include "engine/offline/dump.h"

#include <memory>
#include <optional>

#include "engine/metastore/active_file.h"
#include "engine/metastore/apply.h"
#include "engine/metastore/frozen_database.h"
#include "engine/metastore/fsm_meta.h"
#include "engine/metastore/kept_rows.h"
#include "engine/metastore/records.h"
#include "engine/metastore/topic.h"
#include "engine/metastore/transaction.h"
#include "engine/offline/directory.h"
#include "engine/topics/json.h"
#include "engine/topics/topic_json.h"

namespace engine::offline {

namespace {

using json::Writer;
using metastore::Bucket;
using metastore::FrozenDatabase;

constexpr size_t kRowsAtOnce = 1000;

std::string hexadecimal(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string hexadecimal(uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(number >> shift);
  }
  return hexadecimal(bytes);
}

int64_t length(std::string_view bytes) { return static_cast<int64_t>(bytes.size()); }

// ---- Values: each writes one JSON value, or returns false and writes nothing -------------------------------------------------

bool write_topic(Writer& out, std::string_view bytes) {
  const std::optional<metastore::Topic> topic = metastore::decode_topic(bytes);
  if (topic) {
    out.raw(topics::topic_json(*topic, false));
  }
  return topic.has_value();
}

bool write_schema(Writer& out, std::string_view bytes) {
  out.string(bytes);
  return true;
}

bool write_assignment(Writer& out, std::string_view bytes) {
  const std::optional<metastore::Assignment> row = metastore::decode_assignment(bytes);
  if (row) {
    out.begin_object().key("topic").string(row->topic).key("partition").integer(row->partition);
    out.key("owner_id").string(row->owner_id).key("target_id").string(row->target_id).end_object();
  }
  return row.has_value();
}

bool write_member(Writer& out, std::string_view bytes) {
  const std::optional<metastore::Member> row = metastore::decode_member(bytes);
  if (row) {
    out.begin_object().key("id").string(row->id).key("addr").string(row->addr).key("cluster_addr").string(row->cluster_addr);
    out.key("status").string(to_string(row->status)).key("last_heartbeat").integer(row->last_heartbeat);
    out.key("draining").boolean(row->draining).key("build").string(row->build);
    out.key("entry_types").integer(row->entry_types).end_object();
  }
  return row.has_value();
}

bool write_user(Writer& out, std::string_view bytes) {
  const std::optional<metastore::User> row = metastore::decode_user(bytes);
  if (row) {
    out.begin_object().key("username").string(row->username);
    out.key("password_hash_bytes").integer(length(row->password_hash)).key("grants").begin_array();
    for (const metastore::Grant& grant : row->grants) {
      out.begin_object().key("action").string(grant.action).key("patterns").begin_array();
      for (const std::string& pattern : grant.patterns) {
        out.string(pattern);
      }
      out.end_array().end_object();
    }
    out.end_array().key("root").boolean(row->root).key("created_at_ms").integer(row->created_at_ms);
    out.key("updated_at_ms").integer(row->updated_at_ms).end_object();
  }
  return row.has_value();
}

bool write_tombstone(Writer& out, std::string_view bytes) {
  const std::optional<metastore::Tombstone> row = metastore::decode_tombstone(bytes);
  if (row) {
    out.begin_object().key("removed_at").integer(row->removed_at).end_object();
  }
  return row.has_value();
}

bool write_counter(Writer& out, std::string_view bytes) {
  const std::optional<uint64_t> value = metastore::decode_counter(bytes);
  if (value) {
    out.integer(static_cast<int64_t>(*value));
  }
  return value.has_value();
}

bool write_remote(Writer& out, std::string_view bytes) {
  const std::optional<metastore::Remote> row = metastore::decode_remote(bytes);
  if (row) {
    const metastore::RemoteLimits& limits = row->limits;
    out.begin_object().key("name").string(row->name).key("url").string(row->url).key("username").string(row->username);
    out.key("ca_pem").string(row->ca_pem).key("limits").begin_object();
    out.key("max_in_flight").integer(limits.max_in_flight).key("request_timeout_ms").integer(limits.request_timeout_ms);
    out.key("idle_conn_timeout_ms").integer(limits.idle_conn_timeout_ms).key("conn_max_age_ms").integer(limits.conn_max_age_ms);
    out.key("check_interval_ms").integer(limits.check_interval_ms).key("compression").string(limits.compression).end_object();
    out.key("credential_bytes").integer(length(row->credential)).key("fingerprint").string(row->fingerprint);
    out.key("credential_version").integer(static_cast<int64_t>(row->credential_version));
    out.key("revision").integer(static_cast<int64_t>(row->revision)).key("created_by").string(row->created_by);
    out.key("created_at_ms").integer(row->created_at_ms).key("updated_by").string(row->updated_by);
    out.key("updated_at_ms").integer(row->updated_at_ms).end_object();
  }
  return row.has_value();
}

// Beside the remotes stand the salt, a secret, and the counters of seals.
bool write_remotes_row(Writer& out, std::string_view key, std::string_view bytes) {
  if (key.starts_with("_seals/")) {
    return write_counter(out, bytes);
  }
  if (key.starts_with("_")) {
    out.begin_object().key("secret_bytes").integer(length(bytes)).end_object();
    return true;
  }
  return write_remote(out, bytes);
}

bool write_schema_head(Writer& out, std::string_view bytes) {
  const std::optional<metastore::SchemaHead> head = metastore::decode_schema_head(bytes);
  if (head) {
    out.begin_object().key("versions").integer(head->versions).key("bytes").integer(static_cast<int64_t>(head->bytes)).end_object();
  }
  return head.has_value();
}

bool write_placed(Writer& out, std::string_view bytes) {
  const std::optional<std::vector<int32_t>> placed = metastore::decode_placed(bytes);
  if (placed) {
    out.begin_array();
    for (const int32_t partition : *placed) {
      out.integer(partition);
    }
    out.end_array();
  }
  return placed.has_value();
}

// Lists and chains of topics that are kept for handlers: they say nothing that the topics do not.
bool write_as_bytes(Writer& out, std::string_view bytes) {
  out.begin_object().key("hex").string(hexadecimal(bytes)).end_object();
  return true;
}

bool write_state(Writer& out, std::string_view key, std::string_view bytes) {
  if (key != "state") {
    return write_as_bytes(out, bytes);
  }
  const std::optional<metastore::FsmMeta> meta = metastore::decode_meta(bytes);
  if (meta) {
    const metastore::FsmState* state = &meta->state;
    out.begin_object().key("applied_index").integer(static_cast<int64_t>(state->applied_index));
    out.key("applied_term").integer(static_cast<int64_t>(state->applied_term));
    out.key("newest_type").integer(state->newest_type).key("digest").string(hexadecimal(state->digest)).end_object();
  }
  return meta.has_value();
}

bool write_value(Writer& out, Bucket bucket, std::string_view key, std::string_view bytes) {
  switch (bucket) {
    case Bucket::topics: return write_topic(out, bytes);
    case Bucket::schemas: return write_schema(out, bytes);
    case Bucket::assignments: return write_assignment(out, bytes);
    case Bucket::members: return write_member(out, bytes);
    case Bucket::users: return write_user(out, bytes);
    case Bucket::removed_members: return write_tombstone(out, bytes);
    case Bucket::remotes: return write_remotes_row(out, key, bytes);
    case Bucket::schema_heads: return write_schema_head(out, bytes);
    case Bucket::placed_partitions: return write_placed(out, bytes);
    case Bucket::topic_names:
    case Bucket::owners:
    case Bucket::owned_topics: return write_as_bytes(out, bytes);
    case Bucket::counters: return write_counter(out, bytes);
    case Bucket::fsm_meta: return write_state(out, key, bytes);
  }
  return false;
}

std::optional<Bucket> bucket_of(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Bucket::fsm_meta); ++i) {
    if (name_of(static_cast<Bucket>(i)) == name) {
      return static_cast<Bucket>(i);
    }
  }
  return std::nullopt;
}

// What a lane call brings back.
struct Opened {
  io::Status status;
  std::shared_ptr<FrozenDatabase> database;
};
struct Page {
  io::Status status;
  FrozenDatabase::Rows rows;
};

Opened open_database(io::KvHost& kv, const std::string& directory) {
  io::Result<std::unique_ptr<FrozenDatabase>> database = FrozenDatabase::open(kv, directory);
  return database.ok() ? Opened{{}, std::move(*database)} : Opened{database.error(), nullptr};
}

Page read_page(const FrozenDatabase& database, const std::string& after) {
  io::Result<FrozenDatabase::Rows> rows = database.rows_after(after, kRowsAtOnce);
  return rows.ok() ? Page{{}, std::move(*rows)} : Page{rows.error(), {}};
}

struct Tally {
  uint64_t rows = 0;
  uint64_t unreadable = 0;
  uint64_t digest = 0;
  std::optional<metastore::FsmState> state;

  void add(const std::string& key, const std::string& value, bool is_readable) {
    ++rows;
    unreadable += is_readable ? 0 : 1;
    if (key == metastore::meta_row_key()) {
      const std::optional<metastore::FsmMeta> meta = metastore::decode_meta(value);
      state = meta ? std::optional(meta->state) : std::nullopt;
    }
    if (!key.starts_with("fsm_meta/")) {
      digest += metastore::row_hash(key, value);
    }
  }
};

std::string end_line(const Tally& tally) {
  Writer out;
  out.begin_object().key("rows").integer(static_cast<int64_t>(tally.rows)).key("digest").string(hexadecimal(tally.digest)).end_object();
  return out.take();
}

}  // namespace

std::string row_line(std::string_view row_key, std::string_view value, bool& is_readable) {
  const size_t slash = std::min(row_key.find('/'), row_key.size());
  const std::string_view bucket_name = row_key.substr(0, slash);
  const std::string_view key = row_key.substr(std::min(slash + 1, row_key.size()));
  const std::optional<Bucket> bucket = bucket_of(bucket_name);
  Writer body;
  is_readable = bucket && write_value(body, *bucket, key, value);
  Writer out;
  out.begin_object().key("bucket").string(bucket_name).key("key").string(key);
  if (is_readable) {
    out.key("value").raw(body.text());
  } else {
    out.key("undecodable").boolean(true).key("hex").string(hexadecimal(value));
  }
  out.end_object();
  return out.take();
}

io::Status dump(io::Env& env, const std::function<void(std::string_view)>& line) {
  const io::Result<Directory> held = open_directory(env);
  if (!held.ok()) {
    return held.error();
  }
  const io::Result<std::optional<std::string>> directory = metastore::find_active(env.disk);
  if (!directory.ok() || !*directory) {
    return directory.ok() ? io::Status() : io::Status(directory.error());
  }
  io::Result<Opened> opened = env.store_lane.run([&kv = env.kv, path = **directory] { return open_database(kv, path); });
  if (!opened.ok() || !opened->status.ok()) {
    return opened.ok() ? opened->status : io::Status(opened.error());
  }
  const std::shared_ptr<const FrozenDatabase> database = std::move(opened->database);
  line("{\"database\":\"" + **directory + "\"}");
  Tally tally;
  std::string after;
  for (;;) {
    const io::Result<Page> page = env.store_lane.run([database, after] { return read_page(*database, after); });
    if (!page.ok() || !page->status.ok()) {
      return page.ok() ? page->status : io::Status(page.error());
    }
    for (const auto& [key, value] : page->rows) {
      bool is_readable = true;
      line(row_line(key, value, is_readable));
      tally.add(key, value, is_readable);
    }
    if (page->rows.empty()) {
      break;
    }
    after = page->rows.back().first;
  }
  line(end_line(tally));
  if (tally.unreadable > 0) {
    return io::fail(io::ErrorKind::corrupt, std::to_string(tally.unreadable) + " rows cannot be read by this release");
  }
  if (tally.state && tally.digest != tally.state->digest) {
    return io::fail(io::ErrorKind::corrupt, **directory + ": the rows do not add up to the digest that stands beside them");
  }
  return {};
}

}  // namespace engine::offline

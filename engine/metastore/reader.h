// Local reads of the metastore: what this node's replica holds, as of the last batch of entries that it has applied.
//
// A read never goes back: it sees at least what any earlier read of this process saw. It says nothing about how far the replica
// is behind the leader; who needs that asks raft.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/topic.h"
#include "engine/metastore/transaction.h"
#include "io/result.h"
#include "io/time.h"

namespace engine::metastore {

class Reader {
 public:
  virtual ~Reader() = default;

  // The topic's record; null when there is none. May wait for the store lane. Errors: `timed_out`; `busy` while the database is
  // closed for recovery; `io` and `corrupt` when it cannot be read. Throws Cancelled.
  virtual io::Result<std::shared_ptr<const Topic>> get_topic(std::string_view name, io::Instant deadline = io::kNever) = 0;

  // Up to `limit` topics (1 to kListMax) whose names are greater than `after` by bytes, in that order. All of one moment.
  virtual io::Result<std::vector<std::shared_ptr<const Topic>>> list_topics(std::string_view after, size_t limit,
                                                                            io::Instant deadline = io::kNever) = 0;

  // The names of the topics that equal `name` when letter case is ignored, in byte order.
  virtual io::Result<std::vector<std::string>> names_like(std::string_view name, io::Instant deadline = io::kNever) = 0;

  // Any other row by its key within the bucket; nullopt when there is none. What it holds: records_reader.h.
  virtual io::Result<std::optional<std::string>> get_row(Bucket bucket, std::string_view key, io::Instant deadline = io::kNever) = 0;

  // Up to `limit` rows (1 to kListMax) of a bucket whose keys begin with `prefix` and are greater than `after` by bytes, in that
  // order. All of one moment.
  struct Row {
    std::string key;  // within the bucket
    std::string value;
  };
  virtual io::Result<std::vector<Row>> list_rows(Bucket bucket, std::string_view prefix, std::string_view after, size_t limit,
                                                 io::Instant deadline = io::kNever) = 0;
};

inline constexpr size_t kListMax = 1001;

}  // namespace engine::metastore

// What the controller plans by: members, topics and assignment rows, as this node's replica holds them.
//
// Read page by page, so it may be of several moments: a plan made of it is checked again, row by row, when it is carried out. Everything
// in it is at least as new as the call. Memory: about 200 bytes a topic and 100 a row, for as long as a pass takes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/rebalance_plan.h"
#include "engine/metastore/reader.h"
#include "engine/metastore/records.h"
#include "io/result.h"
#include "io/time.h"

namespace engine::cluster {

struct TopicFacts {
  std::string id;
  int32_t partitions = 0;
  std::string parent;  // empty: none
};

struct Picture {
  std::vector<metastore::Member> members;                // by id
  std::map<std::string, TopicFacts, std::less<>> topics;  // by name
  std::vector<metastore::Assignment> rows;

  const metastore::Member* member(std::string_view id) const;
  // Whether a row is of a partition that exists.
  bool is_live(const metastore::Assignment& row) const;
};

// Errors are the Reader's. Waits; throws Cancelled.
io::Result<Picture> read_picture(metastore::Reader& reader, io::Instant deadline);

// Rows that belong to no partition: the topic is gone, or has fewer.
std::vector<metastore::Assignment> orphans_of(const Picture& picture);
// Topics that have partitions without an owner, parents (and topics without children) before children, each in order of name.
std::vector<std::string> unplaced_topics(const Picture& picture);
// The rows that are live, as the planner of moves takes them.
std::vector<PlacedPartition> placed_partitions(const Picture& picture);

}  // namespace engine::cluster

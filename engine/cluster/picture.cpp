#include "engine/cluster/picture.h"

#include <algorithm>
#include <memory>

#include "engine/metastore/records_reader.h"

namespace engine::cluster {

using metastore::Assignment;
using metastore::Member;

const Member* Picture::member(std::string_view id) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.id == id; });
  return found == members.end() ? nullptr : &*found;
}

bool Picture::is_live(const Assignment& row) const {
  const auto topic = topics.find(row.topic);
  return topic != topics.end() && row.partition >= 0 && row.partition < topic->second.partitions;
}

io::Result<Picture> read_picture(metastore::Reader& reader, io::Instant deadline) {
  Picture picture;
  io::Result<std::vector<Member>> members = metastore::list_members(reader, deadline);
  if (!members.ok()) {
    return members.error();
  }
  picture.members = std::move(*members);
  // Rows before topics: a topic that is created while this reads shows as unplaced at worst, never its rows as orphans.
  for (std::string after;;) {
    io::Result<std::vector<metastore::AssignmentRow>> page = metastore::list_all_assignments(reader, after, metastore::kListMax, deadline);
    if (!page.ok()) {
      return page.error();
    }
    for (metastore::AssignmentRow& row : *page) {
      picture.rows.push_back(std::move(row.assignment));
    }
    if (page->size() < metastore::kListMax) {
      break;
    }
    after = std::move(page->back().key);
  }
  for (std::string after;;) {
    io::Result<std::vector<std::shared_ptr<const metastore::Topic>>> page = reader.list_topics(after, metastore::kListMax, deadline);
    if (!page.ok()) {
      return page.error();
    }
    for (const auto& topic : *page) {
      picture.topics.emplace(topic->name, TopicFacts{topic->id, topic->partitions, topic->parent});
    }
    if (page->size() < metastore::kListMax) {
      return picture;
    }
    after = page->back()->name;
  }
}

std::vector<Assignment> orphans_of(const Picture& picture) {
  std::vector<Assignment> orphans;
  std::copy_if(picture.rows.begin(), picture.rows.end(), std::back_inserter(orphans),
               [&](const Assignment& row) { return !picture.is_live(row); });
  return orphans;
}

std::vector<std::string> unplaced_topics(const Picture& picture) {
  std::map<std::string_view, int32_t> placed;
  for (const Assignment& row : picture.rows) {
    placed[row.topic] += picture.is_live(row) ? 1 : 0;
  }
  std::vector<std::string> names;
  for (const bool are_children : {false, true}) {
    for (const auto& [name, topic] : picture.topics) {
      const auto rows = placed.find(name);
      const int32_t count = rows == placed.end() ? 0 : rows->second;
      if (topic.parent.empty() != are_children && count < topic.partitions) {
        names.push_back(name);
      }
    }
  }
  return names;
}

std::vector<PlacedPartition> placed_partitions(const Picture& picture) {
  std::vector<PlacedPartition> placed;
  placed.reserve(picture.rows.size());
  for (const Assignment& row : picture.rows) {
    if (picture.is_live(row)) {
      placed.push_back({row, picture.topics.find(row.topic)->second.parent});
    }
  }
  return placed;
}

}  // namespace engine::cluster

// What any node answers from its own replica.
#include <algorithm>
#include <charconv>
#include <map>

#include "engine/metastore/records_reader.h"
#include "engine/topics/manager.h"
#include "io/probe.h"

namespace engine::topics {

using metastore::Assignment;
using metastore::Member;
using metastore::MemberStatus;
using metastore::Topic;

namespace {

Reply topic_reply(const Topic& topic) { return Reply{200, topic_json(topic, true) + "\n"}; }

// Nullopt for text that is no partition of the topic.
std::optional<int32_t> partition_of(const Topic& topic, const std::string& text) {
  int32_t index = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, index);
  return error == std::errc() && stop == end && index >= 0 && index < topic.partitions ? std::optional(index) : std::nullopt;
}

}  // namespace

io::Result<std::vector<PartitionRow>> Manager::partition_rows(const Topic& topic, std::optional<int32_t> only, io::Instant deadline) {
  io::Result<std::vector<Assignment>> owners = ownership_ != nullptr ? ownership_->of_topic(topic.name, deadline)
                                                                    : metastore::list_assignments(reader_, topic.name, deadline);
  // Before it has caught up this replica tells nobody who owns what.
  const bool is_untold = !owners.ok() && owners.error().kind == io::ErrorKind::busy;
  if (!owners.ok() && !is_untold) {
    return owners.error();
  }
  std::vector<PartitionRow> rows;
  for (int32_t index = only.value_or(0); index < (only ? *only + 1 : topic.partitions); ++index) {
    rows.push_back(PartitionRow{index, "", is_untold ? "unknown" : "unassigned"});
  }
  if (is_untold) {
    return rows;
  }
  std::map<std::string, std::string> liveness;  // of each owner
  for (const Assignment& owner : *owners) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const PartitionRow& each) { return each.index == owner.partition; });
    if (row == rows.end()) {
      continue;  // beyond the topic's partitions, or not asked for
    }
    const auto [known, is_new] = liveness.try_emplace(owner.owner_id);
    if (is_new) {
      const io::Result<std::optional<Member>> member = metastore::get_member(reader_, owner.owner_id, deadline);
      if (!member.ok()) {
        return member.error();
      }
      known->second = !*member ? "unknown" : (*member)->status == MemberStatus::dead ? "dead" : "";
    }
    row->owner = owner.owner_id;
    row->liveness = known->second;
  }
  return rows;
}

Reply Manager::get(std::string_view name, const std::optional<std::string>& partition, io::Instant deadline) {
  const io::Result<TopicPtr> topic = reader_.get_topic(name, deadline);
  if (!topic.ok()) {
    return unreadable(topic.error());
  }
  if (*topic == nullptr) {
    return topic_not_found();
  }
  std::optional<int32_t> only;
  if (partition && !partition->empty()) {
    only = partition_of(**topic, *partition);
    if (!only) {
      return invalid_argument("partition must be an integer from 0 to " + std::to_string((*topic)->partitions - 1));
    }
  }
  const io::Result<metastore::SchemaHead> head = metastore::get_schema_head(reader_, name, deadline);
  if (!head.ok()) {
    return unreadable(head.error());
  }
  io::Result<std::optional<std::string>> schema = std::optional<std::string>();
  if (head->versions > 0) {
    schema = metastore::get_schema(reader_, name, head->versions, deadline);
  }
  if (!schema.ok()) {
    return unreadable(schema.error());
  }
  const io::Result<std::vector<PartitionRow>> rows = partition_rows(**topic, only, deadline);
  if (!rows.ok()) {
    return unreadable(rows.error());
  }
  return Reply{200, topic_detail_json(**topic, head->versions, schema->value_or(""), *rows) + "\n"};
}

Reply Manager::get_record(std::string_view name, io::Instant deadline) {
  const io::Result<TopicPtr> topic = reader_.get_topic(name, deadline);
  if (!topic.ok()) {
    return unreadable(topic.error());
  }
  return *topic == nullptr ? topic_not_found() : topic_reply(**topic);
}

Reply Manager::list(const std::optional<std::string>& limit, const std::optional<std::string>& page_token, io::Instant deadline) {
  Checked<ListRequest> request = parse_list(limit, page_token);
  if (Reply* wrong = std::get_if<Reply>(&request)) {
    return *wrong;
  }
  const ListRequest& wanted = std::get<ListRequest>(request);
  // One more than asked for tells whether there is a next page.
  const io::Result<std::vector<TopicPtr>> found = reader_.list_topics(wanted.after, wanted.limit + 1, deadline);
  if (!found.ok()) {
    return unreadable(found.error());
  }
  const bool is_last = found->size() <= wanted.limit;
  std::vector<const Topic*> page;
  for (size_t i = 0; i < std::min(found->size(), wanted.limit); ++i) {
    page.push_back((*found)[i].get());
  }
  return Reply{200, topic_list_json(page, is_last ? std::string_view() : std::string_view(page.back()->name)) + "\n"};
}

Reply Manager::schemas(std::string_view name, io::Instant deadline) {
  const io::Result<TopicPtr> topic = reader_.get_topic(name, deadline);
  if (!topic.ok()) {
    return unreadable(topic.error());
  }
  if (*topic == nullptr) {
    return topic_not_found();
  }
  const io::Result<std::vector<std::string>> versions = metastore::list_schemas(reader_, name, deadline);
  return versions.ok() ? Reply{200, schemas_json(name, *versions) + "\n"} : unreadable(versions.error());
}

Reply Manager::children(std::string_view name, io::Instant deadline) {
  const io::Result<TopicPtr> parent = reader_.get_topic(name, deadline);
  if (!parent.ok()) {
    return unreadable(parent.error());
  }
  if (*parent == nullptr) {
    return topic_not_found();
  }
  std::vector<Topic> children;
  for (const std::string& child : (*parent)->children) {
    const io::Result<TopicPtr> found = reader_.get_topic(child, deadline);
    if (!found.ok()) {
      return unreadable(found.error());
    }
    // One that has left since the parent was read is no child.
    if (*found != nullptr && (*found)->parent == name) {
      children.push_back(**found);
    } else {
      SOMETIMES("topics: a child leaves while the children are listed");
    }
  }
  return Reply{200, children_json(**parent, children) + "\n"};
}

}  // namespace engine::topics

// The topic object of the API. Source: narad/http-api.md section 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/topic.h"

namespace engine::topics {

using metastore::Topic;

// Fields in the order of the documents, those marked optional left out when empty. `shows_standalone`: a topic outside fan-out
// reads role "standalone"; without it (the answer to a create) role is left out.
std::string topic_json(const Topic& topic, bool shows_standalone);

// The inverse, for nodes and clients that read an answer; nullopt for anything but a topic object. Unknown fields are ignored,
// so that the detailed form is read too.
std::optional<Topic> parse_topic_json(std::string_view text);

// One row of a topic's statistics. Nothing can be produced in this release, so every partition is empty, and all that there is to tell
// is who owns it.
struct PartitionRow {
  int32_t index = 0;
  std::string owner;     // id of the member; empty: not placed
  std::string liveness;  // why the owner cannot be asked: "dead", "unknown", "unassigned"; empty: it can
};

// What GET of one topic shows: the record, its latest schema (`schema_version` 0 and `schema` empty: none), and the rows given.
std::string topic_detail_json(const Topic& topic, int64_t schema_version, std::string_view schema, const std::vector<PartitionRow>& rows);

// {"topic":...,"version":n,"versions":[{"version":1,"schema":...},...]}: the versions from 1 on.
std::string schemas_json(std::string_view topic, const std::vector<std::string>& versions);

// {"parent":...,"parent_id":...,"children":[{"name":...,"delay_ms":n,"lag_messages":0,"lag_complete":true},...]}: nothing can be produced
// in this release, so no child lags.
std::string children_json(const Topic& parent, const std::vector<Topic>& children);

struct TopicPage {
  std::vector<Topic> topics;
  std::string next_page_token;
};

// {"topics":[...],"next_page_token":"..."}
std::string topic_list_json(const std::vector<const Topic*>& topics, std::string_view next_page_token);
std::optional<TopicPage> parse_topic_list_json(std::string_view text);

}  // namespace engine::topics

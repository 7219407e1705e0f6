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

// What GET of one topic shows: the record, its schema version, and one row of statistics a partition (only `partition` when it
// is given, which must be one of the topic's). Nothing places partitions yet, so every row says that its owner is unassigned.
std::string topic_detail_json(const Topic& topic, std::optional<int32_t> partition);

struct TopicPage {
  std::vector<Topic> topics;
  std::string next_page_token;
};

// {"topics":[...],"next_page_token":"..."}
std::string topic_list_json(const std::vector<const Topic*>& topics, std::string_view next_page_token);
std::optional<TopicPage> parse_topic_list_json(std::string_view text);

}  // namespace engine::topics

// The leader's own look at the rights of who asked at another node (narad/node-protocol.md section 9): the node that took the request has
// judged by its replica, which may be older than the topic or the grant.
//
// An actor is a user's name as the request carries it. Without one nothing is checked: security is off, or the sender is of a release
// that judged alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/reader.h"
#include "engine/metastore/topic.h"
#include "engine/topics/reply.h"

namespace engine::topics {

using Actor = std::optional<std::string>;

// The 403 or 503 to give, or nullopt: `actor` may create a topic of this name (a grant "create" that fits it, or admin).
std::optional<Reply> why_not_create(metastore::Reader& reader, const Actor& actor, std::string_view name, io::Instant deadline);
// `actor` owns every one of `topics`, or is an admin.
std::optional<Reply> why_not_own_all(metastore::Reader& reader, const Actor& actor, const std::vector<const metastore::Topic*>& topics,
                                     io::Instant deadline);
// `actor` owns one of `topics`, or is an admin.
std::optional<Reply> why_not_own_any(metastore::Reader& reader, const Actor& actor, const std::vector<const metastore::Topic*>& topics,
                                     io::Instant deadline);

}  // namespace engine::topics

#include "engine/topics/rights.h"

#include <algorithm>

#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::topics {

namespace {

using metastore::Grant;
using metastore::Topic;
using metastore::User;

bool is_admin(const User& user) {
  return user.root || std::any_of(user.grants.begin(), user.grants.end(), [](const Grant& grant) { return grant.action == "admin"; });
}

bool fits(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : pattern == name;
}

bool may_create(const User& user, std::string_view name) {
  return is_admin(user) || std::any_of(user.grants.begin(), user.grants.end(), [&](const Grant& grant) {
           return grant.action == "create" && std::any_of(grant.patterns.begin(), grant.patterns.end(),
                                                          [&](const std::string& pattern) { return fits(pattern, name); });
         });
}

bool is_nobody(const Actor& actor) { return !actor || actor->empty(); }

Reply forbidden(std::string_view what) {
  SOMETIMES("topics: the leader refuses what the asker may not do");
  return error_reply(403, "forbidden: " + std::string(what));
}

constexpr std::string_view kNotOwner = "only the topic owner or an admin may modify this topic";

// Of an actor whose ownership does not suffice.
std::optional<Reply> why_no_admin(metastore::Reader& reader, const Actor& actor, io::Instant deadline) {
  const io::Result<std::optional<User>> user = metastore::get_user(reader, *actor, deadline);
  if (!user.ok()) {
    return unavailable_reply(user.error().to_text());
  }
  return *user && is_admin(**user) ? std::nullopt : std::optional(forbidden(kNotOwner));
}

}  // namespace

std::optional<Reply> why_not_create(metastore::Reader& reader, const Actor& actor, std::string_view name, io::Instant deadline) {
  if (is_nobody(actor)) {
    return std::nullopt;
  }
  const io::Result<std::optional<User>> user = metastore::get_user(reader, *actor, deadline);
  if (!user.ok()) {
    return unavailable_reply(user.error().to_text());
  }
  return *user && may_create(**user, name) ? std::nullopt : std::optional(forbidden("no grant on this topic"));
}

std::optional<Reply> why_not_own_all(metastore::Reader& reader, const Actor& actor, const std::vector<const Topic*>& topics,
                                     io::Instant deadline) {
  const auto is_own = [&](const Topic* topic) { return topic->owner == *actor; };
  if (is_nobody(actor) || std::all_of(topics.begin(), topics.end(), is_own)) {
    return std::nullopt;
  }
  return why_no_admin(reader, actor, deadline);
}

std::optional<Reply> why_not_own_any(metastore::Reader& reader, const Actor& actor, const std::vector<const Topic*>& topics,
                                     io::Instant deadline) {
  const auto is_own = [&](const Topic* topic) { return topic->owner == *actor; };
  if (is_nobody(actor) || std::any_of(topics.begin(), topics.end(), is_own)) {
    return std::nullopt;
  }
  return why_no_admin(reader, actor, deadline);
}

}  // namespace engine::topics

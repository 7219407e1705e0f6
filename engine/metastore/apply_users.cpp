#include "engine/metastore/apply_users.h"

#include <optional>
#include <string>

#include "engine/metastore/kept_rows.h"
#include "engine/metastore/records.h"
#include "io/check.h"
#include "io/defence.h"

namespace engine::metastore {

namespace {

std::optional<User> load(Transaction& rows, const std::string& name) {
  std::optional<std::string> bytes = rows.get(Bucket::users, name);
  if (!bytes) {
    return std::nullopt;
  }
  std::optional<User> user = decode_user(*bytes);
  NARAD_CHECK(user.has_value(), "a user row that is no record");
  return user;
}

void store(Transaction& rows, const User& user, Effects& effects) {
  rows.put(Bucket::users, user.username, encode_user(user));
  effects.moved(Domain::users);
}

Answer no_user(const std::string& name) { return refuse(Code::not_found, "user " + name); }

Answer create(Transaction& rows, User user, bool is_root, Effects& effects) {
  if (rows.get(Bucket::users, user.username)) {
    return refuse(Code::already_exists, "user " + user.username);
  }
  user.root = is_root;
  store(rows, user, effects);
  return {};
}

Answer remove(Transaction& rows, const std::string& name, Effects& effects) {
  const std::optional<User> user = load(rows, name);
  if (!user) {
    return no_user(name);
  }
  if (user->root) {
    return refuse(Code::root_protected, "user " + name);
  }
  rows.erase(Bucket::users, name);
  effects.moved(Domain::users);
  return {};
}

}  // namespace

Answer apply_entry(Transaction& rows, const CreateUser& entry, Effects& effects) { return create(rows, entry.user, false, effects); }

Answer apply_entry(Transaction& rows, const SeedRootUser& entry, Effects& effects) { return create(rows, entry.user, true, effects); }

Answer apply_entry(Transaction& rows, const UpdateUser& entry, Effects& effects) {
  const std::optional<User> stored = load(rows, entry.user.username);
  if (!stored) {
    return no_user(entry.user.username);
  }
  User user = entry.user;
  user.root = stored->root;
  if (stored->root) {
    user.grants = stored->grants;
  }
  store(rows, user, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const DeleteUser& entry, Effects& effects) { return remove(rows, entry.username, effects); }

Answer apply_entry(Transaction& rows, const SetUserPassword& entry, Effects& effects) {
  std::optional<User> user = load(rows, entry.username);
  if (!user) {
    return no_user(entry.username);
  }
  user->password_hash = entry.password_hash;
  user->updated_at_ms = entry.at_ms;
  store(rows, *user, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const SetUserGrants& entry, Effects& effects) {
  std::optional<User> user = load(rows, entry.username);
  if (!user) {
    return no_user(entry.username);
  }
  if (user->root) {
    return refuse(Code::root_protected, "user " + entry.username);
  }
  user->grants = entry.grants;
  user->updated_at_ms = entry.at_ms;
  store(rows, *user, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const DeleteUserReleasing& entry, Effects& effects) {
  if (Answer refused = remove(rows, entry.username, effects); !refused.ok()) {
    return refused;
  }
  if (!io::defence(io::Defence::user_delete_keeps_owner)) {
    return {};
  }
  for (const std::string& name : release_owned_topics(rows, entry.username)) {
    effects.moved(Domain::topics, name);
  }
  return {};
}

}  // namespace engine::metastore

// Random metadata commands of every entry type, on a few names, so that they meet: topics, users, members and remotes that exist,
// have just gone or never were. Draws look at the state that the log makes (replica.h), so that most of what must name an incarnation,
// a version or a holder names the right one, and some name a wrong one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/metastore/commands.h"
#include "engine/metastore/transaction.h"
#include "io/random.h"
#include "sim/load.h"

namespace sim {

// Topics of these commands; the clients' own (load.h) are named otherwise.
bool is_command_topic(std::string_view name);
// Members of these commands; the nodes are named otherwise.
bool is_command_member(std::string_view id);

class CommandDraws {
 public:
  // `schema_bytes`: half of the schemas are that large; 0: none is.
  // `crowd`: many commands add to one kind of thing, and none takes away from it, until its limit refuses more.
  explicit CommandDraws(io::RandomStream stream, uint64_t schema_bytes = 0, Crowd crowd = Crowd::none)
      : stream_(stream), schema_bytes_(schema_bytes), crowd_(crowd) {}

  // A command of any type from 1 to `newest_type`. `now_seconds`: the proposer's calendar.
  engine::metastore::Command draw(const engine::metastore::MemoryRows& rows, uint32_t newest_type, int64_t now_seconds);
  // The name of a topic that the commands are about.
  std::string topic_name();

 private:
  struct Context;
  engine::metastore::Command draw_any(const Context& context, uint32_t newest_type);
  // A command that adds to the crowd; nothing when this is one of the others.
  std::optional<engine::metastore::Command> draw_crowded(const Context& context, uint32_t newest_type);
  engine::metastore::Command draw_linked(const Context& context, const std::string& child, const std::string& parent);
  engine::metastore::Command draw_big_schema(const Context& context, uint32_t newest_type);
  engine::metastore::Command draw_remote_child(const Context& context, const std::string& parent, const std::string& stub);
  // Whether the command would take away from what is crowded.
  bool thins_out(const engine::metastore::Command& command) const;
  engine::metastore::Command draw_topic(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_link(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_assignment(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_member(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_user(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_remote(const Context& context, engine::metastore::EntryType type);

  engine::metastore::CreateRemote create_remote(const Context& context, const std::string& name);
  engine::metastore::ChangeRemote change_remote(const Context& context, const std::string& name);
  engine::metastore::ChangeRemoteChild change_remote_child(const Context& context);
  engine::metastore::Topic topic(const Context& context);
  engine::metastore::Topic update(const Context& context);
  std::string parent_name(const Context& context);
  int64_t delay();
  engine::metastore::User user(const Context& context);
  engine::metastore::RemoteLink link();
  std::string schema();
  std::string hex_id();
  std::string name_of(char kind, uint64_t count) { return kind + std::to_string(stream_.below(count)); }
  std::vector<int64_t> offsets(const Context& context, const std::string& parent);
  bool one_in(uint64_t n) { return stream_.below(n) == 0; }

  io::RandomStream stream_;
  uint64_t schema_bytes_;
  Crowd crowd_;
};

}  // namespace sim

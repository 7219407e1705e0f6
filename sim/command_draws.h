// Random metadata commands of every entry type, on a few names, so that they meet: topics, users, members and remotes that exist,
// have just gone or never were. Draws look at the state that the log makes (replica.h), so that most of what must name an incarnation,
// a version or a holder names the right one, and some name a wrong one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/metastore/commands.h"
#include "engine/metastore/transaction.h"
#include "io/random.h"

namespace sim {

// Topics of these commands; the clients' own (load.h) are named otherwise.
bool is_command_topic(std::string_view name);

class CommandDraws {
 public:
  // `schema_bytes`: half of the schemas are that large; 0: none is.
  explicit CommandDraws(io::RandomStream stream, uint64_t schema_bytes = 0) : stream_(stream), schema_bytes_(schema_bytes) {}

  // A command of any type from 1 to `newest_type`. `now_seconds`: the proposer's calendar.
  engine::metastore::Command draw(const engine::metastore::MemoryRows& rows, uint32_t newest_type, int64_t now_seconds);
  // The name of a topic that the commands are about.
  std::string topic_name();

 private:
  struct Context;
  engine::metastore::Command draw_topic(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_link(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_assignment(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_member(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_user(const Context& context, engine::metastore::EntryType type);
  engine::metastore::Command draw_remote(const Context& context, engine::metastore::EntryType type);

  engine::metastore::Topic topic(const Context& context);
  engine::metastore::User user(const Context& context);
  engine::metastore::RemoteLink link();
  std::string schema();
  std::string hex_id();
  std::string name_of(char kind, uint64_t count) { return kind + std::to_string(stream_.below(count)); }
  std::vector<int64_t> offsets(const Context& context, const std::string& parent);
  bool one_in(uint64_t n) { return stream_.below(n) == 0; }

  io::RandomStream stream_;
  uint64_t schema_bytes_;
};

}  // namespace sim

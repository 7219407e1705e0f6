// The load that simulated clients make: how much, of what, on which names. Draws only; client.h carries the calls out.
#pragma once

#include <cstdint>
#include <string>

#include "io/random.h"
#include "io/time.h"
#include "sim/history.h"

namespace sim {

// One kind of thing that the proposed commands (command_draws.h) fill up to its limit.
enum class Crowd : uint8_t { none, children, remotes, remote_children, schema_bytes, schema_versions };

struct LoadSettings {
  uint32_t clients = 4;
  uint64_t ops_per_minute = 600;  // all clients together; 0: none
  // weights; all zero counts as reads
  uint64_t create = 30;
  uint64_t patch = 25;
  uint64_t remove = 15;
  uint64_t read = 40;
  uint64_t list = 5;
  uint64_t race = 5;
  uint64_t attach = 8;
  uint64_t detach = 4;
  uint64_t children = 3;
  uint64_t put_schema = 8;
  uint64_t schemas = 3;
  uint64_t names = 20;
  Crowd crowd = Crowd::none;  // what those commands fill up
  uint64_t schema_bytes = 0;  // of half of the schemas that are proposed; 0: all are small
  uint64_t proposals_per_minute = 0;  // metadata commands of every type beside the clients' (proposals.h)
  io::Duration call_bound = std::chrono::seconds(20);  // a client gives up on an answer after this
};

// What one client asks next.
struct Wish {
  Call call;      // kind, node, name and what the kind asks for
  bool is_race = false;  // create this name on several nodes at one moment
};

// One client's draws.
class LoadDraws {
 public:
  LoadDraws(const LoadSettings& settings, int nodes, io::RandomStream stream)
      : settings_(settings), nodes_(nodes), stream_(stream) {}

  // The pause before the next call: around clients / rate, evenly between half of it and one and a half.
  io::Duration pause();
  Wish wish();
  int any_node() { return static_cast<int>(stream_.below(static_cast<uint64_t>(nodes_))); }

 private:
  std::string any_name();
  CallKind draw_kind(bool& is_race);
  void fill_links(Call& call);
  void fill_change(Call& call);

  const LoadSettings& settings_;
  int nodes_;
  io::RandomStream stream_;
};

// The JSON body of a create, patch, attach or put_schema; "" for the others.
std::string body_of(const Call& call);
// "/v1/topics/orders-3", "/v1/topics?limit=10&page_token=orders-3".
std::string target_of(const Call& call);
const char* method_of(CallKind kind);

}  // namespace sim

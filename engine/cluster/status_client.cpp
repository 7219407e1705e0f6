#include "engine/cluster/status_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/cluster/move_frames.h"
#include "io/fiber.h"
#include "io/probe.h"

namespace engine::cluster {

using Kind = NodeBacklog::Kind;

std::string StatusClient::address_of(const metastore::Member& member) const {
  if (!member.cluster_addr.empty()) {
    return member.cluster_addr;
  }
  for (const ServerFact& server : servers_.list()) {
    if (server.id == member.id) {
      return server.address;
    }
  }
  return {};
}

AskedStatus StatusClient::ask(const metastore::Member& member, io::Instant deadline) {
  AskedStatus asked;
  if (member.id == servers_.self()) {
    asked.kind = Kind::told;
    asked.facts = own_();
    asked.json = node_status_json(asked.facts);
    return asked;
  }
  const std::string address = address_of(member);
  if (address.empty()) {
    asked.error = "its address is not known";
    return asked;
  }
  CallResult called = clients_.call(address, encode_node_status_request(), std::min(deadline, env_.after(kStatusTimeout)));
  if (called.kind != CallResult::Kind::answered) {
    asked.error = called.timed_out ? "it did not answer in time" : std::move(called.detail);
    return asked;
  }
  if (called.reply.status == 400) {
    SOMETIMES("node status: an older release does not know the question");
    asked.kind = Kind::unsupported;
    asked.error = "its release does not tell";
    return asked;
  }
  std::optional<NodeStatusFacts> facts;
  if (called.reply.status == 200) {
    facts = parse_node_status(called.reply.body);
  }
  if (!facts) {
    asked.error = "it answered with status " + std::to_string(called.reply.status);
    return asked;
  }
  asked.kind = Kind::told;
  asked.facts = std::move(*facts);
  asked.json = std::move(called.reply.body);
  while (asked.json.ends_with('\n')) {
    asked.json.pop_back();
  }
  return asked;
}

std::map<std::string, AskedStatus> StatusClient::ask_all(const std::vector<metastore::Member>& members, io::Instant deadline) {
  const io::Instant bound = std::min(deadline, env_.after(kStatusTimeout));
  std::map<std::string, AskedStatus> answers;
  io::with_scope([&](io::Scope& scope) {
    for (const metastore::Member& member : members) {
      AskedStatus& answer = answers[member.id];
      scope.spawn("admin/status", [this, &answer, &member, bound] { answer = ask(member, bound); });
    }
  });
  return answers;
}

NodeBacklog StatusClient::ask_backlog(const metastore::Member& member, io::Instant deadline) {
  AskedStatus asked = ask(member, deadline);
  return {asked.kind, asked.facts.produce_in_flight, asked.facts.dispatch_backlog, std::move(asked.error)};
}

}  // namespace engine::cluster

#include "tests/integration/cluster.h"

#include <set>

namespace tests {

Cluster::Cluster(size_t nodes, size_t initial) {
  std::set<uint16_t> ports;
  while (ports.size() < 2 * nodes) {
    ports.insert(free_port());
  }
  const std::vector<uint16_t> all(ports.begin(), ports.end());
  std::string peers;
  std::string initial_members;
  for (size_t i = 0; i < nodes; ++i) {
    const std::string id = "n" + std::to_string(i + 1);
    nodes_.push_back(std::make_unique<NodeProcess>(id, dir_.path() + "/" + id, dir_.path() + "/" + id + ".log", all[2 * i],
                                                   all[2 * i + 1]));
    if (i < initial) {
      initial_members += (i == 0 ? "" : ",") + id;
    }
    peers += (i == 0 ? "" : ",") + id + "@" + nodes_.back()->cluster_address();
  }
  for (auto& node : nodes_) {
    node->set_peers(nodes > 1 ? peers : "");
    if (!initial_members.empty()) {
      node->set("NARAD_CLUSTER_INITIAL_MEMBERS", initial_members);
    }
  }
}

void Cluster::start_all() {
  for (auto& node : nodes_) {
    node->start();
  }
}

bool Cluster::start_and_wait() {
  start_all();
  for (auto& node : nodes_) {
    if (!node->wait_ready()) {
      return false;
    }
  }
  return true;
}

std::optional<size_t> Cluster::leader(Milliseconds patience) {
  std::optional<size_t> found;
  eventually(
      [&] {
        for (size_t i = 0; i < nodes_.size() && !found.has_value(); ++i) {
          if (nodes_[i]->is_running() && nodes_[i]->is_leader()) {
            found = i;
          }
        }
        return found.has_value();
      },
      patience);
  return found;
}

std::optional<size_t> Cluster::follower(Milliseconds patience) {
  const std::optional<size_t> leading = leader(patience);
  for (size_t i = 0; leading.has_value() && i < nodes_.size(); ++i) {
    if (i != *leading && nodes_[i]->is_running()) {
      return i;
    }
  }
  return std::nullopt;
}

std::string Cluster::logs() {
  std::string all;
  for (auto& node : nodes_) {
    all += "---- " + node->id() + "\n" + node->log();
  }
  return all;
}

std::string topic_body(const std::string& name) { return R"({"name":")" + name + "\"}"; }

}  // namespace tests

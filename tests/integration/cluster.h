// Several nodes that know each other, as an operator would start them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/process.h"

namespace tests {

class Cluster {
 public:
  // `nodes` processes n1, n2, ... on free loopback ports, not started yet.
  // The first `initial` of them may bootstrap, the others join; 0: all may.
  explicit Cluster(size_t nodes = 3, size_t initial = 0);

  size_t size() const { return nodes_.size(); }
  NodeProcess& node(size_t i) { return *nodes_[i]; }

  void start_all();
  // Starts all and waits until each is ready.
  bool start_and_wait();
  // The index of the node that leads, asked until there is one.
  std::optional<size_t> leader(Milliseconds patience = 30s);
  // Some running node that does not lead.
  std::optional<size_t> follower(Milliseconds patience = 30s);
  // What every node printed, for a failure's message.
  std::string logs();

 private:
  TempDir dir_;
  std::vector<std::unique_ptr<NodeProcess>> nodes_;
};

// {"name":"<name>"}
std::string topic_body(const std::string& name);

}  // namespace tests

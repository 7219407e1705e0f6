// Whole nodes in the simulated world, and a client's machine beside them: the fixture of tests that ask what nodes answer each
// other and their clients.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/http_client.h"
#include "engine/cluster/node_client.h"
#include "engine/node.h"
#include "io/sim/world.h"
#include "raft/server.h"

namespace tests {

class NodeWorld : public testing::Test {
 protected:
  struct Node {
    io::sim::Machine* machine = nullptr;
    engine::Config config;
    std::optional<engine::NodeView> view;
    io::Event* stop = nullptr;
    bool is_starting = false;  // and has not come as far as serving
    std::optional<int> exit_code;
    std::string reason;
  };

  explicit NodeWorld(size_t count = 3) : nodes(count) {
    for (size_t i = 0; i < count; ++i) {
      io::sim::MachineSettings settings;
      settings.name = "n" + std::to_string(i + 1);
      nodes[i].machine = &world.add_machine(settings);
      engine::Config& config = nodes[i].config;
      config.insecure = true;
      config.http.addr = settings.name + ":7942";
      config.cluster.addr = settings.name + ":7943";
      config.cluster.node_id = settings.name;
      config.tuning.raft_segment_bytes = 256 << 10;
      for (size_t j = 0; count > 1 && j < count; ++j) {
        const std::string peer = "n" + std::to_string(j + 1);
        config.cluster.peers.push_back({peer, peer + ":7943"});
      }
      EXPECT_TRUE(engine::validate(config).ok());
    }
    io::sim::MachineSettings settings;
    settings.name = "client";
    client_machine = &world.add_machine(settings);
  }

  void start(size_t i) {
    nodes[i].exit_code.reset();
    nodes[i].is_starting = true;
    nodes[i].machine->start([this, i](io::Env& env) {
      Node& node = nodes[i];
      io::Event stop;
      node.stop = &stop;
      engine::Hooks hooks;
      hooks.started = [&node](const engine::NodeView& view) {
        node.view.emplace(view);
        node.is_starting = false;
      };
      hooks.stopping = [&node] { node.view.reset(); };
      const int code = engine::run_node(env, node.config, hooks, stop, &node.reason);
      node.stop = nullptr;
      node.is_starting = false;
      node.exit_code = code;
      return code;
    });
  }
  void start_all() {
    for (size_t i = 0; i < nodes.size(); ++i) {
      start(i);
    }
  }
  std::optional<size_t> leader() const {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].view.has_value() && nodes[i].machine->process() != nullptr && nodes[i].view->raft.is_leader()) {
        return i;
      }
    }
    return std::nullopt;
  }
  // Until somebody leads, and every node that runs serves.
  size_t await_leader() {
    const auto is_starting = [](const Node& node) { return node.is_starting && node.machine->process() != nullptr; };
    EXPECT_TRUE(world.run_while([&] { return !leader().has_value() || std::any_of(nodes.begin(), nodes.end(), is_starting); },
                                world.now() + std::chrono::seconds(30)));
    return leader().value_or(0);
  }
  // Runs `body` as a client process to its end.
  void as_client(std::function<void(io::Env&)> body) {
    bool ended = false;
    client_machine->start([&, body = std::move(body)](io::Env& env) {
      body(env);
      ended = true;
      return 0;
    });
    EXPECT_TRUE(world.run_while([&] { return !ended; }, world.now() + std::chrono::seconds(120)));
    world.run_for(std::chrono::milliseconds(1));
  }
  // One request, answered or status 0.
  engine::api::HttpResponse ask(size_t node, std::string method, std::string target, std::string body = {}) {
    engine::api::HttpResponse answer;
    answer.status = 0;
    as_client([&](io::Env& env) {
      engine::api::HttpClient client(env.net, nodes[node].config.http.addr);
      const auto response = client.request({method, target, {{"Content-Type", "application/json"}}, body}, env.after(std::chrono::seconds(60)));
      if (response.ok()) {
        answer = *response;
      }
    });
    return answer;
  }
  engine::cluster::CallResult rpc(size_t node, std::string payload) {
    engine::cluster::CallResult result;
    as_client([&](io::Env& env) {
      engine::cluster::NodeClientPool pool(env, {});
      io::with_scope([&](io::Scope& scope) {
        pool.run(scope);
        result = pool.call(nodes[node].config.cluster.addr, payload, env.after(std::chrono::seconds(30)));
        scope.cancel();
      });
    });
    return result;
  }

  io::sim::World world{7};
  std::vector<Node> nodes;
  io::sim::Machine* client_machine = nullptr;
};

}  // namespace tests

// Simulated clients: fibers on one machine of their own that ask the nodes over HTTP, as any client would.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/api/http_client.h"
#include "io/env.h"
#include "sim/history.h"
#include "sim/world.h"

namespace sim {

// One client: at most one call at a time, one kept connection to each node it has spoken to. Lives in a fiber of the clients'
// process.
class Client {
 public:
  Client(World& world, io::Env& env, uint32_t number) : world_(world), env_(env), number_(number) {}

  // Asks and waits for the answer, at most the load's call_bound; the world judges it. Throws Cancelled.
  const Call& ask(Call wish);
  // GET of any path; 0 when there was no answer.
  int get_status(int node, const std::string& path, std::string* body = nullptr);

 private:
  engine::api::HttpClient& connection(int node);

  World& world_;
  io::Env& env_;
  uint32_t number_;
  std::map<int, std::unique_ptr<engine::api::HttpClient>> connections_;
};

// The main of the clients' process: makes the load until World::end_load, then waits to be ended.
int run_clients(World& world, io::Env& env);

}  // namespace sim

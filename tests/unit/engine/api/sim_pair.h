// Two machines of a simulated world, for tests of what speaks over a stream: "server" and "client".
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "io/sim/world.h"

namespace engine::test {

using namespace std::chrono_literals;

class SimPair : public testing::Test {
 protected:
  io::sim::World world{1};
  io::sim::Machine& server_machine = world.add_machine(named("server"));
  io::sim::Machine& client_machine = world.add_machine(named("client"));
  bool client_ended = false;

  void start_server(std::function<void(io::Env&)> body) {
    server_machine.start([body = std::move(body)](io::Env& env) {
      body(env);
      return 0;
    });
  }
  void start_client(std::function<void(io::Env&)> body) {
    client_machine.start([this, body = std::move(body)](io::Env& env) {
      io::sleep_for(10ms);  // the server listens by now
      body(env);
      client_ended = true;
      return 0;
    });
  }
  static io::sim::MachineSettings named(std::string name) {
    io::sim::MachineSettings settings;
    settings.name = std::move(name);
    return settings;
  }

  // Runs until the client has ended, at most `limit` of simulated time.
  void run(io::Duration limit = 120s) {
    world.run_while([&] { return !client_ended; }, world.now() + limit);
    EXPECT_TRUE(client_ended) << "the client did not end in time";
    EXPECT_TRUE(world.violations().empty()) << world.violations().front();
  }
};

// Everything the far side sends until it ends its direction or `deadline` passes.
inline std::string read_all(io::Stream& stream, io::Instant deadline) {
  std::string all;
  while (true) {
    io::Result<std::string> bytes = stream.read(64 * 1024, deadline);
    if (!bytes.ok() || bytes->empty()) {
      return all;
    }
    all += *bytes;
  }
}

}  // namespace engine::test

// A record of term and vote that is older than the log beside it, as after a copy was put back: the start is refused by
// name, and leaves the disk as it was. (The other way round: server_lost_log_test.cpp.)

#include <gtest/gtest.h>

#include "io/sim/switches.h"
#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using tests::ServerWorld;

class ServerOpen : public ::testing::Test {
 protected:
  // A life of the only server that ends as soon as `count` more commands are acknowledged.
  void live(int count) {
    servers.start(0);
    ASSERT_EQ(servers.await_leader(), 0) << servers[0].open_error;
    for (int i = 0; i < count; ++i) {
      written.push_back(std::to_string(written.size()));
      auto call = servers.propose(0, written.back());
      ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
      ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
    }
    end();
  }
  void end() {
    servers[0].machine->kill();
    servers.world.run_for(10ms);
  }
  // A start that is refused: the reason is given, and said in the log. No byte of the volume has changed.
  std::string refused() {
    const uint64_t mutations = volume().mutations();
    servers.start(0);
    EXPECT_TRUE(servers.run_until([&] { return servers[0].machine->process() == nullptr; }, 5s)) << "it does not start";
    servers.world.run_for(10ms);
    EXPECT_EQ(volume().mutations(), mutations) << "a refused start changes nothing";
    return servers[0].open_error;
  }
  // The server starts, has every command, and takes more.
  void sound() {
    live(1);
    servers.start(0);
    ASSERT_EQ(servers.await_leader(), 0) << servers[0].open_error;
    EXPECT_TRUE(servers.all_applied(written));
    EXPECT_TRUE(servers.world.violations().empty());
    end();
  }
  io::sim::Volume& volume() { return servers[0].machine->volume(); }

  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
  ServerWorld servers{21, 1};
  std::vector<std::string> written;
};

TEST_F(ServerOpen, AVoteRecordFromAnOlderCopyIsRefusedByTheLogThatWasWrittenUnderANewerOne) {
  live(5);
  const std::string older = *volume().tree().content("raft/stable");
  live(5);
  const auto now = volume().copy("raft");
  auto then = now;
  ASSERT_TRUE(then.files.contains("stable"));
  then.files["stable"] = older;
  volume().restore("raft", then);
  for (int tries = 0; tries < 2; ++tries) {
    const std::string reason = refused();
    EXPECT_NE(reason.find("raft/stable: holds record "), std::string::npos) << reason;
    EXPECT_NE(reason.find(", but the log was written under record "), std::string::npos) << reason;
  }
  EXPECT_EQ(board.probes["raft: stable record older than the log refused"], 2u);
  volume().restore("raft", now);
  sound();
}

}  // namespace

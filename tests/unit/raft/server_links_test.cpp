// Connections between servers with real stores and fibers in the simulator: greetings that are refused, a server that moves to another
// address, queues that are full.

#include <gtest/gtest.h>

#include <algorithm>

#include "io/sim/switches.h"
#include "raft/greeting.h"
#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using raft::ConfigurationChange;
using raft::wire::Hello;
using tests::ServerWorld;

class ServerLinks : public ::testing::Test {
 protected:
  static size_t lead(ServerWorld& servers) {
    servers.start_all();
    const int leader = servers.await_leader();
    NARAD_CHECK(leader >= 0, "a majority elects a leader");
    servers.world.run_for(500ms);
    return static_cast<size_t>(leader);
  }
  static void write(ServerWorld& servers, size_t leader, const std::string& command) {
    auto call = servers.propose(leader, command);
    ASSERT_TRUE(servers.run_until([&] { return call->done; }, 10s));
    EXPECT_TRUE(call->answer.ok()) << call->answer.reason;
  }
  // Lines of the present process of server `i` that begin with `text` and hold `part`.
  static size_t lines(ServerWorld& servers, size_t i, std::string_view text, std::string_view part) {
    const auto& all = servers[i].machine->process()->log_lines();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const io::sim::LogLine& line) {
      return line.text.starts_with(text) && line.text.find(part) != std::string::npos;
    }));
  }
  static const raft::PeerStatus* peer(const raft::ServerStatus& status, const raft::ServerId& id) {
    for (const raft::PeerStatus& each : status.peers) {
      if (each.id == id) return &each;
    }
    return nullptr;
  }

  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
};

TEST_F(ServerLinks, AGreetingThatIsNotForThisServerIsRefusedWithItsReasonAndNothingElseIsHeard) {
  ServerWorld servers(1);
  const size_t leader = lead(servers);
  write(servers, leader, "before");
  const raft::ServerId own = servers.members[leader].first;
  const raft::ServerId other = servers.members[(leader + 1) % 3].first;
  const raft::RaftServer& server = *servers[leader].server;
  const raft::Term term = server.core().term();

  Hello good;
  good.from = other;
  good.to = own;
  good.store = servers[(leader + 1) % 3].server->core().store();
  good.cluster = server.core().cluster();
  good.session = 77;
  good.address = "stranger:7943";
  struct Case {
    Hello hello;
    std::string reason;
    const char* probe;
  };
  std::vector<Case> cases(3, Case{good, "", nullptr});
  cases[0].hello.to = "n9";
  cases[0].reason = "looks for server n9, this is " + own;
  cases[0].probe = "raft: greeting for another server refused";
  cases[1].hello.cluster = raft::ClusterId{9, 9};
  cases[1].reason = "belongs to cluster " + raft::ClusterId{9, 9}.to_string() + ", this server to " + good.cluster.to_string();
  cases[1].probe = "raft: greeting of another cluster refused";
  cases[2].hello.version = raft::wire::kProtocolVersion + 1;
  cases[2].reason = "speaks raft protocol version 2, this server speaks 1";
  cases[2].probe = "raft: greeting of another protocol version refused";

  io::sim::MachineSettings settings;
  settings.name = "stranger";
  auto& stranger = servers.world.add_machine(settings);
  const std::string address = servers[leader].address;
  size_t done = 0;
  stranger.start([&](io::Env& env) {
    for (const raft::wire::Purpose purpose : {raft::wire::Purpose::messages, raft::wire::Purpose::snapshot}) {
      for (Case& each : cases) {
        each.hello.purpose = purpose;
        const io::Instant begun = env.now();
        auto refused = raft::dial(env, address, each.hello, env.after(5s));
        EXPECT_TRUE(refused.is(io::ErrorKind::denied)) << each.probe;
        if (refused.ok()) return 1;
        EXPECT_EQ(refused.error().message, "refused by " + each.hello.to + ": " + each.reason);
        EXPECT_LT(env.now() - begun, 1s) << "it is told at once";
        ++done;
      }
    }
    // What is sent without waiting for the answer is heard as little: a vote request of a far term would depose the leader.
    auto stream = env.net.connect(address, env.after(1s));
    if (!stream.ok()) return 1;
    std::string bytes;
    raft::wire::encode(cases[1].hello, bytes);
    raft::Message vote;
    vote.type = raft::MessageType::vote_request;
    vote.term = vote.campaign_term = 1000;
    vote.is_transfer = true;
    raft::wire::encode(vote, bytes);
    EXPECT_TRUE((*stream)->write(bytes, env.after(1s)).ok());
    for (;;) {
      auto read = (*stream)->read(1000, env.after(5s));
      EXPECT_FALSE(read.is(io::ErrorKind::timed_out)) << "the refused connection is closed";
      if (!read.ok() || read->empty()) break;
    }
    ++done;
    return 0;
  });
  servers.world.run_for(20s);
  EXPECT_EQ(done, 7u);
  for (const Case& each : cases) {
    EXPECT_GE(board.probes[each.probe], 2u) << each.probe;
    EXPECT_LE(lines(servers, leader, "raft: incoming connection refused", each.reason), 1u);
  }
  EXPECT_EQ(lines(servers, leader, "raft: incoming connection refused", "server " + other + ": " + cases[0].reason), 1u)
      << "the first is named, for the others one line a minute must do";
  EXPECT_EQ(server.counters().connections_refused, 7u) << "each counts, with a line or without";
  EXPECT_EQ(board.probes["raft: incoming connection replaced by a newer one"], 0u) << "the real server keeps its connection";
  EXPECT_EQ(servers.leader(), static_cast<int>(leader));
  EXPECT_EQ(server.core().term(), term);
  write(servers, leader, "after");
  EXPECT_TRUE(servers.all_applied({"before", "after"}));
  EXPECT_TRUE(servers.world.violations().empty());
}

TEST_F(ServerLinks, AServerWhoseAddressLeadsToAnotherIsReachedWhereItSaysThatItListens) {
  ServerWorld servers(2);
  servers.members[2].second = servers[1].address;  // n3 is looked for where n2 lives
  const size_t leader = lead(servers);
  write(servers, leader, "before");
  EXPECT_TRUE(servers.all_applied({"before"}, 10s));
  const raft::ServerId lost = servers.members[2].first;
  EXPECT_GT(board.probes["raft: greeting refused by the other server"], 0u);
  EXPECT_GT(board.probes["raft: a server is found where it says that it listens"], 0u);

  ConfigurationChange change;
  change.kind = ConfigurationChange::Kind::change_address;
  change.id = lost;
  change.address = servers[2].address;
  auto call = servers.change(leader, change);
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 6s));
  ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
  EXPECT_GT(board.probes["raft: address of a server changed"], 0u);
  EXPECT_TRUE(servers.run_until([&] { return peer(servers[leader].server->status(), lost)->is_connected; }, 5s));
  EXPECT_EQ(peer(servers[leader].server->status(), lost)->address, servers[2].address);
  EXPECT_TRUE(servers.world.violations().empty());
}

TEST_F(ServerLinks, AServerThatCannotBeReachedIsTriedAgainAndSaidOnceAMinute) {
  ServerWorld servers(2);
  const size_t leader = lead(servers);
  const size_t down = (leader + 1) % 3;
  servers[down].machine->kill();
  servers.world.run_for(30s);
  const raft::ServerId lost = servers.members[down].first;
  EXPECT_EQ(lines(servers, leader, "raft: no connection to a server", lost), 1u);
  ASSERT_NE(peer(servers[leader].server->status(), lost), nullptr);
  EXPECT_FALSE(peer(servers[leader].server->status(), lost)->is_connected);
  servers.world.run_for(60s);
  EXPECT_EQ(lines(servers, leader, "raft: no connection to a server", lost), 2u);
  servers.start(down);
  EXPECT_TRUE(servers.run_until([&] { return peer(servers[leader].server->status(), lost)->is_connected; }, 5s));
}

// Found by the simulator (seed 186): it answered where the one that had moved had been, and nobody could lead any more.
TEST_F(ServerLinks, AServerThatMissedAMoveAnswersTheMovedOneAllTheSame) {
  ServerWorld servers(4);
  const size_t leader = lead(servers);
  const size_t moving = (leader + 1) % 3;
  const size_t cut_off = (leader + 2) % 3;
  write(servers, leader, "before");
  ASSERT_TRUE(servers.all_applied({"before"}, 5s));
  for (const size_t i : {leader, moving}) servers.world.network().cut_both(*servers[i].machine, *servers[cut_off].machine);
  ConfigurationChange change;
  change.kind = ConfigurationChange::Kind::change_address;
  change.id = servers.members[moving].first;
  change.address = servers.members[moving].first + ":7950";
  auto call = servers.change(leader, change);
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 6s));
  ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
  servers[moving].machine->kill();
  servers[moving].address = change.address;
  servers.start(moving);
  ASSERT_TRUE(servers.run_until([&] {
    return servers.is_up(moving) && servers[moving].server->applied_index() == servers[leader].server->applied_index();
  }, 5s));
  // Only the moved one and the one that knows nothing of it are left: the moved one alone has the log to lead.
  servers[leader].machine->kill();
  servers.world.network().heal_both(*servers[moving].machine, *servers[cut_off].machine);
  ASSERT_TRUE(servers.run_until([&] { return servers[moving].server->is_leader(); }, 10s));
  write(servers, moving, "after");
  EXPECT_TRUE(servers.run_until([&] { return servers[cut_off].server->applied_index() == servers[moving].server->applied_index(); }, 5s));
  EXPECT_EQ(peer(servers[moving].server->status(), servers.members[cut_off].first)->is_connected, true);
  EXPECT_TRUE(servers.world.violations().empty());
}

// Found by the simulator (a node that joins, seed 17): whoever had connected between open() and run() kept its connection, and was never
// answered on one of its own.
TEST_F(ServerLinks, WhoeverConnectsBeforeAServerRunsIsAnsweredOnceItDoes) {
  ServerWorld servers(5);
  const auto joining = servers.members.back();
  servers.members.pop_back();
  servers[2].is_joining = true;
  servers.start(0);
  servers.start(1);
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  write(servers, static_cast<size_t>(leader), "before");
  ConfigurationChange change;
  change.kind = ConfigurationChange::Kind::add;
  change.id = joining.first;
  change.address = joining.second;
  auto call = servers.change(static_cast<size_t>(leader), change);
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 6s));
  ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
  servers[2].open_time = 3s;  // all who look for it have found it by then
  servers.start(2);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(2); }, 5s));
  EXPECT_TRUE(servers.run_until([&] { return servers[2].state_machine->commands == std::vector<std::string>{"before"}; }, 10s));
  EXPECT_GT(board.probes["raft: a server had connected before this one ran"], 0u);
  EXPECT_TRUE(servers.world.violations().empty());
}

TEST_F(ServerLinks, AServerThatMovesIsFoundAtItsNewAddressByAllAndAfterARestartToo) {
  ServerWorld servers(3);
  const size_t leader = lead(servers);
  const size_t moving = (leader + 1) % 3;
  const size_t third = (leader + 2) % 3;
  write(servers, leader, "before");
  const raft::Term term = servers[leader].server->core().term();

  // The address is changed while the old connection still holds: it is given up, and the new address is dialled.
  ConfigurationChange change;
  change.kind = ConfigurationChange::Kind::change_address;
  change.id = servers.members[moving].first;
  change.address = servers.members[moving].first + ":7950";
  auto call = servers.change(leader, change);
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 6s));
  ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
  ASSERT_TRUE(servers.run_until([&] { return board.probes["raft: address of a server changed"] >= 2; }, 5s))
      << "on the leader and on the third";
  servers.world.run_for(3s);
  EXPECT_TRUE(peer(servers[leader].server->status(), change.id)->is_connected) << "nobody listens there yet, and it still says where it does";
  write(servers, leader, "meanwhile");

  servers[moving].machine->kill();
  servers[moving].address = change.address;
  servers.start(moving);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(moving); }, 5s)) << servers[moving].open_error;
  EXPECT_TRUE(servers.all_applied({"before", "meanwhile"}, 10s));
  for (const size_t i : {leader, third}) {
    EXPECT_TRUE(servers.run_until([&] { return peer(servers[i].server->status(), change.id)->is_connected; }, 3s));
    EXPECT_EQ(peer(servers[i].server->status(), change.id)->address, change.address);
  }
  EXPECT_EQ(servers[leader].server->core().term(), term) << "nobody campaigned for it";

  // The members that a start is configured with still name the old address: what is stored counts.
  for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
  servers.world.run_for(10ms);
  servers.start_all();
  const int next = servers.await_leader();
  ASSERT_GE(next, 0);
  write(servers, static_cast<size_t>(next), "after");
  EXPECT_TRUE(servers.all_applied({"before", "meanwhile", "after"}, 5s));
  EXPECT_TRUE(servers.world.violations().empty());
}

TEST_F(ServerLinks, MessagesThatFindTheirQueueFullAreDroppedCountedAndMadeGood) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    servers.options.link.queue_bytes_max = 1000;  // one message with entries, whatever its size, or a few without
    servers.options.core.append_bytes_max = 4000;
    const size_t leader = lead(servers);
    const raft::Term term = servers[leader].server->core().term();
    const uint64_t dropped_before = servers[leader].server->counters().messages_dropped;
    std::vector<std::shared_ptr<ServerWorld::Call<raft::Proposed>>> calls;
    std::vector<std::string> commands;
    for (int i = 0; i < 100; ++i) {
      commands.push_back(std::to_string(i) + std::string(900, '.'));
      calls.push_back(servers.propose(leader, commands.back(), 20s));
    }
    for (const auto& call : calls) {
      ASSERT_TRUE(servers.run_until([&] { return call->done; }, 20s));
      EXPECT_TRUE(call->answer.ok()) << call->answer.reason;
    }
    std::sort(commands.begin(), commands.end());
    ASSERT_TRUE(servers.run_until([&] {
      for (size_t i = 0; i < 3; ++i) {
        std::vector<std::string> applied = servers[i].state_machine->commands;
        std::sort(applied.begin(), applied.end());
        if (applied != commands) return false;
      }
      return true;
    }, 10s)) << "nothing is lost, nothing is doubled";
    EXPECT_GT(servers[leader].server->counters().messages_dropped, dropped_before);
    EXPECT_EQ(servers[leader].server->core().term(), term) << "heartbeats find room again";
    EXPECT_TRUE(servers.world.violations().empty());
  }
  EXPECT_GT(board.probes["raft: message dropped, a link's queue is full"], 0u);
}

}  // namespace

// Servers with real stores, links and fibers in the simulator, and a stranger who speaks their protocol well.

#include <gtest/gtest.h>

#include <algorithm>

#include "raft/greeting.h"
#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using raft::Message;
using raft::MessageType;
using tests::ServerWorld;

std::string violations(const ServerWorld& servers) {
  std::string all;
  for (const std::string& each : servers.world.violations()) all += each + "\n";
  return all;
}

// A healthy cluster, and a machine "x" that is no member of it and says what a test wants it to.
struct HostileWorld : ServerWorld {
  explicit HostileWorld(uint64_t seed) : ServerWorld(seed) {
    start_all();
    const int found = await_leader();
    NARAD_CHECK(found >= 0, "a majority elects a leader");
    led = static_cast<size_t>(found);
    follower = (led + 1) % 3;
    io::sim::MachineSettings settings;
    settings.name = "x";
    stranger = &world.add_machine(settings);
    write("before");
    world.run_for(500ms);
  }

  void write(const std::string& command) {
    auto call = propose(led, command);
    NARAD_CHECK(run_until([&] { return call->done; }, 5s), "a proposal ends");
    EXPECT_TRUE(call->answer.ok()) << call->answer.reason;
    written.push_back(command);
  }
  // With a cluster id of zero, as a server has it that never saw one committed.
  raft::wire::Hello hello(size_t to) const {
    raft::wire::Hello hello;
    hello.from = "x";
    hello.to = nodes[to]->machine->name();
    hello.store = raft::StoreId{9, 9};
    hello.session = 77;
    hello.address = "x:7943";
    return hello;
  }
  void say(size_t to, const std::vector<Message>& messages) {
    stranger->start([this, to, messages](io::Env& env) {
      auto greeted = raft::dial(env, nodes[to]->address, hello(to), env.after(2s));
      EXPECT_TRUE(greeted.ok());
      if (!greeted.ok()) return 1;
      for (const Message& message : messages) {
        std::string bytes;
        raft::wire::encode(message, bytes);
        EXPECT_TRUE(greeted->stream->write(bytes, env.after(1s)).ok());
      }
      io::sleep_for(1s);
      return 0;
    });
    world.run_for(3s);
  }
  raft::wire::SnapshotAnswer offer(size_t to, raft::Term term, raft::Index index) {
    raft::wire::SnapshotAnswer answer;
    answer.verdict = raft::OfferAnswer::Verdict::wanted;
    stranger->start([&](io::Env& env) {
      raft::wire::Hello greeting = hello(to);
      greeting.purpose = raft::wire::Purpose::snapshot;
      auto greeted = raft::dial(env, nodes[to]->address, greeting, env.after(2s));
      EXPECT_TRUE(greeted.ok());
      if (!greeted.ok()) return 1;
      raft::wire::SnapshotHead head;
      head.term = term;
      head.info.label = raft::SnapshotLabel{index, 1, 0, nodes[to]->server->core().configuration()};
      head.info.label.configuration.cluster = raft::ClusterId{};
      head.info.bytes = 1000;
      head.info.chunk_bytes = 512;
      std::string bytes;
      raft::wire::encode(head, bytes);
      EXPECT_TRUE(greeted->stream->write(bytes, env.after(1s)).ok());
      auto frame = raft::next_frame(*greeted->stream, greeted->frames, raft::wire::kGreetingBytesMax, env.after(2s));
      EXPECT_TRUE(frame.ok());
      if (frame.ok()) answer = std::get<raft::wire::SnapshotAnswer>(*frame);
      return 0;
    });
    world.run_for(3s);
    return answer;
  }
  // Lines of the present life of server `i` that hold all of `parts`.
  size_t lines(size_t i, const std::vector<std::string>& parts) const {
    const auto& all = nodes[i]->machine->process()->log_lines();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const io::sim::LogLine& line) {
      return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) { return line.text.find(part) != std::string::npos; });
    }));
  }

  size_t led = 0;
  size_t follower = 0;
  io::sim::Machine* stranger = nullptr;
  std::vector<std::string> written;
};

Message request(raft::Term term, raft::Index previous, std::vector<raft::Entry> entries) {
  Message message;
  message.type = MessageType::append_request;
  message.term = term;
  message.log_index = previous;
  message.log_term = previous == 0 ? 0 : term;
  message.commit = 1000;
  message.entries = std::move(entries);
  return message;
}

// Scenario NW-08: whole messages and heads of images that no server of a sound cluster sends.
TEST(ServerHostile, AStrangersRequestOfTheCurrentTermEndsNoServerAndChangesNothing) {
  HostileWorld servers(1);
  const raft::Term term = servers[servers.led].server->core().term();
  const auto payload = std::make_shared<const std::string>("foreign");
  const std::vector<raft::Entry> entries{{term, 1, raft::EntryType::command, payload}, {term, 2, raft::EntryType::command, payload}};
  for (const size_t to : {servers.led, servers.follower}) {
    const std::string reason = to == servers.led ? "this server leads that term" : "another server leads that term";
    servers.say(to, {request(term, 0, {}), request(term, 0, entries), request(term, 0, entries)});
    ASSERT_TRUE(servers.is_up(to)) << servers[to].failure;
    const raft::ServerCounters& counters = servers[to].server->counters();
    EXPECT_EQ(counters.messages_refused, 3u);
    EXPECT_EQ(servers.lines(to, {"raft: message refused, no server of a sound cluster sends it", "server=x", reason}), 1u)
        << "of what repeats, one line a minute";
    EXPECT_EQ(servers.offer(to, term, 1000).verdict, raft::OfferAnswer::Verdict::refused);
    EXPECT_EQ(counters.images_refused, 1u);
    EXPECT_EQ(servers.lines(to, {"raft: image refused", "server=x", reason, "index=1000"}), 1u);
  }
  servers.write("after");
  EXPECT_TRUE(servers.all_applied(servers.written));
  EXPECT_EQ(servers[servers.led].server->core().term(), term);
  EXPECT_EQ(violations(servers), "");
}

// Scenario NW-08: one vote request may not use up the terms.
TEST(ServerHostile, AVoteRequestOfATermOutOfReachIsDroppedAndARestartReadsItsRecord) {
  HostileWorld servers(2);
  const raft::Term term = servers[servers.led].server->core().term();
  Message vote;
  vote.type = MessageType::vote_request;
  vote.is_transfer = true;
  vote.log_index = vote.log_term = 1000;
  std::vector<Message> messages;
  for (const raft::Term far : {raft::kNumberMax, raft::Term{1} << 60, raft::Term{1} << 33}) {
    vote.term = vote.campaign_term = far;
    messages.push_back(vote);
  }
  for (size_t i = 0; i < 3; ++i) {
    servers.say(i, messages);
    ASSERT_TRUE(servers.is_up(i));
    EXPECT_EQ(servers[i].server->counters().messages_refused, 3u);
    EXPECT_EQ(servers[i].server->core().term(), term);
  }
  servers.write("after");
  for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
  servers.world.run_for(10ms);
  servers.start_all();
  ASSERT_GE(servers.await_leader(), 0) << servers[0].open_error;
  EXPECT_TRUE(servers.all_applied(servers.written));
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerHostile, BarriersThatAreRefusedOrNotPassedInTimeAreCountedAndTold) {
  ServerWorld servers(3);
  servers.options.core.pending_reads_max = 1;
  servers.start_all();
  const int found = servers.await_leader();
  ASSERT_GE(found, 0);
  const auto leader = static_cast<size_t>(found);
  servers.world.run_for(500ms);
  for (size_t i = 0; i < 3; ++i) {
    if (i != leader) servers[i].machine->power_loss();
  }
  auto first = servers.barrier(leader, 300ms);
  auto second = servers.barrier(leader, 300ms);
  ASSERT_TRUE(servers.run_until([&] { return first->done && second->done; }, 350ms));
  EXPECT_EQ(first->answer.outcome, raft::Outcome::unknown);
  EXPECT_EQ(second->answer.outcome, raft::Outcome::refused);
  EXPECT_EQ(servers[leader].server->counters().reads_refused, 2u);
  const auto& lines = servers[leader].machine->process()->log_lines();
  for (const std::string reason : {"no quorum answered in time", "too many reads wait"}) {
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [&](const io::sim::LogLine& line) {
      return line.text.find("raft: barrier refused") != std::string::npos && line.text.find(reason) != std::string::npos;
    }), 1) << reason;
  }
}

}  // namespace

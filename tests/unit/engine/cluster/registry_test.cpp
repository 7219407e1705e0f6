#include "engine/cluster/registry.h"

#include <gtest/gtest.h>

#include "engine/metastore/commands.h"
#include "engine/metastore/records_reader.h"
#include "io/sim/world.h"
#include "tests/support/memory_metastore.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using metastore::Member;
using metastore::MemberStatus;

struct RegistryTest : testing::Test {
  // Runs `body` as a node's process.
  void run(const std::function<void(io::Env&, Registry&)>& body) {
    bool ended = false;
    machine.start([&](io::Env& env) {
      Registry registry(env, store, store);
      body(env, registry);
      ended = true;
      return 0;
    });
    ASSERT_TRUE(world.run_while([&] { return !ended; }, world.now() + 60s));
    world.run_for(1ms);
  }
  static RegisterMemberRequest heartbeat(std::optional<RegisterMemberRequest::Release> release = {{"3.2.0", 37}}) {
    return {"n1", "n1:7942", "n1:7943", "alive", 99, std::move(release)};
  }
  Member stored(const std::string& id = "n1") {
    const auto bytes = store.rows.read(metastore::row_key(metastore::Bucket::members, id));
    return bytes ? *metastore::decode_member(*bytes) : Member{};
  }

  io::sim::World world{11};
  io::sim::Machine& machine = world.add_machine([] {
    io::sim::MachineSettings settings;
    settings.name = "n1";
    return settings;
  }());
  tests::MemoryMetastore store;
};

TEST_F(RegistryTest, EachRefusalHasItsStatusAndText) {
  run([&](io::Env&, Registry& registry) {
    const auto answer = [&](const std::function<void(RegisterMemberRequest&)>& change) {
      RegisterMemberRequest request = heartbeat();
      change(request);
      const NodeReply reply = registry.register_member(request);
      return std::to_string(reply.status) + " " + reply.body;
    };
    EXPECT_EQ(answer([](auto& r) { r.id = "  "; }), "400 {\"error\":\"member id is required\"}\n");
    EXPECT_EQ(answer([](auto& r) { r.addr = ""; }), "400 {\"error\":\"member addr is required\"}\n");
    EXPECT_EQ(answer([](auto& r) { r.status = "resting"; }), "400 {\"error\":\"member status is invalid\"}\n");
    EXPECT_EQ(registry.register_member(io::fail(io::ErrorKind::invalid, "trailing node rpc payload data")).body,
              "{\"error\":\"invalid register member request: trailing node rpc payload data\"}\n");
    EXPECT_EQ(store.proposals, 0);
    EXPECT_EQ(answer([](auto&) {}), "204 ");
    store.apply(metastore::encode_command(metastore::RemoveMember{"n1", 5}));
    EXPECT_EQ(answer([](auto&) {}), "410 {\"error\":\"member was removed from the cluster\"}\n");
    const std::string failed = "409 {\"error\":\"register member failed\"}\n";
    store.outcome = Proposed::Outcome::unknown;
    EXPECT_EQ(answer([](auto&) {}), failed);
    store.read_error = io::fail(io::ErrorKind::io, "gone");
    EXPECT_EQ(answer([](auto&) {}), failed);
    store.leads = false;
    EXPECT_EQ(answer([](auto&) {}), failed);
  });
}

// What another leader stamped in between is not in what was read.
TEST_F(RegistryTest, AStampOfATermThatHasPassedIsNotProposed) {
  run([&](io::Env&, Registry& registry) {
    ASSERT_EQ(registry.register_member(heartbeat()).status, 204);
    EXPECT_EQ(registry.newest_given("n1"), stored().last_heartbeat);
    const int proposed = store.proposals;
    store.during_read = [&] {
      store.current_term += 2;  // deposed, and elected again
      store.during_read = nullptr;
    };
    EXPECT_EQ(registry.register_member(heartbeat()).status, 409);
    EXPECT_EQ(store.proposals, proposed);
    EXPECT_EQ(registry.newest_given("n1"), 0) << "none in this term";
    EXPECT_EQ(registry.register_member(heartbeat()).status, 204);
  });
}

TEST_F(RegistryTest, FieldsAreTrimmedAndAnEmptyStatusIsAlive) {
  run([&](io::Env&, Registry& registry) {
    RegisterMemberRequest request{" n1\t", " n1:7942 ", "\nn1:7943", "", 0, {{" 3.2.0 ", 37}}};
    EXPECT_EQ(registry.register_member(request).status, 204);
    EXPECT_EQ(stored().addr, "n1:7942");
    EXPECT_EQ(stored().cluster_addr, "n1:7943");
    EXPECT_EQ(stored().build, "3.2.0");
    EXPECT_EQ(stored().status, MemberStatus::alive);
    request.status = "dead";
    EXPECT_EQ(registry.register_member(request).status, 204);
    EXPECT_EQ(stored().status, MemberStatus::dead);
  });
}

TEST_F(RegistryTest, TheWholeRecordIsReplacedButForTheDrainingMark) {
  run([&](io::Env&, Registry& registry) {
    registry.register_member(heartbeat());
    EXPECT_EQ(stored().entry_types, 37u);
    store.apply(metastore::encode_command(metastore::SetMemberDraining{"n1", true}));
    RegisterMemberRequest older = heartbeat(std::nullopt);
    older.addr = "elsewhere:7942";
    registry.register_member(older);
    EXPECT_EQ(stored().addr, "elsewhere:7942");
    EXPECT_EQ(stored().build, "");
    EXPECT_EQ(stored().entry_types, 0u);
    EXPECT_TRUE(stored().draining);
  });
}

// Scenario CK-03, the leader's part: the sender's clock is not used, and the leader's own may step back.
TEST_F(RegistryTest, TheStampIsTheLeadersClockAndNeverFallsBehindTheStoredOne) {
  run([&](io::Env& env, Registry& registry) {
    const int64_t clock = io::to_unix_seconds(env.clock.wall());
    registry.register_member(heartbeat());
    EXPECT_EQ(stored().last_heartbeat, clock);
    Member ahead = stored();
    ahead.last_heartbeat = clock + 1000;  // by a leader whose clock was ahead
    store.apply(metastore::encode_command(metastore::RegisterMember{ahead}));
    registry.register_member(heartbeat());
    EXPECT_EQ(stored().last_heartbeat, clock + 1001);
    io::sleep_for(1s);
    registry.register_member(heartbeat());
    EXPECT_EQ(stored().last_heartbeat, clock + 1002);
  });
}

TEST_F(RegistryTest, StampsOfHeartbeatsThatOverlapGrowToo) {
  run([&](io::Env&, Registry& registry) {
    store.delay = 100ms;
    io::with_scope([&](io::Scope& scope) {
      for (int i = 0; i < 3; ++i) scope.spawn("beat", [&] { EXPECT_EQ(registry.register_member(heartbeat()).status, 204); });
    });
    const int64_t last = stored().last_heartbeat;
    store.delay = 0ms;
    registry.register_member(heartbeat());
    EXPECT_GT(stored().last_heartbeat, last);
  });
}

TEST_F(RegistryTest, TheStoredStampIsReadBehindABarrierOnceATerm) {
  run([&](io::Env&, Registry& registry) {
    registry.register_member(heartbeat());
    registry.register_member(heartbeat());
    EXPECT_EQ(store.barriers, 1);
    store.current_term = 2;
    registry.register_member(heartbeat());
    EXPECT_EQ(store.barriers, 2);
    store.current_term = 3;
    store.barrier_status = io::fail(io::ErrorKind::busy, "no quorum");
    EXPECT_EQ(registry.register_member(heartbeat()).status, 409);
  });
}

}  // namespace
}  // namespace engine::cluster

// Scenario UG-05: writes that a new node forwards to a leader of release 3.0.1, which refuses fields that it does not know; field by field
// as frames, and with whole nodes in the simulated world. Heartbeats and joins at such a leader: membership_test.cpp.

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <tuple>

#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/forward.h"
#include "engine/cluster/link_frames.h"
#include "engine/cluster/move_frames.h"
#include "tests/support/member_world.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using api::HttpResponse;

const FrameFields kOlderFields{false, false, false, false, 32};

// ---- As frames ---------------------------------------------------------------------------------------------------------------

// Every field of a write is in the frame that is sent, all but the new one in the older frame, and an older node refuses the first for
// its trailing data and takes the second. `fields`: what the request has beside the actor.
template <typename Request, typename Decode, typename Fields>
void expect_parity(const Request& full, Decode decode, Fields fields) {
  const WriteFrames frames = write_frames(full);
  const auto sent = decode(frames.payload);
  ASSERT_TRUE(sent.ok() && full.actor.has_value());
  EXPECT_EQ(fields(*sent), fields(full));
  EXPECT_EQ(sent->actor, full.actor);
  ASSERT_NE(frames.older, "");
  const auto older = decode(frames.older);
  ASSERT_TRUE(older.ok());
  EXPECT_EQ(fields(*older), fields(full));
  EXPECT_EQ(older->actor, std::nullopt);
  EXPECT_TRUE(check_known_fields(frames.payload, FrameFields()).ok());
  const io::Status refused = check_known_fields(frames.payload, kOlderFields);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "trailing node rpc payload data");
  EXPECT_TRUE(check_known_fields(frames.older, kOlderFields).ok());
}

// Scenario UG-05, the parity of every field of every forwarded operation.
TEST(OlderLeader, EveryForwardedOperationHasAFrameThatItTakesWithEveryFieldThatItKnows) {
  const auto topic_and_body = [](const auto& request) { return std::tuple(request.topic, request.body); };
  const auto link = [](const auto& request) { return std::tuple(request.parent, request.child, request.delay_ms); };
  expect_parity(CreateTopicRequest{"t", "{\"name\":\"t\"}", "alice"}, decode_create_topic, topic_and_body);
  expect_parity(AlterTopicRequest{"t", "{\"partitions\":4}", "alice"}, decode_alter_topic, topic_and_body);
  expect_parity(DeleteTopicRequest{"t", "incarnation", "alice"}, decode_delete_topic,
                [](const DeleteTopicRequest& request) { return std::tuple(request.topic, request.id); });
  expect_parity(AttachChildRequest{"p", "c", 7, "alice"}, decode_attach_child, link);
  expect_parity(DetachChildRequest{"p", "c", 7, "alice"}, decode_detach_child, link);
  // Without any new field: one frame for every release.
  for (const std::string& frame : {encode(DecommissionRequest{"n1", true}), encode(AbortMoveRequest{"t", 1, "n2"}),
                                   encode(CompleteMoveRequest{"t", 1, "n1", "n2"}), encode(ForgetServerRequest{"n1"})}) {
    EXPECT_TRUE(check_known_fields(frame, kOlderFields).ok());
  }
}

// ---- As nodes ----------------------------------------------------------------------------------------------------------------

// n1 and n2 are of release 3.0.1, n3 is new; n1 leads.
struct OlderLeaderScenario : tests::MemberWorld {
  void form() {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      nodes[i].config.tuning.release = {"3.0.1", metastore::kEveryReleaseEntryType, true, false, kOlderFields};
    }
    start_first();
    ASSERT_TRUE(eventually([&] { return member(0) && member(1) && member(2); }, 10s));
    if (await_leader() != 0) {
      on_leader([&](NodeView& view, io::Env& env) { EXPECT_TRUE(view.raft.transfer_leadership("n1", env.after(5s)).ok()); });
    }
    ASSERT_TRUE(eventually([&] { return leader() == size_t{0}; }, 10s));
    world.run_for(3s);
  }
  // As n3 forwards a write with `actor` set.
  NodeReply forward(const WriteFrames& frames) {
    NodeReply reply;
    bool ended = false;
    nodes[2].machine->process()->spawn("test", [&] {
      io::Env& env = nodes[2].machine->process()->env();
      NodeClientPool pool(env, {});
      io::with_scope([&](io::Scope& scope) {
        pool.run(scope);
        Forwarder forwarder(env, nodes[2].view->raft, pool);
        reply = forwarder.write(frames.payload, frames.older);
        scope.cancel();
      });
      ended = true;
    });
    EXPECT_TRUE(world.run_while([&] { return !ended; }, world.now() + 30s));
    return reply;
  }
  // Without what differs from topic to topic: its name's first letter, its incarnation and its times.
  static std::string shape(const HttpResponse& answer) {
    std::string text = std::to_string(answer.status) + " " + answer.body;
    text = std::regex_replace(text, std::regex("\"(id|parent_id|attach_epoch)\":\"[^\"]*\""), "\"$1\":\"\"");
    text = std::regex_replace(text, std::regex("\"created_at\":[0-9]+"), "\"created_at\":0");
    return std::regex_replace(text, std::regex("[lf]-"), "x-");
  }
};

// Scenario UG-05, step 1: a client creates topics with every optional field at the follower, and changes them in every way.
TEST_F(OlderLeaderScenario, EveryWriteWithEveryFieldHasTheSameAnswerAtANewFollowerAsAtTheLeader) {
  form();
  const struct {
    const char* method;
    std::string target, body;
    int status;
  } kWrites[] = {
      {"POST", "/v1/topics",
       R"({"name":"@p","partitions":4,"retention_ms":7200000,"visibility_timeout_ms":45000,"max_in_flight_per_partition":11,)"
       R"("max_acked_ahead_per_partition":12,"schema":{"type":"object"},"owner":"me"})",
       201},
      {"POST", "/v1/topics",
       R"({"name":"@c","parent":"@p","fanout_delay_ms":5,"partitions":4,"retention_ms":7200000,"visibility_timeout_ms":45000,)"
       R"("max_in_flight_per_partition":11,"max_acked_ahead_per_partition":12})",
       201},
      {"POST", "/v1/topics", R"({"name":"@lone","partitions":4})", 201},
      {"POST", "/v1/topics/@p/children", R"({"child":"@lone","delay_ms":7})", 200},
      {"GET", "/v1/topics/@p/children", "", 200},
      {"DELETE", "/v1/topics/@p/children/@lone", "", 204},
      {"PATCH", "/v1/topics/@lone",
       R"({"retention_ms":3600000,"max_in_flight_per_partition":3,"max_acked_ahead_per_partition":4,"partitions":6,)"
       R"("schema":{},"schema_base_version":1})",
       200},
      {"GET", "/v1/topics/@p", "", 200},
      {"GET", "/v1/topics/@c", "", 200},
      {"GET", "/v1/topics/@lone/schema", "", 200},
      {"PATCH", "/v1/topics/@lone", R"({"schema":{},"schema_base_version":9})", 409},
      {"DELETE", "/v1/topics/@c", "", 204},
      {"DELETE", "/v1/topics/@lone", "", 204},
      {"POST", "/v1/cluster/moves/@p/0/abort", "", 409},
      {"POST", "/v1/cluster/members/n2/decommission", "", 409},
      {"DELETE", "/v1/cluster/members/n2/decommission", "", 204},
  };
  for (const auto& write : kWrites) {
    const auto of = [](std::string text, const char* prefix) { return std::regex_replace(text, std::regex("@"), prefix); };
    const HttpResponse here = ask(0, write.method, of(write.target, "l-"), of(write.body, "l-"));
    const HttpResponse there = ask(2, write.method, of(write.target, "f-"), of(write.body, "f-"));
    EXPECT_EQ(there.status, write.status) << write.method << " " << write.target << " " << there.body;
    EXPECT_EQ(shape(there), shape(here)) << write.method << " " << write.target;
  }
  const HttpResponse kept = ask(0, "GET", "/v1/topics/f-p");
  for (const char* field : {"\"partitions\":4", "\"retention_ms\":7200000", "\"visibility_timeout_ms\":45000", "\"schema_version\":1",
                            "\"max_in_flight_per_partition\":11", "\"max_acked_ahead_per_partition\":12"}) {
    EXPECT_NE(kept.body.find(field), std::string::npos) << field << " of " << kept.body;
  }
  // What that leader does not know at all is no fault of the asker.
  EXPECT_EQ(ask(2, "POST", "/v1/cluster/members/n9/forget").status, 501);
}

// Scenario UG-05, step 1, with the field that the leader does not know.
TEST_F(OlderLeaderScenario, AWriteWithAnActorIsSentAgainAtOnceWithoutIt) {
  form();
  const io::Instant begun = world.now();
  EXPECT_EQ(rpc(0, write_frames(CreateTopicRequest{"p", R"({"name":"p"})", "alice"}).payload).reply.body,
            "{\"error\":\"invalid create topic request: trailing node rpc payload data\"}\n");
  EXPECT_EQ(forward(write_frames(CreateTopicRequest{"p", R"({"name":"p"})", "alice"})).status, 201);
  EXPECT_EQ(forward(write_frames(CreateTopicRequest{"c", R"({"name":"c"})", "alice"})).status, 201);
  EXPECT_EQ(forward(write_frames(AlterTopicRequest{"p", R"({"retention_ms":7200000})", "alice"})).status, 200);
  EXPECT_EQ(forward(write_frames(AttachChildRequest{"p", "c", 7, "alice"})).status, 200);
  EXPECT_EQ(forward(write_frames(DetachChildRequest{"p", "c", 0, "alice"})).status, 204);
  EXPECT_EQ(forward(write_frames(DeleteTopicRequest{"c", std::nullopt, "alice"})).status, 204);
  EXPECT_LE(world.now() - begun, 5s);
  EXPECT_NE(ask(2, "GET", "/v1/topics/p").body.find("\"retention_ms\":7200000"), std::string::npos);
  EXPECT_EQ(ask(2, "GET", "/v1/topics/c").status, 404);
}

}  // namespace
}  // namespace engine::cluster

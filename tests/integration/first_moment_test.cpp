// Real processes in their cluster's first moment: a leader answers, and no member has registered yet.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/topics/json.h"
#include "tests/integration/cluster.h"
#include "tests/integration/ticker.h"

namespace tests {
namespace {

using Clock = Ticker::Clock;
namespace json = engine::json;

constexpr size_t kNodes = 3;
constexpr int64_t kPartitions = 3;  // of a topic that does not say how many

int64_t integer_at(const json::Value& object, const char* name) {
  const json::Value* value = object.find(name);
  return value != nullptr ? value->integer : 0;
}

// What one node's replica showed of the members, seen from outside.
struct Seen {
  std::optional<Clock::time_point> last_without_member;  // when the last look was sent that found none
  std::optional<Clock::time_point> first_member;         // when the first was answered that found one
  std::optional<Clock::time_point> all_placed;           // when the first was answered by which every partition had its owner

  void look(const NodeProcess& node) {
    const Clock::time_point sent = Clock::now();
    const auto answer = node.request("GET", "/v1/cluster/members", {}, 2s);
    const Clock::time_point answered = Clock::now();
    const auto parsed = json::parse(answer && answer->status == 200 ? answer->body : "");
    const json::Value* members = parsed.ok() ? parsed->find("members") : nullptr;
    if (members == nullptr) return;
    int64_t owned = 0;
    for (const json::Value& member : members->array) owned += integer_at(member, "owned_partitions");
    if (members->array.empty()) {
      last_without_member = sent;
    } else if (!first_member) {
      first_member = answered;
    }
    if (owned >= kPartitions && !all_placed) all_placed = answered;
  }
};

// A cluster from empty directories, with a client at every node that creates one and the same topic as soon as anybody can.
class FirstMoment {
 public:
  // Runs until a node shows every partition placed, 30 s at most.
  void run() {
    cluster_.start_all();
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kNodes; ++i) {
      threads.emplace_back([this, i] { create(i); });
      threads.emplace_back([this, i] { watch(i); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // The node that created the topic when there was nobody to own its partitions; nullopt: a member was there before it.
  std::optional<size_t> early_at() {
    for (size_t i = 0; i < kNodes; ++i) {
      const std::string log = cluster_.node(i).log();
      const size_t at = log.find("topic created without immediate partition assignment");
      const std::string line = at == std::string::npos ? "" : log.substr(at, log.find('\n', at) - at);
      if (line.find("no alive member to own new partitions") != std::string::npos) return i;
    }
    return std::nullopt;
  }
  const Seen& seen(size_t node) const { return seen_[node]; }
  int answer() const { return answer_; }
  std::string logs() { return cluster_.logs(); }

 private:
  void create(size_t i) {
    while (answer_ == 0 && Clock::now() < end_) {
      const auto response = cluster_.node(i).request("POST", "/v1/topics", topic_body("early"), 5s);
      if (response && response->status == 201) answer_ = response->status;
      if (!response || response->status == 503) std::this_thread::sleep_for(2ms);
    }
  }
  void watch(size_t i) {
    while (!seen_[i].all_placed && Clock::now() < end_) {
      seen_[i].look(cluster_.node(i));
      std::this_thread::sleep_for(5ms);
    }
  }

  Cluster cluster_{kNodes};
  const Clock::time_point end_ = Clock::now() + 30s;
  std::atomic<int> answer_{0};
  std::array<Seen, kNodes> seen_;
};

long long in_ms(Clock::duration duration) { return std::chrono::duration_cast<Milliseconds>(duration).count(); }

TEST(FirstMoment, ATopicCreatedBeforeAnyMemberRegisteredIsPlacedWithinOneAndAHalfSecondsOfTheFirst) {
  // Between a leader's first answer and the first heartbeat that it takes lie 250 ms at most: half the time a heartbeat is first, and
  // another cluster is tried.
  constexpr Milliseconds kTryFor = 180s;
  for (const Clock::time_point begun = Clock::now(); Clock::now() - begun < kTryFor;) {
    FirstMoment moment;
    const Ticker ticker;
    moment.run();
    ASSERT_EQ(moment.answer(), 201) << moment.logs();
    const std::optional<size_t> leader = moment.early_at();
    if (!leader) continue;
    // The leader's replica is the first to show a member: it registered after the last look that found none.
    const Seen& seen = moment.seen(*leader);
    ASSERT_TRUE(seen.last_without_member && seen.first_member) << moment.logs();
    ASSERT_TRUE(seen.all_placed) << "not placed in 30 s\n" << moment.logs();
    const Clock::duration whole = *seen.all_placed - *seen.last_without_member;
    const Clock::duration awake = ticker.awake(*seen.last_without_member, *seen.all_placed);
    std::printf("placed %lld ms after the first member (%lld ms without the machine's stalls)\n", in_ms(whole), in_ms(awake));
    EXPECT_LE(awake, 1500ms) << moment.logs();
    return;
  }
  FAIL() << "a member was registered before the topic in every cluster that was tried";
}

}  // namespace
}  // namespace tests

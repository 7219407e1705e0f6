// Real processes that come and go while clients write: a rolling restart of five, and a node that comes back behind a compacted log.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>

#include "tests/integration/cluster.h"
#include "tests/integration/ticker.h"

namespace tests {
namespace {

using Clock = Ticker::Clock;

constexpr int kOk = 201;
constexpr int kExists = 409;
constexpr int kUnavailable = 503;

// A retry that has not succeeded by then will not.
constexpr Milliseconds kRetryFor = 15s;

// Clients that create topics one after the other, each at the next node that is not being restarted, as a load balancer would send them. A
// 503 is tried again, at another node, until the topic is there.
class BalancedWriters {
 public:
  // `avoided`: as by avoid(), from the first write on.
  BalancedWriters(Cluster& cluster, int count, int avoided = -1) : cluster_(cluster), avoided_(avoided) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, i] { write(i); });
    }
  }
  ~BalancedWriters() { stop(); }

  void stop() {
    is_stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const std::lock_guard lock(mutex_);
    end_gap();
  }
  // From its return on nothing new is sent to the node; what is under way there goes on. -1: all are open.
  void avoid(int node) {
    avoided_ = node;
    std::this_thread::sleep_for(50ms);  // who had just chosen it has reached it
  }

  std::set<std::string> written() {
    const std::lock_guard lock(mutex_);
    return written_;
  }
  // What was answered and is neither success nor a 503 that a retry made good; empty when all is well.
  std::string wrong() {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }
  // The longest stretch without an acknowledged write, from the first moment to stop(): as it was, and without the machine's stalls.
  struct Gap {
    Milliseconds whole{};
    Milliseconds awake{};
  };
  Gap longest_gap() {
    const std::lock_guard lock(mutex_);
    return {std::chrono::duration_cast<Milliseconds>(longest_), std::chrono::duration_cast<Milliseconds>(longest_awake_)};
  }
  int retries() const { return retries_; }
  // Of one write.
  int most_retries() const { return most_retries_; }

 private:
  void write(int writer) {
    size_t turn = static_cast<size_t>(writer);
    for (int number = 0; !is_stopping_; ++number) {
      const std::string name = "w" + std::to_string(writer) + "-" + std::to_string(number);
      const Clock::time_point give_up = Clock::now() + kRetryFor;
      int retries = 0;
      while (!create(name, turn, retries > 0)) {
        ++retries;
        ++retries_;
        if (Clock::now() >= give_up) {
          note_wrong(name + ": no retry of a 503 succeeded");
          break;
        }
        std::this_thread::sleep_for(20ms);
      }
      for (int most = most_retries_; retries > most && !most_retries_.compare_exchange_weak(most, retries);) {
      }
    }
  }
  // True when the topic is there, or all is lost.
  bool create(const std::string& name, size_t& turn, bool is_retry) {
    do {
      turn = (turn + 1) % cluster_.size();
    } while (static_cast<int>(turn) == avoided_);
    const auto response = cluster_.node(turn).request("POST", "/v1/topics", topic_body(name));
    const int status = response ? response->status : 0;
    const std::lock_guard lock(mutex_);
    if (status == kOk || (is_retry && status == kExists)) {
      end_gap();
      written_.insert(name);
      return true;
    }
    if (status == kUnavailable) {
      return false;
    }
    const std::string answer = std::to_string(status) + " " + (response ? response->body : "no answer");
    wrong_ += name + " at " + cluster_.node(turn).id() + ": " + answer + "\n";
    return true;
  }
  void note_wrong(const std::string& what) {
    const std::lock_guard lock(mutex_);
    wrong_ += what + "\n";
  }
  // With the lock held.
  void end_gap() {
    const Clock::time_point now = Clock::now();
    longest_ = std::max(longest_, now - last_);
    if (now - last_ > longest_awake_) {
      longest_awake_ = std::max(longest_awake_, ticker_.awake(last_, now));
    }
    last_ = now;
  }

  Cluster& cluster_;
  std::atomic<bool> is_stopping_{false};
  std::atomic<int> avoided_;
  std::atomic<int> retries_{0};
  std::atomic<int> most_retries_{0};
  const Ticker ticker_;
  std::mutex mutex_;
  std::set<std::string> written_;
  std::string wrong_;
  Clock::time_point last_ = Clock::now();
  Clock::duration longest_{};
  Clock::duration longest_awake_{};
  std::vector<std::thread> threads_;
};

std::string missing(const NodeProcess& node, const std::set<std::string>& names) {
  std::string absent;
  for (const std::string& name : names) {
    const auto response = node.request("GET", "/v1/topics/" + name);
    if (!response || response->status != 200) absent += name + " ";
  }
  return absent;
}

TEST(RollingRestart, OfFiveUnderWritesHasNoGapAboveASecondAndFailsNoWriteThatIsTriedAgain) {
  Cluster cluster(5);
  ASSERT_TRUE(cluster.start_and_wait()) << cluster.logs();
  BalancedWriters writers(cluster, 4);
  ASSERT_TRUE(eventually([&] { return writers.written().size() >= 20; }));
  for (size_t i = 0; i < cluster.size(); ++i) {
    writers.avoid(static_cast<int>(i));
    EXPECT_EQ(cluster.node(i).stop(), 0) << cluster.node(i).log();
    cluster.node(i).start();
    ASSERT_TRUE(cluster.node(i).wait_ready()) << cluster.node(i).log();
    writers.avoid(-1);
    std::this_thread::sleep_for(200ms);
  }
  writers.stop();
  const std::set<std::string> written = writers.written();
  const BalancedWriters::Gap gap = writers.longest_gap();
  std::printf("%zu writes acknowledged, longest gap %lld ms (%lld ms without the machine's stalls), %d retries of a 503, "
              "at most %d of one\n",
              written.size(), static_cast<long long>(gap.whole.count()), static_cast<long long>(gap.awake.count()), writers.retries(),
              writers.most_retries());
  EXPECT_EQ(writers.wrong(), "");
  EXPECT_LE(gap.awake, 1s);
  for (size_t i = 0; i < cluster.size(); ++i) {
    EXPECT_EQ(missing(cluster.node(i), written), "") << cluster.node(i).id();
  }
}

TEST(ReturningNode, ThatWasDownPastCompactionCatchesUpAndTurnsReadyByItself) {
  Cluster cluster(3);
  for (size_t i = 0; i < cluster.size(); ++i) {
    cluster.node(i).set("NARAD_CLUSTER_RAFT_SNAPSHOT_THRESHOLD", "50");
    cluster.node(i).set("NARAD_CLUSTER_RAFT_SNAPSHOT_INTERVAL", "1s");
    cluster.node(i).set("NARAD_CLUSTER_RAFT_TRAILING_LOGS", "10");
  }
  ASSERT_TRUE(cluster.start_and_wait()) << cluster.logs();
  const size_t away = *cluster.follower();
  const double last_before = cluster.node(away).metric("narad_raft_last_log_index").value_or(0);
  cluster.node(away).kill9();
  BalancedWriters writers(cluster, 2, static_cast<int>(away));
  ASSERT_TRUE(eventually([&] {
    const auto leader = cluster.leader();
    return leader && cluster.node(*leader).metric("narad_raft_log_first_index").value_or(0) > last_before + 1;
  }, 60s)) << "the leader's log no longer reaches back to where the node was";
  writers.stop();
  cluster.node(away).start();
  ASSERT_TRUE(cluster.node(away).wait_ready()) << cluster.node(away).log();
  EXPECT_EQ(missing(cluster.node(away), writers.written()), "");
  EXPECT_EQ(writers.wrong(), "");
  EXPECT_GE(cluster.node(away).metric("narad_raft_snapshots_installed_total").value_or(0), 1);
}

}  // namespace
}  // namespace tests

// The raft trace of whole runs, read back: equal for equal seeds, no disturbance of the run, and complete enough that the rules
// of the protocol can be checked from it alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chaos/plan_draw.h"
#include "chaos/run.h"

namespace chaos {
namespace {

using Json = nlohmann::json;

std::vector<std::string> trace_of(uint64_t seed, RunResult* result = nullptr) {
  std::vector<std::string> lines;
  RunOptions options;
  options.raft_trace = [&lines](std::string_view line) { lines.emplace_back(line); };
  const RunResult run = run_plan(draw_plan(seed), options);
  if (result != nullptr) *result = run;
  return lines;
}

// What a reader of the trace holds about one life of one node.
struct Life {
  uint64_t number = 0;
  uint64_t term = 0;
  uint64_t commit = 0;
  uint64_t applied = 0;
  uint64_t durable = 0;       // by "open" and "persist" lines alone
  uint64_t durable_term = 0;  // likewise
  std::map<uint64_t, uint64_t> log;  // index to term, by "open", "append" and "log reset" alone
  uint64_t log_end = 0;
  std::map<uint64_t, std::set<std::string>> granted;  // by term: who has granted it a vote, as received
};

class Reader {
 public:
  void take(const std::string& line) {
    const Json event = Json::parse(line);
    SCOPED_TRACE(line);
    EXPECT_EQ(event["line"], ++lines_);
    EXPECT_GE(event["at_ns"], last_ns_);
    last_ns_ = event["at_ns"];
    const std::string what = event["event"];
    events_.insert(what);
    Life& life = lives_[event["node"]];
    const Json& state = event["state"];
    if (what == "open") {
      EXPECT_GT(event["life"], life.number) << "each start is a life of its own";
      std::string& store = stores_[event["node"]];
      if (store == event["store"]) {  // and not on another volume
        EXPECT_GE(state["durable_term"], life.durable_term) << "a stored term is found again";
      }
      store = event["store"];
      life = Life{event["life"], state["term"], state["commit"], state["applied"], state["durable_index"], state["durable_term"], {}, 0, {}};
      EXPECT_EQ(state["last_index"], state["durable_index"]) << "a life begins with what the disk holds";
      open_log(event, life);
    }
    ASSERT_EQ(event["life"], life.number) << "a life begins with its open line";
    check_state(state, life);
    if (what == "persist") {
      life.durable = state["durable_index"];
      life.durable_term = state["durable_term"];
    } else if (what == "snapshot" && event["what"] == "durable") {
      life.durable = std::max<uint64_t>(life.durable, event["index"]);  // an image is durable in the log's place
    } else if (what == "snapshot" && event["what"] == "log reset") {
      life.log.clear();
      life.log_end = event["index"];
    } else if (what == "append") {
      check_append(event, life);
    } else if (what == "commit") {
      EXPECT_EQ(event["index"], state["commit"]);
    } else if (what == "apply") {
      EXPECT_LE(event["index"], life.durable) << "what is applied was persisted before";
      EXPECT_EQ(event["from_index"], applied_[event["node"]][life.number].value_or(life.applied));
      applied_[event["node"]][life.number] = event["index"].get<uint64_t>();
    } else if (what == "become" && event["role"] == "leader") {
      EXPECT_TRUE(leaders_.emplace(event["role_term"].get<uint64_t>(), event["node"].get<std::string>()).second)
          << "a term has one leader";
      check_election(event, life);
    } else if (what == "send") {
      check_vote(event);
      sent_.insert(key_of(event));
      EXPECT_LE(event["message_term"], life.durable_term) << "a message speaks for a term that a crash cannot take back";
      if (event["type"] == "append_reply" && event["rejected"] == false) {
        EXPECT_LE(event["match"], life.durable);
      }
    } else if (what == "receive") {
      EXPECT_TRUE(sent_.contains(key_of(event))) << "what is received was sent";
      if (event["type"] == "vote_reply" && event["granted"] == true) life.granted[event["campaign_term"]].insert(event["from"]);
    }
  }
  size_t elections() const { return elections_; }
  const std::set<std::string>& events() const { return events_; }
  size_t entries() const { return entries_.size(); }

 private:
  // Without what is told on arrival only: whoever reads the trace matches messages by these.
  static std::string key_of(Json event) {
    for (const char* own : {"line", "at_ns", "node", "life", "event", "state"}) event.erase(own);
    return event.dump();
  }
  void check_state(const Json& state, Life& life) {
    EXPECT_GE(state["term"], life.term) << "terms never fall";
    EXPECT_GE(state["commit"], life.commit) << "the commit index never falls";
    EXPECT_LE(state["applied"], state["commit"]);
    EXPECT_LE(state["commit"], state["last_index"]);
    EXPECT_LE(state["last_term"], state["term"]);
    life.term = state["term"];
    life.commit = state["commit"];
    const std::string role = state["role"];
    EXPECT_EQ(state.contains("progress"), role == "leader");
    EXPECT_EQ(state.contains("ballot"), role == "candidate" || role == "pre-candidate");
  }
  static void open_log(const Json& event, Life& life) {
    const Json& state = event["state"];
    const Json& terms = event["terms"];
    life.log_end = state["last_index"];
    for (size_t i = 0; i < terms.size(); ++i) {
      const uint64_t end = i + 1 < terms.size() ? terms[i + 1]["from_index"].get<uint64_t>() : life.log_end + 1;
      for (uint64_t index = terms[i]["from_index"]; index < end; ++index) life.log[index] = terms[i]["term"];
    }
    EXPECT_EQ(life.log.size(), life.log_end - state["base_index"].get<uint64_t>()) << "every entry above the base has its term";
  }
  // A leader has a quorum of votes that others sent to it, or of one.
  void check_election(const Json& event, const Life& life) {
    ++elections_;
    const uint64_t term = event["role_term"];
    size_t granted = 0;
    const auto given = life.granted.find(term);
    const Json& voters = event["state"]["voters"];
    for (const Json& voter : voters) {
      const bool is_own = voter["id"] == event["node"];
      granted += is_own || (given != life.granted.end() && given->second.contains(voter["id"]));
    }
    EXPECT_GT(2 * granted, voters.size()) << "elected by a quorum";
  }
  // A store votes once a term.
  void check_vote(const Json& event) {
    if (event["type"] != "vote_reply" || event["granted"] != true) return;
    const auto vote = votes_.try_emplace({event["store"], event["campaign_term"]}, event["to"]).first;
    EXPECT_EQ(vote->second, event["to"]) << "a store votes once a term";
  }
  void check_append(const Json& event, Life& life) {
    life.log.erase(life.log.lower_bound(event["entries"][0]["index"]), life.log.end());
    for (const Json& entry : event["entries"]) life.log[entry["index"]] = entry["term"];
    EXPECT_LE(event["entries"][0]["index"], life.log_end + 1) << "no hole";
    EXPECT_EQ(event["replaces_suffix"], event["entries"][0]["index"] <= life.log_end);
    life.log_end = event["entries"].back()["index"];
    EXPECT_EQ(life.log_end, event["state"]["last_index"]);
    EXPECT_EQ(life.log.rbegin()->second, event["state"]["last_term"]);
    uint64_t next = event["entries"][0]["index"];
    life.durable = std::min(life.durable, next - 1);  // what is replaced counts no longer
    for (const Json& entry : event["entries"]) {
      EXPECT_EQ(entry["index"], next++);
      EXPECT_LE(entry["term"], event["append_term"]);
      const auto at = entries_.try_emplace({entry["index"], entry["term"]}, entry["content"]).first;
      EXPECT_EQ(at->second, entry["content"]) << "an index and a term name one entry";
    }
  }

  struct Applied {
    std::optional<uint64_t> index;
    uint64_t value_or(uint64_t otherwise) const { return index.value_or(otherwise); }
    Applied& operator=(uint64_t value) {
      index = value;
      return *this;
    }
  };
  uint64_t lines_ = 0;
  uint64_t last_ns_ = 0;
  std::map<std::string, Life> lives_;
  std::map<std::string, std::map<uint64_t, Applied>> applied_;
  std::map<uint64_t, std::string> leaders_;
  std::map<std::pair<uint64_t, uint64_t>, std::string> entries_;
  std::set<std::string> sent_;
  std::set<std::string> events_;
  std::map<std::string, std::string> stores_;  // by node
  std::map<std::pair<std::string, uint64_t>, std::string> votes_;  // by store and term
  size_t elections_ = 0;
};

TEST(RaftTrace, IsCompleteEnoughToCheckTheProtocolFromItAlone) {
  std::set<std::string> events;
  for (const uint64_t seed : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(seed);
    RunResult result;
    const std::vector<std::string> lines = trace_of(seed, &result);
    ASSERT_FALSE(result.violation) << result.violation->sentence;
    Reader reader;
    for (const std::string& line : lines) {
      reader.take(line);
      if (testing::Test::HasFailure()) return;
    }
    events.insert(reader.events().begin(), reader.events().end());
    EXPECT_GE(reader.entries(), result.entries);
    EXPECT_GT(reader.elections(), 0u);
  }
  for (const char* event : {"open", "become", "send", "receive", "append", "persist", "commit", "apply", "configuration", "offer", "read", "transfer"}) {
    EXPECT_TRUE(events.contains(event)) << event;
  }
}

TEST(RaftTrace, IsEqualForEqualSeedsAndDisturbsNothing) {
  const RunResult plain = run_plan(draw_plan(4));
  RunResult traced;
  const std::vector<std::string> once = trace_of(4, &traced);
  EXPECT_EQ(once, trace_of(4));
  EXPECT_EQ(traced.hash, plain.hash);
  EXPECT_EQ(traced.events, plain.events);
  EXPECT_GT(once.size(), 1'000u);
}

}  // namespace
}  // namespace chaos

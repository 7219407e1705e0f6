// The contract of the HTTP API: every row of contract_rows.h is asked in its circumstances, in clusters of whole nodes, and the rows and
// docs/http.md name the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cluster/cluster_frames.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/records_reader.h"
#include "engine/topics/json.h"
#include "tests/support/paths.h"
#include "tests/support/registered_world.h"
#include "tests/unit/engine/api/contract_rows.h"

namespace {

using namespace engine;
using namespace std::chrono_literals;
using contract::Row;
using contract::When;

// ---- Texts of the table ------------------------------------------------------------------------------------------------------

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Where `piece`, in which "#" stands for a whole number, ends when it begins at `at`.
std::optional<size_t> end_of_piece(std::string_view text, size_t at, std::string_view piece) {
  for (const char c : piece) {
    if (c == '#') {
      const size_t first = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      if (at == first) return std::nullopt;
    } else if (at >= text.size() || text[at++] != c) {
      return std::nullopt;
    }
  }
  return at;
}

// Whether the pieces of `pattern` between its "*" stand in `text` one after the other.
bool holds(std::string_view text, std::string_view pattern) {
  size_t at = 0;
  for (size_t begin = 0; begin <= pattern.size();) {
    const size_t star = std::min(pattern.find('*', begin), pattern.size());
    const std::string_view piece = pattern.substr(begin, star - begin);
    std::optional<size_t> end;
    for (; !end && at <= text.size(); ++at) end = end_of_piece(text, at, piece);
    if (!end) return false;
    at = *end;
    begin = star + 1;
  }
  return true;
}

TEST(ContractTable, ATextStandsForNumbersAndForAnythingAndForNothingElse) {
  EXPECT_TRUE(holds(R"({"a":17,"b":"x","c":2})", R"("a":#,"b":"*","c":#})"));
  EXPECT_FALSE(holds(R"({"a":17,"b":"x","c":2})", R"("a":#,"c")")) << "nothing may be left out";
  EXPECT_FALSE(holds(R"({"a":"17"})", R"("a":#)")) << "a text is no number";
  EXPECT_FALSE(holds(R"({"c":2,"b":"x"})", R"("b"*"c")")) << "in this order";
  EXPECT_TRUE(holds("anything", ""));
}

// ---- The documents -----------------------------------------------------------------------------------------------------------

using Statuses = std::set<std::pair<std::string, int>>;

// The numbers of three digits in it.
std::set<int> statuses_in(std::string_view text) {
  std::set<int> found;
  for (size_t at = 0; at < text.size(); ++at) {
    size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end - at == 3) found.insert(std::stoi(std::string(text.substr(at, 3))));
    at = end;
  }
  return found;
}

// What the tables of docs/http.md name: | `METHOD path?query` body | statuses | statuses |
Statuses documented() {
  Statuses named;
  std::ifstream file(tests::source_dir() + "/docs/http.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::string endpoint = line.substr(3, line.find('`', 3) - 3);
    endpoint = endpoint.substr(0, endpoint.find('?'));
    // What this node's raft does is of this server alone: node_test.cpp.
    if (endpoint.find(" /v1/cluster/raft") != std::string::npos) continue;
    for (const int status : statuses_in(line.substr(line.find('|', 1)))) named.emplace(endpoint, status);
  }
  return named;
}

TEST(ContractTable, AsksForEveryStatusThatTheDocumentsNameAndForNoOther) {
  Statuses have;
  Statuses asked;
  for (const Row& row : contract::all_rows()) {
    have.emplace(row.endpoint, row.status);
    if (row.when != When::absent) asked.emplace(row.endpoint, row.status);
  }
  const Statuses named = documented();
  for (const auto& [endpoint, status] : named) {
    EXPECT_TRUE(have.contains({endpoint, status})) << endpoint << " " << status << " is in docs/http.md and has no row";
  }
  for (const auto& [endpoint, status] : asked) {
    EXPECT_TRUE(named.contains({endpoint, status})) << endpoint << " " << status << " is asked for and not in docs/http.md";
  }
}

TEST(ContractTable, SaysOfEveryAnswerWhatIsInItAndOfEveryRowThatIsNotAskedWhyNot) {
  for (const Row& row : contract::all_rows()) {
    EXPECT_EQ(row.text.empty(), row.status == 204) << row.endpoint << " " << row.status << " " << row.target;
    EXPECT_EQ(row.target.empty(), row.when == When::absent) << row.endpoint << " " << row.status;
  }
}

// ---- Asking ------------------------------------------------------------------------------------------------------------------

struct ContractTest : tests::RegisteredWorld {
  explicit ContractTest(size_t count = 3) : RegisteredWorld(count) {}

  // What the marks of the table stand for; "@" is the asked node's own name.
  std::vector<std::pair<std::string, std::string>> marks;

  std::string id(size_t i) const { return nodes[i].config.cluster.node_id; }
  std::string named(std::string text, const std::string& name) const {
    std::vector<std::pair<std::string, std::string>> all = marks;
    all.emplace_back("@", name);
    for (const auto& [mark, value] : all) {
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
        text.replace(at, mark.size(), value);
      }
    }
    return text;
  }

  api::HttpResponse ask_row(size_t node, const Row& row, const std::string& name) {
    const std::string endpoint = row.endpoint;
    api::HttpRequest request{endpoint.substr(0, endpoint.find(' ')), named(row.target, name), {}, named(row.body, name)};
    if (row.has_header) {
      request.headers.push_back({"Content-Type", "application/json"});
    }
    api::HttpResponse answer;
    answer.status = 0;
    as_client([&](io::Env& env) {
      api::HttpClient client(env.net, nodes[node].config.http.addr);
      if (const auto response = client.request(request, env.after(60s)); response.ok()) {
        answer = *response;
      }
    });
    return answer;
  }

  void expect_row(size_t node, const Row& row, const std::string& name) {
    SCOPED_TRACE(std::string(row.endpoint) + " " + named(row.target, name) + " at " + name);
    const api::HttpResponse answer = ask_row(node, row, name);
    EXPECT_EQ(answer.status, row.status) << answer.body;
    EXPECT_TRUE(holds(answer.body, named(row.text, name))) << answer.body << "instead of " << named(row.text, name);
    if (row.status == 204) {
      EXPECT_EQ(answer.body, "");
    } else if (row.status >= 400) {
      expect_error(row, answer);
    }
  }
  // {"error": "<text>"}, beside which a decommission has its reasons; a forwarded request that finds no leader is told so in plain text.
  void expect_error(const Row& row, const api::HttpResponse& answer) {
    if (row.text == contract::kNoLeader) {
      EXPECT_EQ(answer.content_type, "text/plain; charset=utf-8");
      return;
    }
    EXPECT_EQ(answer.content_type, "application/json");
    const auto parsed = json::parse(answer.body);
    ASSERT_TRUE(parsed.ok()) << answer.body;
    const json::Value* error = parsed->find("error");
    EXPECT_TRUE(error != nullptr && error->is(json::Value::Kind::string)) << answer.body;
    const bool has_reasons = row.endpoint == std::string(contract::kDecommission) && row.status == 409;
    EXPECT_EQ(parsed->object.size(), has_reasons ? 2u : 1u) << answer.body;
  }
  void expect_rows(When when, size_t node, const std::string& name) {
    for (const Row& row : contract::all_rows()) {
      if (row.when == when) expect_row(node, row, name);
    }
  }
};

TEST_F(ContractTest, LeaderAndFollowerAnswerAlike) {
  const size_t leader = lead();
  const size_t follower = (leader + 1) % 3;
  world.run_for(3s);
  marks = {{"{leader}", id(leader)}, {"{follower}", id(follower)}};
  expect_rows(When::whole, leader, "led");
  expect_rows(When::whole, follower, "followed");
}

TEST_F(ContractTest, ANodeThatLostTheOthersSaysSo) {
  const size_t leader = lead();
  world.run_for(3s);
  const size_t follower = (leader + 1) % 3;
  for (const char* name : {"@", "@p", "@c"}) {
    EXPECT_EQ(ask(leader, "POST", "/v1/topics", named(R"({"name":")" + std::string(name) + "\"}", "a")).status, 201);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (i != follower) {
      nodes[i].machine->power_loss();
      nodes[i].view.reset();
    }
  }
  world.run_for(8s);
  expect_rows(When::alone, follower, "a");
}

TEST_F(ContractTest, ANodeThatNeverHeardALeaderHasNothingToTell) {
  start(0);
  world.run_for(5s);
  expect_rows(When::unheard, 0, "a");
}

TEST_F(ContractTest, ANodeIsUnhealthyAsSoonAsItsStopHasBegun) {
  const size_t leader = lead();
  world.run_for(3s);
  // Nobody hears that leadership is theirs, so the stop takes its time.
  for (size_t i = 0; i < 3; ++i) {
    if (i != leader) world.network().cut_both(*nodes[leader].machine, *nodes[i].machine);
  }
  nodes[leader].stop->set();
  expect_rows(When::stopping, leader, "a");
}

TEST_F(ContractTest, ALeaderOfAnEarlierReleaseIsNamedAsWhatCannotBeDone) {
  for (size_t i = 1; i < 3; ++i) {
    nodes[i].config.tuning.release = {"3.0.1", metastore::kEveryReleaseEntryType, true, false, {false, false, false, false, 32}};
  }
  start_all();
  await_leader();
  world.run_for(3s);
  if (leader() == 0u) {
    EXPECT_EQ(ask(0, "POST", "/v1/cluster/raft/transfer", R"({"to":"n2"})").status, 200);
    world.run_for(1s);
  }
  ASSERT_NE(leader().value_or(0), 0u);
  expect_rows(When::older, 0, "a");
}

struct MovingContractTest : ContractTest {
  MovingContractTest() : ContractTest(5) {}

  // Runs `body` in a fiber of node `i`, to its end.
  void on_node(size_t i, const std::function<void(const NodeView& view, io::Env& env)>& body) {
    bool ended = false;
    nodes[i].machine->process()->spawn("test", [&, i] {
      body(*nodes[i].view, nodes[i].machine->process()->env());
      ended = true;
    });
    ASSERT_TRUE(world.run_while([&] { return !ended; }, world.now() + 30s));
  }
  // Who owns the topic's first partition.
  std::string owner(size_t leader, const std::string& topic) {
    std::string found;
    on_node(leader, [&](const NodeView& view, io::Env&) {
      const auto row = metastore::get_assignment(view.fsm, topic, 0);
      if (row.ok() && row->has_value()) found = (*row)->owner_id;
    });
    return found;
  }
  void begin_move(size_t leader, const std::string& topic, size_t to) {
    on_node(leader, [&](const NodeView& view, io::Env& env) {
      const Proposed proposed =
          view.proposer.propose(metastore::encode_command(metastore::SetMoveTarget{topic, 0, id(to)}), env.after(10s));
      EXPECT_EQ(proposed.outcome, Proposed::Outcome::applied) << proposed.reason;
    });
  }
};

TEST_F(MovingContractTest, LeaderAndFollowerCarryOutWhatAnOperatorOrders) {
  const size_t leader = lead();
  const size_t follower = (leader + 1) % 5;
  const std::string names[] = {"led", "followed"};
  for (const std::string& name : names) {
    EXPECT_EQ(ask(leader, "POST", "/v1/topics", R"({"name":")" + name + "\"}").status, 201);
  }
  world.run_for(12s);
  // Two of the other three: one that owns neither partition, and is about to.
  std::vector<size_t> others;
  for (size_t i = 2; i < 5; ++i) others.push_back((leader + i) % 5);
  const auto is_owner = [&](size_t i) { return owner(leader, "led") == id(i) || owner(leader, "followed") == id(i); };
  const auto found = std::find_if_not(others.begin(), others.end(), is_owner);
  ASSERT_NE(found, others.end());
  const size_t away = *found;
  others.erase(found);
  marks = {{"{leader}", id(leader)}, {"{follower}", id(follower)}, {"{away}", id(away)}, {"{leaver}", id(others.front())}};

  nodes[away].machine->power_loss();
  nodes[away].view.reset();
  world.run_for(1s);
  for (const std::string& name : names) {
    begin_move(leader, name, away);
    const cluster::JoinClusterRequest join{name, id(away) + ":" + (name == "led" ? "7001" : "7002"), true, metastore::kNewestEntryType};
    EXPECT_EQ(rpc(leader, encode(join)).reply.body, "{\"status\":\"staged\",\"reason\":\"\"}\n");
  }
  expect_rows(When::moving, leader, "led");
  expect_rows(When::moving, follower, "followed");
}

}  // namespace

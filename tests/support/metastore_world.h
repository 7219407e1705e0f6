// Raft servers in a simulated world, each with the production stores and links and a metastore on RocksDB behind them: what a node is
// without its API. raft::Invariants watches every core; what each replica answered and came to is kept, to be compared.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/fsm_home.h"
#include "io/check.h"
#include "io/fiber.h"
#include "io/sim/machine.h"
#include "io/sim/network.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "raft/invariants.h"
#include "raft/server.h"

namespace tests {

class MetastoreWorld {
 public:
  struct Node : raft::Observer {
    MetastoreWorld* home = nullptr;
    io::sim::Machine* machine = nullptr;
    std::string address;
    // Of the lives that begin from now on.
    engine::metastore::FsmSettings settings;
    bool is_joining = false;
    // Of the present life; null when there is none.
    raft::RaftServer* server = nullptr;
    engine::metastore::Fsm* fsm = nullptr;
    // Of the present life or the last one.
    std::optional<raft::RestartRow> row;
    std::string failure;  // why it did not start, or stopped by itself
    std::optional<int> exit_code;
    // Of all lives, by index: what it answered, and its digest once that was applied.
    std::map<raft::Index, std::string> answers;
    std::map<raft::Index, std::uint64_t> digests;

    void core_changed(const raft::Core& core) override {
      if (auto violation = home->invariants.observe(core)) {
        home->world.report_violation(std::string(violation->invariant) + ": " + violation->detail);
      }
    }
    void entry_applied(const raft::Entry& entry, const std::string& answer) override {
      if (!answer.empty()) answers[entry.index] = answer;
    }
    void applied(const raft::Core&) override { note_digest(); }
    void image_installed(const raft::SnapshotLabel& label) override {
      NARAD_CHECK(fsm == nullptr || fsm->applied_index() == label.index, "an image comes to its label");
      note_digest();
    }
    void note_digest() {
      if (fsm != nullptr) digests[fsm->applied_index()] = fsm->digest();
    }
  };

  // The first `voters` of the servers make the cluster; the others wait to be added.
  explicit MetastoreWorld(std::uint64_t seed, std::size_t servers = 3, std::size_t voters = 3) : world(seed) {
    options.log.segment_bytes = 4096;
    options.log.fill_step_bytes = 4096;
    options.snapshots.threshold = 1'000'000;
    options.snapshots.interval = std::chrono::milliseconds(20);
    options.snapshots.trailing = 0;
    options.snapshots.store.chunk_bytes = 4096;
    for (std::size_t i = 0; i < servers; ++i) {
      io::sim::MachineSettings made;
      made.name = "n" + std::to_string(i + 1);
      auto node = std::make_unique<Node>();
      node->home = this;
      node->address = made.name + ":7943";
      node->settings.build = "narad test";
      node->settings.flush_bytes = 4000;
      node->machine = &world.add_machine(made);
      node->is_joining = i >= voters;
      if (i < voters) members.emplace_back(made.name, node->address);
      nodes.push_back(std::move(node));
    }
  }

  Node& operator[](std::size_t i) { return *nodes[i]; }
  io::sim::Volume& volume(std::size_t i) { return nodes[i]->machine->volume(); }

  // ---- Lives -------------------------------------------------------------------------------------------------------------------
  void start(std::size_t i) {
    Node& node = *nodes[i];
    NARAD_CHECK(node.machine->process() == nullptr, "a machine runs one process");
    node.exit_code.reset();
    node.failure.clear();
    node.row.reset();
    node.machine->start([this, &node](io::Env& env) {
      const int code = life(node, env);
      node.exit_code = code;
      return code;
    });
  }
  void start_all() {
    for (std::size_t i = 0; i < members.size(); ++i) start(i);
  }
  void kill(std::size_t i) {
    nodes[i]->machine->kill();
    world.run_for(std::chrono::milliseconds(1));
  }
  bool is_up(std::size_t i) const { return nodes[i]->machine->process() != nullptr && nodes[i]->server != nullptr; }
  bool await_up(std::size_t i) {
    return run_until([&] { return is_up(i); }, std::chrono::seconds(10));
  }
  bool await_end(std::size_t i, io::Duration limit) {
    return run_until([&] { return nodes[i]->machine->process() == nullptr; }, limit);
  }
  void cut_off(std::size_t i) {
    for (std::size_t other = 0; other < nodes.size(); ++other) {
      if (other != i) world.network().cut_both(*nodes[i]->machine, *nodes[other]->machine);
    }
  }
  bool run_until(const std::function<bool()>& condition, io::Duration limit) {
    return world.run_while([&] { return !condition(); }, world.now() + limit);
  }

  // ---- Leaders -----------------------------------------------------------------------------------------------------------------
  // The live leader of the highest term; -1 when there is none.
  int leader() const {
    int found = -1;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!is_up(i) || !nodes[i]->server->is_leader()) continue;
      if (found < 0 || nodes[i]->server->core().term() > nodes[static_cast<std::size_t>(found)]->server->core().term()) {
        found = static_cast<int>(i);
      }
    }
    return found;
  }
  // One that has committed in its term.
  int await_leader(io::Duration limit = std::chrono::seconds(10)) {
    const bool elected = run_until([this] {
      const int i = leader();
      return i >= 0 && nodes[static_cast<std::size_t>(i)]->server->core().has_committed_in_term();
    }, limit);
    return elected ? leader() : -1;
  }
  bool make_leader(std::size_t i) {
    for (int tries = 0; tries < 20; ++tries) {
      const int now = await_leader();
      if (now == static_cast<int>(i)) return true;
      if (now < 0) return false;
      Node& from = *nodes[static_cast<std::size_t>(now)];
      (void)on(static_cast<std::size_t>(now), [&from, to = nodes[i]->machine->name()] {
        return from.server->transfer_leadership(to, from.machine->process()->env().after(std::chrono::seconds(5))).ok();
      });
      world.run_for(std::chrono::milliseconds(100));
    }
    return false;
  }
  // Starts all; the leader's number. The cluster's identity is known everywhere by then.
  std::size_t lead() {
    start_all();
    NARAD_CHECK(await_leader() >= 0, "a healthy cluster elects a leader");
    world.run_for(std::chrono::milliseconds(500));
    return static_cast<std::size_t>(await_leader());
  }

  // ---- Calls -------------------------------------------------------------------------------------------------------------------
  // Begins `body` in a fiber of server i; its result is there once it has ended.
  template <typename Body>
  std::shared_ptr<std::optional<std::invoke_result_t<Body>>> begin(std::size_t i, Body body) {
    auto result = std::make_shared<std::optional<std::invoke_result_t<Body>>>();
    nodes[i]->machine->process()->spawn("test", [result, body = std::move(body)]() mutable { *result = body(); });
    return result;
  }
  // And waits for it; nothing when the server ended first.
  template <typename Body>
  std::optional<std::invoke_result_t<Body>> on(std::size_t i, Body body, io::Duration limit = std::chrono::seconds(30)) {
    auto result = begin(i, std::move(body));
    run_until([&] { return result->has_value() || !is_up(i); }, limit);
    return *result;
  }
  std::shared_ptr<std::optional<raft::Proposed>> begin_propose(std::size_t i, std::string command) {
    Node& node = *nodes[i];
    return begin(i, [&node, command = std::move(command)] {
      return node.server->propose(command, node.machine->process()->env().after(std::chrono::seconds(5)));
    });
  }
  // Proposes until some leader has taken it; the state machine's answer. For commands that may be applied twice, or where no leader
  // is lost on the way.
  template <typename Command>
  std::optional<engine::metastore::Answer> write(const Command& command) {
    const std::string bytes = engine::metastore::encode_command(command);
    const io::Instant end = world.now() + std::chrono::seconds(30);
    while (world.now() < end) {
      const int i = await_leader();
      if (i < 0) continue;
      auto call = begin_propose(static_cast<std::size_t>(i), bytes);
      run_until([&] { return call->has_value() || !is_up(static_cast<std::size_t>(i)); }, std::chrono::seconds(10));
      if (call->has_value() && (*call)->ok()) return engine::metastore::decode_answer((*call)->answer);
      world.run_for(std::chrono::milliseconds(20));
    }
    return std::nullopt;
  }
  template <typename Command>
  bool writes(const Command& command) {
    const auto answer = write(command);
    return answer && answer->ok();
  }

  // ---- What they come to ---------------------------------------------------------------------------------------------------------
  // Until every live server has applied all that the leader's log holds, to one digest, which is that of its rows.
  bool all_level(io::Duration limit = std::chrono::seconds(20)) {
    const bool are_level = run_until([this] {
      const int l = leader();
      if (l < 0) return false;
      const Node& first = *nodes[static_cast<std::size_t>(l)];
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i]->machine->process() == nullptr) continue;
        if (!is_up(i) || nodes[i]->server->core().applied_index() != first.server->core().last_index() ||
            nodes[i]->fsm->applied_index() != first.fsm->applied_index() || nodes[i]->fsm->digest() != first.fsm->digest()) {
          return false;
        }
      }
      return true;
    }, limit);
    for (std::size_t i = 0; are_level && i < nodes.size(); ++i) {
      if (is_up(i) && !is_its_own(i)) return false;
    }
    return are_level;
  }
  // Its rows are those that its index and digest stand for.
  bool is_its_own(std::size_t i) {
    Node& node = *nodes[i];
    return on(i, [&node] {
      const auto audit = node.fsm->audit();
      return audit.ok() && audit->digest_of_rows == audit->stored.digest;
    }).value_or(false);
  }
  bool has_topic(std::size_t i, const std::string& name) {
    Node& node = *nodes[i];
    return on(i, [&node, name] {
      const auto topic = node.fsm->get_topic(name);
      return topic.ok() && *topic != nullptr;
    }).value_or(false);
  }
  std::optional<std::string> row(std::size_t i, engine::metastore::Bucket bucket, const std::string& key) {
    Node& node = *nodes[i];
    return on(i, [&node, bucket, key] {
      const auto found = node.fsm->get_row(bucket, key);
      return found.ok() ? *found : std::optional<std::string>();
    }).value_or(std::nullopt);
  }
  // What the replicas have answered and come to where two of them tell: is it the same?
  bool all_agree() const {
    for (const auto& one : nodes) {
      for (const auto& other : nodes) {
        if (!agree(one->answers, other->answers) || !agree(one->digests, other->digests)) return false;
      }
    }
    return true;
  }
  // The paths of its snapshots, the oldest first.
  std::vector<std::string> snapshots(std::size_t i) {
    std::vector<std::string> found;
    for (const std::string& path : volume(i).tree().files()) {
      if (path.starts_with("raft/snapshots/") && path.ends_with(".snapshot")) found.push_back(path);
    }
    return found;
  }

  raft::ServerOptions options;
  raft::Invariants invariants;
  std::vector<std::pair<raft::ServerId, std::string>> members;
  std::vector<std::unique_ptr<Node>> nodes;
  io::sim::World world;  // goes first: its fibers use all of the above

 private:
  template <typename Map>
  static bool agree(const Map& one, const Map& other) {
    for (const auto& [index, value] : one) {
      const auto found = other.find(index);
      if (found != other.end() && found->second != value) return false;
    }
    return true;
  }

  int life(Node& node, io::Env& env) {
    raft::ServerOptions mine = options;
    mine.id = node.machine->name();
    mine.address = node.address;
    if (!node.is_joining) mine.bootstrap = raft::bootstrap_configuration(members);
    mine.is_joining = node.is_joining;
    engine::metastore::FsmHome home(env, node.settings);
    raft::RaftServer server(env, mine, &node);
    io::Status opened = server.read();
    if (opened.ok()) opened = server.open(home);
    if (server.decision()) node.row = server.decision()->row;
    if (!opened.ok()) {
      node.failure = opened.error().message;
      return 1;
    }
    serve(node, env, server, home.fsm());
    home.fsm().close();
    if (server.failure()) node.failure = server.failure()->to_text();
    return server.failure() ? 1 : 0;
  }

  void serve(Node& node, io::Env& env, raft::RaftServer& server, engine::metastore::Fsm& fsm) {
    auto listener = env.net.listen(node.address);
    NARAD_CHECK(listener.ok(), "an address of its own");
    struct Published {
      Node& node;
      Published(Node& n, raft::RaftServer& s, engine::metastore::Fsm& f) : node(n) {
        node.server = &s;
        node.fsm = &f;
      }
      ~Published() {
        node.server = nullptr;
        node.fsm = nullptr;
      }
    } published(node, server, fsm);
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("raft", [&server] { server.run(); });
      scope.spawn("accept", [&] {
        for (;;) {
          auto stream = (*listener)->accept();
          if (!stream.ok()) return;
          auto shared = std::make_shared<std::unique_ptr<io::Stream>>(std::move(*stream));
          scope.spawn("connection", [&server, shared] { server.serve(std::move(*shared), ""); });
        }
      });
      server.stopped().wait();
      scope.cancel();
    });
  }
};

}  // namespace tests

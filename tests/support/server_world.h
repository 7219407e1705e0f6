// Raft servers in a simulated world, each with the production stores, links and fibers, a state machine in memory, and
// raft::Invariants watching every core.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/crc32c.h"
#include "io/sim/machine.h"
#include "io/sim/network.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "raft/bytes.h"
#include "raft/invariants.h"
#include "raft/server.h"

namespace tests {

// Remembers what it applied in this life, in memory alone; after a restart it replays the log, or installs a snapshot and replays
// what follows it. Claims that all of it is durable: what the log no longer has, a snapshot brings back.
class ListMachine : public raft::StateMachine {
 public:
  explicit ListMachine(io::Env& env) : env_(env) {}
  raft::Index applied_index() const override { return applied_; }
  raft::Index durable_index() const override { return is_durable_by_flush ? flushed_ : applied_; }
  io::Status flush() override {
    const raft::Index until = applied_;
    ++flushes_begun;
    while (is_flush_held) io::sleep_for(std::chrono::milliseconds(10));
    flushed_ = std::max(flushed_, until);
    return {};
  }
  bool is_stopped() const override { return is_stopped_; }
  io::Result<std::vector<std::string>> apply(const std::vector<raft::Entry>& batch) override {
    if (apply_time > io::Duration::zero()) io::sleep_for(apply_time);
    std::vector<std::string> answers;
    largest_batch = std::max(largest_batch, batch.size());
    for (const raft::Entry& entry : batch) {
      if (entry.bytes() == "poison") {
        is_stopped_ = true;
        return io::fail(io::ErrorKind::corrupt, "poison at " + std::to_string(entry.index));
      }
      NARAD_CHECK(entry.index > applied_, "an entry is applied once");
      commands.emplace_back(entry.bytes());
      applied_ = entry.index;
      answers.push_back("answer to " + commands.back() + " at " + std::to_string(entry.index));
    }
    return answers;
  }

  // Label, count, the commands with their lengths, and a checksum, in pieces of `image_piece_bytes`.
  io::Result<raft::Index> write_image(raft::ImageSink& sink, raft::Index replayed) override {
    if (applied_ == 0) return io::fail(io::ErrorKind::invalid, "nothing is applied yet");
    if (applied_ > replayed) return io::fail(io::ErrorKind::busy, "ahead of the replay");
    const raft::Index label = applied_;
    std::string image(16, 0);
    raft::put<std::uint64_t>(image, 0, label);
    raft::put<std::uint64_t>(image, 8, commands.size());
    for (const std::string& command : commands) {
      append_number(image, command.size());
      image += command;
    }
    append_number(image, io::crc32c(image));
    for (std::size_t at = 0; at < image.size(); at += image_piece_bytes) {
      if (write_time > io::Duration::zero()) io::sleep_for(write_time);
      io::Status written = sink.write(image.substr(at, image_piece_bytes));
      if (!written.ok()) return written.error();
    }
    ++images_written;
    return label;
  }
  io::Status check_image(raft::ImageSource& source, raft::Index label) override {
    if (is_stopped_by_images) {
      is_stopped_ = true;
      return io::fail(io::ErrorKind::invalid, "an image of a newer release");
    }
    auto read = read_image(source, label);
    return read.ok() ? io::Status() : io::Status(read.error());
  }
  io::Status install_image(raft::ImageSource& source, raft::Index label) override {
    ++installs_begun;
    auto read = read_image(source, label);
    if (!read.ok()) return read.error();
    if (!has_room) return io::fail(io::ErrorKind::no_space, "no room for the database");
    commands = std::move(*read);
    applied_ = label;
    ++images_installed;
    return {};
  }

  std::vector<std::string> commands;
  io::Duration apply_time{0};
  io::Duration write_time{0};  // before each piece of an image
  bool is_stopped_by_images = false;  // cannot go on without an image that it cannot read
  bool is_durable_by_flush = false;  // claims of what it applied only what a flush has covered
  bool is_flush_held = false;        // flushes do not end
  int flushes_begun = 0;
  std::size_t image_piece_bytes = 100;
  std::size_t largest_batch = 0;
  int images_written = 0;
  int images_installed = 0;
  int installs_begun = 0;
  bool has_room = true;  // for what an image is installed into

 private:
  static void append_number(std::string& image, std::uint64_t number) {
    image.resize(image.size() + sizeof number);
    raft::put(image, image.size() - sizeof number, number);
  }
  static io::Result<std::vector<std::string>> read_image(raft::ImageSource& source, raft::Index label) {
    std::string image;
    for (;;) {
      io::Result<std::string> piece = source.read(1000);
      if (!piece.ok()) return piece.error();
      if (piece->empty()) break;
      image += *piece;
    }
    const io::Error corrupt = io::fail(io::ErrorKind::corrupt, "the image is damaged");
    if (image.size() < 24) return corrupt;
    const std::string_view body = std::string_view(image).substr(0, image.size() - 8);
    if (raft::get<std::uint64_t>(image, body.size()) != io::crc32c(body)) return corrupt;
    if (raft::get<std::uint64_t>(image, 0) != label) return io::fail(io::ErrorKind::corrupt, "the image has another label");
    std::vector<std::string> found;
    std::size_t at = 16;
    for (std::uint64_t i = 0; i < raft::get<std::uint64_t>(image, 8); ++i) {
      const auto bytes = raft::get<std::uint64_t>(body, at);
      found.emplace_back(body.substr(at + 8, bytes));
      at += 8 + bytes;
    }
    return found;
  }

  io::Env& env_;
  raft::Index applied_ = 0;
  raft::Index flushed_ = 0;
  bool is_stopped_ = false;
};

// It holds nothing when a life begins, so there is nothing to look at.
class ListHome : public raft::StateMachineHome {
 public:
  explicit ListHome(raft::StateMachine& machine) : machine_(machine) {}
  raft::StateMachineBuild build() const override { return {"test", 0, "list", "raft"}; }
  io::Result<raft::StateMachineFacts> look() override { return raft::StateMachineFacts{}; }
  io::Result<std::uint32_t> newest_type_of(raft::ImageSource& image) override {
    auto begin = image.read(16);
    return begin.ok() ? io::Result<std::uint32_t>(0) : io::Result<std::uint32_t>(begin.error());
  }
  io::Status set_aside(const std::string&) override { return {}; }
  io::Result<raft::StateMachine*> open(const Opening&) override { return &machine_; }

 private:
  raft::StateMachine& machine_;
};

class ServerWorld {
 public:
  struct Node : raft::Observer {
    ServerWorld* home = nullptr;
    io::sim::Machine* machine = nullptr;
    std::string address;
    bool is_joining = false;  // of the lives that begin from now on
    io::Duration open_time{0};  // likewise: between open() and run(), when connections are taken already
    // Of the present life; null when there is none.
    raft::RaftServer* server = nullptr;
    ListMachine* state_machine = nullptr;
    // Of the last life.
    std::string open_error;
    std::string failure;
    void core_changed(const raft::Core& core) override {
      if (home->on_core_changed) home->on_core_changed(*this, core);
      if (auto violation = home->invariants.observe(core)) {
        home->world.report_violation(std::string(violation->invariant) + ": " + violation->detail);
      }
    }
  };
  // A call of a client on a server; the answer is there once `done`.
  template <typename Answer>
  struct Call {
    bool done = false;
    Answer answer;
  };

  explicit ServerWorld(uint64_t seed, int servers = 3) : world(seed) {
    options.log.segment_bytes = 64 << 10;
    options.log.fill_step_bytes = 32 << 10;
    for (int i = 1; i <= servers; ++i) {
      io::sim::MachineSettings settings;
      settings.name = "n" + std::to_string(i);
      settings.scattered_prefixes = {"raft/log", "raft/stable"};
      settings.unsynced_bit_flip_ppm = 20'000;
      auto node = std::make_unique<Node>();
      node->home = this;
      node->address = settings.name + ":7943";
      node->machine = &world.add_machine(settings);
      members.emplace_back(settings.name, node->address);
      nodes.push_back(std::move(node));
    }
  }

  Node& operator[](size_t i) { return *nodes[i]; }

  void start(size_t i) {
    Node& node = *nodes[i];
    NARAD_CHECK(node.machine->process() == nullptr, "a machine runs one process");
    node.machine->start([this, &node](io::Env& env) { return life(node, env); });
  }
  void start_all() {
    for (size_t i = 0; i < nodes.size(); ++i) start(i);
  }
  bool is_up(size_t i) const { return nodes[i]->machine->process() != nullptr && nodes[i]->server != nullptr; }

  // The live leader of the highest term; -1 when there is none.
  int leader() const {
    int found = -1;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!is_up(i) || !nodes[i]->server->is_leader()) continue;
      if (found < 0 || nodes[i]->server->core().term() > nodes[static_cast<size_t>(found)]->server->core().term()) {
        found = static_cast<int>(i);
      }
    }
    return found;
  }
  // Runs until there is a leader that has committed in its term; its number, or -1.
  int await_leader(io::Duration limit = std::chrono::seconds(10)) {
    const bool elected = run_until([this] {
      const int i = leader();
      return i >= 0 && nodes[static_cast<size_t>(i)]->server->core().has_committed_in_term();
    }, limit);
    return elected ? leader() : -1;
  }
  bool run_until(const std::function<bool()>& condition, io::Duration limit) {
    return world.run_while([&] { return !condition(); }, world.now() + limit);
  }

  std::shared_ptr<Call<raft::Proposed>> propose(size_t i, std::string command,
                                                io::Duration limit = std::chrono::seconds(5)) {
    auto call = std::make_shared<Call<raft::Proposed>>();
    Node& node = *nodes[i];
    node.machine->process()->spawn("client", [&node, call, limit, command = std::move(command)] {
      call->answer = node.server->propose(command, node.machine->process()->env().after(limit));
      call->done = true;
    });
    return call;
  }
  std::shared_ptr<Call<raft::Barrier>> barrier(size_t i, io::Duration limit = std::chrono::seconds(5)) {
    auto call = std::make_shared<Call<raft::Barrier>>();
    Node& node = *nodes[i];
    node.machine->process()->spawn("client", [&node, call, limit] {
      call->answer = node.server->barrier(node.machine->process()->env().after(limit));
      call->done = true;
    });
    return call;
  }
  std::shared_ptr<Call<raft::Transferred>> transfer(size_t i, raft::ServerId to, io::Duration limit = std::chrono::seconds(5)) {
    auto call = std::make_shared<Call<raft::Transferred>>();
    Node& node = *nodes[i];
    node.machine->process()->spawn("client", [&node, call, limit, to = std::move(to)] {
      call->answer = node.server->transfer_leadership(to, node.machine->process()->env().after(limit));
      call->done = true;
    });
    return call;
  }
  std::shared_ptr<Call<raft::Proposed>> change(size_t i, raft::ConfigurationChange change,
                                               io::Duration limit = std::chrono::seconds(5)) {
    auto call = std::make_shared<Call<raft::Proposed>>();
    Node& node = *nodes[i];
    node.machine->process()->spawn("client", [&node, call, limit, change = std::move(change)] {
      call->answer = node.server->change_configuration(change, node.machine->process()->env().after(limit));
      call->done = true;
    });
    return call;
  }
  // Runs until every live server has applied exactly `commands`.
  bool all_applied(const std::vector<std::string>& commands, io::Duration limit = std::chrono::seconds(10)) {
    return run_until([&] {
      for (const auto& node : nodes) {
        if (node->server != nullptr && node->state_machine->commands != commands) return false;
      }
      return true;
    }, limit);
  }

  std::function<void(Node& node, const raft::Core& core)> on_core_changed;  // of a test
  raft::ServerOptions options;
  raft::Invariants invariants;
  std::vector<std::pair<raft::ServerId, std::string>> members;
  std::vector<std::unique_ptr<Node>> nodes;
  io::sim::World world;  // goes first: its fibers use all of the above

 private:
  int life(Node& node, io::Env& env) {
    node.open_error.clear();
    node.failure.clear();
    raft::ServerOptions mine = options;
    mine.id = node.machine->name();
    mine.address = node.address;
    if (!node.is_joining) mine.bootstrap = raft::bootstrap_configuration(members);
    mine.is_joining = node.is_joining;
    ListMachine machine(env);
    ListHome list(machine);
    raft::RaftServer server(env, mine, &node);
    io::Status opened = server.read();
    if (opened.ok()) {
      opened = server.open(list);
    }
    if (!opened.ok()) {
      node.open_error = opened.error().to_text();
      return 1;
    }
    struct Published {
      Node& node;
      Published(Node& n, raft::RaftServer& s, ListMachine& m) : node(n) {
        node.server = &s;
        node.state_machine = &m;
      }
      ~Published() {
        node.server = nullptr;
        node.state_machine = nullptr;
      }
    } published(node, server, machine);
    auto listener = env.net.listen(node.address);
    if (!listener.ok()) return 1;
    io::with_scope([&](io::Scope& scope) {
      io::Task raft = scope.spawn("raft", [&server, &node] {
        if (node.open_time > io::Duration::zero()) io::sleep_for(node.open_time);
        server.run();
      });
      scope.spawn("accept", [&] {
        for (;;) {
          auto stream = (*listener)->accept();
          if (!stream.ok()) return;
          auto shared = std::make_shared<std::unique_ptr<io::Stream>>(std::move(*stream));
          scope.spawn("connection", [&server, shared] { server.serve(std::move(*shared), ""); });
        }
      });
      server.stopped().wait();
      raft.join(env.after(std::chrono::seconds(10)));  // it ends by itself
      scope.cancel();
    });
    if (server.failure()) node.failure = server.failure()->to_text();
    return server.failure() ? 1 : 0;
  }
};

}  // namespace tests

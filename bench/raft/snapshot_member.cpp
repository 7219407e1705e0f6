#include "bench/raft/snapshot_member.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>

#include "engine/metastore/database.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/fsm_home.h"
#include "engine/metastore/topic.h"
#include "io/check.h"
#include "io/real/host.h"
#include "raft/server.h"

namespace bench {

namespace {

using namespace std::chrono_literals;
using engine::metastore::Fsm;

constexpr int kFillers = 64;
constexpr int kWriters = 8;
constexpr std::size_t kSmallRowBytes = 200;

std::string topic_name(const char* prefix, std::uint64_t number) { return prefix + std::to_string(10'000'000 + number); }

std::string create_topic(std::string name, std::size_t row_bytes) {
  engine::metastore::Topic topic;
  topic.owner.assign(row_bytes, static_cast<char>('a' + name.back() % 10));
  topic.name = std::move(name);
  topic.id = "00112233445566aa";
  topic.partitions = 3;
  return encode_create_topic(topic);
}

// The network, which can be cut: connections end, new ones fail or are closed at once.
class CutNet final : public io::Net {
 public:
  explicit CutNet(io::Net& net) : net_(net) {}

  void set_cut(bool is_cut) {
    is_cut_ = is_cut;
    for (auto at = streams_.begin(); is_cut && at != streams_.end(); ++at) (*at)->close();
  }
  io::Result<std::unique_ptr<io::Listener>> listen(std::string_view address) override {
    auto listener = net_.listen(address);
    if (!listener.ok()) return listener.error();
    return std::unique_ptr<io::Listener>(new Listener(*this, std::move(*listener)));
  }
  io::Result<std::unique_ptr<io::Stream>> connect(std::string_view address, io::Instant deadline) override {
    if (is_cut_) return io::fail(io::ErrorKind::io, "the network is cut");
    auto stream = net_.connect(address, deadline);
    if (!stream.ok()) return stream.error();
    return wrap(std::move(*stream));
  }

 private:
  class Stream final : public io::Stream {
   public:
    Stream(CutNet& net, std::unique_ptr<io::Stream> stream) : net_(net), stream_(std::move(stream)) { net_.streams_.insert(this); }
    ~Stream() override { net_.streams_.erase(this); }
    io::Result<std::string> read(size_t max, io::Instant deadline) override { return stream_->read(max, deadline); }
    io::Status write(std::string data, io::Instant deadline) override { return stream_->write(std::move(data), deadline); }
    io::Status shutdown_write() override { return stream_->shutdown_write(); }
    void close() override { stream_->close(); }
    std::string peer_address() const override { return stream_->peer_address(); }

   private:
    CutNet& net_;
    std::unique_ptr<io::Stream> stream_;
  };
  class Listener final : public io::Listener {
   public:
    Listener(CutNet& net, std::unique_ptr<io::Listener> listener) : net_(net), listener_(std::move(listener)) {}
    io::Result<std::unique_ptr<io::Stream>> accept(io::Instant deadline) override {
      auto stream = listener_->accept(deadline);
      if (!stream.ok()) return stream.error();
      if (net_.is_cut_) (*stream)->close();
      return net_.wrap(std::move(*stream));
    }
    std::string address() const override { return listener_->address(); }

   private:
    CutNet& net_;
    std::unique_ptr<io::Listener> listener_;
  };

  std::unique_ptr<io::Stream> wrap(std::unique_ptr<io::Stream> stream) {
    return std::unique_ptr<io::Stream>(new Stream(*this, std::move(stream)));
  }

  io::Net& net_;
  bool is_cut_ = false;
  std::set<Stream*> streams_;
};

// The metastore, with a look at when it applies.
class WatchedMetastore final : public raft::StateMachine {
 public:
  WatchedMetastore(io::Env& env, Fsm& fsm, SharedMember& shared) : env_(env), fsm_(fsm), shared_(shared) {}
  raft::Index applied_index() const override { return fsm_.applied_index(); }
  raft::Index durable_index() const override { return fsm_.durable_index(); }
  io::Status flush() override { return fsm_.flush(); }
  io::Result<std::vector<std::string>> apply(const std::vector<raft::Entry>& batch) override {
    auto answers = fsm_.apply(batch);
    const io::Instant now = env_.now();
    if (last_apply_ != io::Instant{}) {
      const std::int64_t gap = (now - last_apply_).count();
      if (gap > shared_.longest_gap_ns) shared_.longest_gap_ns = gap;
    }
    last_apply_ = now;
    return answers;
  }
  io::Result<raft::Index> write_image(raft::ImageSink& sink, raft::Index replayed) override { return fsm_.write_image(sink, replayed); }
  io::Status check_image(raft::ImageSource& source, raft::Index label) override { return fsm_.check_image(source, label); }
  io::Status install_image(raft::ImageSource& source, raft::Index label) override { return fsm_.install_image(source, label); }
  bool is_stopped() const override { return fsm_.is_stopped(); }

 private:
  io::Env& env_;
  Fsm& fsm_;
  SharedMember& shared_;
  io::Instant last_apply_{};
};

// fsm.db as the server's start finds it, with the watch put over what it opens.
class WatchedHome final : public raft::StateMachineHome {
 public:
  WatchedHome(io::Env& env, SharedMember& shared) : env_(env), shared_(shared), inner_(env, {}) {}
  raft::StateMachineBuild build() const override { return inner_.build(); }
  io::Result<raft::StateMachineFacts> look() override { return inner_.look(); }
  io::Result<std::uint32_t> newest_type_of(raft::ImageSource& image) override { return inner_.newest_type_of(image); }
  io::Status set_aside(const std::string& reason) override { return inner_.set_aside(reason); }
  io::Result<raft::StateMachine*> open(const Opening& opening) override {
    auto opened = inner_.open(opening);
    if (!opened.ok()) return opened;
    watched_.emplace(env_, inner_.fsm(), shared_);
    return static_cast<raft::StateMachine*>(&*watched_);
  }
  Fsm& fsm() { return inner_.fsm(); }

 private:
  io::Env& env_;
  SharedMember& shared_;
  engine::metastore::FsmHome inner_;
  std::optional<WatchedMetastore> watched_;
};

class Service {
 public:
  Service(io::Env& env, SharedMember& shared, raft::ServerOptions server)
      : net_(env.net),
        env_{env.clock, env.random, env.disk, net_, env.store_lane, env.pool, env.kv, env.log},
        shared_(shared),
        server_options_(std::move(server)) {}

  int run() {
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("bench/look", [this] { look(); });
      scope.spawn("bench/reads", [this] { read(); });
      while (!shared_.should_exit) {
        if (shared_.should_run) live();
        io::sleep_for(5ms);
      }
      scope.cancel();
    });
    return 0;
  }

 private:
  int fail(const std::string& reason) {
    std::fprintf(stderr, "bench/raft: server %s: %s\n", server_options_.id.c_str(), reason.c_str());
    return 1;
  }

  // One life of the raft server, and of its metastore.
  void live() {
    raft::ServerOptions options = server_options_;
    options.snapshots.send_bytes_per_second = shared_.send_bytes_per_second;
    WatchedHome home(env_, shared_);
    raft::RaftServer server(env_, options);
    io::Status opened = server.read();
    if (opened.ok()) opened = server.open(home);
    auto listener = env_.net.listen(options.address);
    if (!opened.ok() || !listener.ok()) {
      std::_Exit(fail(opened.ok() ? listener.error().to_text() : opened.error().to_text()));
    }
    fsm_ = &home.fsm();
    server_ = &server;
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
      for (int i = 0; i < kWriters; ++i) scope.spawn("bench/writer", [&] { write(server); });
      for (int i = 0; i < kFillers; ++i) scope.spawn("bench/filler", [&] { fill(server); });
      while (shared_.should_run && !shared_.should_exit && !server.failure()) io::sleep_for(5ms);
      server.stop();
      server.stopped().wait();
      scope.cancel();
    });
    server_ = nullptr;
    fsm_ = nullptr;
    shared_.is_running = shared_.is_leader = false;
    if (server.failure()) std::_Exit(fail(server.failure()->to_text()));
  }

  void write(raft::RaftServer& server) {
    for (;;) {
      if (!shared_.should_write || !server.is_leader()) {
        io::sleep_for(5ms);
        continue;
      }
      const std::string name = topic_name(server_options_.id.c_str(), next_small_++);
      if (server.propose(create_topic(name, kSmallRowBytes), env_.after(10s)).ok()) {
        ++shared_.written;
      } else {
        io::sleep_for(20ms);
      }
    }
  }

  void fill(raft::RaftServer& server) {
    for (;;) {
      if (next_row_ >= shared_.fill_rows || !server.is_leader()) {
        io::sleep_for(5ms);
        continue;
      }
      const std::uint64_t row = next_row_++;
      while (!server.propose(create_topic(topic_name("topic-", row), shared_.row_bytes), env_.after(30s)).ok()) io::sleep_for(20ms);
      if (++rows_there_ == shared_.fill_rows) {
        shared_.fill_rows = 0;
        next_row_ = rows_there_ = 0;
      }
    }
  }

  void read() {
    std::uint64_t drawn = 1;
    for (;;) {
      io::sleep_for(500us);
      if (!shared_.should_read || shared_.rows_filled == 0 || fsm_ == nullptr) continue;
      drawn = drawn * 6364136223846793005u + 1442695040888963407u;
      if (fsm_->get_topic(topic_name("topic-", (drawn >> 33) % shared_.rows_filled)).ok()) ++shared_.reads;
    }
  }

  void look() {
    for (;;) {
      io::sleep_for(5ms);
      if (shared_.is_cut_off != is_cut_off_) net_.set_cut(is_cut_off_ = shared_.is_cut_off);
      if (shared_.should_forget_gap.exchange(false)) shared_.longest_gap_ns = 0, shared_.rocksdb_bytes_max = 0;
      if (fsm_ == nullptr) continue;
      shared_.rocksdb_bytes_max = std::max<std::uint64_t>(shared_.rocksdb_bytes_max, fsm_->store_memory().total());
      if (server_ == nullptr) continue;
      const raft::ServerStatus status = server_->status();
      shared_.applied = status.applied;
      shared_.last = status.last;
      shared_.log_base = status.log_base;
      shared_.snapshot_bytes = status.snapshot_bytes;
      shared_.snapshots_sent = server_->counters().snapshots_sent;
      shared_.snapshots_installed = server_->counters().snapshots_installed;
      shared_.is_leader = server_->is_leader();
      shared_.is_running = server_->is_running();
    }
  }

  CutNet net_;
  io::Env env_;
  SharedMember& shared_;
  const raft::ServerOptions server_options_;
  Fsm* fsm_ = nullptr;  // of the present life
  raft::RaftServer* server_ = nullptr;
  bool is_cut_off_ = false;
  std::uint64_t next_small_ = 0;
  std::uint64_t next_row_ = 0;
  std::uint64_t rows_there_ = 0;
};

}  // namespace

Member::Member(const RaftOptions& options, std::string id, std::string directory,
               std::vector<std::pair<std::string, std::string>> all)
    : options_(options), id_(std::move(id)), directory_(std::move(directory)), all_(std::move(all)) {
  void* memory = mmap(nullptr, sizeof(SharedMember), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share");
  shared_ = new (memory) SharedMember;
}

Member::~Member() {
  kill();
  munmap(shared_, sizeof(SharedMember));
}

void Member::start() {
  raft::ServerOptions server;
  server.id = id_;
  server.address = std::find_if(all_.begin(), all_.end(), [this](const auto& one) { return one.first == id_; })->second;
  server.bootstrap = raft::bootstrap_configuration({all_.begin(), all_.end()});
  server.snapshots.interval = std::chrono::seconds(options_.snapshot_interval_s);
  std::fflush(stdout);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  io::real::HostSettings settings;
  settings.data_dir = directory_;
  settings.io = *io::real::parse_io_choice(options_.io);
  settings.log.level = io::LogLevel::warn;
  settings.handle_signals = false;
  std::_Exit(io::real::run_host(settings, [&](io::Env& env, io::Event&) { return Service(env, *shared_, server).run(); }));
}

void Member::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  shared_->is_running = shared_->is_leader = false;
}

std::uint64_t Member::status(const char* field) const {
  std::ifstream lines("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field)) return std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024;
  }
  throw std::runtime_error("server " + id_ + " has ended");
}

std::uint64_t Member::resident() const { return status("VmRSS:"); }
std::uint64_t Member::peak() const { return status("VmHWM:"); }

void Member::reset_peak() {
  std::ofstream("/proc/" + std::to_string(pid_) + "/clear_refs") << "5";
  shared_->should_forget_gap = true;
}

}  // namespace bench

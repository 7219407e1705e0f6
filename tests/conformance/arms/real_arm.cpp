#include "tests/conformance/arms/real_arm.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "io/real/address.h"
#include "io/real/descriptor.h"
#include "io/real/host.h"
#include "tests/conformance/arms/small_disk.h"

namespace tests {

namespace {

// Where a stalled operation waits, on its file thread.
class Gate {
 public:
  void close_for(std::string_view operation, std::string_view path) {
    std::lock_guard lock(mutex_);
    operation_ = operation;
    path_ = path;
    armed_ = true;
    open_ = false;
  }
  void open() {
    {
      std::lock_guard lock(mutex_);
      open_ = true;
      armed_ = false;
    }
    opened_.notify_all();
  }
  void pass(std::string_view operation, std::string_view path) {
    std::unique_lock lock(mutex_);
    if (!armed_ || operation != operation_ || path != path_) {
      return;
    }
    armed_ = false;
    opened_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  std::string operation_;
  std::string path_;
  bool armed_ = false;
  bool open_ = true;
};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "narad-conformance-XXXXXX").string();
    NARAD_CHECK(mkdtemp(path_.data()) != nullptr, "a temporary directory can be made");
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A listening socket whose queue is full: Linux drops further attempts silently.
class SilentListener {
 public:
  SilentListener() : listener_(new_socket()) {
    sockaddr_in loopback{};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    NARAD_CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0, "bind");
    NARAD_CHECK(listen(listener_.get(), 0) == 0, "listen");
    const io::real::SocketAddress address = io::real::local_address(listener_.get());
    address_ = address.to_text();
    for (io::real::Descriptor& filler : fillers_) {
      filler = new_socket();
      (void)connect(filler.get(), address.get(), address.length);
    }
  }
  const std::string& address() const { return address_; }

 private:
  static io::real::Descriptor new_socket() {
    io::real::Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    NARAD_CHECK(made.valid(), "a socket can be made");
    return made;
  }
  io::real::Descriptor listener_;
  io::real::Descriptor fillers_[3];
  std::string address_;
};

class RealArm final : public Arm {
 public:
  explicit RealArm(ArmKind kind) : kind_(kind) {}

  bool prepare(const ArmSettings& settings, std::string& why_not) {
    if (settings.disk_bytes.has_value()) {
      small_disk_ = SmallDisk::mount(directory_.path(), *settings.disk_bytes, why_not);
      if (small_disk_ == nullptr) {
        return false;
      }
    }
    if (kind_ == ArmKind::uring) {
      auto loop = io::real::Loop::make({io::real::IoChoice::uring, nullptr});
      if (!loop.ok() || !(*loop)->uses_uring()) {
        why_not = loop.ok() ? (*loop)->fallback_reason() : loop.error().message;
        return false;
      }
    }
    return true;
  }

  void run(std::function<void(io::Env&)> body) override {
    io::real::HostSettings settings;
    settings.data_dir = directory_.path();
    settings.io = kind_ == ArmKind::uring ? io::real::IoChoice::uring : io::real::IoChoice::epoll;
    settings.log.level = io::LogLevel::warn;
    settings.handle_signals = false;
    if (uses_gate_) {
      settings.before_file_operation = [this](std::string_view operation, std::string_view path) {
        gate_.pass(operation, path);
      };
    }
    auto host = io::real::Host::make(settings);
    NARAD_CHECK(host.ok(), "the machine provides a loop and a directory");
    (*host)->run([&](io::Env& env, io::Event&) {
      body(env);
      gate_.open();
      return 0;
    });
  }

  void stall_next(std::string_view operation, std::string_view path) override {
    NARAD_CHECK(uses_gate_, "a test that stalls says so in its settings");
    gate_.close_for(operation, path);
  }
  void release() override { gate_.open(); }

  std::string silent_address() override {
    if (silent_ == nullptr) {
      silent_ = std::make_unique<SilentListener>();
    }
    return silent_->address();
  }

  bool uses_gate_ = false;

 private:
  ArmKind kind_;
  TemporaryDirectory directory_;
  std::unique_ptr<SmallDisk> small_disk_;
  Gate gate_;
  std::unique_ptr<SilentListener> silent_;
};

}  // namespace

std::unique_ptr<Arm> make_real_arm(ArmKind kind, const ArmSettings& settings, std::string& why_not) {
  auto arm = std::make_unique<RealArm>(kind);
  arm->uses_gate_ = settings.may_stall;
  if (!arm->prepare(settings, why_not)) {
    return nullptr;
  }
  return arm;
}

}  // namespace tests

#include "io/real/signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "io/real/descriptor.h"

namespace io::real {

namespace {

constexpr int kCaught[] = {SIGINT, SIGTERM};
constexpr int kIgnored[] = {SIGPIPE, SIGXFSZ};

// What the handler may touch: it runs between any two instructions.
std::atomic<int> g_first_signal{0};
std::atomic<int> g_event_descriptor{-1};

void on_signal(int number) {
  const int error = errno;
  int none = 0;
  if (!g_first_signal.compare_exchange_strong(none, number)) {
    _exit(128 + number);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(g_event_descriptor.load(), &one, sizeof one);
  errno = error;
}

}  // namespace

class StopSignals::Pipe final : public Watch {
 public:
  Pipe(Loop& loop, Event& stop) : loop_(loop), stop_(stop), descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    NARAD_CHECK(descriptor_.valid(), "no descriptor for signals");
    NARAD_CHECK(g_event_descriptor.load() == -1, "signals are taken once");
    g_first_signal.store(0);
    g_event_descriptor.store(descriptor_.get());
    int error = 0;
    NARAD_CHECK(loop_.poller().watch(*this, descriptor_.get(), &error), "the poller watches signals");
    size_t kept = 0;
    for (int number : kCaught) {
      replace(number, &on_signal, before_[kept++]);
    }
    for (int number : kIgnored) {
      replace(number, SIG_IGN, before_[kept++]);
    }
  }

  ~Pipe() {
    size_t kept = 0;
    for (int number : kCaught) {
      sigaction(number, &before_[kept++], nullptr);
    }
    for (int number : kIgnored) {
      sigaction(number, &before_[kept++], nullptr);
    }
    g_event_descriptor.store(-1);
    loop_.poller().unwatch(*this, descriptor_.get());
  }

  void on_ready(bool, bool, bool) override {
    if (g_first_signal.load() != 0) {
      stop_.set();
    }
  }

 private:
  static void replace(int number, void (*handler)(int), struct sigaction& before) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    NARAD_CHECK(sigaction(number, &action, &before) == 0, "a signal's meaning can be set");
  }

  Loop& loop_;
  Event& stop_;
  Descriptor descriptor_;
  struct sigaction before_[std::size(kCaught) + std::size(kIgnored)] {};
};

StopSignals::StopSignals(Loop& loop, Event& stop) : pipe_(std::make_unique<Pipe>(loop, stop)) {}

StopSignals::~StopSignals() = default;

int StopSignals::received() const { return g_first_signal.load(); }

}  // namespace io::real

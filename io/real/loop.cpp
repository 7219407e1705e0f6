#include "io/real/loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/real/descriptor.h"
#include "io/real/epoll_poller.h"
#include "io/real/errno.h"
#include "io/real/file_operation.h"
#include "io/real/uring_poller.h"

namespace io::real {

namespace {

constexpr size_t kFileThreadsMax = 8;
// How many fibers run before the kernel is asked again: file operations they started wait that long to be handed over.
constexpr int kResumesPerTurn = 64;
constexpr int kInlineOperationsMax = 64;
// The kernel's timed waits do not count suspended time, deadlines do: a wait is looked at again this often.
constexpr Duration kWaitMax = 1s;

}  // namespace

std::string_view to_string(IoChoice choice) {
  switch (choice) {
    case IoChoice::automatic: return "auto";
    case IoChoice::uring: return "uring";
    case IoChoice::epoll: return "epoll";
  }
  return "unknown";
}

Result<IoChoice> parse_io_choice(std::string_view text) {
  for (IoChoice choice : {IoChoice::automatic, IoChoice::uring, IoChoice::epoll}) {
    if (text == to_string(choice)) {
      return choice;
    }
  }
  return fail(ErrorKind::invalid, "io \"" + std::string(text) + "\": one of auto, uring, epoll");
}

// An eventfd that nobody reads: each write to it is news to an edge-triggered watch.
class Loop::Wakeup final : public Watch {
 public:
  explicit Wakeup(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  void on_ready(bool, bool, bool) override {}
  int descriptor() const { return descriptor_.get(); }
  void ring() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(descriptor_.get(), &one, sizeof one);
  }

 private:
  Descriptor descriptor_;
};

Result<std::unique_ptr<Loop>> Loop::make(LoopSettings settings) {
  std::unique_ptr<Poller> poller;
  std::string fallback_reason;
  bool uses_uring = false;
  if (settings.io != IoChoice::epoll) {
    Result<std::unique_ptr<UringPoller>> uring = UringPoller::make();
    if (uring.ok()) {
      poller = std::move(*uring);
      uses_uring = true;
    } else {
      fallback_reason = uring.error().message;
    }
  }
  if (poller == nullptr) {
    Result<std::unique_ptr<EpollPoller>> epoll = EpollPoller::make();
    if (!epoll.ok()) {
      return epoll.error();
    }
    poller = std::move(*epoll);
  }
  std::unique_ptr<Loop> loop(new Loop(std::move(settings), std::move(poller), uses_uring, std::move(fallback_reason)));
  Status armed = loop->arm_wakeup();
  if (!armed.ok()) {
    return armed.error();
  }
  return loop;
}

Loop::Loop(LoopSettings settings, std::unique_ptr<Poller> poller, bool uses_uring, std::string fallback_reason)
    : settings_(std::move(settings)),
      poller_(std::move(poller)),
      uses_uring_(uses_uring),
      fallback_reason_(std::move(fallback_reason)),
      scratch_(new char[kScratchBytes]),
      file_threads_("narad-file", kFileThreadsMax) {}

Status Loop::arm_wakeup() {
  Descriptor descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!descriptor.valid()) {
    return error_from_errno(errno, "eventfd");
  }
  auto wakeup = std::make_unique<Wakeup>(std::move(descriptor));
  int error = 0;
  if (!poller_->watch(*wakeup, wakeup->descriptor(), &error)) {
    return error_from_errno(error, "watching an eventfd");
  }
  wakeup_ = std::move(wakeup);
  return {};
}

Loop::~Loop() {
  NARAD_CHECK(group_.live_fibers() == 0 && first_runnable_ == nullptr, "a loop ends after its fibers");
  while (!drain(1s)) {
  }
  if (wakeup_ != nullptr) {
    poller_->unwatch(*wakeup_, wakeup_->descriptor());
  }
}

void Loop::run(std::string name, std::function<void()> body) {
  Task root = spawn(group_, std::move(name), std::move(body));
  while (!root.done()) {
    turn();
  }
  NARAD_CHECK(group_.live_fibers() == 0, "every fiber ends within its scope");
}

bool Loop::drain(Duration patience) {
  const Instant end = clock_.now() + patience;
  while (operations_ > 0) {
    if (clock_.now() >= end) {
      return false;
    }
    run_posted();
    if (operations_ > 0) {
      poller_->turn(std::min<Duration>(10ms, end - clock_.now() > 0ns ? end - clock_.now() : 0ns));
    }
  }
  return true;
}

void Loop::turn() {
  for (int i = 0; i < kResumesPerTurn && first_runnable_ != nullptr; ++i) {
    Fiber* next = first_runnable_;
    first_runnable_ = std::exchange(next->next_runnable, nullptr);
    if (first_runnable_ == nullptr) {
      last_runnable_ = nullptr;
    }
    inline_operations_ = 0;
    resume(*next);
  }
  run_posted();
  const Instant now = clock_.now();
  fire_timers(now);
  if (first_runnable_ != nullptr) {
    poller_->turn(Duration::zero());
    return;
  }
  if (group_.live_fibers() == 0) {
    return;
  }
  // A post between the two lines rings; one before them is seen here.
  asleep_.store(true);
  poller_->turn(has_posted_.load() ? Duration::zero() : wait_at_most(now));
  asleep_.store(false);
}

Duration Loop::wait_at_most(Instant now) const {
  const Instant next = next_timer();
  if (next == kNever) {
    return Duration(-1);
  }
  return std::clamp<Duration>(next - now, Duration::zero(), kWaitMax);
}

void Loop::on_runnable(Fiber& fiber) {
  NARAD_CHECK(fiber.next_runnable == nullptr && last_runnable_ != &fiber, "a fiber is queued once");
  if (last_runnable_ != nullptr) {
    last_runnable_->next_runnable = &fiber;
  } else {
    first_runnable_ = &fiber;
  }
  last_runnable_ = &fiber;
}

void Loop::post(std::function<void()> work) {
  {
    std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(work));
    has_posted_.store(true);
  }
  if (asleep_.exchange(false)) {
    wakeup_->ring();
  }
}

void Loop::run_posted() {
  if (!has_posted_.load()) {
    return;
  }
  std::vector<std::function<void()>> batch;
  {
    std::lock_guard lock(posted_mutex_);
    batch.swap(posted_);
    has_posted_.store(false);
  }
  for (std::function<void()>& work : batch) {
    work();
    work = nullptr;
  }
}

void Loop::start_on_thread(std::string_view what, std::string_view path, std::function<void()> work) {
  if (settings_.before_file_operation == nullptr) {
    file_threads_.start(std::move(work));
    return;
  }
  file_threads_.start([this, what = std::string(what), path = std::string(path), work = std::move(work)] {
    settings_.before_file_operation(what, path);
    work();
  });
}

void Loop::start_file(FileOperation::Kind kind, std::shared_ptr<OpenFile> file, uint64_t offset, std::string buffer,
                      FileOperation::End end) {
  const std::string path = file->path();
  auto operation = std::make_shared<FileOperation>(kind, std::move(file), offset, std::move(buffer),
                                                   [this, end = std::move(end)](int error, std::string bytes) {
                                                     --operations_;
                                                     end(error, std::move(bytes));
                                                   });
  ++operations_;
  if (!poller_->runs_files()) {
    start_on_thread(operation->name(), path, [this, operation]() mutable {
      operation->run_blocking();
      post([operation = std::move(operation)] { operation->finish(); });
    });
  } else if (settings_.before_file_operation != nullptr) {
    start_on_thread(operation->name(), path, [this, operation]() mutable {
      post([this, operation = std::move(operation)] { poller_->start_file(operation); });
    });
  } else {
    poller_->start_file(std::move(operation));
  }
}

void Loop::pace() {
  if (++inline_operations_ > kInlineOperationsMax) {
    yield();
  }
}

}  // namespace io::real

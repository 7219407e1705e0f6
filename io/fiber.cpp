#include "io/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdio>
#include <exception>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define NARAD_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define NARAD_TSAN 1
#endif

// The C++ runtime's per-thread exception state (Itanium ABI): what is being handled and how many are in flight. It belongs to
// the fiber that was handling, so a switch saves and restores it.
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept;
}  // namespace __cxxabiv1

namespace io {

namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

#if defined(NARAD_ASAN) || defined(NARAD_TSAN)
constexpr size_t kStackBytes = 1024 * 1024;
#else
constexpr size_t kStackBytes = 256 * 1024;
#endif

struct ExceptionState {
  void* caught = nullptr;
  unsigned int in_flight = 0;
};

ExceptionState& exception_globals() { return *reinterpret_cast<ExceptionState*>(__cxxabiv1::__cxa_get_globals()); }

// Stacks with a guard page below, reused: making one costs two system calls.
class StackPool {
 public:
  ~StackPool() {
    for (void* base : free_) {
      munmap(base, total());
    }
  }
  void* take() {
    if (!free_.empty()) {
      void* base = free_.back();
      free_.pop_back();
      return base;
    }
    void* base = mmap(nullptr, total(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    NARAD_CHECK(base != MAP_FAILED, "no memory for a fiber's stack");
    NARAD_CHECK(mprotect(base, page(), PROT_NONE) == 0, "no guard page for a fiber's stack");
    return base;
  }
  void give_back(void* base) {
#if defined(NARAD_ASAN)
    __asan_unpoison_memory_region(bottom(base), kStackBytes);
#endif
    free_.push_back(base);
  }
  static char* bottom(void* base) { return static_cast<char*>(base) + page(); }
  static char* top(void* base) { return bottom(base) + kStackBytes; }

 private:
  static size_t page() {
    static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }
  static size_t total() { return kStackBytes + page(); }
  std::vector<void*> free_;
};

thread_local StackPool t_stacks;
thread_local Fiber* t_current = nullptr;

}  // namespace

// Where a fiber (or, while it runs, the loop that resumed it) is to be continued.
struct Fiber::Context {
  void* stack = nullptr;
  fcontext_t self = nullptr;
  fcontext_t loop = nullptr;
  ExceptionState exceptions;
#if defined(NARAD_ASAN)
  void* fake_stack = nullptr;
  const void* loop_stack_bottom = nullptr;
  size_t loop_stack_bytes = 0;
#endif
#if defined(NARAD_TSAN)
  void* tsan_fiber = nullptr;
  void* tsan_loop = nullptr;
#endif

  void enter() {
    std::swap(exceptions, exception_globals());
#if defined(NARAD_ASAN)
    void* loop_fake = nullptr;
    __sanitizer_start_switch_fiber(&loop_fake, StackPool::bottom(stack), kStackBytes);
#endif
#if defined(NARAD_TSAN)
    tsan_loop = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fiber, 0);
#endif
    transfer_t back = jump_fcontext(self, this);
    self = back.fctx;
#if defined(NARAD_ASAN)
    __sanitizer_finish_switch_fiber(loop_fake, nullptr, nullptr);
#endif
    std::swap(exceptions, exception_globals());
  }

  // From inside the fiber. `for_good`: it never comes back.
  void leave(bool for_good) {
#if defined(NARAD_ASAN)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack, loop_stack_bottom, loop_stack_bytes);
#else
    (void)for_good;
#endif
#if defined(NARAD_TSAN)
    __tsan_switch_to_fiber(tsan_loop, 0);
#endif
    transfer_t back = jump_fcontext(loop, nullptr);
    arrived(back);
  }

  void arrived(transfer_t from) {
    loop = from.fctx;
#if defined(NARAD_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack, &loop_stack_bottom, &loop_stack_bytes);
#endif
  }
};

// ---- WaitNode, WaitList ----------------------------------------------------------------------------------------------------

WaitNode::WaitNode(WaitList& list) : fiber_(t_current), list_(&list), before_(list.tail_) {
  NARAD_CHECK(fiber_ != nullptr, "a wait outside a fiber");
  (before_ != nullptr ? before_->after_ : list.head_) = this;
  list.tail_ = this;
}

WaitNode::~WaitNode() { unlink(); }

void WaitNode::unlink() {
  if (list_ == nullptr) {
    return;
  }
  (before_ != nullptr ? before_->after_ : list_->head_) = after_;
  (after_ != nullptr ? after_->before_ : list_->tail_) = before_;
  list_ = nullptr;
  before_ = after_ = nullptr;
}

// Waiters that are still there belong to a group that is being unwound: they only lose their place.
WaitList::~WaitList() {
  while (head_ != nullptr) {
    NARAD_CHECK(head_->fiber_->group().deaf(), "a wait list died under a waiting fiber");
    head_->unlink();
  }
}

bool WaitList::wake_one() {
  if (head_ == nullptr) {
    return false;
  }
  Fiber* fiber = head_->fiber_;
  head_->unlink();
  fiber->group_.runtime().make_runnable(*fiber, Wake::signalled);
  return true;
}

void WaitList::wake_all() {
  while (wake_one()) {
  }
}

// ---- Primitives ------------------------------------------------------------------------------------------------------------

Wake park(Instant deadline) {
  NARAD_CHECK(t_current != nullptr, "a wait outside a fiber");
  return t_current->group_.runtime().park_current(deadline);
}

bool in_fiber() { return t_current != nullptr; }

std::string current_fiber_name() { return t_current != nullptr ? t_current->name() : std::string(); }

void yield() {
  NARAD_CHECK(t_current != nullptr, "a yield outside a fiber");
  sleep_for(Duration::zero());
}

void sleep_until(Instant deadline) {
  while (park(deadline) != Wake::timed_out) {
  }
}

void sleep_for(Duration duration) {
  NARAD_CHECK(t_current != nullptr, "a sleep outside a fiber");
  FiberGroup& group = t_current->group();
  sleep_until(group.runtime().local_now(group) + duration);
}

void check_cancelled() {
  if (t_current != nullptr && t_current->shielded_ == 0 && (t_current->cancel_requested_ || t_current->group_.deaf())) {
    throw Cancelled{};
  }
}

void Event::set() {
  is_set_ = true;
  waiters_.wake_all();
}

bool Event::wait(Instant deadline) {
  check_cancelled();
  while (!is_set_) {
    WaitNode node(waiters_);
    if (park(deadline) == Wake::timed_out) {
      return is_set_;
    }
    if (!node.linked()) {
      return true;  // was set while this fiber waited, even if reset since
    }
  }
  return true;
}

bool Condition::wait(Instant deadline) {
  WaitNode node(waiters_);
  return park(deadline) == Wake::signalled;
}

MutexLock::MutexLock(Mutex& mutex) : mutex_(mutex) {
  // A waiter that is woken and then cancelled hands its wake on, else the next one would sleep for ever.
  struct HandOn {
    MutexLock& lock;
    bool taken = false;
    ~HandOn() {
      if (!taken && !lock.mutex_.locked_) {
        lock.mutex_.waiters_.wake_one();
      }
    }
  };
  check_cancelled();
  HandOn hand_on{*this};
  while (mutex_.locked_) {
    WaitNode node(mutex_.waiters_);
    park(kNever);
  }
  mutex_.locked_ = true;
  hand_on.taken = true;
}

MutexLock::~MutexLock() {
  mutex_.locked_ = false;
  mutex_.waiters_.wake_one();
}

bool Task::done() const { return fiber_ == nullptr || fiber_->state_ == Fiber::State::done; }

void Task::cancel() {
  if (!done()) {
    fiber_->group_.runtime().request_cancel(*fiber_);
  }
}

bool Task::join(Instant deadline) { return done() || fiber_->done_.wait(deadline); }

// ---- Scope -----------------------------------------------------------------------------------------------------------------

Task Scope::spawn(std::string name, std::function<void()> body) {
  NARAD_CHECK(t_current != nullptr, "a scope outside a fiber");
  FiberGroup& group = t_current->group();
  Task task = group.runtime().spawn(group, std::move(name), std::move(body));
  // Keep only what still runs: a server's scope lives as long as its process.
  if (children_.size() >= 64 && (children_.size() & (children_.size() - 1)) == 0) {
    std::erase_if(children_, [](const std::shared_ptr<Fiber>& child) { return child->state_ == Fiber::State::done; });
  }
  if (!task.done()) {
    children_.push_back(task.fiber_);
  }
  return task;
}

void Scope::cancel() {
  for (const auto& child : children_) {
    if (child->state_ != Fiber::State::done) {
      child->group_.runtime().request_cancel(*child);
    }
  }
}

void Scope::join_all() {
  Fiber& self = *t_current;
  ++self.shielded_;
  bool cancelled_children = false;
  for (size_t i = 0; i < children_.size(); ++i) {
    const std::shared_ptr<Fiber> child = children_[i];
    while (child->state_ != Fiber::State::done) {
      if (self.cancel_requested_ && !cancelled_children) {
        cancelled_children = true;
        cancel();
      }
      WaitNode node(child->done_.waiters_);
      park(kNever);
    }
  }
  --self.shielded_;
  children_.clear();
}

void Scope::run(const std::function<void(Scope&)>& body) {
  Scope scope;
  bool cancelled = false;
  try {
    body(scope);
  } catch (const Cancelled&) {
    cancelled = true;
  }
  if (cancelled) {
    scope.cancel();
  }
  scope.join_all();
  if (cancelled) {
    throw Cancelled{};
  }
  check_cancelled();
}

// ---- Fiber -----------------------------------------------------------------------------------------------------------------

Fiber::Fiber(FiberGroup& group, std::string name, uint64_t id, std::function<void()> body)
    : group_(group), name_(std::move(name)), id_(id), body_(std::move(body)), context_(std::make_unique<Context>()) {}

Fiber::~Fiber() { NARAD_CHECK(context_->stack == nullptr, "a fiber died with its stack in use"); }

void Fiber::entry(Fiber& self) {
  try {
    self.body_();
  } catch (const Cancelled&) {
    // The usual end of a fiber that was told to stop.
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fiber %s ended by an exception: %s\n", self.name_.c_str(), error.what());
    check_failed("no exception leaves a fiber", __FILE__, __LINE__, error.what());
  }
  // What the body captured dies on the fiber's own stack, as everything else it owned did.
  try {
    self.body_ = nullptr;
  } catch (const Cancelled&) {
    check_failed("a wait in a destructor", __FILE__, __LINE__, self.name_);
  }
}

// ---- FiberGroup, Runtime ---------------------------------------------------------------------------------------------------

FiberGroup::~FiberGroup() { NARAD_CHECK(fibers_.empty(), "a group died with live fibers"); }

Runtime::~Runtime() { NARAD_CHECK(timers_.empty(), "a runtime died with armed timers"); }

Fiber* Runtime::current() { return t_current; }

Instant Runtime::loop_time(FiberGroup&, Instant local) { return local; }

Task Runtime::spawn(FiberGroup& group, std::string name, std::function<void()> body) {
  if (group.deaf()) {
    return Task();
  }
  std::shared_ptr<Fiber> fiber(new Fiber(group, std::move(name), next_fiber_id_++, std::move(body)));
  fiber->place_ = group.fibers_.insert(group.fibers_.end(), fiber);
  on_runnable(*fiber);
  return Task(fiber);
}

void Runtime::resume(Fiber& fiber) {
  NARAD_CHECK(t_current == nullptr, "a fiber is resumed by the loop only");
  NARAD_CHECK(fiber.state_ == Fiber::State::runnable, "only a runnable fiber is resumed");
  Fiber::Context& context = *fiber.context_;
  if (!fiber.started_) {
    fiber.started_ = true;
    context.stack = t_stacks.take();
#if defined(NARAD_TSAN)
    context.tsan_fiber = __tsan_create_fiber(0);
#endif
    struct Start {
      static void run(transfer_t from) {
        Fiber& self = *t_current;
        self.context_->arrived(from);
        entry(self);
        self.state_ = State::done;
        self.context_->leave(true);
        NARAD_CHECK(false, "an ended fiber was resumed");
      }
      using State = Fiber::State;
      static void entry(Fiber& self) { Fiber::entry(self); }
    };
    context.self = make_fcontext(StackPool::top(context.stack), kStackBytes, &Start::run);
  }
  fiber.state_ = Fiber::State::running;
  t_current = &fiber;
  context.enter();
  t_current = nullptr;
  if (fiber.state_ == Fiber::State::done) {
    retire(fiber);
  }
}

void Runtime::retire(Fiber& fiber) {
  const std::shared_ptr<Fiber> keep = *fiber.place_;
  disarm(fiber);
  if (fiber.context_->stack != nullptr) {
#if defined(NARAD_TSAN)
    __tsan_destroy_fiber(fiber.context_->tsan_fiber);
#endif
    t_stacks.give_back(fiber.context_->stack);
    fiber.context_->stack = nullptr;
  }
  fiber.group_.fibers_.erase(fiber.place_);
  fiber.done_.set();
}

void Runtime::unwind(FiberGroup& group) {
  NARAD_CHECK(group.deaf(), "a group is deafened before it is unwound");
  NARAD_CHECK(t_current == nullptr, "a kill runs outside the scheduler");
  while (!group.fibers_.empty()) {
    const std::shared_ptr<Fiber> fiber = group.fibers_.back();
    disarm(*fiber);
    if (!fiber->started_) {
      fiber->body_ = nullptr;
      fiber->state_ = Fiber::State::done;
      retire(*fiber);
      continue;
    }
    fiber->cancel_requested_ = true;
    fiber->state_ = Fiber::State::runnable;
    resume(*fiber);
    NARAD_CHECK(fiber->state_ == Fiber::State::done, "a killed fiber suspended while it was unwound");
  }
}

Wake Runtime::park_current(Instant deadline) {
  Fiber& self = *t_current;
  check_cancelled();
  if (self.group_.deaf()) {
    return Wake::signalled;  // shielded and being unwound: the caller sees that its children have ended
  }
  self.state_ = Fiber::State::parked;
  if (deadline != kNever) {
    self.timer_armed_ = true;
    self.timer_key_ = {loop_time(self.group_, deadline), next_timer_sequence_++};
    timers_.emplace(self.timer_key_.first, self.timer_key_.second, &self);
  }
  self.context_->leave(false);
  check_cancelled();
  return self.wake_reason_;
}

void Runtime::make_runnable(Fiber& fiber, Wake reason) {
  if (fiber.state_ != Fiber::State::parked) {
    return;
  }
  disarm(fiber);
  if (fiber.group_.deaf()) {
    return;
  }
  fiber.wake_reason_ = reason;
  fiber.state_ = Fiber::State::runnable;
  on_runnable(fiber);
}

void Runtime::request_cancel(Fiber& fiber) {
  fiber.cancel_requested_ = true;
  make_runnable(fiber, Wake::signalled);
}

void Runtime::disarm(Fiber& fiber) {
  if (fiber.timer_armed_) {
    fiber.timer_armed_ = false;
    timers_.erase({fiber.timer_key_.first, fiber.timer_key_.second, &fiber});
  }
}

Instant Runtime::next_timer() const { return timers_.empty() ? kNever : std::get<0>(*timers_.begin()); }

void Runtime::fire_timers(Instant now) {
  while (!timers_.empty() && std::get<0>(*timers_.begin()) <= now) {
    Fiber& fiber = *std::get<2>(*timers_.begin());
    make_runnable(fiber, Wake::timed_out);
  }
}

}  // namespace io

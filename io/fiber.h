// Fibers: the node's only concurrency.
//
// Every piece of the node is straight-line code in a fiber that blocks on events, queues, timers and IO. All fibers of a loop
// (production) or of a world (simulator) run on one thread and switch only where they wait, so plain data needs no lock. The
// backend decides which runnable fiber goes next: production takes them in order, the simulator draws by seed.
//
// Rules, all checked:
//  - Structured: a fiber is spawned in a Scope (with_scope), which ends only when everything it spawned has ended.
//  - Cancellation is level-triggered: once cancelled, every wait of the fiber throws io::Cancelled until it has unwound. It is
//    no std::exception; nothing but this folder catches it.
//  - No wait in a destructor and none inside a catch block.
//  - Any other exception that leaves a fiber is a bug and ends the process.
//
// Sources: architecture.md "io: the contract"; the switch is Boost.Context's fcontext.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io/check.h"
#include "io/time.h"

namespace io {

class Fiber;
class FiberGroup;
class Runtime;

// Thrown by a wait in a cancelled fiber. Catch it nowhere: let it unwind.
struct Cancelled {};

enum class Wake { signalled, timed_out };

// ---- Waiting: what primitives of this folder are built from ----------------------------------------------------------------

class WaitList;

// A fiber's place in a WaitList; lives on the waiting fiber's stack and unlinks itself.
class WaitNode {
 public:
  explicit WaitNode(WaitList& list);
  ~WaitNode();
  WaitNode(const WaitNode&) = delete;
  WaitNode& operator=(const WaitNode&) = delete;

  bool linked() const { return list_ != nullptr; }

 private:
  friend class WaitList;
  void unlink();

  Fiber* fiber_;
  WaitList* list_;
  WaitNode* before_ = nullptr;
  WaitNode* after_ = nullptr;
};

// Fibers waiting for one thing, first come first woken.
class WaitList {
 public:
  WaitList() = default;
  ~WaitList();
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;

  bool empty() const { return head_ == nullptr; }
  // Unlinks the first waiter and makes it runnable; false when there is none.
  bool wake_one();
  void wake_all();

 private:
  friend class WaitNode;
  WaitNode* head_ = nullptr;
  WaitNode* tail_ = nullptr;
};

// Suspends the current fiber until it is woken or `deadline` passes. Throws Cancelled. May also return `signalled` without
// cause: callers wait in a loop on their own condition.
Wake park(Instant deadline);

// ---- For node code ---------------------------------------------------------------------------------------------------------

// True inside a fiber.
bool in_fiber();
// The name given at spawn ("raft/apply"); empty outside a fiber.
std::string current_fiber_name();
// Lets other runnable fibers go first. Throws Cancelled.
void yield();
void sleep_until(Instant deadline);
void sleep_for(Duration duration);
// Throws Cancelled when this fiber has been cancelled; for long computations without a wait.
void check_cancelled();

// A flag that fibers wait for. Stays set until reset.
class Event {
 public:
  void set();
  void reset() { is_set_ = false; }
  bool is_set() const { return is_set_; }
  // True when set; false when the deadline passed first. Throws Cancelled.
  bool wait(Instant deadline = kNever);

 private:
  friend class Scope;
  bool is_set_ = false;
  WaitList waiters_;
};

// Something that changes over time: wait() returns after the next notify().
class Condition {
 public:
  void notify_all() { waiters_.wake_all(); }
  void notify_one() { waiters_.wake_one(); }
  // False when the deadline passed first. Spurious wakes happen: wait in a loop on your own condition.
  bool wait(Instant deadline = kNever);

 private:
  WaitList waiters_;
};

// Mutual exclusion across waits (plain data touched without waiting needs none). Waiters go in order of arrival, but a running
// fiber may take a free mutex before a woken one gets to it.
class Mutex {
 public:
  bool locked() const { return locked_; }

 private:
  friend class MutexLock;
  bool locked_ = false;
  WaitList waiters_;
};

class MutexLock {
 public:
  explicit MutexLock(Mutex& mutex);
  ~MutexLock();
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A spawned fiber, as its spawner sees it. Copies refer to the same fiber.
class Task {
 public:
  Task() = default;
  explicit Task(std::shared_ptr<Fiber> fiber) : fiber_(std::move(fiber)) {}

  bool done() const;
  // Asks the fiber to end: its current and every later wait throws Cancelled. Does not wait.
  void cancel();
  // True when the fiber has ended; false when the deadline passed first.
  bool join(Instant deadline = kNever);

 private:
  friend class Scope;
  std::shared_ptr<Fiber> fiber_;
};

// Owns the fibers spawned in it. Made by with_scope only.
class Scope {
 public:
  // Starts `body` in a new fiber of the same node. `name` shows in logs and traces.
  Task spawn(std::string name, std::function<void()> body);
  // Cancels every child that has not ended.
  void cancel();

 private:
  template <typename Body>
  friend void with_scope(Body&& body);
  Scope() = default;
  void join_all();
  static void run(const std::function<void(Scope&)>& body);

  std::vector<std::shared_ptr<Fiber>> children_;
};

// Runs `body(scope)`, then waits for every fiber spawned in the scope. When body throws (cancellation), or the waiting fiber is
// cancelled, the children are cancelled first and still waited for.
template <typename Body>
void with_scope(Body&& body) {
  Scope::run(std::function<void(Scope&)>(std::forward<Body>(body)));
}

// ---- For backends ----------------------------------------------------------------------------------------------------------

// The fibers of one node incarnation (or of one simulated client). A killed group is deaf: its wakes, spawns and timers do
// nothing. Owned by the backend; outlives its fibers.
class FiberGroup {
 public:
  FiberGroup(Runtime& runtime, std::string name, uint64_t id) : runtime_(runtime), name_(std::move(name)), id_(id) {}
  ~FiberGroup();
  FiberGroup(const FiberGroup&) = delete;
  FiberGroup& operator=(const FiberGroup&) = delete;

  Runtime& runtime() { return runtime_; }
  const std::string& name() const { return name_; }
  uint64_t id() const { return id_; }
  bool deaf() const { return deaf_; }
  // From here on the group's wakes, timers and spawns do nothing. First half of a kill.
  void deafen() { deaf_ = true; }
  size_t live_fibers() const { return fibers_.size(); }
  // The backend's own record of this group (the simulated node).
  void* owner = nullptr;

 private:
  friend class Runtime;
  friend class Fiber;
  Runtime& runtime_;
  std::string name_;
  uint64_t id_;
  bool deaf_ = false;
  std::list<std::shared_ptr<Fiber>> fibers_;  // in spawn order
};

// Runs fibers. A backend derives from it, decides the order in on_runnable and calls resume.
class Runtime {
 public:
  Runtime() = default;
  virtual ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The root fiber of a group, or a further one. Runnable at once.
  Task spawn(FiberGroup& group, std::string name, std::function<void()> body);

  // Runs `fiber` until it waits or ends. From the loop only, never from a fiber.
  void resume(Fiber& fiber);

  // Second half of a kill: unwinds every fiber of a deaf group, youngest first, here and now. Never from a fiber of the group.
  void unwind(FiberGroup& group);

  // Earliest armed deadline in loop time; kNever when none.
  Instant next_timer() const;
  // Makes fibers whose deadline is at or before `now` (loop time) runnable, in order of deadline, then of arming.
  void fire_timers(Instant now);

  // The fiber that runs now on this thread; nullptr in the loop itself.
  static Fiber* current();

 protected:
  // `fiber` became runnable: queue it. Called once per wake, never for a deaf group.
  virtual void on_runnable(Fiber& fiber) = 0;
  // The loop time at which the clock of `group` reads `local` (the simulator's drift); production: the same.
  virtual Instant loop_time(FiberGroup& group, Instant local);
  // Clock of `group`, for sleep_for.
  virtual Instant local_now(FiberGroup& group) = 0;

 private:
  friend class Fiber;
  friend class WaitList;
  friend class Task;
  friend class Scope;
  friend Wake park(Instant deadline);
  friend void yield();
  friend void sleep_for(Duration duration);

  Wake park_current(Instant deadline);
  void make_runnable(Fiber& fiber, Wake reason);
  void request_cancel(Fiber& fiber);
  void disarm(Fiber& fiber);
  void retire(Fiber& fiber);

  uint64_t next_fiber_id_ = 1;
  uint64_t next_timer_sequence_ = 0;
  std::set<std::tuple<Instant, uint64_t, Fiber*>> timers_;  // the sequence is unique, so the pointer never orders
};

// One fiber. Backends read name, group and id; the rest is this folder's.
class Fiber {
 public:
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  const std::string& name() const { return name_; }
  FiberGroup& group() { return group_; }
  uint64_t id() const { return id_; }  // spawn number within its runtime
  // Intrusive link for the backend's run queue.
  Fiber* next_runnable = nullptr;

 private:
  friend class Runtime;
  friend class WaitNode;
  friend class WaitList;
  friend class Task;
  friend class Scope;
  friend void check_cancelled();
  friend Wake park(Instant deadline);

  enum class State { runnable, running, parked, done };
  struct Context;  // stack, saved registers, exception globals, sanitizer state

  Fiber(FiberGroup& group, std::string name, uint64_t id, std::function<void()> body);
  static void entry(Fiber& self);

  FiberGroup& group_;
  std::string name_;
  uint64_t id_;
  std::function<void()> body_;
  State state_ = State::runnable;
  bool started_ = false;
  bool cancel_requested_ = false;
  int shielded_ = 0;  // > 0: waits ignore cancellation (a scope waiting for its children)
  Wake wake_reason_ = Wake::signalled;
  bool timer_armed_ = false;
  std::pair<Instant, uint64_t> timer_key_{};
  Event done_;
  std::list<std::shared_ptr<Fiber>>::iterator place_;
  std::unique_ptr<Context> context_;
};

}  // namespace io

// The production loop: an io::Runtime on one thread. Fibers run first come first served; timers follow the boot clock;
// the kernel is asked once a turn, through io_uring where it lets us and through epoll with worker threads where it
// does not.
//
// What runs where:
//  - the loop's thread: every fiber, every socket call (never blocking), every io_uring submission;
//  - the kernel (io_uring) or file threads (epoll): read, write and sync of files, so a data sync never blocks the
//    loop;
//  - file threads, in both cases: open, rename, remove, list, stat, directory sync, truncate, zero fill, free space,
//    lock, and name resolution;
//  - the executors of executor.h have threads of their own.
//
// An operation on a file, once started, runs to its end whatever becomes of the fiber that asked; it owns its buffer.
// Loops of several threads do not know of each other; a process normally has one.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "io/completion.h"
#include "io/fiber.h"
#include "io/real/clock.h"
#include "io/real/file_operation.h"
#include "io/real/poller.h"
#include "io/real/threads.h"

namespace io::real {

enum class IoChoice { automatic, uring, epoll };

// "auto", "uring", "epoll" and back (the flag --io); `invalid` for another text.
std::string_view to_string(IoChoice choice);
Result<IoChoice> parse_io_choice(std::string_view text);

struct LoopSettings {
  // `uring` and `automatic` both fall back to epoll when the kernel refuses io_uring.
  IoChoice io = IoChoice::automatic;
  // Called on a file thread before each file operation takes effect, with its name ("write", "open" ...) and path; it
  // may block. For tests that need a slow disk; production leaves it empty.
  std::function<void(std::string_view operation, std::string_view path)> before_file_operation;
};

class Loop final : public Runtime {
 public:
  // On the thread that will call run(). Fails only when neither io_uring nor epoll can be had (no descriptors left).
  static Result<std::unique_ptr<Loop>> make(LoopSettings settings);
  // No fiber lives any more. Waits for file operations under way.
  ~Loop() override;

  // Runs `body` as the root fiber `name` until it has ended, and everything it spawned with it. May be called again.
  void run(std::string name, std::function<void()> body);
  // Turns until no file operation is under way; false when `patience` has passed first.
  bool drain(Duration patience);

  // Runs `work` on the loop, outside any fiber, in the order of posting. From any thread; never waits.
  void post(std::function<void()> work);

  // What the loop waits on: "io_uring" or "epoll".
  std::string_view io_name() const { return uses_uring_ ? "io_uring" : "epoll"; }
  bool uses_uring() const { return uses_uring_; }
  // Why epoll was taken although io_uring was not ruled out ("io_uring_queue_init: operation not permitted"); empty
  // else.
  const std::string& fallback_reason() const { return fallback_reason_; }

  Clock& clock() { return clock_; }

  // ---- For the other parts of this folder; loop thread only ---------------------------------------------------------

  Poller& poller() { return *poller_; }
  // Runs `work` on a file thread; `what` and `path` are for the settings' hook. Completes on the loop, after `at_end`.
  template <typename T>
  Completion<T> start_on_file_thread(std::string_view what, std::string_view path, std::function<Result<T>()> work,
                                     std::function<void()> at_end = [] {}) {
    Completion<T> completion;
    ++operations_;
    start_on_thread(what, path, [this, completion, work = std::move(work), at_end = std::move(at_end)]() mutable {
      auto result = std::make_shared<Result<T>>(work());
      work = nullptr;  // what it captured dies here; the rest dies on the loop
      post([this, completion = std::move(completion), result = std::move(result), at_end = std::move(at_end)] {
        --operations_;
        at_end();
        completion.complete(std::move(*result));
      });
    });
    return completion;
  }
  // A read, write or sync: in the kernel where the poller can, else on a file thread.
  void start_file(FileOperation::Kind kind, std::shared_ptr<OpenFile> file, uint64_t offset, std::string buffer,
                  FileOperation::End end);
  // Called by an operation that ended without a wait: now and then it lets other fibers go first. Throws Cancelled.
  void pace();
  // Room for one receive; its content is of no account after the next wait.
  static constexpr size_t kScratchBytes = 256 * 1024;
  char* scratch() { return scratch_.get(); }

 protected:
  void on_runnable(Fiber& fiber) override;
  Instant local_now(FiberGroup&) override { return clock_.now(); }

 private:
  class Wakeup;  // the descriptor by which other threads end the loop's wait

  Loop(LoopSettings settings, std::unique_ptr<Poller> poller, bool uses_uring, std::string fallback_reason);
  Status arm_wakeup();
  void turn();
  void run_posted();
  Duration wait_at_most(Instant now) const;
  void start_on_thread(std::string_view what, std::string_view path, std::function<void()> work);

  LoopSettings settings_;
  BootClock clock_;
  std::unique_ptr<Poller> poller_;
  bool uses_uring_;
  std::string fallback_reason_;
  std::unique_ptr<Wakeup> wakeup_;
  std::unique_ptr<char[]> scratch_;

  Fiber* first_runnable_ = nullptr;
  Fiber* last_runnable_ = nullptr;
  int inline_operations_ = 0;      // since the current fiber was resumed
  uint64_t operations_ = 0;        // file operations under way
  FiberGroup group_{*this, "node", 1};

  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;  // bounded by what is under way: each operation posts once
  std::atomic<bool> has_posted_{false};
  std::atomic<bool> asleep_{false};

  Threads file_threads_;  // last: its threads end before what they post to
};

}  // namespace io::real

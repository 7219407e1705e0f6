#include "io/real/threads.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "io/check.h"

namespace io::real {

namespace {

// Signals are the loop thread's business: a thread made here takes none.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    NARAD_CHECK(pthread_sigmask(SIG_BLOCK, &all, &before_) == 0, "signals can be blocked");
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Threads::Threads(std::string name, size_t threads_max) : name_(std::move(name)), threads_max_(threads_max) {
  NARAD_CHECK(threads_max_ > 0, "work needs a thread");
}

Threads::~Threads() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  NARAD_CHECK(queue_.empty(), "queued work was left undone");
}

void Threads::start(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  NARAD_CHECK(!ending_, "work is started before the threads end");
  queue_.push_back(std::move(work));
  if (queue_.size() > idle_ && threads_.size() < threads_max_) {
    SignalsBlocked blocked;
    threads_.emplace_back([this] { serve(); });
    pthread_setname_np(threads_.back().native_handle(), name_.c_str());
  }
  lock.unlock();
  arrived_.notify_one();
}

void Threads::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    while (queue_.empty()) {
      if (ending_) {
        return;
      }
      ++idle_;
      arrived_.wait(lock);
      --idle_;
    }
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace io::real

#include "engine/cluster/assignment_lock.h"

#include "io/probe.h"

namespace engine::cluster {

namespace {

// Counts a waiter for as long as it waits, however the wait ends.
class Waiting {
 public:
  Waiting(size_t* count, io::Condition& freed) : count_(count), freed_(freed) {
    if (count_ != nullptr) ++*count_;
  }
  ~Waiting() {
    if (count_ != nullptr) --*count_;
    if (count_ != nullptr && !has_got_it_) freed_.notify_all();  // those that stood back for this one need not any more
  }
  void got_it() { has_got_it_ = true; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  size_t* count_;
  io::Condition& freed_;
  bool has_got_it_ = false;
};

}  // namespace

bool AssignmentLock::is_free_for(Scope scope) const {
  if (is_held_for_any_) {
    return false;
  }
  return scope == Scope::any_topic ? holders_of_one_ == 0 : waiting_for_any_ == 0;
}

AssignmentLock::Hold::Hold(AssignmentLock& lock, Scope scope, io::Instant deadline) : lock_(lock), scope_(scope) {
  Waiting waiting(scope == Scope::any_topic ? &lock.waiting_for_any_ : nullptr, lock.freed_);
  while (!lock_.is_free_for(scope)) {
    SOMETIMES("assignment lock: a placement waits for another");
    if (!lock_.freed_.wait(deadline) && !lock_.is_free_for(scope)) {
      return;
    }
  }
  is_held_ = true;
  waiting.got_it();
  if (scope == Scope::any_topic) {
    lock_.is_held_for_any_ = true;
  } else {
    ++lock_.holders_of_one_;
  }
}

AssignmentLock::Hold::~Hold() {
  if (!is_held_) {
    return;
  }
  if (scope_ == Scope::any_topic) {
    lock_.is_held_for_any_ = false;
  } else {
    --lock_.holders_of_one_;
  }
  lock_.freed_.notify_all();
}

}  // namespace engine::cluster

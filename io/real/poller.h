// How the loop waits for the kernel: sockets that become ready and file operations that end. Two implementations stand
// behind this interface, io_uring (uring_poller.h) and epoll (epoll_poller.h); what they promise is the same, so
// nothing above the loop can tell them apart.
//
// Everything here runs on the loop's thread. turn() calls on_ready and FileOperation's end, which only note what
// happened and make fibers runnable: no fiber runs inside turn().
#pragma once

#include <memory>
#include <string>

#include "io/time.h"

namespace io::real {

class FileOperation;

// A descriptor that is watched for readiness. Edge-triggered: on_ready reports news, so a caller first tries the system
// call and waits only after it answered EAGAIN. Unwatched before it is destroyed, and before its descriptor is closed.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // `ended`: the far side has ended its direction, or the descriptor is broken; a read then tells which.
  virtual void on_ready(bool readable, bool writable, bool ended) = 0;

 protected:
  ~Watch() = default;

 private:
  friend class EpollPoller;
  friend class UringPoller;
  void* record_ = nullptr;  // the poller's own note; null while unwatched
};

class Poller {
 public:
  virtual ~Poller() = default;

  // False when the kernel refuses to watch it (`error` is then the errno).
  virtual bool watch(Watch& watch, int descriptor, int* error) = 0;
  virtual void unwatch(Watch& watch, int descriptor) = 0;

  // True when the kernel runs file operations for this poller; else start_file must not be called and threads do it.
  virtual bool runs_files() const = 0;
  // Takes `operation` over until it has ended, then calls its end. Handed to the kernel by the next turn.
  virtual void start_file(std::shared_ptr<FileOperation> operation) = 0;

  // Hands over what has been started, waits up to `timeout` (zero: only looks; negative: without limit) for news and
  // reports it. One system call when nothing else is to be done.
  virtual void turn(Duration timeout) = 0;
};

}  // namespace io::real

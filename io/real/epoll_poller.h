// The poller for kernels that refuse io_uring: epoll, edge-triggered. File operations are not its business
// (runs_files() is false): the loop gives them to file threads.
#pragma once

#include "io/real/descriptor.h"
#include "io/real/poller.h"
#include "io/result.h"

namespace io::real {

class EpollPoller final : public Poller {
 public:
  static Result<std::unique_ptr<EpollPoller>> make();

  bool watch(Watch& watch, int descriptor, int* error) override;
  void unwatch(Watch& watch, int descriptor) override;
  bool runs_files() const override { return false; }
  void start_file(std::shared_ptr<FileOperation> operation) override;
  void turn(Duration timeout) override;

 private:
  explicit EpollPoller(Descriptor descriptor) : epoll_(std::move(descriptor)) {}
  int wait(void* events, int events_max, Duration timeout);

  Descriptor epoll_;
  bool exact_timeouts_ = true;  // epoll_pwait2 is there
};

}  // namespace io::real

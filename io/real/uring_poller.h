// The poller on io_uring. Sockets are watched by multishot polls, files are read, written and synced by the ring (a
// write and its sync are linked: a failed write cancels the sync), and one system call a turn hands over what was
// started and waits.
//
// The kernel may refuse io_uring at any step (EPERM, ENOSYS, EMFILE, ENOMEM, or only at the first submission), so
// make() sets a ring up and runs one NOP through it: any negative result is its error, and the caller takes epoll
// instead.
#pragma once

#include <liburing.h>

#include <set>

#include "io/real/poller.h"
#include "io/result.h"

namespace io::real {

class UringPoller final : public Poller {
 public:
  // On the loop's thread: a ring may be bound to it.
  static Result<std::unique_ptr<UringPoller>> make();
  // No file operation is under way.
  ~UringPoller() override;

  bool watch(Watch& watch, int descriptor, int* error) override;
  void unwatch(Watch& watch, int descriptor) override;
  bool runs_files() const override { return true; }
  void start_file(std::shared_ptr<FileOperation> operation) override;
  void turn(Duration timeout) override;

 private:
  // What a completion belongs to: its address is the entry's user data. Null: nobody asks (a poll's removal).
  struct Record;
  struct PollRecord;
  struct FileRecord;
  struct StepRecord;

  UringPoller() = default;
  Status set_up();
  Status probe();
  io_uring_sqe* entry();
  void make_room(unsigned entries);
  void arm(PollRecord& record);
  void submit_steps(FileRecord& record);
  unsigned reap();
  void completed(const io_uring_cqe& completion);
  void poll_completed(PollRecord& record, int result, bool more);
  void step_completed(StepRecord& step, int result);

  io_uring ring_{};
  bool is_set_up_ = false;
  std::set<PollRecord*> polls_;  // armed, or cancelled and not yet reported; the order is never used
};

}  // namespace io::real

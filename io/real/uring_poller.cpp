#include "io/real/uring_poller.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/check.h"
#include "io/real/errno.h"
#include "io/real/file_operation.h"

namespace io::real {

namespace {

constexpr unsigned kSubmissionEntries = 256;
constexpr unsigned kCompletionEntries = 4096;
constexpr size_t kStepBytesMax = size_t{1} << 30;  // an entry's length has 32 bits
constexpr unsigned kPollMask = POLLIN | POLLOUT | POLLRDHUP;

}  // namespace

struct UringPoller::Record {
  enum class Kind { poll, step } kind;
};

struct UringPoller::PollRecord : Record {
  Watch* watch;  // null once unwatched; the record lives until the kernel has let go
  int descriptor;
};

struct UringPoller::StepRecord : Record {
  FileRecord* file = nullptr;
};

// A file operation in the ring: at most one entry that moves bytes and one that syncs are with the kernel, and exactly one
// completion is awaited. Of a write with its sync that is the sync's, so that the loop is not woken for the write alone; when
// the write fails or is short, it is the write's, and the sync, which the kernel then cancels, is not reported.
struct UringPoller::FileRecord {
  std::shared_ptr<FileOperation> operation;
  StepRecord move;
  StepRecord sync;
  bool moves = false;
};

Result<std::unique_ptr<UringPoller>> UringPoller::make() {
  std::unique_ptr<UringPoller> poller(new UringPoller());
  Status status = poller->set_up();
  if (status.ok()) {
    status = poller->probe();
  }
  if (!status.ok()) {
    return status.error();
  }
  return poller;
}

// The newest set of flags first: completions then run on the loop's thread, when it asks for them. An older kernel
// answers EINVAL to flags it does not know.
Status UringPoller::set_up() {
  constexpr unsigned kFlags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN, 0};
  int result = -EINVAL;
  for (const unsigned flags : kFlags) {
    io_uring_params parameters{};
    parameters.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    parameters.cq_entries = kCompletionEntries;
    result = io_uring_queue_init_params(kSubmissionEntries, &ring_, &parameters);
    if (result != -EINVAL) {
      if (result >= 0) {
        is_set_up_ = true;
        constexpr unsigned kNeeded = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_CQE_SKIP;
        if ((parameters.features & kNeeded) != kNeeded) {
          return fail(ErrorKind::invalid, "io_uring: this kernel's version lacks timed waits or skipped completions");
        }
      }
      break;
    }
  }
  return result < 0 ? Status(error_from_errno(-result, "io_uring set-up")) : Status();
}

// Set-up alone proves little: submission may be denied apart.
Status UringPoller::probe() {
  io_uring_sqe* nop = io_uring_get_sqe(&ring_);
  if (nop == nullptr) {
    return fail(ErrorKind::io, "io_uring: no room for a first entry");
  }
  io_uring_prep_nop(nop);
  io_uring_sqe_set_data(nop, nullptr);
  const int submitted = io_uring_submit(&ring_);
  if (submitted < 0) {
    return error_from_errno(-submitted, "io_uring first submission");
  }
  io_uring_cqe* completion = nullptr;
  __kernel_timespec limit{};
  limit.tv_sec = 1;
  const int waited = io_uring_wait_cqe_timeout(&ring_, &completion, &limit);
  if (waited < 0) {
    return error_from_errno(-waited, "io_uring first wait");
  }
  const int result = completion->res;
  io_uring_cqe_seen(&ring_, completion);
  return result < 0 ? Status(error_from_errno(-result, "io_uring first completion")) : Status();
}

UringPoller::~UringPoller() {
  if (is_set_up_) {
    io_uring_queue_exit(&ring_);
  }
  for (PollRecord* record : polls_) {
    NARAD_CHECK(record->watch == nullptr, "the loop ends before what it watches");
    delete record;
  }
}

// Two entries that belong together must be handed over together.
void UringPoller::make_room(unsigned entries) {
  while (io_uring_sq_space_left(&ring_) < entries) {
    const int submitted = io_uring_submit(&ring_);
    if (submitted == -EBUSY || submitted == -EAGAIN) {
      reap();
      continue;
    }
    NARAD_CHECK(submitted >= 0 || submitted == -EINTR, "the ring takes entries");
  }
}

io_uring_sqe* UringPoller::entry() {
  io_uring_sqe* next = io_uring_get_sqe(&ring_);
  NARAD_CHECK(next != nullptr, "room was made in the ring");
  return next;
}

bool UringPoller::watch(Watch& watch, int descriptor, int*) {
  NARAD_CHECK(watch.record_ == nullptr, "a descriptor is watched once");
  auto* record = new PollRecord{{Record::Kind::poll}, &watch, descriptor};
  polls_.insert(record);
  watch.record_ = record;
  arm(*record);
  return true;
}

void UringPoller::arm(PollRecord& record) {
  make_room(1);
  io_uring_sqe* poll = entry();
  io_uring_prep_poll_multishot(poll, record.descriptor, kPollMask);
  io_uring_sqe_set_data(poll, &record);
}

// The kernel holds the descriptor's file until it has handled the removal, which the next turn hands over.
void UringPoller::unwatch(Watch& watch, int) {
  auto* record = static_cast<PollRecord*>(watch.record_);
  if (record == nullptr) {
    return;
  }
  watch.record_ = nullptr;
  record->watch = nullptr;
  make_room(1);
  io_uring_sqe* removal = entry();
  io_uring_prep_poll_remove(removal, reinterpret_cast<uint64_t>(record));
  io_uring_sqe_set_data(removal, nullptr);
}

void UringPoller::start_file(std::shared_ptr<FileOperation> operation) {
  auto* record = new FileRecord;
  record->operation = std::move(operation);
  record->move = {{Record::Kind::step}, record};
  record->sync = {{Record::Kind::step}, record};
  submit_steps(*record);
  // At once and not at the end of the turn: the disk works while the loop goes on. What the kernel does not take now, the turn
  // hands over.
  (void)io_uring_submit(&ring_);
}

void UringPoller::submit_steps(FileRecord& record) {
  FileOperation& operation = *record.operation;
  const int descriptor = operation.file().descriptor();
  record.moves = operation.left() > 0;
  const bool syncs = operation.syncs() && operation.left() <= kStepBytesMax;
  make_room(2);
  if (!record.moves && !syncs) {  // a read of no bytes
    io_uring_sqe* nothing = entry();
    io_uring_prep_nop(nothing);
    io_uring_sqe_set_data(nothing, &record.sync);
    return;
  }
  if (record.moves) {
    io_uring_sqe* move = entry();
    const auto length = static_cast<unsigned>(std::min(operation.left(), kStepBytesMax));
    if (operation.is_read()) {
      io_uring_prep_read(move, descriptor, operation.data(), length, operation.offset());
    } else {
      io_uring_prep_write(move, descriptor, operation.data(), length, operation.offset());
    }
    if (syncs) {
      move->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
    }
    io_uring_sqe_set_data(move, &record.move);
  }
  if (syncs) {
    io_uring_sqe* sync = entry();
    io_uring_prep_fsync(sync, descriptor, IORING_FSYNC_DATASYNC);
    io_uring_sqe_set_data(sync, &record.sync);
  }
}

void UringPoller::turn(Duration timeout) {
  int result = 0;
  io_uring_cqe* first = nullptr;
  if (timeout.count() == 0 || io_uring_cq_ready(&ring_) > 0) {
    result = io_uring_submit_and_get_events(&ring_);
  } else if (timeout.count() < 0) {
    result = io_uring_submit_and_wait(&ring_, 1);
  } else {
    __kernel_timespec limit{};
    limit.tv_sec = timeout.count() / 1'000'000'000;
    limit.tv_nsec = timeout.count() % 1'000'000'000;
    result = io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
  }
  const bool expected = result >= 0 || result == -ETIME || result == -EINTR || result == -EBUSY || result == -EAGAIN;
  NARAD_CHECK(expected, "the ring can wait: " + errno_text(-result));
  reap();
}

unsigned UringPoller::reap() {
  unsigned total = 0;
  while (true) {
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* completion = nullptr;
    // Handling one may start entries, which may have to make room, which reaps: take each before it is handled.
    io_uring_for_each_cqe(&ring_, head, completion) {
      ++count;
      const io_uring_cqe copy = *completion;
      io_uring_cq_advance(&ring_, 1);
      completed(copy);
      break;
    }
    if (count == 0) {
      return total;
    }
    total += count;
  }
}

void UringPoller::completed(const io_uring_cqe& completion) {
  auto* record = reinterpret_cast<Record*>(completion.user_data);
  if (record == nullptr) {
    return;
  }
  if (record->kind == Record::Kind::poll) {
    poll_completed(static_cast<PollRecord&>(*record), completion.res, (completion.flags & IORING_CQE_F_MORE) != 0);
  } else {
    step_completed(static_cast<StepRecord&>(*record), completion.res);
  }
}

void UringPoller::poll_completed(PollRecord& record, int result, bool more) {
  if (record.watch != nullptr) {
    const unsigned what = result < 0 ? POLLERR : static_cast<unsigned>(result);
    const bool broken = (what & (POLLERR | POLLHUP)) != 0;
    const bool ended = broken || (what & POLLRDHUP) != 0;
    record.watch->on_ready(ended || (what & POLLIN) != 0, broken || (what & POLLOUT) != 0, ended);
  }
  if (more) {
    return;
  }
  // The kernel ended the multishot: by removal, or of its own (a full completion queue, a broken descriptor).
  if (record.watch != nullptr && result >= 0) {
    arm(record);
    return;
  }
  if (record.watch != nullptr) {
    record.watch->record_ = nullptr;
  }
  polls_.erase(&record);
  delete &record;
}

void UringPoller::step_completed(StepRecord& step, int result) {
  FileRecord& record = *step.file;
  FileOperation& operation = *record.operation;
  bool goes_on = false;
  if (&step == &record.move) {
    const bool more = operation.step_moved(result);
    goes_on = more || (operation.syncs() && !operation.failed());  // its sync did not run
  } else {
    if (record.moves) {
      operation.step_moved(static_cast<int64_t>(operation.left()));  // only after all of it comes the sync
    }
    operation.step_synced(result);
  }
  if (goes_on) {
    submit_steps(record);
    return;
  }
  std::unique_ptr<FileRecord> ended(&record);
  operation.finish();
}

}  // namespace io::real

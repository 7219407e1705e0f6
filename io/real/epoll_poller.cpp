#include "io/real/epoll_poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "io/check.h"
#include "io/real/errno.h"
#include "io/real/file_operation.h"

namespace io::real {

Result<std::unique_ptr<EpollPoller>> EpollPoller::make() {
  Descriptor descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!descriptor.valid()) {
    return error_from_errno(errno, "epoll_create1");
  }
  return std::unique_ptr<EpollPoller>(new EpollPoller(std::move(descriptor)));
}

bool EpollPoller::watch(Watch& watch, int descriptor, int* error) {
  NARAD_CHECK(watch.record_ == nullptr, "a descriptor is watched once");
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watch;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    *error = errno;
    return false;
  }
  watch.record_ = this;
  return true;
}

// Events of one turn are all reported before a fiber runs, so none is left that names an unwatched object.
void EpollPoller::unwatch(Watch& watch, int descriptor) {
  if (watch.record_ == nullptr) {
    return;
  }
  watch.record_ = nullptr;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void EpollPoller::start_file(std::shared_ptr<FileOperation>) {
  NARAD_CHECK(false, "epoll runs no file operations");
}

int EpollPoller::wait(void* events, int events_max, Duration timeout) {
  auto* list = static_cast<epoll_event*>(events);
  if (exact_timeouts_) {
    timespec limit{};
    limit.tv_sec = timeout.count() / 1'000'000'000;
    limit.tv_nsec = timeout.count() % 1'000'000'000;
    const int count = epoll_pwait2(epoll_.get(), list, events_max, timeout.count() < 0 ? nullptr : &limit, nullptr);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) {
      return count;
    }
    exact_timeouts_ = false;
  }
  const int64_t ms = (timeout.count() + 999'999) / 1'000'000;  // rounded up: never early, never spinning
  const int limit_ms = timeout.count() < 0 ? -1 : static_cast<int>(std::min<int64_t>(ms, INT_MAX));
  return epoll_wait(epoll_.get(), list, events_max, limit_ms);
}

void EpollPoller::turn(Duration timeout) {
  constexpr int kEventsMax = 256;
  epoll_event events[kEventsMax];
  const int count = wait(events, kEventsMax, timeout);
  NARAD_CHECK(count >= 0 || errno == EINTR, "the kernel can wait");
  for (int i = 0; i < count; ++i) {
    const uint32_t what = events[i].events;
    const bool broken = (what & (EPOLLERR | EPOLLHUP)) != 0;
    const bool ended = broken || (what & EPOLLRDHUP) != 0;
    static_cast<Watch*>(events[i].data.ptr)
        ->on_ready(ended || (what & EPOLLIN) != 0, broken || (what & EPOLLOUT) != 0, ended);
  }
}

}  // namespace io::real

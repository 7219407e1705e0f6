// Processor time, for figures that other programs on the machine must not change.
#pragma once

#include <time.h>

namespace bench {

inline double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Of this thread, and of all threads of the process.
inline double thread_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
inline double process_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace bench

// SIGINT and SIGTERM as an event of the node. The first asks it to stop; a second ends the process at once with 128 +
// its number, whatever the loop is doing. SIGPIPE and SIGXFSZ are ignored: the calls that raise them report errors.
#pragma once

#include "io/fiber.h"
#include "io/real/loop.h"

namespace io::real {

// At most one at a time in a process. On the loop's thread.
class StopSignals {
 public:
  // Sets `stop` on the loop when a signal came. Both outlive it.
  StopSignals(Loop& loop, Event& stop);
  // Gives the signals their former meaning back.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came first; 0 when none has.
  int received() const;

 private:
  class Pipe;
  std::unique_ptr<Pipe> pipe_;
};

}  // namespace io::real

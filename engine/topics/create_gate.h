// Holds creations back while a node starts: until its startup reconcile has ended, a topic that is created here could be one whose
// directory the reconcile is about to judge. Armed from the begin of a node's life; opened once, for good.
#pragma once

#include "io/fiber.h"

namespace engine::topics {

class CreateGate {
 public:
  void open() { opened_.set(); }
  bool is_open() const { return opened_.is_set(); }
  // Parks the caller until the gate opens. False when the deadline passed first. Throws Cancelled.
  bool wait(io::Instant deadline) { return opened_.wait(deadline); }

 private:
  io::Event opened_;
};

}  // namespace engine::topics

// What raft/server drives: the state machine that committed entries are for, and whoever watches from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/result.h"
#include "raft/core.h"
#include "raft/types.h"

namespace raft {

// Where a state machine writes its image, and from where it reads one. The stream is opaque to raft: whoever stores or sends
// it guards its bytes (order, length, checksums), but only the state machine can tell a good image from a bad one.
class ImageSink {
 public:
  virtual ~ImageSink() = default;
  // Takes the next bytes of the image. May wait: the sink sets the pace. After an error no more is written.
  virtual io::Status write(std::string bytes) = 0;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // The next bytes of the image, 1 to `bytes_max` of them; empty at its end, and from then on. May wait.
  virtual io::Result<std::string> read(std::size_t bytes_max) = 0;
};

// Whose calls run beside which: apply() and install_image() never beside one another; write_image(), flush() and check_image()
// in fibers of their own beside apply(), at most one write_image() and one flush() at a time; install_image() beside
// nothing but reads of the state. A call that is cancelled leaves nothing behind that a later call would stumble over.
class StateMachine {
 public:
  virtual ~StateMachine() = default;

  // The last entry whose effects the state machine holds; 0 before the first. The index of a command always: no-ops and
  // configurations never come here, so it may be lower than what the server counts as applied. Does not wait.
  virtual Index applied_index() const = 0;

  // The last entry whose effects a power loss leaves in place, at most applied_index(). The log is never compacted past it
  // (nor past a durable snapshot). Rises by itself from time to time, and by flush(). Does not wait.
  virtual Index durable_index() const = 0;

  // Makes durable what is applied now: on success durable_index() is at least what applied_index() was at the call. Waits for
  // the disk; applies go on meanwhile. After an error nothing is lost and the call may be made again later.
  virtual io::Status flush() = 0;

  // Applies committed commands, in order, each exactly once per life: entries of type command only, of rising but not
  // always consecutive indexes (no-ops and configurations never come here). Called by the apply fiber alone; may wait.
  // Returns one answer for each entry: opaque bytes, handed to the proposer on the server that proposed it. An error
  // means that the state machine cannot go on: the server stops (fail-stop), and no later entry is applied.
  virtual io::Result<std::vector<std::string>> apply(const std::vector<Entry>& batch) = 0;

  // Writes the state of one moment, that of the call, to `sink`; applies go on meanwhile. Returns the index of the last entry
  // in it: the snapshot's label, read from the very state that is written. `replayed`: what the server counts as applied at the
  // call; a state machine that is ahead of it, because a replay since the start has not caught up with it, refuses with `busy`
  // (the content would be past what the server can label). Other errors: `invalid` when nothing has been applied yet, those of
  // the sink, those of the state machine's disk. After an error what was written is worthless. Memory beyond the state
  // machine's own: a few hundred KiB, whatever the size of the state. Called by the snapshot fiber alone; waits.
  virtual io::Result<Index> write_image(ImageSink& sink, Index replayed) = 0;

  // An image could not be kept though write_image() was not at fault: its file could not be begun, or not be put in place. For the state
  // machine's own log. Does not wait.
  virtual void image_not_kept(const io::Error& error) { (void)error; }

  // Reads a whole image and judges it: complete, undamaged, of a format and content that this release understands, its digest right,
  // and its last entry is `label`. Changes nothing. Errors: `corrupt`; `invalid` for an image that only a newer release
  // understands; those of the source. Where is_stopped() says afterwards that there is no going on without such an image, the server
  // stops. Waits; may run beside everything but itself.
  virtual io::Status check_image(ImageSource& source, Index label) = 0;

  // Replaces the whole state by the image's, never merging. The switch is one atomic durable step: after a crash at any moment the
  // state machine opens with the old state or with the new one. Checks what check_image() checks, before the switch. On success
  // applied_index() and durable_index() are `label`. An error before the switch leaves the old state in place, and the call may
  // be made again; where the outcome of the switch itself is unknown, is_stopped() says so: the server then stops,
  // and the next start finds out. Called by the apply fiber, or before the server runs; waits.
  virtual io::Status install_image(ImageSource& source, Index label) = 0;

  // The cluster that this server belongs to, once that is known: for the state machine's own record of whose it is. Does not wait.
  virtual void joined_cluster(const ClusterId& cluster) { (void)cluster; }

  // True when the state machine can no longer go on in this life: every apply() and install_image() fails from now on.
  virtual bool is_stopped() const = 0;
};

struct RestartFacts;     // restart.h
struct RestartDecision;

// What a state machine's disk holds, looked at before it is opened.
struct StateMachineFacts {
  bool holds_anything = false;
  // `index` is that of the last entry whose effects are in it, and of nothing else: nobody wrote it since. Never so where it is 0.
  bool is_trusted = false;
  std::string distrust;  // why not, for people
  Index index = 0;
  Term term = 0;  // 0: not known
  std::uint32_t newest_type = 0;  // the newest kind of command that was ever applied to it
  // Whose it is; zero: not known.
  StoreId store;
  ClusterId cluster;
};

// The code that is to drive it.
struct StateMachineBuild {
  std::string name;                // "narad 1.2.3"
  std::uint32_t newest_type = 0;  // the newest kind of command that it can apply
  std::string path;                // what the operator finds the state machine under: "fsm.db"
  std::string raft_path;           // and raft's state: "raft"
};

// A state machine that is not open yet. RaftServer::open() decides by it (raft/restart.h), and opens it in the way that was decided.
// Calls come one after the other, from the fiber that opens the server; all but build() may wait.
class StateMachineHome {
 public:
  virtual ~StateMachineHome() = default;

  virtual StateMachineBuild build() const = 0;
  // Changes nothing.
  virtual io::Result<StateMachineFacts> look() = 0;
  // The newest kind of command in an image, read from its begin. `corrupt`: it is none.
  virtual io::Result<std::uint32_t> newest_type_of(ImageSource& image) = 0;
  // What a start was decided to do, before any of it is done: for the log. Does not wait.
  virtual void decided(const RestartFacts& facts, const RestartDecision& decision) { (void)facts, (void)decision; }
  // Moves away, durably, whatever there is: open() then finds nothing. For people: `reason`.
  virtual io::Status set_aside(const std::string& reason) = 0;

  enum class As : std::uint8_t {
    held,      // its index counts; or there is nothing
    replaced,  // an image is installed over it next
    rebased,   // its rows count as the effects of everything up to `index`
  };
  struct Opening {
    As as = As::held;
    Index index = 0;
    Term term = 0;
    // Whose it is from now on.
    StoreId store;
    ClusterId cluster;
  };
  // Once. The state machine lives as long as its home, at least.
  virtual io::Result<StateMachine*> open(const Opening& opening) = 0;
};

// Told what the server does, for checks of a world or a test and for traces. Null in production. Must not wait, must not call
// back; what it is given is valid during the call. Every call comes with the core as the event left it.
class Observer {
 public:
  virtual ~Observer() = default;
  // A life begins: the core was made of what the disk holds.
  virtual void opened(const Core&) {}
  // The core has taken `message` (which may have been dropped as outdated or malformed).
  virtual void message_taken(const Core&, const Message& message) { (void)message; }
  // The core has judged the head of an image, which counts as a message of its leader.
  virtual void offer_taken(const Core&, const SnapshotOffer& offer, const OfferAnswer& answer) { (void)offer, (void)answer; }
  // The core has taken one or more inputs; nothing of what follows from them has left the server yet.
  virtual void core_changed(const Core&) {}
  // What the core asks to be done, before any of it is.
  virtual void ready_taken(const Core&, const Ready& ready) { (void)ready; }
  // `message` is handed to the link to its receiver: from now on it may leave.
  virtual void message_sent(const Core&, const Message& message) { (void)message; }
  // The core was told that its hard state, or its log up to core.durable_index(), is durable.
  virtual void persisted(const Core&) {}
  // The state machine has applied `entry`; `answer` is empty for entries that never reach it.
  virtual void entry_applied(const Entry&, const std::string& answer) { (void)answer; }
  // A snapshot of this server's own state machine is in place under that label.
  virtual void snapshot_taken(const SnapshotLabel&) {}
  // The state machine's state was replaced by the image of that label.
  virtual void image_installed(const SnapshotLabel&) {}
  // The core was told that the state machine has applied everything up to core.applied_index().
  virtual void applied(const Core&) {}
};

}  // namespace raft

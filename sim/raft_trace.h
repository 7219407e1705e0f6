// The raft trace: one JSON object a line for each raft event of a run, with the node's whole protocol state behind it, for a
// model checker outside. docs/raft-trace.md says what each field means.
//
// It only looks: a run with a trace is the run without it, and equal runs give equal traces.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "io/time.h"
#include "raft/core.h"

namespace sim {

class RaftTrace {
 public:
  // `sink` takes one line at a time, without its line feed.
  explicit RaftTrace(std::function<void(std::string_view line)> sink) : sink_(std::move(sink)) {}

  // Whose event it is: each call of raft::Observer is handed on with it.
  struct Source {
    int node = 0;
    uint64_t life = 0;
    io::Instant now{};
  };
  void opened(const Source& source, const raft::Core& core);
  void message_taken(const Source& source, const raft::Core& core, const raft::Message& message);
  void offer_taken(const Source& source, const raft::Core& core, const raft::SnapshotOffer& offer, const raft::OfferAnswer& answer);
  void core_changed(const Source& source, const raft::Core& core);
  void ready_taken(const Source& source, const raft::Core& core, const raft::Ready& ready);
  void message_sent(const Source& source, const raft::Core& core, const raft::Message& message);
  void persisted(const Source& source, const raft::Core& core);
  void applied(const Source& source, const raft::Core& core);

  uint64_t lines() const { return lines_; }

 private:
  // What the last line about a life said, to see what has moved since.
  struct Seen {
    uint64_t life = 0;
    raft::Index commit = 0;
    raft::Index applied = 0;
    raft::Index snapshot = 0;
    std::string configuration;  // as it is printed
  };
  // A line about an event, whose own fields are `fields` (",\"key\":value..." or empty).
  void write(const Source& source, const raft::Core& core, std::string_view event, std::string_view fields);
  // Lines for what has moved without a call of its own: configuration, commit index, snapshot.
  void follow(const Source& source, const raft::Core& core);

  std::function<void(std::string_view)> sink_;
  std::map<int, Seen> seen_;
  uint64_t lines_ = 0;
};

}  // namespace sim

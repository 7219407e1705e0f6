// What an image of the state machine stands for, and how a leader offers one.
//
// The label is the raft side of a snapshot: how far the image reaches, and who belonged to the cluster there. It is written
// together with the image, travels with it, and takes the place of the log's prefix: a log may begin above it. The identity
// of the cluster is that of the configuration (Configuration::cluster), which carries the store ids too.
//
// Label equals content: the image holds the effect of every entry up to `index` and of none above. Core::label_at() makes
// labels, from committed and applied entries only.
#pragma once

#include "raft/configuration.h"
#include "raft/types.h"

namespace raft {

struct SnapshotLabel {
  Index index = 0;  // of the last entry whose effect the image holds; 0: no snapshot
  Term term = 0;    // of that entry
  // The newest configuration at or below `index`, and the index of its entry (0: bootstrap). A newer one, appended but not
  // covered by the image, is never recorded: it may yet be cut.
  Index configuration_index = 0;
  Configuration configuration;

  friend bool operator==(const SnapshotLabel&, const SnapshotLabel&) = default;
};

// The head of an image on its way from a leader to another server: what Core::offer_snapshot() of the receiver judges before
// a byte of the image is taken.
struct SnapshotOffer {
  ServerId from;              // the leader
  ServerId to;
  Term term = 0;              // the leader's
  StoreId from_store;
  ClusterId cluster;          // the sender's cluster
  std::uint64_t session = 0;  // of the sender's life
  SnapshotLabel label;
};

}  // namespace raft

// The snapshot store against a model of the two newest images, under random images, transfers that break off, restarts and faults.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <ostream>

#include "raft/snapshot_store.h"
#include "tests/support/snapshots.h"

namespace {

using raft::Index;
using raft::SnapshotInfo;
using raft::SnapshotStore;
using tests::DiskWorld;
using tests::image;
using tests::label;

struct Step {
  bool is_received = false;
  int ahead = 1;    // of the newest index
  int bytes = 0;
  int piece = 100;  // written at a time; received: chunks before the connection is lost
  int chunk = 0;    // received: the sender's chunks have 512 * (chunk + 1) bytes
};

// One life of the process, and how it ends.
struct Life {
  std::vector<Step> steps;
  int fault = 0;  // 0 none, 1 kill, 2 power loss, 3 failed operation, 4 full disk
  int nth = 1;
  bool loses_power_afterwards = false;
};

void showValue(const Step& step, std::ostream& out) {
  out << (step.is_received ? "{receive" : "{write") << " +" << step.ahead << ", " << step.bytes << " bytes, piece " << step.piece
      << ", chunk " << step.chunk << "}";
}

void showValue(const Life& life, std::ostream& out) {
  out << "life";
  for (const Step& each : life.steps) {
    out << " ";
    showValue(each, out);
  }
  out << ", fault " << life.fault << " at " << life.nth << (life.loses_power_afterwards ? ", power loss" : "");
}

rc::Gen<Step> step_gen() {
  return rc::gen::build<Step>(rc::gen::set(&Step::is_received, rc::gen::arbitrary<bool>()),
                              rc::gen::set(&Step::ahead, rc::gen::inRange(0, 4)),
                              rc::gen::set(&Step::bytes, rc::gen::inRange(0, 6000)),
                              rc::gen::set(&Step::piece, rc::gen::inRange(1, 1500)),
                              rc::gen::set(&Step::chunk, rc::gen::inRange(0, 3)));
}

rc::Gen<Life> life_gen() {
  return rc::gen::build<Life>(rc::gen::set(&Life::steps, rc::gen::container<std::vector<Step>>(step_gen())),
                              rc::gen::set(&Life::fault, rc::gen::inRange(0, 5)), rc::gen::set(&Life::nth, rc::gen::inRange(1, 60)),
                              rc::gen::set(&Life::loses_power_afterwards, rc::gen::arbitrary<bool>()));
}

struct Model {
  Index newest = 0;                   // the last one that was acknowledged
  Index trying = 0;                   // the one under way, or newest
  std::map<Index, std::size_t> bytes; // of every image that was ever tried
  std::string error;
};

std::string whole_of(const Model& model, Index index) { return image(index, model.bytes.at(index)); }

// Transfers break off, at most three times.
io::Status receive(SnapshotStore& store, const Step& step, Index index, const std::string& whole) {
  const SnapshotInfo info = tests::info_of(index, whole, 512u * static_cast<uint32_t>(step.chunk + 1));
  const auto chunks = tests::chunks_of(info, whole);
  for (int connection = 0;; ++connection) {
    auto receiver = store.receive(info);
    if (!receiver.ok()) return receiver.error();
    int left = connection < 3 ? step.piece % 7 : 1000;
    for (const raft::SnapshotChunk& chunk : chunks) {
      if (chunk.offset < (*receiver)->next_offset()) continue;
      if (left-- == 0) break;
      if (io::Status taken = (*receiver)->append(chunk); !taken.ok()) return taken;
    }
    if (!(*receiver)->is_complete()) continue;
    if (io::Status sealed = (*receiver)->seal(); !sealed.ok()) return sealed;
    return (*receiver)->publish();
  }
}

void check(SnapshotStore& store, Model& model, bool is_quiet) {
  const auto& kept = store.kept();
  const Index found = kept.empty() ? 0 : kept[0].label.index;
  if (found != model.newest && found != model.trying) model.error = "found " + std::to_string(found);
  if (kept.size() > 2 || !store.damaged().empty()) model.error = "more than two, or damaged ones";
  for (const SnapshotInfo& info : std::vector<SnapshotInfo>(kept)) {
    auto whole = tests::read_snapshot(store, info.label);
    if (!whole.ok() && !is_quiet) continue;
    if (!whole.ok()) {
      model.error = whole.error().to_text();
    } else if (*whole != whole_of(model, info.label.index) || info.label != label(info.label.index)) {
      model.error = "the image of " + std::to_string(info.label.index) + " has changed";
    }
  }
  if (model.error.empty()) model.newest = model.trying = found;
}

void live(io::Env& env, const Life& life, Model& model) {
  tests::OpenedSnapshots opened = tests::open_snapshots(env);
  if (opened.store == nullptr) {
    if (life.fault == 0) model.error = opened.status.error().to_text();
    return;
  }
  check(*opened.store, model, life.fault == 0);
  if (!opened.status.ok() || !model.error.empty()) return;
  for (const Step& step : life.steps) {
    const Index index = model.newest + static_cast<Index>(step.ahead);
    if (index == 0) continue;
    const bool is_covered = index <= model.newest;
    if (!is_covered) {
      model.trying = index;
      model.bytes[index] = static_cast<std::size_t>(step.bytes);
    }
    const std::string whole = whole_of(model, index);
    const io::Status status = step.is_received
                                  ? receive(*opened.store, step, index, whole)
                                  : tests::write_snapshot(*opened.store, index, whole.size(), static_cast<std::size_t>(step.piece));
    if (status.ok()) model.newest = index;
    if (is_covered && !status.is(io::ErrorKind::exists) && life.fault == 0) model.error = "an old one was taken";
    if (!is_covered && !status.ok() && life.fault == 0) model.error = status.error().to_text();
    if (status.ok() && is_covered) model.error = "an old one was taken";
    // One that failed at its very end may stand all the same after a restart, until the next one is acknowledged.
    if (status.ok()) model.trying = index;
  }
}

RC_GTEST_PROP(SnapshotStoreProperty, KeepsExactlyTheNewestTwoThatItAcknowledged, ()) {
  const auto lives = *rc::gen::resize(10, rc::gen::container<std::vector<Life>>(life_gen()));
  DiskWorld disk(*rc::gen::arbitrary<uint64_t>());
  const uint64_t capacity = disk.volume().capacity();
  Model model;
  for (const Life& life : lives) {
    static constexpr io::sim::FaultAction kActions[] = {io::sim::FaultAction::kill, io::sim::FaultAction::power_loss,
                                                        io::sim::FaultAction::error};
    if (life.fault >= 1 && life.fault <= 3) {
      disk.volume().script({kActions[life.fault - 1], std::nullopt, "raft", static_cast<uint64_t>(life.nth)});
    }
    if (life.fault == 4) disk.volume().set_capacity(disk.volume().used() + static_cast<uint64_t>(life.nth) * 256);
    disk.run([&](io::Env& env) { live(env, life, model); });
    disk.volume().clear_scripted();
    disk.volume().set_capacity(capacity);
    RC_ASSERT(model.error == "");
    if (life.loses_power_afterwards) disk.machine.power_loss();
  }
  disk.run([&](io::Env& env) { live(env, Life{}, model); });
  RC_ASSERT(model.error == "");
}

}  // namespace

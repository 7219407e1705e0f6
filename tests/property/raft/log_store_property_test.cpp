// The log store against the simplest model there is, a list of entries, under random appends, cuts, restarts and faults.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <ostream>

#include "raft/log_store.h"
#include "tests/support/disk_world.h"

namespace {

using raft::Entry;
using raft::Index;
using raft::LogSettings;
using raft::LogStore;
using tests::DiskWorld;
using tests::kStore;
using tests::to_text;

// One append: how far back it cuts, how many entries, how large.
struct Append {
  int back = 0;
  int count = 1;
  int bytes = 0;
  bool prepares = false;
};

// One life of the process, and how it ends.
struct Life {
  std::vector<Append> appends;
  int fault = 0;  // 0 none, 1 kill, 2 power loss, 3 failed write or sync, 4 full disk
  int nth = 1;    // which disk operation it strikes
  bool loses_power_afterwards = false;
};

void showValue(const Append& append, std::ostream& out) {
  out << "{back " << append.back << ", count " << append.count << ", bytes " << append.bytes
      << (append.prepares ? ", prepares}" : "}");
}

void showValue(const Life& life, std::ostream& out) {
  out << "life";
  for (const Append& each : life.appends) {
    out << " ";
    showValue(each, out);
  }
  out << ", fault " << life.fault << " at " << life.nth << (life.loses_power_afterwards ? ", power loss" : "");
}

rc::Gen<Append> append_gen() {
  return rc::gen::build<Append>(
      rc::gen::set(&Append::back, rc::gen::weightedOneOf<int>({{4, rc::gen::just(0)}, {1, rc::gen::inRange(1, 12)}})),
      rc::gen::set(&Append::count, rc::gen::inRange(1, 6)),
      rc::gen::set(&Append::bytes, rc::gen::weightedOneOf<int>({{8, rc::gen::inRange(0, 700)}, {1, rc::gen::inRange(3000, 9000)}})),
      rc::gen::set(&Append::prepares, rc::gen::arbitrary<bool>()));
}

rc::Gen<Life> life_gen() {
  return rc::gen::build<Life>(rc::gen::set(&Life::appends, rc::gen::container<std::vector<Append>>(append_gen())),
                              rc::gen::set(&Life::fault, rc::gen::inRange(0, 5)),
                              rc::gen::set(&Life::nth, rc::gen::inRange(1, 60)),
                              rc::gen::set(&Life::loses_power_afterwards, rc::gen::arbitrary<bool>()));
}

struct Model {
  std::vector<Entry> done;    // what the last append that returned left
  std::vector<Entry> trying;  // what the one under way would leave
  std::string error;
};

void live(io::Env& env, const Life& life, raft::Term& term, Model& model) {
  const LogSettings settings{.segment_bytes = 4096, .fill_step_bytes = 4096, .batch_bytes_max = 4000};
  NARAD_CHECK(env.disk.make_directory("raft").ok() && env.disk.sync_directory("").ok(), "raft/ is durable");
  LogStore::Contents contents;
  auto opened = LogStore::open(env.disk, kStore, settings, contents);
  if (!opened.ok()) {
    if (life.fault == 0) model.error = opened.error().to_text();
    return;
  }
  const std::string found = to_text(contents.entries);
  // A batch may have been cut in several; a prefix of what was tried is then also right, down to what was done or cut.
  bool is_right = found == to_text(model.done);
  for (size_t length = 0; length <= model.trying.size() && !is_right; ++length) {
    is_right = found == to_text({model.trying.begin(), model.trying.begin() + static_cast<std::ptrdiff_t>(length)});
  }
  if (!is_right) model.error = "found " + found + " after " + to_text(model.done) + " or " + to_text(model.trying);
  LogStore& log = **opened;
  if (!log.confirm().ok()) return;
  model.done = model.trying = contents.entries;
  for (const Append& each : life.appends) {
    ++term;
    const Index last = model.done.size();
    const Index first = last + 1 - std::min<Index>(static_cast<Index>(each.back), last);
    std::vector<Entry> batch;
    for (int i = 0; i < each.count; ++i) {
      batch.push_back(tests::entry(term, first + static_cast<Index>(i), std::string(static_cast<size_t>(each.bytes), 'x')));
    }
    model.trying = model.done;
    model.trying.resize(first - 1);
    model.trying.insert(model.trying.end(), batch.begin(), batch.end());
    const uint64_t batches = log.last_batch();
    io::Status status = log.append(batch);
    if (!status.ok() && !status.is(io::ErrorKind::no_space)) return;
    if (status.ok() || log.last_batch() > batches) {
      model.done = model.trying;
      model.done.resize(log.last_index());  // of a large batch on a full disk, what there was room for
    }
    model.trying = model.done;
    if (each.prepares) (void)log.prepare_segment();
  }
  if (!model.done.empty()) {
    auto read = log.read(1, model.done.size(), ~uint64_t{0});
    if (read.ok() && to_text(*read) != to_text(model.done)) model.error = "read " + to_text(*read);
  }
}

RC_GTEST_PROP(LogStoreProperty, HoldsExactlyWhatItAcknowledged, ()) {
  const auto lives = *rc::gen::resize(14, rc::gen::container<std::vector<Life>>(life_gen()));
  DiskWorld disk(*rc::gen::arbitrary<uint64_t>());
  const uint64_t capacity = disk.volume().capacity();
  Model model;
  raft::Term term = 0;
  for (Life life : lives) {
    static constexpr io::sim::FaultAction kActions[] = {io::sim::FaultAction::kill, io::sim::FaultAction::power_loss,
                                                        io::sim::FaultAction::error};
    if (life.fault >= 1 && life.fault <= 3) {
      disk.volume().script({kActions[life.fault - 1], std::nullopt, "raft/log", static_cast<uint64_t>(life.nth)});
    }
    if (life.fault == 4) disk.volume().set_capacity(disk.volume().used() + static_cast<uint64_t>(life.nth) * 512);
    disk.run([&](io::Env& env) { live(env, life, term, model); });
    disk.volume().clear_scripted();
    disk.volume().set_capacity(capacity);
    RC_ASSERT(model.error == "");
    if (life.loses_power_afterwards) disk.machine.power_loss();
  }
  disk.run([&](io::Env& env) { live(env, Life{}, term, model); });
  RC_ASSERT(model.error == "");
}

}  // namespace

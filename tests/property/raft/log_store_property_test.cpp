// The log store against the simplest model there is, a list of entries behind a base, under random appends, cuts, compactions,
// resets, reads, restarts and faults.
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

enum class Kind { append, compact, reset };

// One append: how far back it cuts, how many entries, how large. A compaction or a reset: how far from the end.
struct Step {
  Kind kind = Kind::append;
  int back = 0;
  int count = 1;
  int bytes = 0;
  bool prepares = false;
};

// One life of the process, and how it ends.
struct Life {
  std::vector<Step> steps;
  int fault = 0;  // 0 none, 1 kill, 2 power loss, 3 failed write or sync, 4 full disk
  int nth = 1;    // which disk operation it strikes
  bool loses_power_afterwards = false;
};

void showValue(const Step& step, std::ostream& out) {
  out << "{kind " << static_cast<int>(step.kind) << ", back " << step.back << ", count " << step.count << ", bytes " << step.bytes
      << (step.prepares ? ", prepares}" : "}");
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
  return rc::gen::build<Step>(
      rc::gen::set(&Step::kind, rc::gen::weightedOneOf<Kind>({{12, rc::gen::just(Kind::append)},
                                                              {4, rc::gen::just(Kind::compact)},
                                                              {1, rc::gen::just(Kind::reset)}})),
      rc::gen::set(&Step::back, rc::gen::weightedOneOf<int>({{4, rc::gen::just(0)}, {1, rc::gen::inRange(1, 12)}})),
      rc::gen::set(&Step::count, rc::gen::inRange(1, 6)),
      rc::gen::set(&Step::bytes, rc::gen::weightedOneOf<int>({{8, rc::gen::inRange(0, 700)}, {1, rc::gen::inRange(3000, 9000)}})),
      rc::gen::set(&Step::prepares, rc::gen::arbitrary<bool>()));
}

rc::Gen<Life> life_gen() {
  return rc::gen::build<Life>(rc::gen::set(&Life::steps, rc::gen::container<std::vector<Step>>(step_gen())),
                              rc::gen::set(&Life::fault, rc::gen::inRange(0, 5)),
                              rc::gen::set(&Life::nth, rc::gen::inRange(1, 60)),
                              rc::gen::set(&Life::loses_power_afterwards, rc::gen::arbitrary<bool>()));
}

// Everything since the log last began anew, and how far it may have forgotten.
struct Log {
  Index base = 0;
  raft::Term base_term = 0;
  std::vector<Entry> entries;
  Index compacted = 0;

  Index last() const { return base + entries.size(); }
  raft::Term term(Index index) const { return index == base ? base_term : entries[index - base - 1].term; }
  void cut(Index last) { entries.resize(last - base); }
};

struct Model {
  Log done;    // what the last step that returned left
  Log trying;  // what the one under way would leave
  std::string error;
};

// Whether `found` is `log`, up to entry `last`.
bool is_same(const LogStore::Contents& found, const Log& log, Index last) {
  if (found.base_index < log.base || found.base_index > std::max(log.compacted, log.base)) return false;
  if (found.last_index != last || found.base_index > last || found.base_term != log.term(found.base_index)) return false;
  const auto from = log.entries.begin() + static_cast<std::ptrdiff_t>(found.base_index - log.base);
  return to_text(found.entries) == to_text({from, log.entries.begin() + static_cast<std::ptrdiff_t>(last - log.base)});
}

std::string describe(const Log& log) {
  return std::to_string(log.base) + "/" + std::to_string(log.base_term) + ".." + std::to_string(log.compacted) + " " +
         to_text(log.entries);
}

// A batch may have been cut in several; a prefix of what was tried is then also right, down to what was done or cut.
void check_found(const LogStore::Contents& found, Model& model) {
  bool is_right = is_same(found, model.done, model.done.last());
  for (Index last = model.trying.base; last <= model.trying.last() && !is_right; ++last) {
    is_right = is_same(found, model.trying, last);
  }
  if (!is_right) {
    model.error = "found " + std::to_string(found.base_index) + " " + to_text(found.entries) + " after " +
                  describe(model.done) + " or " + describe(model.trying);
  }
}

io::Status append(LogStore& log, const Step& step, raft::Term term, Model& model) {
  const Index first = model.done.last() + 1 -
                      std::min<Index>(static_cast<Index>(step.back), model.done.last() - std::max(model.done.base, model.done.compacted));
  std::vector<Entry> batch;
  for (int i = 0; i < step.count; ++i) {
    batch.push_back(tests::entry(term, first + static_cast<Index>(i), std::string(static_cast<size_t>(step.bytes), 'x')));
  }
  model.trying.cut(first - 1);
  model.trying.entries.insert(model.trying.entries.end(), batch.begin(), batch.end());
  const uint64_t batches = log.last_batch();
  io::Status status = log.append(batch);
  if (status.ok() || (status.is(io::ErrorKind::no_space) && log.last_batch() > batches)) {
    model.done = model.trying;
    model.done.cut(log.last_index());  // of a large batch on a full disk, what there was room for
  }
  return status;
}

io::Status carry_out(LogStore& log, const Step& step, raft::Term term, Model& model) {
  model.trying = model.done;
  if (step.kind == Kind::append) return append(log, step, term, model);
  if (step.kind == Kind::reset) {
    const Index index = model.done.last() + static_cast<Index>(step.back) % 3;
    if (index == 0) return {};
    model.trying = Log{index, term, {}, index};
    io::Status status = log.reset(index, term);
    if (status.ok()) model.done = model.trying;
    return status;
  }
  const Index floor = std::max(model.done.base, model.done.compacted);
  const Index up_to = std::max(floor, model.done.last() - std::min<Index>(static_cast<Index>(step.back), model.done.last()));
  model.done.compacted = model.trying.compacted = up_to;
  return log.compact(up_to);
}

void check_reads(LogStore& log, Model& model) {
  if (log.first_index() > model.done.last()) return;
  auto read = log.read(log.first_index(), model.done.last(), ~uint64_t{0});
  const auto from = model.done.entries.begin() + static_cast<std::ptrdiff_t>(log.first_index() - 1 - model.done.base);
  if (read.ok() && to_text(*read) != to_text({from, model.done.entries.end()})) model.error = "read " + to_text(*read);
  for (Index index = log.first_index() - 1; index <= model.done.last(); ++index) {
    if (log.term(index) != model.done.term(index)) model.error = "the term of " + std::to_string(index);
  }
}

void live(io::Env& env, const Life& life, raft::Term& term, Model& model) {
  const LogSettings settings{.segment_bytes = 4096, .fill_step_bytes = 4096, .batch_bytes_max = 4000};
  NARAD_CHECK(env.disk.make_directory("raft").ok() && env.disk.sync_directory("").ok(), "raft/ is durable");
  LogStore::Contents contents;
  auto opened = LogStore::open(env.disk, kStore, settings, contents);
  if (!opened.ok()) {
    if (life.fault == 0) model.error = opened.error().to_text();
    return;
  }
  check_found(contents, model);
  LogStore& log = **opened;
  if (!log.confirm().ok()) return;
  model.done = Log{contents.base_index, contents.base_term, contents.entries, contents.base_index};
  model.trying = model.done;
  for (const Step& each : life.steps) {
    const io::Status status = carry_out(log, each, ++term, model);
    if (!status.ok() && !status.is(io::ErrorKind::no_space)) return;
    model.trying = model.done;
    if (each.prepares) (void)log.prepare_segment();
  }
  check_reads(log, model);
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

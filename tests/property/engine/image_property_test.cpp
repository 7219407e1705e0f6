// Images of random states: what is installed is what was written, whatever stood there before; what is damaged anywhere is refused.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/metastore/fsm.h"
#include "io/sim/machine.h"
#include "io/sim/world.h"
#include "tests/support/any_command.h"
#include "tests/support/images.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using tests::MemorySink;
using tests::MemorySource;

// Entries of every type over few names, some with large records, so that images have one block or many.
std::vector<raft::Entry> any_entries(raft::Index first, size_t count_max) {
  const size_t count = *rc::gen::inRange<size_t>(1, count_max);
  std::vector<raft::Entry> entries;
  raft::Index index = first;
  for (size_t i = 0; i < count; ++i) {
    Topic topic = tests::make_topic("t" + std::to_string(*rc::gen::inRange(0, 40)), *rc::gen::inRange<int32_t>(3, 100));
    topic.owner = std::string(*rc::gen::weightedElement<size_t>({{5, 0}, {3, 30}, {1, 30'000}}), 'o');
    std::string command;
    switch (*rc::gen::inRange(0, 7)) {
      case 0: command = encode_update_topic(topic); break;
      case 1: command = encode_delete_topic(topic.name); break;
      case 2:
      case 3:
      case 4: command = encode_command(*tests::any_command()); break;
      default: command = encode_create_topic(topic); break;
    }
    entries.push_back(tests::make_entry(index, std::move(command)));
    index += *rc::gen::inRange<raft::Index>(1, 3);
  }
  return entries;
}

// Two machines, on each of which lives follow one another.
struct Pair {
  explicit Pair(uint64_t seed) : world(seed) {
    for (const char* name : {"n1", "n2"}) {
      io::sim::MachineSettings settings;
      settings.name = name;
      machines.push_back(&world.add_machine(settings));
    }
  }
  void with_fsm(size_t which, const std::function<void(Fsm&)>& body) {
    bool is_done = false;
    machines[which]->start([&](io::Env& env) {
      auto fsm = Fsm::open(env, {.flush_bytes = 20'000});
      RC_ASSERT(fsm.ok());
      body(**fsm);
      RC_ASSERT((*fsm)->audit()->digest_of_rows == (*fsm)->digest());
      (*fsm)->close();
      is_done = true;
      return 0;
    });
    world.run_while([&] { return machines[which]->process() != nullptr; }, world.now() + 10min);
    RC_ASSERT(is_done);
    RC_ASSERT(world.violations().empty());
  }
  io::sim::World world;
  std::vector<io::sim::Machine*> machines;
};

std::vector<Topic> topics_of(Fsm& fsm) {
  std::vector<Topic> topics;
  const auto listed = fsm.list_topics("", 1000);
  RC_ASSERT(listed.ok());
  for (const auto& topic : *listed) {
    topics.push_back(*topic);
  }
  return topics;
}

RC_GTEST_PROP(MetastoreImage, WhatIsInstalledIsWhatWasWrittenWhateverStoodThere, ()) {
  Pair pair(*rc::gen::arbitrary<uint64_t>());
  const std::vector<raft::Entry> entries = any_entries(100, 80);
  const std::vector<raft::Entry> others = any_entries(1, 40);
  const std::vector<raft::Entry> later = any_entries(entries.back().index + 1, 20);
  const size_t piece = *rc::gen::inRange<size_t>(1, 100'000);
  const raft::Index label = entries.back().index;
  MemorySink sink;
  FsmState written;
  std::vector<Topic> topics;
  std::vector<std::string> answers;
  pair.with_fsm(0, [&](Fsm& fsm) {
    RC_ASSERT(fsm.apply(entries).ok());
    auto labelled = fsm.write_image(sink, label);
    RC_ASSERT(labelled.ok() && *labelled == label);
    written = fsm.state();
    topics = topics_of(fsm);
    answers = *fsm.apply(later);
  });
  pair.with_fsm(1, [&](Fsm& fsm) {
    RC_ASSERT(fsm.apply(others).ok());
    MemorySource checked(sink.image, piece);
    RC_ASSERT(fsm.check_image(checked, label).ok());
    MemorySource source(sink.image, piece);
    RC_ASSERT(fsm.install_image(source, label).ok());
    RC_ASSERT(fsm.state() == written);
    RC_ASSERT(topics_of(fsm) == topics);
    MemorySink again;
    RC_ASSERT(fsm.write_image(again, label).ok());
    RC_ASSERT(again.image == sink.image);  // it does not matter which node wrote it
    RC_ASSERT(*fsm.apply(later) == answers);
  });
}

RC_GTEST_PROP(MetastoreImage, CutOrFlippedAnywhereItIsRefusedAndChangesNothing, ()) {
  Pair pair(*rc::gen::arbitrary<uint64_t>());
  const std::vector<raft::Entry> entries = any_entries(100, 60);
  const raft::Index label = entries.back().index;
  MemorySink sink;
  pair.with_fsm(0, [&](Fsm& fsm) {
    RC_ASSERT(fsm.apply(entries).ok());
    RC_ASSERT(fsm.write_image(sink, label).ok());
  });
  std::vector<std::string> damaged;
  for (int i = 0; i < 8; ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, sink.image.size());
    damaged.push_back(sink.image.substr(0, at));
    damaged.push_back(sink.image);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ (1 << *rc::gen::inRange(0, 8)));
    damaged.push_back(sink.image);
    damaged.back().erase(at, *rc::gen::inRange<size_t>(1, 100));
  }
  pair.with_fsm(1, [&](Fsm& fsm) {
    RC_ASSERT(fsm.apply({tests::create_entry(1, "mine")}).ok());
    const FsmState before = fsm.state();
    for (const std::string& bytes : damaged) {
      MemorySource checked(bytes);
      RC_ASSERT(!fsm.check_image(checked, label).ok());
      MemorySource source(bytes);
      RC_ASSERT(!fsm.install_image(source, label).ok());
      RC_ASSERT(fsm.state() == before);
      RC_ASSERT(!fsm.is_stopped());
    }
  });
}

RC_GTEST_PROP(MetastoreImage, RestartsImagesAndInstallsMakeNoDifference, ()) {
  Pair pair(*rc::gen::arbitrary<uint64_t>());
  const std::vector<raft::Entry> entries = any_entries(1, 120);
  MemoryRows rows;
  Evaluation expected = evaluate(rows, {}, entries, kNewestEntryType);
  bool is_done = false;
  size_t which = 0;
  MemorySink sink;
  raft::Index label = 0;
  for (int life = 0; !is_done; ++life) {
    const size_t batch = *rc::gen::inRange<size_t>(1, 12);
    const size_t batches = life > 10 ? 1000 : *rc::gen::inRange<size_t>(1, 5);
    const bool moves = *rc::gen::arbitrary<bool>();
    pair.with_fsm(which, [&](Fsm& fsm) {
      if (label > fsm.applied_index()) {
        MemorySource source(sink.image, 5000);
        RC_ASSERT(fsm.install_image(source, label).ok());
      }
      auto next = std::find_if(entries.begin(), entries.end(),
                               [&](const raft::Entry& entry) { return entry.index > fsm.applied_index(); });
      for (size_t i = 0; i < batches && next != entries.end(); ++i) {
        const size_t count = std::min<size_t>(batch, entries.end() - next);
        auto answers = fsm.apply({next, next + count});
        RC_ASSERT(answers.ok());
        for (size_t at = 0; at < count; ++at) {
          RC_ASSERT((*answers)[at] == expected.answers[next - entries.begin() + at]);
        }
        next += count;
      }
      is_done = next == entries.end();
      if (is_done) {
        RC_ASSERT(fsm.state() == expected.state);
      } else if (moves) {
        sink.image.clear();
        label = *fsm.write_image(sink, fsm.applied_index());
      }
    });
    which = moves ? 1 - which : which;
  }
}

}  // namespace

// Random entry sequences against a plain model, and the same sequence cut into batches, lives and power losses in every way.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/apply_topics.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/kept_rows.h"
#include "io/sim/machine.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;

// ---- The model: topics by name, and what the rules say, in the plainest words ------------------------------------------------

struct Model {
  std::map<std::string, Topic> topics;

  Code create(const Topic& topic) {
    return topics.emplace(topic.name, topic).second ? Code::ok : Code::already_exists;
  }

  Code update(Topic topic) {
    auto found = topics.find(topic.name);
    if (found == topics.end()) {
      return Code::not_found;
    }
    const Topic& stored = found->second;
    topic.id = stored.id;
    topic.role = stored.role;
    topic.children = stored.children;
    topic.parent = stored.parent;
    topic.attach_epoch = stored.attach_epoch;
    topic.fanout_delay_ms = stored.fanout_delay_ms;
    topic.attach_offsets = stored.attach_offsets;
    topic.remote = stored.remote;
    if (stored.remote && topic != stored) {
      return Code::remote_stub_immutable;
    }
    bool has_remote = false;
    for (const std::string& name : stored.children) {
      auto child = topics.find(name);
      if (child == topics.end()) {
        continue;
      }
      const int64_t delay = child->second.fanout_delay_ms;
      if (delay > 0 && topic.retention_ms != 0 && topic.retention_ms < delay + kDelayRetentionMarginMs) {
        return Code::fanout_delay_too_long;
      }
      has_remote = has_remote || child->second.remote.has_value();
    }
    bool is_short = topic.retention_ms != 0 && topic.retention_ms < kRemoteRetentionFloorMs;
    if (has_remote && is_short && (stored.retention_ms == 0 || topic.retention_ms < stored.retention_ms)) {
      return Code::remote_retention_floor;
    }
    found->second = topic;
    return Code::ok;
  }

  Code remove(const std::string& name) {
    auto found = topics.find(name);
    if (found == topics.end()) {
      return Code::not_found;
    }
    const Topic gone = found->second;
    for (const std::string& child_name : gone.children) {
      auto child = topics.find(child_name);
      if (child == topics.end() || child->second.parent != name) {
        continue;
      }
      if (child->second.remote) {
        topics.erase(child);
      } else {
        child->second.role = Role::standalone;
        child->second.parent.clear();
        child->second.attach_epoch.clear();
        child->second.fanout_delay_ms = 0;
        child->second.attach_offsets.clear();
      }
    }
    auto parent = gone.parent.empty() ? topics.end() : topics.find(gone.parent);
    if (parent != topics.end() && std::erase(parent->second.children, name) > 0 && parent->second.children.empty()) {
      parent->second.role = Role::standalone;
    }
    topics.erase(name);
    return Code::ok;
  }
};

// ---- Random commands ---------------------------------------------------------------------------------------------------------

// Few names, some of them alike but for letter case, so that commands meet.
rc::Gen<std::string> any_name() { return rc::gen::element<std::string>("a", "A", "b", "B", "ab", "aB", "c", "topic-7"); }

rc::Gen<Topic> any_topic() {
  return rc::gen::exec([] {
    Topic topic = tests::make_topic(*any_name());
    topic.id = *rc::gen::element<std::string>("0000000000000001", "0000000000000002");
    topic.partitions = *rc::gen::inRange<int32_t>(3, 109);
    topic.retention_ms = *rc::gen::element<int64_t>(0, 3'600'000, 7'200'000, 86'400'000, 604'800'000);
    topic.owner = *rc::gen::element<std::string>("", "ann");
    if (*rc::gen::inRange(0, 3) == 0) {
      topic.role = Role::parent;
      topic.children = *rc::gen::container<std::vector<std::string>>(any_name());
    } else if (*rc::gen::inRange(0, 2) == 0) {
      topic.role = Role::child;
      topic.parent = *any_name();
      topic.attach_epoch = "e";
      topic.fanout_delay_ms = *rc::gen::element<int64_t>(0, 1, 3'600'000, 86'400'000);
      topic.attach_offsets = {1, 2, 3};
      if (*rc::gen::inRange(0, 3) == 0) {
        topic.remote = RemoteLink{};
        topic.remote->name = "far";
      }
    }
    return topic;
  });
}

struct Command {
  int type = 0;  // 0: bytes that do not decode
  Topic topic;
  std::string bytes;
};

void showValue(const Command& command, std::ostream& out) { out << command.type << ":" << command.topic.name; }

rc::Gen<Command> any_command() {
  return rc::gen::exec([] {
    Command command;
    command.type = *rc::gen::weightedElement<int>({{4, 1}, {3, 2}, {3, 3}, {1, 0}});
    command.topic = *any_topic();
    switch (command.type) {
      case 1: command.bytes = encode_create_topic(command.topic); break;
      case 2: command.bytes = encode_update_topic(command.topic); break;
      case 3: command.bytes = encode_delete_topic(command.topic.name); break;
      default: command.bytes = "NC\0\1\0\0\0\1junk"; break;
    }
    return command;
  });
}

std::vector<raft::Entry> to_entries(const std::vector<Command>& commands) {
  std::vector<raft::Entry> entries;
  for (const Command& command : commands) {
    // Indexes rise with gaps: entries without a command stand between.
    raft::Index last = entries.empty() ? 0 : entries.back().index;
    entries.push_back(tests::make_entry(last + 1 + command.bytes.size() % 2, command.bytes));
  }
  return entries;
}

struct Outcome {
  FsmState state;
  std::vector<std::string> answers;
  std::map<std::string, std::string> rows;
};

// Every entry by itself.
Outcome apply_one_by_one(const std::vector<raft::Entry>& entries) {
  Outcome outcome;
  MemoryRows rows;
  for (const raft::Entry& entry : entries) {
    Evaluation run = evaluate(rows, outcome.state, {entry}, kNewestEntryType);
    rows.take(run.rows);
    outcome.state = run.state;
    outcome.answers.push_back(run.answers.at(0));
  }
  outcome.rows = rows.rows();
  return outcome;
}

std::map<std::string, std::string> rows_of(const Model& model) {
  std::map<std::string, std::string> rows;
  std::map<std::string, std::vector<std::string>> alike;
  for (const auto& [name, topic] : model.topics) {
    rows["topics/" + name] = encode_topic(topic);
    alike[fold_name(name)].push_back(name);
  }
  // The rows of names hold them in byte order; their form is the metastore's own.
  for (const auto& [folded, names] : alike) {
    MemoryRows made;
    FsmState state;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      Evaluation run = evaluate(made, state, {tests::create_entry(state.applied_index + 1, *name)}, kNewestEntryType);
      made.take(run.rows);
      state = run.state;
    }
    rows["topic_names/" + folded] = *made.read("topic_names/" + folded);
    RC_ASSERT(decode_names(rows["topic_names/" + folded]) == names);
  }
  return rows;
}

RC_GTEST_PROP(MetastoreModel, GivesTheModelsAnswersRowsAndDigest, ()) {
  const auto commands = *rc::gen::container<std::vector<Command>>(any_command());
  Model model;
  std::vector<Code> expected;
  for (const Command& command : commands) {
    switch (command.type) {
      case 1: expected.push_back(model.create(command.topic)); break;
      case 2: expected.push_back(model.update(command.topic)); break;
      case 3: expected.push_back(model.remove(command.topic.name)); break;
      default: expected.push_back(Code::undecodable); break;
    }
  }
  const Outcome outcome = apply_one_by_one(to_entries(commands));
  std::vector<Code> codes;
  for (const std::string& answer : outcome.answers) {
    codes.push_back(decode_answer(answer)->code);
  }
  RC_ASSERT(codes == expected);
  RC_ASSERT(outcome.rows == rows_of(model));
  uint64_t digest = 0;
  for (const auto& [key, value] : outcome.rows) {
    digest += row_hash(key, value);
  }
  RC_ASSERT(outcome.state.digest == digest);
}

RC_GTEST_PROP(MetastoreModel, BatchesMakeNoDifference, ()) {
  const auto entries = to_entries(*rc::gen::container<std::vector<Command>>(any_command()));
  const Outcome expected = apply_one_by_one(entries);
  MemoryRows rows;
  FsmState state;
  std::vector<std::string> answers;
  for (size_t at = 0; at < entries.size();) {
    size_t count = std::min<size_t>(*rc::gen::inRange<size_t>(1, 9), entries.size() - at);
    Evaluation run = evaluate(rows, state, {entries.begin() + at, entries.begin() + at + count}, kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
    answers.insert(answers.end(), run.answers.begin(), run.answers.end());
    at += count;
  }
  RC_ASSERT(state == expected.state);
  RC_ASSERT(answers == expected.answers);
  RC_ASSERT(rows.rows() == expected.rows);
}

// One way to end a life of the process that holds the database.
enum class End { exit, kill, power_loss };

RC_GTEST_PROP(MetastoreRestarts, LivesAndPowerLossesMakeNoDifference, ()) {
  const auto entries = to_entries(*rc::gen::resize(60, rc::gen::container<std::vector<Command>>(any_command())));
  const Outcome expected = apply_one_by_one(entries);
  io::sim::World world(*rc::gen::arbitrary<uint64_t>());
  io::sim::MachineSettings settings;
  settings.name = "n1";
  io::sim::Machine& machine = world.add_machine(settings);
  FsmState reached;
  bool is_done = false;
  for (int lives = 1; !is_done; ++lives) {
    const bool is_last = lives == 8;
    const size_t entries_of_this_life = is_last ? entries.size() : *rc::gen::inRange<size_t>(1, 30);
    const End end = is_last ? End::exit : *rc::gen::elementOf(std::vector<End>{End::exit, End::kill, End::power_loss});
    const size_t batch_max = *rc::gen::inRange<size_t>(1, 8);
    bool is_idle = false;
    machine.start([&](io::Env& env) {
      auto fsm = Fsm::open(env, {.flush_bytes = 4000});
      if (!fsm.ok()) {
        return 1;
      }
      size_t given = 0;
      auto next = std::find_if(entries.begin(), entries.end(),
                               [&](const raft::Entry& entry) { return entry.index > (*fsm)->applied_index(); });
      while (next != entries.end() && given < entries_of_this_life) {
        size_t count = std::min<size_t>(batch_max, entries.end() - next);
        std::vector<raft::Entry> batch(next, next + count);
        auto answers = (*fsm)->apply(batch);
        for (size_t i = 0; answers.ok() && i < count; ++i) {
          RC_ASSERT((*answers)[i] == expected.answers[next - entries.begin() + i]);
        }
        next += count;
        given += count;
      }
      reached = (*fsm)->state();
      RC_ASSERT((*fsm)->audit()->digest_of_rows == reached.digest);
      is_done = next == entries.end();
      is_idle = true;
      if (end != End::exit && !is_done) {
        io::sleep_for(1h);
      }
      (*fsm)->close();
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr && !(is_idle && end != End::exit); }, world.now() + 1min);
    RC_ASSERT(is_idle);
    if (machine.process() != nullptr && !is_done) {
      end == End::kill ? machine.kill() : machine.power_loss();
    }
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + 1min);
    RC_ASSERT(machine.process() == nullptr);
  }
  RC_ASSERT(reached == expected.state);
  RC_ASSERT(world.violations().empty());
}

}  // namespace

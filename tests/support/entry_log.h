// Random commands as entries of a log, and what the log comes to when each entry is applied by itself.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/commands.h"
#include "tests/support/any_command.h"
#include "tests/support/topics.h"

namespace tests {

using Commands = std::vector<engine::metastore::Command>;

inline rc::Gen<Commands> any_commands() { return rc::gen::container<Commands>(any_command()); }

// Indexes rise with gaps: entries without a command stand between. Here and there stand bytes that do not decode.
inline std::vector<raft::Entry> to_entries(const Commands& commands) {
  std::vector<raft::Entry> entries;
  for (const engine::metastore::Command& command : commands) {
    const std::string bytes = encode_command(command);
    raft::Index last = entries.empty() ? 0 : entries.back().index;
    if (bytes.size() % 11 == 0) {
      entries.push_back(make_entry(++last, bytes.substr(0, bytes.size() / 2)));
    }
    entries.push_back(make_entry(last + 1 + bytes.size() % 2, bytes));
  }
  return entries;
}

struct LogOutcome {
  engine::metastore::FsmState state;
  std::vector<std::string> answers;
  std::map<std::string, std::string> rows;
};

inline LogOutcome apply_one_by_one(const std::vector<raft::Entry>& entries) {
  using namespace engine::metastore;
  LogOutcome outcome;
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

}  // namespace tests

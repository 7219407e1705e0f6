// Runs a scenario file: one step a line, as tests/scenario/README.md describes, over a RaftCluster.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tests {

struct RaftScript {
  std::string name;                  // of the file, without folder and ending
  std::string text;
  std::vector<std::string> defects;  // each turns the scenario red: lines "red with defect NAME"
};

RaftScript load_raft_script(const std::string& path);

// What stopped a script: an expectation that did not hold, a violated invariant, or a line that makes no sense.
struct ScriptFailure {
  enum class Kind { expectation, violation, script } kind = Kind::script;
  int line = 0;
  std::string text;
};

// The same story with one trouble in it. Its expectations do not count then, nor do steps that make no sense any more; after it
// everything is healed and left alone for a while. What must hold: no invariant breaks, and, unless the story wipes a volume
// or ends without a leader even without trouble, there is a leader and its members have applied the same.
// At most `positions_max` places are tried for each kind of trouble, as far apart as that takes. Nothing: all of that held.
std::optional<ScriptFailure> run_raft_script_in_trouble(const RaftScript& script, std::uint64_t positions_max);

// Runs with every defence on, or with the one that `defect` names off. Nothing: every line held, and no invariant broke.
std::optional<ScriptFailure> run_raft_script(const RaftScript& script, std::string_view defect = {});

}  // namespace tests

// Random sequences of every entry type against a plain model, one by one and in batches.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/metastore/apply.h"
#include "tests/support/entry_log.h"
#include "tests/support/kept_rows.h"
#include "tests/support/metastore_model.h"

namespace {

using namespace engine::metastore;
using tests::any_commands;
using tests::apply_one_by_one;
using tests::Commands;
using tests::LogOutcome;
using tests::to_entries;

std::map<std::string, std::string> records(const std::map<std::string, std::string>& rows) {
  std::map<std::string, std::string> found;
  for (Bucket bucket : {Bucket::topics, Bucket::schemas, Bucket::assignments, Bucket::members, Bucket::users, Bucket::removed_members,
                        Bucket::remotes}) {
    for (const auto& [key, value] : tests::rows_in(rows, bucket)) {
      if (!key.starts_with("_seals/") || bucket != Bucket::remotes) {
        found.emplace(row_key(bucket, key), value);
      }
    }
  }
  return found;
}

std::map<std::string, uint64_t> seals(const std::map<std::string, std::string>& rows) {
  std::map<std::string, uint64_t> found;
  for (const auto& [key, value] : tests::rows_in(rows, Bucket::remotes)) {
    if (key.starts_with("_seals/")) {
      found[key.substr(7)] = decode_counter(value).value();
    }
  }
  return found;
}

tests::MetastoreModel::Moves moves_of(const Evaluation& run) {
  tests::MetastoreModel::Moves moves;
  for (const std::vector<Bump>& bumps : run.bumps) {
    for (const Bump& bump : bumps) {
      moves.emplace(bump.domain, bump.name, bump.is_retired);
    }
  }
  return moves;
}

// Whoever follows the versions never keeps what has changed.
void check_that_what_changed_has_moved(const Evaluation& run, const tests::MetastoreModel::Moves& moves) {
  auto has_moved = [&](Domain domain, const std::string& name) {
    return moves.contains({domain, name, false}) || moves.contains({domain, name, true});
  };
  auto check = [&](const std::string& row) {
    const std::string bucket = row.substr(0, row.find('/'));
    const std::string key = row.substr(bucket.size() + 1);
    const std::string topic = key.substr(0, key.rfind(':'));
    RC_ASSERT(bucket != "topics" || has_moved(Domain::topics, key));
    RC_ASSERT(bucket != "schemas" || has_moved(Domain::schemas, topic));
    RC_ASSERT(bucket != "assignments" || has_moved(Domain::assignments, topic));
    RC_ASSERT(bucket != "users" || has_moved(Domain::users, ""));
    RC_ASSERT(bucket != "remotes" || key.starts_with('_') || has_moved(Domain::remotes, ""));
  };
  run.rows.for_each_change([&](const std::string& key, const std::string&) { check(key); }, check);
}

RC_GTEST_PROP(MetastoreModel, GivesTheModelsAnswersRowsAndVersions, ()) {
  const Commands commands = *rc::gen::scale(3.0, any_commands());
  tests::MetastoreModel model;
  MemoryRows rows;
  FsmState state;
  auto check_rows = [&] {
    RC_ASSERT(records(rows.rows()) == model.records());
    RC_ASSERT(tests::wrong_kept_rows(rows.rows()) == "");
  };
  for (const Command& command : commands) {
    Evaluation run = evaluate(rows, state, {tests::make_entry(state.applied_index + 1, encode_command(command))}, kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
    const tests::MetastoreModel::Outcome expected = model.apply(command);
    const Code code = decode_answer(run.answers.at(0))->code;
    RC_ASSERT(code == expected.code);
    RC_ASSERT(moves_of(run) == expected.moves);
    check_that_what_changed_has_moved(run, expected.moves);
    if (state.applied_index % 8 == 0) {
      check_rows();
    }
  }
  check_rows();
  std::map<std::string, uint64_t> expected_seals = model.seals();
  std::erase_if(expected_seals, [](const auto& seal) { return seal.second == 0; });
  RC_ASSERT(seals(rows.rows()) == expected_seals);
  RC_ASSERT(state.digest == rows.digest());
}

// Else the comparison above would say little.
TEST(MetastoreModel, DrawnCommandsTakeAndRefuseEveryType) {
  const Commands commands = rc::gen::container<Commands>(5000, tests::any_command())(rc::Random(7), 100).value();
  MemoryRows rows;
  FsmState state;
  std::map<uint32_t, int> taken;
  std::map<uint32_t, int> refused;
  for (const Command& command : commands) {
    Evaluation run = evaluate(rows, state, {tests::make_entry(state.applied_index + 1, encode_command(command))}, kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
    ++(decode_answer(run.answers.at(0))->ok() ? taken : refused)[type_of(command)];
  }
  for (uint32_t type = 1; type <= kNewestEntryType; ++type) {
    EXPECT_GT(taken[type], 0) << "type " << type;
    const bool is_never_refused = type == 5 || type == 19 || type == 20;
    EXPECT_EQ(refused[type] == 0, is_never_refused) << "type " << type;
  }
}

RC_GTEST_PROP(MetastoreModel, CommandsKeepEveryFieldOnTheirWay, ()) {
  const Command command = *tests::any_command();
  const std::string bytes = encode_command(command);
  const std::optional<Envelope> envelope = read_envelope(bytes);
  RC_ASSERT(envelope.has_value());
  RC_ASSERT(envelope->type == type_of(command));
  RC_ASSERT(decode_payload(envelope->type, envelope->payload) == command);
}

RC_GTEST_PROP(MetastoreModel, BatchesMakeNoDifference, ()) {
  const auto entries = to_entries(*any_commands());
  const LogOutcome expected = apply_one_by_one(entries);
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

}  // namespace

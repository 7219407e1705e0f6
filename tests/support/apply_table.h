// A table of entries: what stands before, the entry, its answer, the rows that it changes and the versions that it moves.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/commands.h"
#include "tests/support/kept_rows.h"
#include "tests/support/topics.h"

namespace tests {

namespace ms = engine::metastore;

// A row of a record that is there afterwards, or is not (nullopt). Kept rows are held against the records by themselves.
struct Change {
  ms::Bucket bucket;
  std::string key;
  std::optional<std::string> value;
};

inline Change is(const ms::Topic& topic) { return {ms::Bucket::topics, topic.name, ms::encode_topic(topic)}; }
inline Change is(const ms::Assignment& row) {
  return {ms::Bucket::assignments, ms::assignment_key(row.topic, row.partition), ms::encode_assignment(row)};
}
inline Change is(const ms::Member& member) { return {ms::Bucket::members, member.id, ms::encode_member(member)}; }
inline Change is(const ms::User& user) { return {ms::Bucket::users, user.username, ms::encode_user(user)}; }
inline Change is(const ms::Remote& remote) { return {ms::Bucket::remotes, remote.name, ms::encode_remote(remote)}; }
inline Change schema_is(const std::string& topic, int64_t version, std::string text) {
  return {ms::Bucket::schemas, ms::schema_key(topic, version), std::move(text)};
}
inline Change tombstone_is(const std::string& id, int64_t at) {
  return {ms::Bucket::removed_members, id, ms::encode_tombstone({at})};
}
inline Change gone(ms::Bucket bucket, std::string key) { return {bucket, std::move(key), std::nullopt}; }

inline ms::Bump moved(ms::Domain domain, std::string name = {}) { return {domain, std::move(name), false}; }
inline ms::Bump moved(std::string topic) { return moved(ms::Domain::topics, std::move(topic)); }
inline ms::Bump schemas_moved(std::string topic) { return moved(ms::Domain::schemas, std::move(topic)); }
inline ms::Bump assignments_moved(std::string topic) { return moved(ms::Domain::assignments, std::move(topic)); }
// The cells of a name that is gone.
inline std::vector<ms::Bump> retired(const std::string& topic) {
  return {{ms::Domain::topics, topic, true}, {ms::Domain::assignments, topic, true}, {ms::Domain::schemas, topic, true}};
}

template <typename T>
std::vector<T> join(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

template <typename T>
T with(T value, const std::function<void(T&)>& change) {
  change(value);
  return value;
}

struct Case {
  std::string name;
  std::vector<ms::Command> before;  // all accepted
  ms::Command entry;
  ms::Answer answer;
  std::vector<Change> changes;
  std::vector<ms::Bump> bumps;
};

inline void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

// Rows that entries are applied to one by one.
struct AppliedRows {
  ms::MemoryRows rows;
  ms::FsmState state;

  ms::Evaluation apply(const std::string& command) {
    ms::Evaluation run = ms::evaluate(rows, state, {make_entry(state.applied_index + 1, command, 3)}, ms::kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
    return run;
  }
  ms::Answer answer_of(const ms::Command& command) { return *ms::decode_answer(apply(ms::encode_command(command)).answers.at(0)); }
};

class ApplyTable : public testing::TestWithParam<Case> {
 protected:
  void run(const Case& row) {
    AppliedRows applied;
    for (const ms::Command& command : row.before) {
      ASSERT_EQ(applied.answer_of(command), ms::Answer{}) << "type " << ms::type_of(command);
    }
    std::map<std::string, std::string> expected = records(applied.rows.rows());
    for (const Change& change : row.changes) {
      const std::string key = ms::row_key(change.bucket, change.key);
      if (change.value) {
        expected[key] = *change.value;
      } else {
        EXPECT_EQ(expected.erase(key), 1u) << key << " was not there before";
      }
    }
    const raft::Index last = applied.state.applied_index;
    const ms::Evaluation run = applied.apply(ms::encode_command(row.entry));
    ASSERT_EQ(run.answers.size(), 1u);
    EXPECT_EQ(ms::decode_answer(run.answers[0]), row.answer) << ms::decode_answer(run.answers[0])->text();
    EXPECT_EQ(records(applied.rows.rows()), expected);
    EXPECT_EQ(wrong_kept_rows(applied.rows.rows()), "");
    EXPECT_EQ(run.bumps, row.answer.ok() ? std::vector<std::vector<ms::Bump>>{row.bumps} : std::vector<std::vector<ms::Bump>>());
    EXPECT_EQ(applied.state.applied_index, last + 1) << "a refused entry is counted";
    EXPECT_EQ(applied.state.applied_term, 3u);
    EXPECT_EQ(run.last_type, ms::type_of(row.entry));
  }

 private:
  static std::map<std::string, std::string> records(const std::map<std::string, std::string>& rows) {
    std::map<std::string, std::string> found;
    for (ms::Bucket bucket : {ms::Bucket::topics, ms::Bucket::schemas, ms::Bucket::assignments, ms::Bucket::members,
                              ms::Bucket::users, ms::Bucket::removed_members, ms::Bucket::remotes}) {
      for (auto& [key, value] : rows_in(rows, bucket)) {
        found.emplace(ms::row_key(bucket, key), value);
      }
    }
    return found;
  }
};

}  // namespace tests

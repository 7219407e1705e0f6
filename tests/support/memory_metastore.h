// A metastore in memory behind a proposer that a test bends at will: for code that writes through raft and reads locally.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/kept_rows.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/reader.h"
#include "engine/topics/proposer.h"
#include "io/fiber.h"
#include "tests/support/topics.h"

namespace tests {

class MemoryMetastore final : public engine::metastore::Reader, public engine::Proposer {
 public:
  // ---- Reader --------------------------------------------------------------------------------------------------------------
  io::Result<std::shared_ptr<const engine::metastore::Topic>> get_topic(std::string_view name, io::Instant) override {
    ++reads;
    if (const auto hook = during_read) {  // a copy: it may take itself away
      hook();
    }
    if (read_error) {
      return *read_error;
    }
    auto bytes = rows.read(engine::metastore::row_key(engine::metastore::Bucket::topics, name));
    return bytes ? record(*bytes) : nullptr;
  }
  io::Result<std::vector<std::shared_ptr<const engine::metastore::Topic>>> list_topics(std::string_view after, size_t limit,
                                                                                       io::Instant) override {
    if (read_error) {
      return *read_error;
    }
    std::vector<std::shared_ptr<const engine::metastore::Topic>> found;
    for (const auto& [key, bytes] : rows.rows()) {
      if (key.starts_with("topics/") && key.substr(7) > after && found.size() < limit) {
        found.push_back(record(bytes));
      }
    }
    return found;
  }
  io::Result<std::vector<std::string>> names_like(std::string_view name, io::Instant) override {
    ++reads;
    if (const auto hook = during_read) {  // a copy: it may take itself away
      hook();
    }
    if (read_error) {
      return *read_error;
    }
    using namespace engine::metastore;
    auto bytes = rows.read(row_key(Bucket::topic_names, fold_name(name)));
    return bytes ? decode_names(*bytes) : std::vector<std::string>();
  }

  io::Result<std::optional<std::string>> get_row(engine::metastore::Bucket bucket, std::string_view key, io::Instant) override {
    ++reads;
    if (const auto hook = during_read) {  // a copy: it may take itself away
      hook();
    }
    if (read_error) {
      return *read_error;
    }
    return rows.read(engine::metastore::row_key(bucket, key));
  }
  io::Result<std::vector<Row>> list_rows(engine::metastore::Bucket bucket, std::string_view prefix, std::string_view after, size_t limit,
                                         io::Instant) override {
    ++reads;
    if (const auto hook = during_read) {  // a copy: it may take itself away
      hook();
    }
    if (read_error) {
      return *read_error;
    }
    const std::string begin = engine::metastore::row_key(bucket, "");
    std::vector<Row> found;
    for (const auto& [key, bytes] : rows.rows()) {
      const std::string_view inner = std::string_view(key).substr(std::min(begin.size(), key.size()));
      if (key.starts_with(begin) && inner.starts_with(prefix) && inner > after && found.size() < limit) {
        found.push_back({std::string(inner), bytes});
      }
    }
    return found;
  }

  // ---- Proposer ------------------------------------------------------------------------------------------------------------
  bool is_leader() const override { return leads; }
  raft::Term term() const override { return current_term; }
  engine::Proposed propose(std::string command, io::Instant deadline) override {
    ++proposals;
    last_deadline = deadline;
    proposed_types.push_back(engine::metastore::read_envelope(command)->type);
    if (before_propose) {
      before_propose();
    }
    io::sleep_for(delay);
    if (fate) {
      outcome = fate(proposed_types.back());
    }
    if (outcome != engine::Proposed::Outcome::applied) {
      return {outcome, 0, "", "as the test wants it"};
    }
    return {outcome, 0, apply(std::move(command)), ""};
  }
  io::Status barrier(io::Instant) override {
    ++barriers;
    if (during_barrier) {
      during_barrier();
    }
    return barrier_status;
  }

  // Applies a command as if it had been committed; its answer.
  std::string apply(std::string command) {
    auto run = engine::metastore::evaluate(rows, state, {make_entry(state.applied_index + 1, std::move(command))},
                                           engine::metastore::kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
    return run.answers.at(0);
  }

  engine::metastore::MemoryRows rows;
  engine::metastore::FsmState state;
  bool leads = true;
  raft::Term current_term = 1;
  engine::Proposed::Outcome outcome = engine::Proposed::Outcome::applied;
  std::function<engine::Proposed::Outcome(uint32_t type)> fate;  // of each proposal, if it is set
  io::Duration delay{0};
  std::vector<uint32_t> proposed_types;
  io::Status barrier_status;
  std::optional<io::Error> read_error;
  std::function<void()> before_propose;
  std::function<void()> during_barrier;
  std::function<void()> during_read;
  int proposals = 0;
  int barriers = 0;
  int reads = 0;
  io::Instant last_deadline{};

 private:
  static std::shared_ptr<const engine::metastore::Topic> record(const std::string& bytes) {
    return std::make_shared<const engine::metastore::Topic>(*engine::metastore::decode_topic(bytes));
  }
};

}  // namespace tests

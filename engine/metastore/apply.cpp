#include "engine/metastore/apply.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/metastore/apply_assignments.h"
#include "engine/metastore/apply_fanout.h"
#include "engine/metastore/apply_members.h"
#include "engine/metastore/apply_remotes.h"
#include "engine/metastore/apply_schemas.h"
#include "engine/metastore/apply_topics.h"
#include "engine/metastore/apply_users.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/envelope.h"
#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

// nullopt for a payload that is undecodable.
using Handler = std::optional<Answer> (*)(Transaction& rows, std::string_view payload, Effects& effects);

// Passes everything on, and notes a row that has outgrown its bound.
class BoundedRows final : public Transaction {
 public:
  explicit BoundedRows(Transaction& rows) : rows_(rows) {}

  std::optional<std::string> get(Bucket bucket, std::string_view key) override { return rows_.get(bucket, key); }
  void put(Bucket bucket, std::string_view key, std::string value) override {
    if (bucket != Bucket::schemas) {
      longest_ = std::max(longest_, key.size() + value.size());
    }
    rows_.put(bucket, key, std::move(value));
  }
  void erase(Bucket bucket, std::string_view key) override { rows_.erase(bucket, key); }

  size_t longest() const { return longest_; }

 private:
  Transaction& rows_;
  size_t longest_ = 0;
};

template <typename Entry>
std::optional<Answer> handle(Transaction& rows, std::string_view payload, Effects& effects) {
  const std::optional<Entry> entry = decode_payload<Entry>(payload);
  return entry ? std::optional<Answer>(apply_entry(rows, *entry, effects)) : std::nullopt;
}

template <size_t... I>
constexpr std::array<Handler, sizeof...(I)> handlers(std::index_sequence<I...>) {
  return {handle<std::variant_alternative_t<I, Command>>...};
}

// By entry type, from 1 on.
constexpr auto kHandlers = handlers(std::make_index_sequence<std::variant_size_v<Command>>());
static_assert(kHandlers.size() == kNewestEntryType);

}  // namespace

CommandResult apply_command(Transaction& rows, std::string_view bytes, uint32_t newest_type) {
  NARAD_CHECK(newest_type <= kHypotheticalEntryType, "a release that knows entry types which this code does not");
  CommandResult result;
  std::optional<Envelope> envelope = read_envelope(bytes);
  if (!envelope) {
    result.answer = refuse(Code::undecodable, "no command header");
    return result;
  }
  result.type = envelope->type;
  if (envelope->version > kEnvelopeVersion || envelope->type == 0 || envelope->type > newest_type) {
    result.is_unknown = true;
    return result;
  }
  if (envelope->type == kHypotheticalEntryType) {
    return result;  // done, and nothing is changed
  }
  Effects effects;
  BoundedRows bounded(rows);
  std::optional<Answer> answer = kHandlers[envelope->type - 1](bounded, envelope->payload, effects);
  if (!answer) {
    result.type = 0;
    result.answer = refuse(Code::undecodable, "malformed payload of entry type " + std::to_string(envelope->type));
    return result;
  }
  if (bounded.longest() > kRowBytesMax) {
    SOMETIMES("metastore: a row that would outgrow its bound is refused");
    result.answer = refuse(Code::invalid_argument, "a row of " + std::to_string(bounded.longest()) + " bytes");
    return result;
  }
  result.answer = std::move(*answer);
  result.bumps = std::move(effects.bumps);
  result.keeps_rows = result.answer.ok() || effects.keeps_rows;
  NARAD_CHECK(result.answer.ok() || result.bumps.empty(), "a refused entry moved a domain version");
  return result;
}

Evaluation evaluate(RowSource& source, const FsmState& start, const std::vector<raft::Entry>& entries, uint32_t newest_type,
                    bool skips_unknown, RowCache* cache) {
  Evaluation run(source, start, cache);
  run.answers.reserve(entries.size());
  for (const raft::Entry& entry : entries) {
    if (entry.type != raft::EntryType::command || entry.index <= run.state.applied_index) {
      run.answers.emplace_back();
      continue;
    }
    CommandResult result = apply_command(run.rows, entry.bytes(), newest_type);
    if (result.is_unknown && (skips_unknown || !io::defence(io::Defence::unknown_entry_skipped))) {
      run.rows.drop_entry();
      run.last_type = result.type;
      run.state.applied_index = entry.index;
      run.state.applied_term = entry.term;
      run.answers.emplace_back();
      continue;
    }
    if (result.is_unknown) {
      SOMETIMES("metastore: an unknown entry type stops the node");
      run.rows.drop_entry();
      run.unknown = UnknownEntry{entry.index, result.type};
      break;
    }
    if (result.keeps_rows) {
      run.rows.keep_entry();
    } else {
      run.rows.drop_entry();
    }
    if (result.answer.ok()) {
      run.bumps.push_back(std::move(result.bumps));
    }
    if (result.answer.code == Code::undecodable) {
      run.undecodable.push_back({entry.index, result.answer.detail});
    }
    run.last_type = result.type;
    run.answers.push_back(encode_answer(result.answer));
    if (!result.answer.ok() && !io::defence(io::Defence::refused_index_not_recorded)) {
      continue;
    }
    run.state.applied_index = entry.index;
    run.state.applied_term = entry.term;
    run.state.newest_type = std::max(run.state.newest_type, result.type);
  }
  run.state.digest = run.rows.digest();
  return run;
}

}  // namespace engine::metastore

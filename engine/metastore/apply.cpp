#include "engine/metastore/apply.h"

#include "engine/metastore/apply_topics.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/topic_fb.h"
#include "io/check.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

// One row a type: how its payload is read and what it does. A handler returns nullopt for a payload that is undecodable.
using Handler = std::optional<Answer> (*)(Transaction& rows, std::string_view payload, std::vector<Bump>& bumps);

template <typename Payload, std::optional<Payload> (*Decode)(std::string_view),
          Answer (*Apply)(Transaction&, const Payload&, std::vector<Bump>&)>
std::optional<Answer> handle(Transaction& rows, std::string_view payload, std::vector<Bump>& bumps) {
  std::optional<Payload> decoded = Decode(payload);
  return decoded ? std::optional<Answer>(Apply(rows, *decoded, bumps)) : std::nullopt;
}

Answer delete_topic_by_name(Transaction& rows, const std::string& name, std::vector<Bump>& bumps) {
  return delete_topic(rows, name, bumps);
}

// By entry type, from 1 on.
constexpr Handler kHandlers[] = {
    handle<Topic, decode_create_topic, create_topic>,                 // 1
    handle<Topic, decode_update_topic, update_topic>,                 // 2
    handle<std::string, decode_delete_topic, delete_topic_by_name>,  // 3
};
static_assert(sizeof(kHandlers) / sizeof(kHandlers[0]) == kNewestEntryType);

}  // namespace

CommandResult apply_command(Transaction& rows, std::string_view bytes, uint32_t newest_type) {
  NARAD_CHECK(newest_type <= kNewestEntryType, "a release that knows entry types which this code does not");
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
  std::optional<Answer> answer = kHandlers[envelope->type - 1](rows, envelope->payload, result.bumps);
  if (!answer) {
    result.type = 0;
    result.answer = refuse(Code::undecodable, "malformed payload of entry type " + std::to_string(envelope->type));
    return result;
  }
  result.answer = std::move(*answer);
  NARAD_CHECK(result.answer.ok() || result.bumps.empty(), "a refused entry moved a domain version");
  return result;
}

std::string encode_state(const FsmState& state) {
  flatbuffers::FlatBufferBuilder builder(64);
  builder.Finish(fb::CreateFsmState(builder, state.applied_index, state.applied_term, state.newest_type, state.digest));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

std::optional<FsmState> decode_state(std::string_view bytes) {
  AlignedBytes aligned(bytes);
  const auto* stored = verified_root<fb::FsmState>(aligned);
  if (stored == nullptr) {
    return std::nullopt;
  }
  return FsmState{stored->applied_index(), stored->applied_term(), stored->newest_type(), stored->digest()};
}

std::string state_row_key() { return row_key(Bucket::fsm_meta, "state"); }

Evaluation evaluate(RowSource& source, const FsmState& start, const std::vector<raft::Entry>& entries, uint32_t newest_type) {
  Evaluation run(source, start);
  for (const raft::Entry& entry : entries) {
    if (entry.type != raft::EntryType::command || entry.index <= run.state.applied_index) {
      run.answers.emplace_back();
      continue;
    }
    CommandResult result = apply_command(run.rows, entry.bytes(), newest_type);
    if (result.is_unknown) {
      SOMETIMES("metastore: an unknown entry type stops the node");
      run.rows.drop_entry();
      run.unknown = UnknownEntry{entry.index, result.type};
      break;
    }
    if (result.answer.ok()) {
      run.rows.keep_entry();
      run.bumps.push_back(std::move(result.bumps));
    } else {
      run.rows.drop_entry();
    }
    if (result.answer.code == Code::undecodable) {
      run.undecodable.push_back({entry.index, result.answer.detail});
    }
    run.last_type = result.type;
    run.state.applied_index = entry.index;
    run.state.applied_term = entry.term;
    run.state.newest_type = std::max(run.state.newest_type, result.type);
    run.answers.push_back(encode_answer(result.answer));
  }
  run.state.digest = run.rows.digest();
  return run;
}

}  // namespace engine::metastore

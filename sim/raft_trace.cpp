#include "sim/raft_trace.h"

#include <utility>

#include "engine/json_text.h"
#include "io/random.h"

namespace sim {
namespace {

using engine::json_quoted;
using raft::MessageType;

std::string name(int node) { return "n" + std::to_string(node); }

// ,"key":value
std::string field(std::string_view key, uint64_t value) { return ",\"" + std::string(key) + "\":" + std::to_string(value); }
std::string field(std::string_view key, std::string_view text) { return ",\"" + std::string(key) + "\":" + json_quoted(text); }
// Numbers that a reader of JSON may not hold exactly, as 16 hexadecimal digits.
std::string hex_field(std::string_view key, uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits(16, '0');
  for (int i = 0; i < 16; ++i) digits[static_cast<size_t>(15 - i)] = kDigits[value >> (4 * i) & 15];
  return field(key, digits);
}
std::string flag(std::string_view key, bool value) { return ",\"" + std::string(key) + "\":" + (value ? "true" : "false"); }

std::string list_of(const std::vector<raft::Entry>& entries) {
  std::string text = "[";
  for (const raft::Entry& entry : entries) {
    text += text.size() > 1 ? "," : "";
    text += "{\"index\":" + std::to_string(entry.index) + field("term", entry.term) + field("type", raft::to_string(entry.type)) +
            field("bytes", entry.bytes().size()) + hex_field("content", io::stable_hash(entry.bytes())) + "}";
  }
  return text + "]";
}

std::string print(const raft::Configuration& configuration) {
  std::string voters;
  std::string non_voters;
  for (const raft::Server& server : configuration.servers) {
    std::string& list = server.voter ? voters : non_voters;
    list += list.empty() ? "" : ",";
    list += "{\"id\":" + json_quoted(server.id) + field("store", server.store.to_string()) + "}";
  }
  return "\"cluster\":" + json_quoted(configuration.cluster.to_string()) + ",\"voters\":[" + voters + "],\"non_voters\":[" +
         non_voters + "]";
}

const char* to_text(raft::Progress::State state) {
  switch (state) {
    case raft::Progress::State::probe: return "probe";
    case raft::Progress::State::replicate: return "replicate";
    case raft::Progress::State::snapshot: return "snapshot";
  }
  return "unknown";
}

std::string progress_of(const raft::Core& core) {
  std::string text = "[";
  for (const raft::ServerProgress& each : core.progress()) {
    text += text.size() > 1 ? "," : "";
    text += "{\"id\":" + json_quoted(each.id) + flag("voter", each.is_voter) + flag("counts", each.counts) +
            field("match", each.match) + field("next", each.next) + field("state", to_text(each.state));
    if (const raft::Progress* progress = core.find_progress(each.id)) {
      text += field("store", progress->store.to_string()) + field("in_flight", progress->in_flight_messages()) +
              field("image_index", progress->snapshot_index()) + field("round_acked", progress->round_acked);
    }
    text += "}";
  }
  return text + "]";
}

// What the voters have answered, as the candidate counts it: an answer through a store that is not the one on record is none.
std::string print(const raft::Ballot& ballot) {
  std::string granted;
  std::string refused;
  for (const raft::Ballot::Voter& voter : ballot.voters()) {
    if (!voter.answered) continue;
    std::string& list = voter.granted ? granted : refused;
    list += (list.empty() ? "" : ",") + json_quoted(voter.id);
  }
  const bool is_pre_vote = ballot.kind() == raft::ElectionKind::pre_vote;
  return "{\"kind\":" + json_quoted(is_pre_vote ? "pre_vote" : "vote") + field("term", ballot.term()) + ",\"granted\":[" + granted +
         "],\"refused\":[" + refused + "]}";
}

std::string state_of(const raft::Core& core) {
  const raft::LogView& log = core.log();
  std::string text = "{\"role\":" + json_quoted(raft::to_string(core.role())) + field("term", core.term()) +
                     field("vote", core.vote()) + field("leader", core.leader()) + field("commit", core.commit_index()) +
                     field("applied", core.applied_index()) + field("last_index", log.last_index()) +
                     field("last_term", log.last_term()) + field("base_index", log.base_index()) +
                     field("base_term", log.base_term()) + field("durable_index", core.durable_index()) +
                     field("durable_term", core.durable_hard_state().term) + field("durable_vote", core.durable_hard_state().vote) +
                     field("snapshot_index", core.snapshot().index) + field("transfer_to", core.transfer_target()) +
                     flag("rebuilding", core.is_rebuilding()) + flag("installing", core.is_installing()) +
                     field("heard_commit", core.heard_commit()) + field("belongs_to", core.cluster().to_string()) +
                     field("configuration_index", core.configurations().current_index()) + "," + print(core.configuration());
  const raft::Role role = core.role();
  if (role == raft::Role::candidate || role == raft::Role::pre_candidate) text += ",\"ballot\":" + print(core.ballot());
  if (role == raft::Role::leader) {
    text += field("round", core.round()) + field("pending_reads", core.pending_reads()) + ",\"progress\":" + progress_of(core);
  }
  return text + "}";
}

// Runs of entries of one term, in order, above the log's base.
std::string terms_of(const raft::LogView& log) {
  std::string text = "[";
  raft::Term term = 0;
  for (raft::Index index = log.first_index(); index <= log.last_index(); ++index) {
    const raft::Term here = log.term(index).value_or(0);
    if (here == term) continue;
    term = here;
    text += text.size() > 1 ? "," : "";
    text += "{\"from_index\":" + std::to_string(index) + field("term", term) + "}";
  }
  return text + "]";
}

// The fields that count for the message's type.
std::string print(const raft::Message& message) {
  std::string text = field("type", raft::to_string(message.type)) + field("from", message.from) + field("to", message.to) +
                     field("message_term", message.term) + hex_field("session", message.session) +
                     field("store", message.from_store.to_string()) + field("cluster", message.cluster.to_string());
  switch (message.type) {
    case MessageType::pre_vote_request:
    case MessageType::vote_request:
      text += field("campaign_term", message.campaign_term) + field("log_index", message.log_index) +
              field("log_term", message.log_term) + flag("is_transfer", message.is_transfer);
      break;
    case MessageType::pre_vote_reply:
    case MessageType::vote_reply:
      text += field("campaign_term", message.campaign_term) + flag("granted", message.granted);
      break;
    case MessageType::append_request:
      text += field("log_index", message.log_index) + field("log_term", message.log_term) + field("leader_commit", message.commit) +
              field("round", message.round) + ",\"entries\":" + list_of(message.entries);
      break;
    case MessageType::append_reply:
      text += flag("rejected", message.rejected) + field("log_index", message.log_index) + field("match", message.match) +
              field("hint_index", message.hint_index) + field("hint_term", message.hint_term) + field("round", message.round);
      break;
    case MessageType::timeout_now:
      text += field("log_index", message.log_index) + field("log_term", message.log_term);
      break;
  }
  return text;
}

}  // namespace

void RaftTrace::write(const Source& source, const raft::Core& core, std::string_view event, std::string_view fields) {
  ++lines_;
  std::string line = "{\"line\":" + std::to_string(lines_) +
                     field("at_ns", static_cast<uint64_t>(io::to_ns(source.now))) + field("node", name(source.node)) +
                     field("life", source.life) + field("event", event);
  line.append(fields);
  line += ",\"state\":" + state_of(core) + "}";
  sink_(line);
}

void RaftTrace::follow(const Source& source, const raft::Core& core) {
  Seen& seen = seen_[source.node];
  if (seen.life != source.life) return;
  std::string configuration = print(core.configuration()) + field("index", core.configurations().current_index());
  if (configuration != seen.configuration) {
    seen.configuration = std::move(configuration);
    write(source, core, "configuration", field("index", core.configurations().current_index()));
  }
  if (core.snapshot().index != seen.snapshot) {
    seen.snapshot = core.snapshot().index;
    write(source, core, "snapshot", field("what", "durable") + field("index", seen.snapshot) + field("snapshot_term", core.snapshot().term));
  }
  if (core.commit_index() != seen.commit) {
    const raft::Index before = std::exchange(seen.commit, core.commit_index());
    write(source, core, "commit", field("from_index", before) + field("index", seen.commit));
  }
}

void RaftTrace::opened(const Source& source, const raft::Core& core) {
  Seen& seen = seen_[source.node];
  seen = Seen{source.life, core.commit_index(), core.applied_index(), core.snapshot().index,
              print(core.configuration()) + field("index", core.configurations().current_index())};
  write(source, core, "open", field("store", core.store().to_string()) + hex_field("session", core.session()) +
                                  ",\"terms\":" + terms_of(core.log()));
}

void RaftTrace::message_taken(const Source& source, const raft::Core& core, const raft::Message& message) {
  write(source, core, "receive", print(message));
  follow(source, core);
}

void RaftTrace::offer_taken(const Source& source, const raft::Core& core, const raft::SnapshotOffer& offer,
                            const raft::OfferAnswer& answer) {
  write(source, core, "offer",
        field("from", offer.from) + field("message_term", offer.term) + hex_field("session", offer.session) +
            field("store", offer.from_store.to_string()) + field("cluster", offer.cluster.to_string()) +
            field("index", offer.label.index) + field("snapshot_term", offer.label.term) +
            field("verdict", raft::to_string(answer.verdict)) + field("match", answer.match));
  follow(source, core);
}

void RaftTrace::core_changed(const Source& source, const raft::Core& core) { follow(source, core); }

void RaftTrace::ready_taken(const Source& source, const raft::Core& core, const raft::Ready& ready) {
  for (const raft::RoleChange& change : ready.role_changes) {
    write(source, core, "become", field("role", raft::to_string(change.role)) + field("role_term", change.term) +
                                      field("role_leader", change.leader) + field("reason", change.reason));
  }
  if (ready.log_reset) {
    write(source, core, "snapshot", field("what", "log reset") + field("index", ready.log_reset->index) +
                                        field("snapshot_term", ready.log_reset->term));
  }
  if (!ready.entries.empty()) {
    write(source, core, "append", field("append_term", ready.append_term) + flag("replaces_suffix", ready.replaces_suffix) +
                                      ",\"entries\":" + list_of(ready.entries));
  }
  if (ready.install) {
    write(source, core, "snapshot", field("what", "install") + field("index", ready.install->index) +
                                        field("snapshot_term", ready.install->term));
  }
  for (const raft::ReadResult& read : ready.reads) {
    write(source, core, "read", flag("confirmed", read.confirmed) + field("index", read.index));
  }
  for (const raft::TransferEnd& transfer : ready.transfers) {
    write(source, core, "transfer", field("to", transfer.to) + field("transfer_term", transfer.term) +
                                        field("outcome", raft::to_string(transfer.outcome)));
  }
  follow(source, core);
}

void RaftTrace::message_sent(const Source& source, const raft::Core& core, const raft::Message& message) {
  write(source, core, "send", print(message));
}

void RaftTrace::persisted(const Source& source, const raft::Core& core) {
  write(source, core, "persist", field("index", core.durable_index()));
  follow(source, core);
}

void RaftTrace::applied(const Source& source, const raft::Core& core) {
  Seen& seen = seen_[source.node];
  const raft::Index before = std::exchange(seen.applied, core.applied_index());
  if (seen.applied != before) write(source, core, "apply", field("from_index", before) + field("index", seen.applied));
}

}  // namespace sim

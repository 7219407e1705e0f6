// One core in a test's hand, in a cluster of "a", "b" and "c" whose other servers the test plays itself.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raft/core.h"

namespace raft::test {

inline constexpr ClusterId kCluster{5, 5};

inline StoreId store_of(const ServerId& id) { return StoreId{1, static_cast<std::uint64_t>(id[0])}; }

inline Configuration settled(const std::vector<ServerId>& ids) {
  Configuration configuration;
  configuration.cluster = kCluster;
  for (const ServerId& id : ids) configuration.servers.push_back(Server{id, id + ":1", true, store_of(id)});
  configuration.normalise();
  return configuration;
}

inline Payload payload(const std::string& text) { return std::make_shared<const std::string>(text); }

inline Entry command(Index index, Term term, const std::string& text = "x") {
  return Entry{term, index, EntryType::command, payload(text)};
}

class Hand {
 public:
  explicit Hand(InitialState initial = {}, Settings settings = {}, const std::vector<ServerId>& ids = {"a", "b", "c"},
                const ServerId& id = "a") {
    if (initial.base_configuration.servers.empty()) initial.base_configuration = settled(ids);
    core = std::make_unique<Core>(Identity{id, store_of(id), 77, ClusterId{6, 6}}, settings, std::move(initial),
                                  io::RandomStream(1), now);
  }

  io::Instant now{std::chrono::seconds(100)};
  std::unique_ptr<Core> core;
  // Everything handed out so far, in order.
  std::vector<Message> sent;
  std::vector<Message> held;  // messages_after_persist whose writes are not durable yet
  std::vector<Entry> committed;
  std::vector<ReadResult> reads;
  std::vector<RoleChange> changes;
  std::vector<Ready> writes;

  // Takes what is ready; the disk does nothing.
  void take() {
    while (core->has_ready()) {
      Ready ready = core->ready();
      for (Message& message : ready.messages) sent.push_back(std::move(message));
      for (Message& message : ready.messages_after_persist) held.push_back(std::move(message));
      for (Entry& entry : ready.committed) committed.push_back(std::move(entry));
      for (const ReadResult& read : ready.reads) reads.push_back(read);
      for (const RoleChange& change : ready.role_changes) changes.push_back(change);
      if (ready.hard_state || !ready.entries.empty()) writes.push_back(std::move(ready));
    }
  }
  // The disk finishes everything handed out.
  void persist() {
    take();
    while (!writes.empty()) {
      Ready write = std::move(writes.front());
      writes.erase(writes.begin());
      if (write.hard_state) core->hard_state_persisted(*write.hard_state);
      if (!write.entries.empty()) core->persisted(write.append_term, write.entries.back().index);
      take();
    }
    for (Message& message : held) sent.push_back(std::move(message));
    held.clear();
  }
  void step(Message message) {
    core->step(std::move(message), now);
    take();
  }
  void tick() {
    now = std::max(now, core->next_deadline());
    core->tick(now);
    take();
  }

  Message from(const ServerId& id, MessageType type, Term term) const {
    Message message;
    message.type = type;
    message.from = id;
    message.to = core->id();
    message.term = term;
    message.from_store = store_of(id);
    message.cluster = kCluster;
    message.session = 1000 + static_cast<std::uint64_t>(id[0]);
    message.sent_at_ns = io::to_ns(now);
    return message;
  }
  Message append(const ServerId& id, Term term, Index prev, Term prev_term, std::vector<Entry> entries, Index commit) const {
    Message message = from(id, MessageType::append_request, term);
    message.log_index = prev;
    message.log_term = prev_term;
    message.entries = std::move(entries);
    message.commit = commit;
    return message;
  }
  // b's or c's acknowledgement of everything up to `match`, answering the newest message sent to it.
  Message acknowledge(const ServerId& id, Index match) const {
    Message message = from(id, MessageType::append_reply, core->term());
    message.log_index = match;
    message.match = match;
    for (const Message& each : sent) {
      if (each.to != id || each.type != MessageType::append_request) continue;
      message.round = each.round;
      message.echo_ns = each.sent_at_ns;
      message.echo_session = each.session;
    }
    return message;
  }
  Message grant(const ServerId& id, MessageType type, Term term, Term campaign_term) const {
    Message message = from(id, type, term);
    message.campaign_term = campaign_term;
    message.granted = true;
    return message;
  }
  // Makes the core leader of the next term with b's votes; its first entry is on its own disk.
  void lead() {
    tick();
    const Term next = core->term() + 1;
    step(grant("b", MessageType::pre_vote_reply, core->term(), next));
    persist();
    step(grant("b", MessageType::vote_reply, next, next));
    persist();
  }
  std::vector<Message> sent_to(const ServerId& id, MessageType type) const {
    std::vector<Message> found;
    for (const Message& message : sent) {
      if (message.to == id && message.type == type) found.push_back(message);
    }
    return found;
  }
};

inline InitialState with_log(Term term, const std::vector<Term>& terms) {
  InitialState initial;
  initial.hard_state.term = term;
  for (std::size_t i = 0; i < terms.size(); ++i) initial.entries.push_back(command(i + 1, terms[i]));
  return initial;
}

}  // namespace raft::test

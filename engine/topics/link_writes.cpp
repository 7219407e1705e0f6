// Attach and detach.
#include <algorithm>

#include "engine/topics/manager.h"
#include "io/probe.h"

namespace engine::topics {

using metastore::Code;
using metastore::Topic;

namespace {

Attempt settle(const metastore::Answer& answer, Reply done) {
  if (answer.code == Code::topic_changed) {
    return Attempt::changed();
  }
  return Attempt::settled(answer.ok() ? std::move(done) : refused_reply(answer));
}

Topic with_child(Topic parent, std::string_view child) {
  parent.role = metastore::Role::parent;
  parent.children.emplace_back(child);
  return parent;
}

}  // namespace

// Nothing can be produced in this release, so every partition's high watermark is 0.
std::vector<int64_t> attach_offsets(const Topic& parent) { return std::vector<int64_t>(static_cast<size_t>(parent.partitions), 0); }

Manager::Ends Manager::read_ends(std::string_view parent, std::string_view child, io::Instant deadline) {
  Ends ends;
  for (const auto& [name, topic] : {std::pair(parent, &ends.parent), std::pair(child, &ends.child)}) {
    io::Result<TopicPtr> found = reader_.get_topic(name, deadline);
    if (!found.ok()) {
      ends.failure = Attempt::settled(unreadable(found.error()));
      return ends;
    }
    if (*found == nullptr) {
      ends.failure = Attempt::refused(topic_not_found());
      return ends;
    }
    *topic = std::move(*found);
  }
  return ends;
}

Reply Manager::attach(std::string_view parent, const AttachRequest& request, const Actor& actor, io::Instant deadline) {
  if (std::optional<Reply> wrong = why_not_attach(parent, request)) {
    return *std::move(wrong);
  }
  return ground_.carry_out({parent, request.child}, deadline, [&](const Turn& turn) { return try_attach(parent, request, actor, turn); });
}

Attempt Manager::try_attach(std::string_view parent, const AttachRequest& request, const Actor& actor, const Turn& turn) {
  Ends ends = read_ends(parent, request.child, turn.deadline);
  if (ends.failure) {
    return *std::move(ends.failure);
  }
  if (std::optional<Reply> denied = why_not_own_all(reader_, actor, {ends.parent.get(), ends.child.get()}, turn.deadline)) {
    return Attempt::refused(*std::move(denied));
  }
  const metastore::AttachChild link{std::string(parent), request.child, ground_.draw_id(), request.delay_ms, attach_offsets(*ends.parent)};
  const metastore::AttachChildIf entry{link, ends.parent->id, ends.child->id};
  if (auto refused = foresee_refusal(metastore::encode_command(entry), turn.deadline)) {
    return *std::move(refused);
  }
  const Outcome outcome = ground_.propose_either(entry, link, turn);
  if (!outcome.answer) {
    return Attempt::settled(outcome.failure);
  }
  return settle(*outcome.answer, Reply{200, topic_json(with_child(*ends.parent, request.child), true) + "\n"});
}

Reply Manager::detach(std::string_view parent, std::string_view child, const Actor& actor, io::Instant deadline) {
  return ground_.carry_out({parent, child}, deadline, [&](const Turn& turn) { return try_detach(parent, child, actor, turn); });
}

Attempt Manager::try_detach(std::string_view parent, std::string_view child, const Actor& actor, const Turn& turn) {
  Ends ends = read_ends(parent, child, turn.deadline);
  if (ends.failure) {
    return *std::move(ends.failure);
  }
  if (std::optional<Reply> denied = why_not_own_any(reader_, actor, {ends.parent.get(), ends.child.get()}, turn.deadline)) {
    return Attempt::refused(*std::move(denied));
  }
  if (ends.child->is_remote_stub()) {
    return Attempt::settled(error_reply(501, "this release does not serve remote children"));
  }
  const metastore::DetachChildIf entry{std::string(parent), std::string(child), ends.parent->id, ends.child->id};
  if (auto refused = foresee_refusal(metastore::encode_command(entry), turn.deadline)) {
    return *std::move(refused);
  }
  const Outcome outcome = ground_.propose_either(entry, metastore::DetachChild{entry.parent, entry.child}, turn);
  return outcome.answer ? settle(*outcome.answer, Reply{204, ""}) : Attempt::settled(outcome.failure);
}

}  // namespace engine::topics

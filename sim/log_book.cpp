#include "sim/log_book.h"

#include <charconv>
#include <variant>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "io/check.h"
#include "io/random.h"

namespace sim {
namespace {

std::string at_index(Index index) { return "index " + std::to_string(index); }
std::string the_node(int node) { return "node " + std::to_string(node); }

Violation violation(std::string rule, std::string sentence, io::Instant now) {
  return Violation{std::move(rule), std::move(sentence), now, 0};
}

// The tag in a client's schema; 0 for any other.
int64_t bound_of(std::string_view schema) {
  constexpr std::string_view kBegin = "{\"maxLength\":";
  int64_t bound = 0;
  if (schema.starts_with(kBegin)) {
    std::from_chars(schema.data() + kBegin.size(), schema.data() + schema.size(), bound);
  }
  return bound;
}

}  // namespace

std::optional<Violation> LogBook::check_order(int node, uint64_t life, Index index, io::Instant now) {
  Position& position = positions_[node];
  if (position.life == life && position.applied != 0 && index != position.applied + 1) {
    return violation("entries are applied in order, each once",
                     the_node(node) + " applied " + at_index(index) + " after " + at_index(position.applied), now);
  }
  position.life = life;
  position.applied = index;
  return std::nullopt;
}

std::optional<Violation> LogBook::applied(int node, uint64_t life, const raft::Entry& entry, const std::string& answer,
                                          bool refused, const std::optional<Change>& change, io::Instant now) {
  if (auto wrong = check_order(node, life, entry.index, now)) {
    return wrong;
  }
  const uint64_t content = io::stable_hash(entry.bytes());
  const uint64_t answer_hash = io::stable_hash(answer);
  if (entry.index <= lines_.size()) {
    Line& known = lines_[entry.index - 1];
    if (known.term != entry.term || known.type != entry.type || known.content != content) {
      return violation("every node applies the same entry at an index",
                       the_node(node) + " applied another entry at " + at_index(entry.index) + " (term " +
                           std::to_string(entry.term) + ") than " + the_node(known.node) + " did (term " +
                           std::to_string(known.term) + ")",
                       now);
    }
    if (known.answer != answer_hash) {
      return violation("an entry has the same answer on every node",
                       the_node(node) + " answered the entry at " + at_index(entry.index) + " otherwise than " +
                           the_node(known.node) + (refused ? " (refused here)" : " (done here)"),
                       now);
    }
    return std::nullopt;
  }
  if (entry.index != lines_.size() + 1) {
    return violation("nothing is applied past a hole",
                     the_node(node) + " applied " + at_index(entry.index) + ", but nobody has applied " +
                         at_index(lines_.size() + 1),
                     now);
  }
  const Replica::Applied expected = replica_.apply(entry);
  if (expected.answer != answer) {
    return violation("an entry has the same answer on every node",
                     the_node(node) + " answered the entry at " + at_index(entry.index) +
                         " otherwise than the entries up to there make it" + (refused ? " (refused here)" : " (done here)"),
                     now);
  }
  Line line{entry.term, entry.type, content, answer_hash, node, now, std::nullopt, ""};
  if (change) {
    const bool may_be_refused = change->has_more || has_children(*change);
    const Verdict verdict = model_.judge(*change);
    if (verdict == Verdict::done ? refused && !may_be_refused : !refused) {
      return violation("the state machine answers as the model does",
                       the_node(node) + " " + (refused ? "refused" : "did") + " the entry at " + at_index(entry.index) +
                           " for topic " + change->topic.name + "; the model says " + to_string(verdict),
                       now);
    }
  }
  if (auto wrong = take(entry, expected, refused ? std::nullopt : change, line)) {
    return violation("the state machine answers as the model does", std::move(*wrong), now);
  }
  lines_.push_back(std::move(line));
  return std::nullopt;
}

std::optional<Violation> LogBook::digest(int node, Index index, uint64_t digest, io::Instant now) {
  if (index <= replica_.last_index() && replica_.digest_at(index) != digest) {
    return violation("equal applied index, equal state digest",
                     the_node(node) + " has applied " + at_index(index) + " and its state is not what the entries up to there make",
                     now);
  }
  return std::nullopt;
}

std::optional<Violation> LogBook::labelled(int node, Index label, Index index, uint64_t digest, io::Instant now) const {
  if (index == label && (label > replica_.last_index() || replica_.digest_at(label) == digest)) {
    return std::nullopt;
  }
  return violation("a snapshot holds what its label says",
                   the_node(node) + " labelled a snapshot " + at_index(label) +
                       (index == label ? ", and it is not what the entries up to there make"
                                       : ", and its content says that it is at " + at_index(index)),
                   now);
}

void LogBook::applied_unseen(int node, const raft::Entry& entry, const std::optional<Change>& change, io::Instant now) {
  NARAD_CHECK(entry.index == lines_.size() + 1, "unseen entries are taken in order");
  const Replica::Applied expected = replica_.apply(entry);
  Line line{entry.term, entry.type, io::stable_hash(entry.bytes()), io::stable_hash(expected.answer), node, now, std::nullopt, ""};
  const auto answer = engine::metastore::decode_answer(expected.answer);
  (void)take(entry, expected, answer && answer->ok() ? change : std::nullopt, line);
  lines_.push_back(std::move(line));
}

// A parent's update may be refused on account of its children.
bool LogBook::has_children(const Change& change) const {
  const Topic* present = model_.now(change.topic.name);
  return change.kind == ChangeKind::update && present != nullptr && !present->children.empty();
}

// The clients' own topics are changed by the clients' commands alone, which the model judges by itself: what an accepted one makes of its
// topic must be what the model makes of it. All else is followed.
std::optional<std::string> LogBook::take(const raft::Entry& entry, const Replica::Applied& applied, const std::optional<Change>& change,
                                         Line& line) {
  if (change && model_.apply(entry.index, *change) == Verdict::done) {
    line.change = change->kind;
    line.name = change->topic.name;
  }
  for (const auto& [name, record] : applied.topics) {
    const std::optional<Topic> made = record ? std::optional(model_topic(*record)) : std::nullopt;
    const Topic* expected = model_.now(name);
    const bool is_same = made && expected != nullptr ? same_record(*made, *expected) : !made && expected == nullptr;
    if (change && name == change->topic.name && !is_same) {
      return "the entry at " + at_index(entry.index) + " made " + (made ? to_text(*made) : "nothing") + " of the topic, the model " +
             (expected != nullptr ? to_text(*expected) : "nothing");
    }
    model_.follow(entry.index, name, made);
  }
  for (const Replica::Applied::Schemas& schemas : applied.schemas) {
    model_.note_schemas(entry.index, schemas.topic, {schemas.versions, bound_of(schemas.latest)});
  }
  note_link(entry, applied);
  return std::nullopt;
}

void LogBook::note_link(const raft::Entry& entry, const Replica::Applied& applied) {
  namespace ms = engine::metastore;
  const auto envelope = entry.type == raft::EntryType::command ? ms::read_envelope(entry.bytes()) : std::nullopt;
  const auto answer = ms::decode_answer(applied.answer);
  const bool is_known = envelope && envelope->type >= 1 && envelope->type <= ms::kNewestEntryType;
  const auto command = is_known && answer && answer->ok() ? ms::decode_payload(envelope->type, envelope->payload) : std::nullopt;
  if (!command) {
    return;
  }
  if (const auto* attach = std::get_if<ms::AttachChild>(&*command)) {
    model_.note_link(entry.index, attach->parent, attach->child, true);
  } else if (const auto* attach_if = std::get_if<ms::AttachChildIf>(&*command)) {
    model_.note_link(entry.index, attach_if->link.parent, attach_if->link.child, true);
  } else if (const auto* detach = std::get_if<ms::DetachChild>(&*command)) {
    model_.note_link(entry.index, detach->parent, detach->child, false);
  } else if (const auto* detach_if = std::get_if<ms::DetachChildIf>(&*command)) {
    model_.note_link(entry.index, detach_if->parent, detach_if->child, false);
  }
}

void LogBook::restarted(int node, uint64_t life, Index index) { positions_[node] = Position{life, index}; }

std::optional<Violation> LogBook::installed(int node, uint64_t life, Index index, io::Instant now) {
  Position& position = positions_[node];
  if (position.life == life && index <= position.applied) {
    return violation("an image only brings a node forward",
                     the_node(node) + " installed an image of " + at_index(index) + " after it had applied " + at_index(position.applied), now);
  }
  if (index > lines_.size()) {
    return violation("an image holds what was applied somewhere", the_node(node) + " installed an image of " + at_index(index) +
                                                                      ", which nobody has applied", now);
  }
  position = Position{life, index};
  return std::nullopt;
}

Index LogBook::applied_index(int node) const {
  const auto found = positions_.find(node);
  return found == positions_.end() ? 0 : found->second.applied;
}

}  // namespace sim

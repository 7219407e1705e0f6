#include <algorithm>
#include <string>

#include "engine/metastore/apply_fanout.h"
#include "engine/metastore/apply_remotes.h"
#include "engine/metastore/apply_topics.h"
#include "engine/metastore/kept_rows.h"
#include "engine/metastore/printable.h"

namespace engine::metastore {

namespace {

constexpr std::string_view kFromAttach = "attach";

bool is_start(std::string_view from) { return from == kFromAttach || from == "unconsumed" || from == "earliest"; }

// Whatever can be told from the entry alone.
Answer check_entry(const AttachRemoteChild& entry) {
  if (entry.parent.empty() || entry.stub.empty() || entry.remote.name.empty() || entry.remote.topic.empty()) {
    return refuse(Code::invalid_argument, "a remote child needs a parent, a name, a remote and a topic there");
  }
  if (entry.parent == entry.stub) {
    return refuse(Code::fanout_role_conflict, "topic " + entry.parent + " cannot be its own child");
  }
  if (entry.epoch.empty()) {
    return refuse(Code::invalid_argument, "a link without an epoch");
  }
  if (entry.delay_ms < 0) {
    return refuse(Code::invalid_argument, "a delay below 0");
  }
  if (entry.delay_ms > kAttachDelayMaxMs) {
    return refuse(Code::fanout_delay_too_long, "more than a year");
  }
  if (entry.remote.lanes < 0 || entry.remote.lanes > kLanesMax) {
    return refuse(Code::invalid_argument, std::to_string(entry.remote.lanes) + " lanes");
  }
  if (!entry.remote.from.empty() && !is_start(entry.remote.from)) {
    return refuse(Code::invalid_argument, "a start that does not exist");
  }
  return {};
}

uint64_t remote_children(Transaction& rows, const Topic& parent) {
  uint64_t count = 0;
  for (const std::string& name : parent.children) {
    const std::optional<Topic> child = load_topic(rows, name);
    count += child && child->is_remote_stub() ? 1 : 0;
  }
  return count;
}

Answer check_parent(Transaction& rows, const AttachRemoteChild& entry, const std::optional<Topic>& parent) {
  if (!parent) {
    return refuse(Code::not_found, "topic " + entry.parent);
  }
  if (parent->id != entry.parent_id) {
    return refuse(Code::topic_changed, "topic " + entry.parent);
  }
  if (parent->role == Role::child) {
    return refuse(Code::fanout_role_conflict, "topic " + entry.parent + " is a child");
  }
  if (!rows.get(Bucket::remotes, entry.remote.name) || entry.remote.name.starts_with('_')) {
    return refuse(Code::remote_child_conflict, "no remote " + entry.remote.name);
  }
  if (rows.get(Bucket::topics, entry.stub)) {
    return refuse(Code::already_exists, "topic " + entry.stub);
  }
  if (parent->children.size() >= kChildrenMax) {
    return refuse(Code::fanout_child_limit, "topic " + entry.parent);
  }
  if (remote_children(rows, *parent) >= kRemoteChildrenMax) {
    return refuse(Code::remote_child_limit, "topic " + entry.parent);
  }
  if (parent->retention_ms != 0 && parent->retention_ms < kRemoteRetentionFloorMs) {
    return refuse(Code::remote_retention_floor, "topic " + entry.parent);
  }
  if (!retention_fits_delay(parent->retention_ms, entry.delay_ms)) {
    return refuse(Code::fanout_delay_too_long, "topic " + entry.parent);
  }
  if (counter(rows, remote_target_counter(entry.remote.name, entry.remote.topic)) != 0) {
    return refuse(Code::remote_target_linked, "topic " + entry.remote.topic + " of remote " + entry.remote.name);
  }
  return {};
}

Topic to_stub(const AttachRemoteChild& entry) {
  Topic stub;
  stub.name = entry.stub;
  stub.id = entry.stub_id;
  stub.created_at = entry.created_at;
  stub.role = Role::child;
  stub.parent = entry.parent;
  stub.attach_epoch = entry.epoch;
  stub.fanout_delay_ms = entry.delay_ms;
  stub.attach_offsets = entry.offsets;
  stub.remote = entry.remote;
  stub.remote->lanes = std::max(entry.remote.lanes, 1);
  if (stub.remote->from.empty()) {
    stub.remote->from = kFromAttach;
  }
  stub.remote->paused = false;
  stub.remote->pause_reason.clear();
  stub.remote->paused_by.clear();
  stub.remote->paused_at_ms = 0;
  stub.remote->skip.clear();
  return stub;
}

Answer check_change(const ChangeRemoteChild& entry) {
  if (entry.pause && (entry.pause->reason.size() > kPauseReasonMax || !is_printable(entry.pause->reason))) {
    return refuse(Code::invalid_argument, "a reason that is too long or cannot be printed");
  }
  if (entry.lanes && (*entry.lanes < 1 || *entry.lanes > kLanesMax)) {
    return refuse(Code::invalid_argument, std::to_string(*entry.lanes) + " lanes");
  }
  if (entry.skip && (entry.skip->partition < 0 || entry.skip->offset < 0)) {
    return refuse(Code::invalid_argument, "a partition or offset below 0");
  }
  return {};
}

void set_pause(RemoteLink& link, const PauseChange& pause) {
  link.paused = pause.paused;
  link.pause_reason = pause.paused ? pause.reason : std::string();
  link.paused_by = pause.paused ? pause.by : std::string();
  link.paused_at_ms = pause.paused ? pause.at_ms : 0;
}

Answer add_skip(RemoteLink& link, const SkipOffset& skip) {
  if (!link.skip.contains(skip.partition) && link.skip.size() >= kSkippingMax) {
    return refuse(Code::invalid_argument, std::to_string(kSkippingMax) + " partitions skip offsets already");
  }
  std::vector<int64_t>& offsets = link.skip[skip.partition];
  auto place = std::lower_bound(offsets.begin(), offsets.end(), skip.offset);
  if (place != offsets.end() && *place == skip.offset) {
    return {};
  }
  if (offsets.size() >= kSkippedMax) {
    return refuse(Code::invalid_argument,
                  "partition " + std::to_string(skip.partition) + " skips " + std::to_string(kSkippedMax) + " offsets already");
  }
  offsets.insert(place, skip.offset);
  return {};
}

}  // namespace

Answer apply_entry(Transaction& rows, const AttachRemoteChild& entry, Effects& effects) {
  if (Answer refused = check_entry(entry); !refused.ok()) {
    return refused;
  }
  const std::optional<Topic> parent = load_topic(rows, entry.parent);
  if (Answer refused = check_parent(rows, entry, parent); !refused.ok()) {
    return refused;
  }
  Topic linked = *parent;
  linked.role = Role::parent;
  linked.children.push_back(entry.stub);
  replace_topic(rows, *parent, linked);
  effects.moved(Domain::topics, entry.parent);
  add_topic(rows, to_stub(entry));
  effects.moved(Domain::topics, entry.stub);
  return {};
}

Answer apply_entry(Transaction& rows, const ChangeRemoteChild& entry, Effects& effects) {
  const std::optional<Topic> stub = load_topic(rows, entry.stub);
  if (!stub || !stub->is_remote_stub() || stub->parent != entry.parent) {
    return refuse(Code::not_found, "remote child " + entry.stub + " of topic " + entry.parent);
  }
  if (stub->attach_epoch != entry.epoch) {
    return refuse(Code::remote_child_stale, "topic " + entry.stub);
  }
  if (Answer refused = check_change(entry); !refused.ok()) {
    return refused;
  }
  Topic changed = *stub;
  if (entry.pause) {
    set_pause(*changed.remote, *entry.pause);
  }
  if (entry.target_id) {
    changed.remote->target_id = *entry.target_id;
  }
  if (entry.lanes) {
    changed.remote->lanes = *entry.lanes;
  }
  if (entry.skip) {
    if (Answer refused = add_skip(*changed.remote, *entry.skip); !refused.ok()) {
      return refused;
    }
  }
  replace_topic(rows, *stub, changed);
  effects.moved(Domain::topics, entry.stub);
  return {};
}

}  // namespace engine::metastore

#include "engine/metastore/topic.h"

#include "engine/metastore/records_fb.h"
#include "io/check.h"

namespace engine::metastore {

using Builder = flatbuffers::FlatBufferBuilder;

flatbuffers::Offset<fb::RemoteLink> build_remote_link(Builder& builder, const RemoteLink& link) {
  std::vector<flatbuffers::Offset<fb::PartitionOffsets>> skips;
  for (const auto& [partition, offsets] : link.skip) {
    auto built = builder.CreateVector(offsets);
    skips.push_back(fb::CreatePartitionOffsets(builder, partition, built));
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::PartitionOffsets>>> skip;
  if (!skips.empty()) {
    skip = builder.CreateVector(skips);
  }
  auto name = text_or_none(builder, link.name);
  auto topic = text_or_none(builder, link.topic);
  auto target_id = text_or_none(builder, link.target_id);
  auto from = text_or_none(builder, link.from);
  auto pause_reason = text_or_none(builder, link.pause_reason);
  auto paused_by = text_or_none(builder, link.paused_by);
  auto created_by = text_or_none(builder, link.created_by);
  return fb::CreateRemoteLink(builder, name, topic, target_id, from, link.lanes, link.paused, pause_reason, paused_by,
                              link.paused_at_ms, skip, created_by);
}

RemoteLink read_remote_link(const fb::RemoteLink& stored, Copies& copies) {
  RemoteLink link;
  link.name = copies.text(stored.name());
  link.topic = copies.text(stored.topic());
  link.target_id = copies.text(stored.target_id());
  link.from = copies.text(stored.from());
  link.lanes = stored.lanes();
  link.paused = stored.paused();
  link.pause_reason = copies.text(stored.pause_reason());
  link.paused_by = copies.text(stored.paused_by());
  link.paused_at_ms = stored.paused_at_ms();
  link.created_by = copies.text(stored.created_by());
  if (copies.list(stored.skip())) {
    for (const fb::PartitionOffsets* row : *stored.skip()) {
      auto [place, is_new] = link.skip.try_emplace(row->partition());
      if (!is_new || !copies.table()) {
        copies.fail();
        break;
      }
      place->second = copies.integers(row->offsets());
    }
  }
  return link;
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::none: return "";
    case Role::standalone: return "standalone";
    case Role::parent: return "parent";
    case Role::child: return "child";
  }
  NARAD_CHECK(false, "a role without a name");
  return "";
}

flatbuffers::Offset<fb::Topic> build_topic(Builder& builder, const Topic& topic) {
  flatbuffers::Offset<fb::RemoteLink> remote;
  if (topic.remote) {
    remote = build_remote_link(builder, *topic.remote);
  }
  auto children = texts_or_none(builder, topic.children);
  auto attach_offsets = integers_or_none(builder, topic.attach_offsets);
  auto name = text_or_none(builder, topic.name);
  auto id = text_or_none(builder, topic.id);
  auto owner = text_or_none(builder, topic.owner);
  auto parent = text_or_none(builder, topic.parent);
  auto attach_epoch = text_or_none(builder, topic.attach_epoch);
  return fb::CreateTopic(builder, name, id, topic.partitions, topic.retention_ms, topic.visibility_timeout_ms,
                         topic.max_in_flight_per_partition, topic.max_acked_ahead_per_partition, topic.created_at, owner,
                         static_cast<uint8_t>(topic.role), children, parent, attach_epoch, topic.fanout_delay_ms,
                         attach_offsets, remote);
}

Topic read_topic(const fb::Topic& stored, Copies& copies) {
  Topic topic;
  if (stored.role() > static_cast<uint8_t>(Role::child)) {
    copies.fail();
    return topic;
  }
  topic.name = copies.text(stored.name());
  topic.id = copies.text(stored.id());
  topic.partitions = stored.partitions();
  topic.retention_ms = stored.retention_ms();
  topic.visibility_timeout_ms = stored.visibility_timeout_ms();
  topic.max_in_flight_per_partition = stored.max_in_flight_per_partition();
  topic.max_acked_ahead_per_partition = stored.max_acked_ahead_per_partition();
  topic.created_at = stored.created_at();
  topic.owner = copies.text(stored.owner());
  topic.role = static_cast<Role>(stored.role());
  topic.children = copies.texts(stored.children());
  topic.parent = copies.text(stored.parent());
  topic.attach_epoch = copies.text(stored.attach_epoch());
  topic.fanout_delay_ms = stored.fanout_delay_ms();
  topic.attach_offsets = copies.integers(stored.attach_offsets());
  if (stored.remote() != nullptr && copies.table()) {
    topic.remote = read_remote_link(*stored.remote(), copies);
  }
  return topic;
}

std::string encode_topic(const Topic& topic) {
  Builder builder(512);
  builder.Finish(build_topic(builder, topic));
  return std::string(finished(builder));
}

std::optional<Topic> decode_topic(std::string_view bytes) { return read_root<fb::Topic>(bytes, read_topic); }

std::string fold_name(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return folded;
}

}  // namespace engine::metastore

#include "engine/metastore/topic.h"

#include <cstring>

#include "engine/metastore/topic_fb.h"
#include "io/check.h"

namespace engine::metastore {

namespace {

using Builder = flatbuffers::FlatBufferBuilder;

// Empty fields are left out, so that equal records have equal bytes however they came about.
flatbuffers::Offset<flatbuffers::String> string_or_none(Builder& builder, std::string_view text) {
  return text.empty() ? 0 : builder.CreateString(text.data(), text.size());
}

std::string to_string(const flatbuffers::String* text) { return text == nullptr ? std::string() : text->str(); }

// Bytewise: the verifier lets 8-byte elements stand at any multiple of 4, where they must not be read as words.
std::vector<int64_t> to_integers(const flatbuffers::Vector<int64_t>* stored) {
  std::vector<int64_t> integers(stored == nullptr ? 0 : stored->size());
  for (size_t i = 0; i < integers.size(); ++i) {
    std::memcpy(&integers[i], stored->Data() + i * sizeof(int64_t), sizeof(int64_t));
    integers[i] = flatbuffers::EndianScalar(integers[i]);
  }
  return integers;
}

flatbuffers::Offset<fb::RemoteLink> build_remote(Builder& builder, const RemoteLink& link) {
  std::vector<flatbuffers::Offset<fb::PartitionOffsets>> skips;
  for (const auto& [partition, offsets] : link.skip) {
    auto built = builder.CreateVector(offsets);
    skips.push_back(fb::CreatePartitionOffsets(builder, partition, built));
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::PartitionOffsets>>> skip;
  if (!skips.empty()) {
    skip = builder.CreateVector(skips);
  }
  auto name = string_or_none(builder, link.name);
  auto topic = string_or_none(builder, link.topic);
  auto target_id = string_or_none(builder, link.target_id);
  auto from = string_or_none(builder, link.from);
  auto pause_reason = string_or_none(builder, link.pause_reason);
  auto paused_by = string_or_none(builder, link.paused_by);
  auto created_by = string_or_none(builder, link.created_by);
  return fb::CreateRemoteLink(builder, name, topic, target_id, from, link.lanes, link.paused, pause_reason, paused_by,
                              link.paused_at_ms, skip, created_by);
}

std::optional<RemoteLink> read_remote(const fb::RemoteLink& stored) {
  RemoteLink link;
  link.name = to_string(stored.name());
  link.topic = to_string(stored.topic());
  link.target_id = to_string(stored.target_id());
  link.from = to_string(stored.from());
  link.lanes = stored.lanes();
  link.paused = stored.paused();
  link.pause_reason = to_string(stored.pause_reason());
  link.paused_by = to_string(stored.paused_by());
  link.paused_at_ms = stored.paused_at_ms();
  link.created_by = to_string(stored.created_by());
  if (stored.skip() != nullptr) {
    for (const fb::PartitionOffsets* row : *stored.skip()) {
      auto [place, is_new] = link.skip.try_emplace(row->partition());
      if (!is_new) {
        return std::nullopt;
      }
      place->second = to_integers(row->offsets());
    }
  }
  return link;
}

}  // namespace

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

flatbuffers::Offset<fb::Topic> build_topic(flatbuffers::FlatBufferBuilder& builder, const Topic& topic) {
  flatbuffers::Offset<fb::RemoteLink> remote;
  if (topic.remote) {
    remote = build_remote(builder, *topic.remote);
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> children;
  if (!topic.children.empty()) {
    children = builder.CreateVectorOfStrings(topic.children);
  }
  flatbuffers::Offset<flatbuffers::Vector<int64_t>> attach_offsets;
  if (!topic.attach_offsets.empty()) {
    attach_offsets = builder.CreateVector(topic.attach_offsets);
  }
  auto name = string_or_none(builder, topic.name);
  auto id = string_or_none(builder, topic.id);
  auto owner = string_or_none(builder, topic.owner);
  auto parent = string_or_none(builder, topic.parent);
  auto attach_epoch = string_or_none(builder, topic.attach_epoch);
  return fb::CreateTopic(builder, name, id, topic.partitions, topic.retention_ms, topic.visibility_timeout_ms,
                         topic.max_in_flight_per_partition, topic.max_acked_ahead_per_partition, topic.created_at, owner,
                         static_cast<uint8_t>(topic.role), children, parent, attach_epoch, topic.fanout_delay_ms,
                         attach_offsets, remote);
}

std::optional<Topic> read_topic(const fb::Topic& stored) {
  if (stored.role() > static_cast<uint8_t>(Role::child)) {
    return std::nullopt;
  }
  Topic topic;
  topic.name = to_string(stored.name());
  topic.id = to_string(stored.id());
  topic.partitions = stored.partitions();
  topic.retention_ms = stored.retention_ms();
  topic.visibility_timeout_ms = stored.visibility_timeout_ms();
  topic.max_in_flight_per_partition = stored.max_in_flight_per_partition();
  topic.max_acked_ahead_per_partition = stored.max_acked_ahead_per_partition();
  topic.created_at = stored.created_at();
  topic.owner = to_string(stored.owner());
  topic.role = static_cast<Role>(stored.role());
  if (stored.children() != nullptr) {
    for (const flatbuffers::String* child : *stored.children()) {
      topic.children.push_back(child->str());
    }
  }
  topic.parent = to_string(stored.parent());
  topic.attach_epoch = to_string(stored.attach_epoch());
  topic.fanout_delay_ms = stored.fanout_delay_ms();
  topic.attach_offsets = to_integers(stored.attach_offsets());
  if (stored.remote() != nullptr) {
    std::optional<RemoteLink> remote = read_remote(*stored.remote());
    if (!remote) {
      return std::nullopt;
    }
    topic.remote = std::move(*remote);
  }
  return topic;
}

std::string encode_topic(const Topic& topic) {
  Builder builder(512);
  builder.Finish(build_topic(builder, topic));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

std::optional<Topic> decode_topic(std::string_view bytes) {
  AlignedBytes aligned(bytes);
  const fb::Topic* stored = verified_root<fb::Topic>(aligned);
  return stored == nullptr ? std::nullopt : read_topic(*stored);
}

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

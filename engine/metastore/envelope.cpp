#include "engine/metastore/envelope.h"

#include "engine/metastore/topic_fb.h"

namespace engine::metastore {

namespace {

constexpr char kMagic[2] = {'N', 'C'};

uint32_t read_big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (char c : bytes) {
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

std::string with_header(EntryType type, const flatbuffers::FlatBufferBuilder& builder) {
  auto number = static_cast<uint32_t>(type);
  std::string bytes(kMagic, sizeof(kMagic));
  bytes.reserve(kEnvelopeHeaderBytes + builder.GetSize());
  bytes.push_back(static_cast<char>(kEnvelopeVersion >> 8));
  bytes.push_back(static_cast<char>(kEnvelopeVersion & 0xff));
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(number >> shift & 0xff));
  }
  bytes.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  return bytes;
}

template <typename Table>
std::optional<Topic> decode_topic_payload(std::string_view payload) {
  AlignedBytes aligned(payload);
  const Table* table = verified_root<Table>(aligned);
  return table == nullptr ? std::nullopt : read_topic(*table->topic());
}

}  // namespace

std::optional<Envelope> read_envelope(std::string_view bytes) {
  if (bytes.size() < kEnvelopeHeaderBytes || bytes[0] != kMagic[0] || bytes[1] != kMagic[1]) {
    return std::nullopt;
  }
  Envelope envelope;
  envelope.version = static_cast<uint16_t>(read_big_endian(bytes.substr(2, 2)));
  envelope.type = read_big_endian(bytes.substr(4, 4));
  envelope.payload = bytes.substr(kEnvelopeHeaderBytes);
  return envelope.version == 0 ? std::nullopt : std::optional<Envelope>(envelope);
}

std::string encode_create_topic(const Topic& topic) {
  flatbuffers::FlatBufferBuilder builder(512);
  auto record = build_topic(builder, topic);
  builder.Finish(fb::CreateCreateTopicEntry(builder, record));
  return with_header(EntryType::create_topic, builder);
}

std::string encode_update_topic(const Topic& topic) {
  flatbuffers::FlatBufferBuilder builder(512);
  auto record = build_topic(builder, topic);
  builder.Finish(fb::CreateUpdateTopicEntry(builder, record));
  return with_header(EntryType::update_topic, builder);
}

std::string encode_delete_topic(std::string_view name) {
  flatbuffers::FlatBufferBuilder builder(128);
  auto text = builder.CreateString(name.data(), name.size());
  builder.Finish(fb::CreateDeleteTopicEntry(builder, text));
  return with_header(EntryType::delete_topic, builder);
}

std::optional<Topic> decode_create_topic(std::string_view payload) { return decode_topic_payload<fb::CreateTopicEntry>(payload); }

std::optional<Topic> decode_update_topic(std::string_view payload) { return decode_topic_payload<fb::UpdateTopicEntry>(payload); }

std::optional<std::string> decode_delete_topic(std::string_view payload) {
  AlignedBytes aligned(payload);
  const auto* table = verified_root<fb::DeleteTopicEntry>(aligned);
  return table == nullptr ? std::nullopt : std::optional<std::string>(table->name()->str());
}

}  // namespace engine::metastore

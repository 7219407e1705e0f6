#include "raft/wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/check.h"
#include "raft/bytes.h"
#include "raft/wire/frames_generated.h"

namespace raft::wire {

namespace {

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kReasonBytesMax = 1024;
// Pinned: a frame is a root, its body and, in a greeting, strings. Deeper or wider is not ours.
constexpr flatbuffers::uoffset_t kDepthMax = 4;
constexpr flatbuffers::uoffset_t kTablesMax = 4;

static_assert(sizeof(fb::EntryHead) == 16);

template <class Id>
fb::Id128 to_fb(const Id& id) {
  return fb::Id128(id.high, id.low);
}

template <class Id>
Id from_fb(const fb::Id128* id) {
  return id == nullptr ? Id{} : Id{id->high(), id->low()};
}

// Appends header, buffer and padding.
template <class Body>
void finish(flatbuffers::FlatBufferBuilder& builder, fb::Body type, flatbuffers::Offset<Body> body, std::string& out) {
  NARAD_CHECK(out.size() % kAlignment == 0, "frames begin at a multiple of 8");
  builder.Finish(fb::CreateFrame(builder, type, body.Union()));
  const std::size_t bytes = round_up(builder.GetSize(), kAlignment);
  NARAD_CHECK(bytes <= kFrameBytesMax, "a frame is within its bound");
  const std::uint32_t length = __builtin_bswap32(static_cast<std::uint32_t>(bytes));
  out.append(kMagic);
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  out.append(bytes - builder.GetSize(), '\0');
}

io::Error corrupt(const char* what) { return io::fail(io::ErrorKind::corrupt, std::string("raft frame: ") + what); }

bool is_id(const flatbuffers::String* text) {
  return text != nullptr && text->size() > 0 && text->size() <= kServerIdBytesMax;
}

io::Result<Frame> decode_hello(const fb::Hello& hello) {
  if (!is_id(hello.from()) || !is_id(hello.to())) return corrupt("a greeting without names");
  Hello out;
  out.version = hello.version();
  out.from = hello.from()->str();
  out.to = hello.to()->str();
  out.store = from_fb<StoreId>(hello.store());
  out.cluster = from_fb<ClusterId>(hello.cluster());
  out.session = hello.session();
  if (!out.store.is_known() || out.session == 0) return corrupt("a greeting without a store or session");
  if (hello.address() == nullptr || hello.address()->size() == 0 || hello.address()->size() > kAddressBytesMax) {
    return corrupt("a greeting without an address");
  }
  out.address = hello.address()->str();
  if (hello.purpose() > static_cast<std::uint8_t>(Purpose::snapshot)) return corrupt("a greeting of no known purpose");
  out.purpose = static_cast<Purpose>(hello.purpose());
  return Frame(std::move(out));
}

bool decode_entries(const fb::Message& in, Message& out) {
  const auto* heads = in.heads();
  const auto* payloads = in.payloads();
  if (heads == nullptr) return payloads == nullptr;
  if (out.type != MessageType::append_request) return false;
  std::size_t left = payloads == nullptr ? 0 : payloads->size();
  const char* at = left == 0 ? nullptr : reinterpret_cast<const char*>(payloads->data());
  out.entries.reserve(heads->size());
  for (std::size_t i = 0; i < heads->size(); ++i) {
    // Copied out: the verifier checks that the list lies within the frame, not that it is aligned.
    fb::EntryHead head;
    std::memcpy(&head, heads->Data() + i * sizeof head, sizeof head);
    if (head.bytes() > left || head.type() > static_cast<std::uint8_t>(EntryType::configuration)) return false;
    Entry entry;
    entry.term = head.term();
    entry.index = out.log_index + 1 + out.entries.size();
    entry.type = static_cast<EntryType>(head.type());
    if (head.bytes() > 0) entry.data = std::make_shared<const std::string>(at, head.bytes());
    at += head.bytes();
    left -= head.bytes();
    out.entries.push_back(std::move(entry));
  }
  return left == 0;
}

io::Result<Frame> decode_message(const fb::Message& in) {
  Message out;
  if (in.type() < static_cast<std::uint8_t>(MessageType::pre_vote_request) ||
      in.type() > static_cast<std::uint8_t>(MessageType::timeout_now)) {
    return corrupt("a message of no known type");
  }
  out.type = static_cast<MessageType>(in.type());
  out.term = in.term();
  out.cluster = from_fb<ClusterId>(in.cluster());
  out.sent_at_ns = in.sent_at_ns();
  out.echo_ns = in.echo_ns();
  out.echo_session = in.echo_session();
  out.campaign_term = in.campaign_term();
  out.granted = in.granted();
  out.is_transfer = in.is_transfer();
  out.log_index = in.log_index();
  out.log_term = in.log_term();
  out.commit = in.commit();
  out.round = in.round();
  out.rejected = in.rejected();
  out.match = in.match();
  out.hint_index = in.hint_index();
  out.hint_term = in.hint_term();
  if (std::max({out.term, out.campaign_term, out.log_index, out.log_term, out.commit, out.round, out.match, out.hint_index,
                out.hint_term}) > kNumberMax) {
    return corrupt("a number that cannot be");
  }
  if (!decode_entries(in, out)) return corrupt("entries that do not add up");
  return Frame(std::move(out));
}

std::string_view view_of(const flatbuffers::Vector<std::uint8_t>* bytes) {
  if (bytes == nullptr) return std::string_view();
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

io::Result<Frame> decode_snapshot_head(const fb::SnapshotHead& in) {
  SnapshotHead out;
  out.term = in.term();
  out.info.label.index = in.label_index();
  out.info.label.term = in.label_term();
  out.info.label.configuration_index = in.configuration_index();
  auto configuration = decode_configuration(view_of(in.configuration()));
  if (!configuration) return corrupt("a snapshot without a configuration");
  out.info.label.configuration = std::move(*configuration);
  out.info.bytes = in.bytes();
  out.info.digest = in.digest();
  out.info.chunk_bytes = in.chunk_bytes();
  const bool is_sound = out.info.label.index > 0 && std::max({out.term, out.info.label.index, out.info.label.term}) <= kNumberMax && out.info.label.configuration_index <= out.info.label.index &&
                        out.info.chunk_bytes >= snapshot_format::kChunkBytesMin &&
                        out.info.chunk_bytes <= snapshot_format::kChunkBytesMax;
  if (!is_sound) return corrupt("a snapshot that cannot be");
  return Frame(std::move(out));
}

io::Result<Frame> decode_snapshot_answer(const fb::SnapshotAnswer& in) {
  if (in.verdict() > static_cast<std::uint8_t>(OfferAnswer::Verdict::refused)) return corrupt("an answer of no known kind");
  if (in.term() > kNumberMax) return corrupt("a number that cannot be");
  return Frame(SnapshotAnswer{static_cast<OfferAnswer::Verdict>(in.verdict()), in.term(), in.next_offset()});
}

io::Result<Frame> decode_snapshot_piece(const fb::SnapshotPiece& in) {
  const std::string_view bytes = view_of(in.bytes());
  if (bytes.empty() || bytes.size() > snapshot_format::kChunkBytesMax) return corrupt("a piece of a size that is not allowed");
  return Frame(SnapshotPiece{SnapshotChunk{in.offset(), std::string(bytes), in.crc()}});
}

}  // namespace

void encode(const SnapshotHead& head, std::string& out) {
  const std::string configuration = raft::encode(head.info.label.configuration);
  flatbuffers::FlatBufferBuilder builder(256 + configuration.size());
  const auto bytes = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(configuration.data()), configuration.size());
  finish(builder, fb::Body::SnapshotHead,
         fb::CreateSnapshotHead(builder, head.term, head.info.label.index, head.info.label.term,
                                head.info.label.configuration_index, bytes, head.info.bytes, head.info.digest,
                                head.info.chunk_bytes),
         out);
}

void encode(const SnapshotAnswer& answer, std::string& out) {
  flatbuffers::FlatBufferBuilder builder(128);
  finish(builder, fb::Body::SnapshotAnswer,
         fb::CreateSnapshotAnswer(builder, static_cast<std::uint8_t>(answer.verdict), answer.term, answer.next_offset), out);
}

void encode(const SnapshotPiece& piece, std::string& out) {
  flatbuffers::FlatBufferBuilder builder(256 + piece.chunk.bytes.size());
  const auto bytes =
      builder.CreateVector(reinterpret_cast<const std::uint8_t*>(piece.chunk.bytes.data()), piece.chunk.bytes.size());
  finish(builder, fb::Body::SnapshotPiece, fb::CreateSnapshotPiece(builder, piece.chunk.offset, piece.chunk.crc, bytes), out);
}

void encode(const SnapshotState& state, std::string& out) {
  flatbuffers::FlatBufferBuilder builder(512);
  const auto reason = builder.CreateString(state.reason.substr(0, kReasonBytesMax));
  finish(builder, fb::Body::SnapshotState,
         fb::CreateSnapshotState(builder, state.next_offset, state.is_done, state.is_good, reason), out);
}

void encode(const Hello& hello, std::string& out) {
  flatbuffers::FlatBufferBuilder builder(512);
  const auto from = builder.CreateString(hello.from);
  const auto to = builder.CreateString(hello.to);
  const auto address = builder.CreateString(hello.address);
  const fb::Id128 store = to_fb(hello.store);
  const fb::Id128 cluster = to_fb(hello.cluster);
  finish(builder, fb::Body::Hello, fb::CreateHello(builder, hello.version, from, to, &store, &cluster, hello.session, address,
                                                      static_cast<std::uint8_t>(hello.purpose)),
         out);
}

void encode(const Welcome& welcome, std::string& out) {
  flatbuffers::FlatBufferBuilder builder(128);
  finish(builder, fb::Body::Welcome, fb::CreateWelcome(builder, welcome.version), out);
}

void encode(const Refusal& refusal, std::string& out) {
  flatbuffers::FlatBufferBuilder builder(512);
  const auto reason = builder.CreateString(refusal.reason.substr(0, kReasonBytesMax));
  finish(builder, fb::Body::Refusal, fb::CreateRefusal(builder, reason), out);
}

void encode(const Ack& ack, std::string& out) {
  flatbuffers::FlatBufferBuilder builder(128);
  finish(builder, fb::Body::Ack, fb::CreateAck(builder, ack.frames), out);
}

void encode(const Message& message, std::string& out) {
  std::size_t payload_bytes = 0;
  for (const Entry& entry : message.entries) payload_bytes += entry.bytes().size();
  flatbuffers::FlatBufferBuilder builder(256 + payload_bytes + message.entries.size() * sizeof(fb::EntryHead));
  flatbuffers::Offset<flatbuffers::Vector<const fb::EntryHead*>> heads;
  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> payloads;
  if (payload_bytes > 0) {
    std::uint8_t* at = nullptr;
    payloads = builder.CreateUninitializedVector(payload_bytes, &at);
    for (const Entry& entry : message.entries) {
      const std::string_view bytes = entry.bytes();
      if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
      at += bytes.size();
    }
  }
  if (!message.entries.empty()) {
    fb::EntryHead* at = nullptr;
    heads = builder.CreateUninitializedVectorOfStructs<fb::EntryHead>(message.entries.size(), &at);
    for (std::size_t i = 0; i < message.entries.size(); ++i) {
      const Entry& entry = message.entries[i];
      NARAD_CHECK(entry.index == message.log_index + 1 + i, "a message's entries follow its log_index");
      at[i] = fb::EntryHead(entry.term, static_cast<std::uint32_t>(entry.bytes().size()),
                            static_cast<std::uint8_t>(entry.type));
    }
  }
  const fb::Id128 cluster = to_fb(message.cluster);
  fb::MessageBuilder body(builder);
  body.add_term(message.term);
  body.add_sent_at_ns(message.sent_at_ns);
  body.add_echo_ns(message.echo_ns);
  body.add_echo_session(message.echo_session);
  body.add_campaign_term(message.campaign_term);
  body.add_log_index(message.log_index);
  body.add_log_term(message.log_term);
  body.add_commit(message.commit);
  body.add_round(message.round);
  body.add_match(message.match);
  body.add_hint_index(message.hint_index);
  body.add_hint_term(message.hint_term);
  if (message.cluster.is_known()) body.add_cluster(&cluster);
  if (!heads.IsNull()) body.add_heads(heads);
  if (!payloads.IsNull()) body.add_payloads(payloads);
  body.add_type(static_cast<std::uint8_t>(message.type));
  body.add_granted(message.granted);
  body.add_is_transfer(message.is_transfer);
  body.add_rejected(message.rejected);
  finish(builder, fb::Body::Message, body.Finish(), out);
}

io::Result<std::optional<std::size_t>> frame_length(std::string_view bytes, std::size_t limit) {
  if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, bytes.size())) return corrupt("wrong magic");
  if (bytes.size() < kHeaderBytes) return std::optional<std::size_t>();
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 4, sizeof length);
  length = __builtin_bswap32(length);
  if (length == 0 || length % kAlignment != 0 || length > limit) return corrupt("a length that is not allowed");
  return std::optional<std::size_t>(kHeaderBytes + length);
}

io::Result<Frame> decode(std::string_view frame) {
  NARAD_CHECK(reinterpret_cast<std::uintptr_t>(frame.data()) % kAlignment == 0, "a frame stands at a multiple of 8");
  auto length = frame_length(frame, kFrameBytesMax);
  if (!length.ok()) return length.error();
  if (*length != frame.size()) return corrupt("not one whole frame");
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(frame.data() + kHeaderBytes);
  flatbuffers::Verifier verifier(bytes, frame.size() - kHeaderBytes, kDepthMax, kTablesMax);
  if (!fb::VerifyFrameBuffer(verifier)) return corrupt("does not decode");
  const fb::Frame& root = *fb::GetFrame(bytes);
  if (root.body() == nullptr) return corrupt("empty");
  switch (root.body_type()) {
    case fb::Body::Hello:
      return decode_hello(*root.body_as_Hello());
    case fb::Body::Welcome:
      return Frame(Welcome{root.body_as_Welcome()->version()});
    case fb::Body::Refusal: {
      const auto* reason = root.body_as_Refusal()->reason();
      return Frame(Refusal{reason == nullptr ? std::string() : reason->str().substr(0, kReasonBytesMax)});
    }
    case fb::Body::Ack:
      return Frame(Ack{root.body_as_Ack()->frames()});
    case fb::Body::Message:
      return decode_message(*root.body_as_Message());
    case fb::Body::SnapshotHead:
      return decode_snapshot_head(*root.body_as_SnapshotHead());
    case fb::Body::SnapshotAnswer:
      return decode_snapshot_answer(*root.body_as_SnapshotAnswer());
    case fb::Body::SnapshotPiece:
      return decode_snapshot_piece(*root.body_as_SnapshotPiece());
    case fb::Body::SnapshotState: {
      const fb::SnapshotState& state = *root.body_as_SnapshotState();
      return Frame(SnapshotState{state.next_offset(), state.is_done(), state.is_good(),
                                 state.reason() == nullptr ? std::string() : state.reason()->str().substr(0, kReasonBytesMax)});
    }
    case fb::Body::NONE:
      break;
  }
  return corrupt("of no known kind");
}

void FrameReader::add(std::string&& bytes) {
  if (taken_ == buffer_.size()) {
    buffer_ = std::move(bytes);
    taken_ = 0;
    return;
  }
  // Whole frames are multiples of 8, so what stays keeps its alignment when it moves to the front.
  buffer_.erase(0, taken_);
  taken_ = 0;
  buffer_ += bytes;
}

io::Result<std::optional<std::string_view>> FrameReader::next(std::size_t limit) {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  if (rest.empty()) return std::optional<std::string_view>();
  auto length = frame_length(rest, limit);
  if (!length.ok()) return length.error();
  if (!*length || **length > rest.size()) return std::optional<std::string_view>();
  taken_ += **length;
  return std::optional(rest.substr(0, **length));
}

}  // namespace raft::wire

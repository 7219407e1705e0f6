// Raft frames: decode() takes bytes from anybody who reaches the cluster port.
//
// Input: one byte of mode, then a frame's FlatBuffer (mode even: a fitting header is put in front) or a byte stream as it comes
// (mode odd, which goes through FrameReader in pieces of that size).

#include <algorithm>

#include "io/check.h"
#include "io/crc32c.h"
#include "raft/bytes.h"
#include "raft/wire.h"
#include "tests/fuzz/support/fuzz.h"

namespace fuzz {

namespace {

namespace wire = raft::wire;
using raft::Message;

bool same(const wire::Hello& a, const wire::Hello& b) {
  return a.version == b.version && a.from == b.from && a.to == b.to && a.store == b.store && a.cluster == b.cluster &&
         a.session == b.session && a.address == b.address && a.purpose == b.purpose;
}
bool same(const wire::Welcome& a, const wire::Welcome& b) { return a.version == b.version; }
bool same(const wire::Refusal& a, const wire::Refusal& b) { return a.reason == b.reason; }
bool same(const wire::Ack& a, const wire::Ack& b) { return a.frames == b.frames; }

bool same(const wire::SnapshotHead& a, const wire::SnapshotHead& b) { return a.term == b.term && a.info == b.info; }
bool same(const wire::SnapshotAnswer& a, const wire::SnapshotAnswer& b) {
  return a.verdict == b.verdict && a.term == b.term && a.next_offset == b.next_offset;
}
bool same(const wire::SnapshotPiece& a, const wire::SnapshotPiece& b) {
  return a.chunk.offset == b.chunk.offset && a.chunk.bytes == b.chunk.bytes && a.chunk.crc == b.chunk.crc;
}
bool same(const wire::SnapshotState& a, const wire::SnapshotState& b) {
  return a.next_offset == b.next_offset && a.is_done == b.is_done && a.is_good == b.is_good && a.reason == b.reason;
}

bool same(const Message& a, const Message& b) {
  bool equal = a.type == b.type && a.term == b.term && a.cluster == b.cluster && a.sent_at_ns == b.sent_at_ns &&
               a.echo_ns == b.echo_ns && a.echo_session == b.echo_session && a.campaign_term == b.campaign_term &&
               a.granted == b.granted && a.is_transfer == b.is_transfer && a.log_index == b.log_index &&
               a.log_term == b.log_term && a.commit == b.commit && a.round == b.round && a.rejected == b.rejected &&
               a.match == b.match && a.hint_index == b.hint_index && a.hint_term == b.hint_term &&
               a.entries.size() == b.entries.size();
  for (std::size_t i = 0; equal && i < a.entries.size(); ++i) equal = raft::same_entry(a.entries[i], b.entries[i]);
  return equal;
}

std::string encoded(const wire::Frame& frame) {
  std::string bytes;
  std::visit([&](const auto& body) { wire::encode(body, bytes); }, frame);
  return bytes;
}

void decode_one(std::string_view bytes) {
  const Aligned frame(bytes);
  io::Result<wire::Frame> decoded = [&] {
    const AllocationBound bound(16 * bytes.size() + 4096);
    return wire::decode(frame.view());
  }();
  if (!decoded.ok()) {
    NARAD_CHECK(decoded.is(io::ErrorKind::corrupt) && decoded.error().message.starts_with("raft frame: "),
                "what is no frame is said to be none");
    return;
  }
  const std::string first = encoded(*decoded);
  const Aligned again(first);
  io::Result<wire::Frame> repeated = wire::decode(again.view());
  NARAD_CHECK(repeated.ok() && repeated->index() == decoded->index(), "what was decoded can be encoded and decoded");
  std::visit([&](const auto& body) {
    NARAD_CHECK(same(body, std::get<std::decay_t<decltype(body)>>(*repeated)), "decode(encode(x)) is x");
  }, *decoded);
  NARAD_CHECK(encoded(*repeated) == first, "equal frames have equal bytes");
}

std::string with_header(std::string_view body) {
  std::string frame(wire::kMagic);
  const auto bytes = static_cast<std::uint32_t>(raft::round_up(body.size(), 8));
  for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<char>(bytes >> shift));
  frame.append(body);
  frame.append(bytes - body.size(), '\0');
  return frame;
}

void read_stream(std::string_view bytes, std::size_t piece) {
  wire::FrameReader reader;
  while (!bytes.empty()) {
    reader.add(std::string(bytes.substr(0, piece)));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      auto frame = reader.next(64 << 10);
      if (!frame.ok()) return;  // the connection would be closed here
      if (!*frame) break;
      decode_one(**frame);
    }
    NARAD_CHECK(reader.buffered() <= (64 << 10) + wire::kHeaderBytes + piece, "a reader holds one frame and one read at most");
  }
}

std::string seed_of(const wire::Frame& frame, char mode) {
  const std::string bytes = encoded(frame);
  return std::string(1, mode) + (mode % 2 == 0 ? bytes.substr(wire::kHeaderBytes) : bytes + bytes);
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<wire::Frame> frames;
  wire::Hello hello;
  hello.from = "n1";
  hello.to = "n2";
  hello.store = {1, 2};
  hello.cluster = {3, 4};
  hello.session = 5;
  hello.address = "n1:7943";
  frames.push_back(hello);
  frames.push_back(wire::Welcome{});
  frames.push_back(wire::Refusal{"another cluster"});
  frames.push_back(wire::Ack{17});
  raft::SnapshotInfo info{{800, 3, 400, raft::bootstrap_configuration({{"n1", "n1:1"}, {"n2", "n2:1"}})}, 3000, 7, 512};
  info.label.configuration.cluster = {3, 4};
  frames.push_back(wire::SnapshotHead{9, info});
  frames.push_back(wire::SnapshotAnswer{raft::OfferAnswer::Verdict::wanted, 9, 512});
  frames.push_back(wire::SnapshotPiece{{512, std::string(512, 'x'), io::crc32c(std::string(512, 'x'))}});
  frames.push_back(wire::SnapshotState{3000, true, false, "no room"});
  for (int type = 1; type <= 7; ++type) {
    Message message;
    message.type = static_cast<raft::MessageType>(type);
    message.term = 9;
    message.cluster = {1, 2};
    message.sent_at_ns = 123456789;
    message.echo_ns = 5;
    message.echo_session = 6;
    message.campaign_term = 10;
    message.granted = type == 2;
    message.is_transfer = type == 3;
    message.log_index = 40;
    message.log_term = 8;
    message.commit = 39;
    message.round = 6;
    message.rejected = type == 6;
    message.match = 38;
    message.hint_index = 37;
    message.hint_term = 7;
    if (message.type == raft::MessageType::append_request) {
      for (raft::Index i = 41; i <= 44; ++i) {
        raft::Entry entry{9, i, i == 42 ? raft::EntryType::noop : raft::EntryType::command, nullptr};
        if (i != 42) entry.data = std::make_shared<const std::string>(std::string(i, 'x'));
        message.entries.push_back(entry);
      }
    }
    frames.push_back(message);
  }
  std::vector<std::string> all;
  for (const wire::Frame& frame : frames) {
    all.push_back(seed_of(frame, 0));
    all.push_back(seed_of(frame, 7));
  }
  return all;
}

void run_one(std::string_view bytes) {
  Input input(bytes);
  const std::uint8_t mode = input.byte();
  if (mode % 2 == 0) {
    decode_one(with_header(input.rest()));
  } else {
    read_stream(input.rest(), mode);
  }
}

}  // namespace fuzz

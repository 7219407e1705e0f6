// Raft frames on the wire: an 8-byte header, then a FlatBuffer of raft/wire/frames.fbs.
//
// Header: magic "NRF1", then the length of what follows as 4 bytes big endian, a multiple of 8 and at most 16 MiB. (Node-protocol
// frames begin with "NRS1", so the first four bytes of a connection tell the two apart.)
//
// A connection begins with Hello from the dialler; the other side answers Welcome, or Refusal and closes. Hello names the purpose.
// Messages: Message frames flow from the dialler and Ack frames back. A snapshot: the dialler says SnapshotHead, the other side
// SnapshotAnswer; if the snapshot is wanted, SnapshotPiece frames follow from the offset that the answer names, each answered by a
// SnapshotState, and after the last one SnapshotState frames come as signs of life until one is_done. Who sent a message, from which store and in which life, the greeting has
// said once for all; messages do not repeat it.
//
// decode() takes hostile bytes: the length is checked before anything is read or allocated, the FlatBuffers verifier runs with
// pinned limits, and every list is checked against what it describes. It allocates no more than a small multiple of the
// frame. An error means that the connection must be closed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "io/result.h"
#include "raft/core.h"
#include "raft/snapshot_format.h"
#include "raft/types.h"

namespace raft::wire {

inline constexpr std::string_view kMagic = "NRF1";
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kFrameBytesMax = 16u << 20;     // without the header
inline constexpr std::size_t kGreetingBytesMax = 4096;       // Hello, Welcome, Refusal, Ack
inline constexpr std::size_t kSnapshotFrameBytesMax = 6u << 20;  // the head (a configuration) and pieces (a chunk of 1 MiB)
inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kServerIdBytesMax = 255;
inline constexpr std::size_t kAddressBytesMax = 512;

enum class Purpose : std::uint8_t { messages = 0, snapshot = 1 };

struct Hello {
  std::uint32_t version = kProtocolVersion;
  ServerId from;
  ServerId to;             // whom the dialler believes to reach
  StoreId store;
  ClusterId cluster;       // zero: not known yet
  std::uint64_t session = 0;
  std::string address;     // host:port where the dialler listens, for answers; at most kAddressBytesMax
  Purpose purpose = Purpose::messages;
};

struct Welcome {
  std::uint32_t version = kProtocolVersion;
};

struct Refusal {
  std::string reason;  // one line for people
};

// How many frames after the greeting have arrived.
struct Ack {
  std::uint64_t frames = 0;
};

// The leader's term, and what it would send.
struct SnapshotHead {
  Term term = 0;
  SnapshotInfo info;
};

struct SnapshotAnswer {
  OfferAnswer::Verdict verdict = OfferAnswer::Verdict::refused;
  Term term = 0;                  // of the server that answers
  std::uint64_t next_offset = 0;  // wanted: where the first piece begins
};

struct SnapshotPiece {
  SnapshotChunk chunk;
};

struct SnapshotState {
  std::uint64_t next_offset = 0;  // everything before it is there
  bool is_done = false;           // the last word: the snapshot is in place (is_good), or the transfer has failed
  bool is_good = false;
  std::string reason;             // of a failure, one line for people
};

using Frame = std::variant<Hello, Welcome, Refusal, Ack, Message, SnapshotHead, SnapshotAnswer, SnapshotPiece, SnapshotState>;

// Append one frame to `out`, which must be empty or end at a frame's end.
void encode(const Hello& hello, std::string& out);
void encode(const Welcome& welcome, std::string& out);
void encode(const Refusal& refusal, std::string& out);
void encode(const Ack& ack, std::string& out);
// from, to, from_store and session are left out: the greeting carries them.
void encode(const Message& message, std::string& out);

void encode(const SnapshotHead& head, std::string& out);
void encode(const SnapshotAnswer& answer, std::string& out);
void encode(const SnapshotPiece& piece, std::string& out);
void encode(const SnapshotState& state, std::string& out);

// The length of the frame at the front of `bytes`, header included; nothing while fewer than 8 bytes are there. `corrupt` when
// the header is none or the length is not allowed (more than `limit` bytes after the header).
io::Result<std::optional<std::size_t>> frame_length(std::string_view bytes, std::size_t limit);

// One whole frame, header included, at an address that is a multiple of 8. `corrupt` when it is not exactly what encode() makes
// possible.
io::Result<Frame> decode(std::string_view frame);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  // Appends what was read from the stream.
  void add(std::string&& bytes);
  // The next whole frame, valid until the next call of either function; nothing when more bytes are needed.
  io::Result<std::optional<std::string_view>> next(std::size_t limit = kFrameBytesMax);
  std::size_t buffered() const { return buffer_.size() - taken_; }

 private:
  std::string buffer_;
  std::size_t taken_ = 0;
};

}  // namespace raft::wire

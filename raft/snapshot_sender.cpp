#include "raft/snapshot_sender.h"

#include <utility>
#include <variant>

#include "io/probe.h"
#include "raft/greeting.h"
#include "raft/pace.h"

namespace raft {

namespace {

// The receiver writes a chunk, now and then with a sync, before it answers; while it checks the whole it shows that it lives.
constexpr io::Duration kStateTimeout = std::chrono::seconds(20);
// A piece is refused when its bytes do not have their checksum: once is an accident of the way.
constexpr int kPieceTries = 3;

io::Status verdict(const wire::SnapshotState& state) {
  return state.is_good ? io::Status() : io::Status(io::fail(io::ErrorKind::io, "the other server: " + state.reason));
}

}  // namespace

io::Status SnapshotSender::send(const std::string& address, const wire::Hello& hello, const SnapshotOffer& offer,
                                const std::function<bool()>& is_wanted) {
  if (address.empty()) return io::fail(io::ErrorKind::io, "no address is known");
  auto image = snapshots_.read(offer.label);
  if (!image.ok()) return image.error();
  auto greeted = dial(env_, address, hello, env_.after(settings_.dial_timeout));
  if (!greeted.ok()) return greeted.error();
  io::Stream& stream = *greeted->stream;
  std::string bytes;
  wire::encode(wire::SnapshotHead{offer.term, (*image)->info()}, bytes);
  if (io::Status written = stream.write(std::move(bytes), env_.after(settings_.write_timeout)); !written.ok()) return written;
  auto frame = next_frame(stream, greeted->frames, wire::kGreetingBytesMax, env_.after(kStateTimeout));
  if (!frame.ok()) return frame.error();
  const auto* answer = std::get_if<wire::SnapshotAnswer>(&*frame);
  if (answer == nullptr) return io::fail(io::ErrorKind::corrupt, "an offer was answered by something else");
  if (answer->verdict == OfferAnswer::Verdict::outdated) {
    SOMETIMES("raft: an image is not needed any more when it is offered");
    return io::fail(io::ErrorKind::exists, "the other server's log leads there by itself");
  }
  if (answer->verdict == OfferAnswer::Verdict::refused) {
    return io::fail(io::ErrorKind::denied, "the image was refused in term " + std::to_string(answer->term));
  }
  if (answer->next_offset > 0) SOMETIMES("raft: a transfer of an image is resumed");
  return send_pieces(stream, greeted->frames, **image, answer->next_offset, is_wanted);
}

io::Status SnapshotSender::send_pieces(io::Stream& stream, wire::FrameReader& frames, SnapshotReader& image,
                                       std::uint64_t offset, const std::function<bool()>& is_wanted) {
  const SnapshotInfo& info = image.info();
  Pace pace(env_.clock, bytes_per_second_);
  int tries = 0;
  while (offset < info.bytes) {
    if (!is_wanted()) return io::fail(io::ErrorKind::cancelled, "it is not wanted any more");
    if (offset % info.chunk_bytes != 0) return io::fail(io::ErrorKind::corrupt, "asked for a piece that does not begin a chunk");
    auto chunk = image.read_chunk(offset);
    if (!chunk.ok()) return chunk.error();
    pace.pass(chunk->bytes.size());
    std::string bytes;
    wire::encode(wire::SnapshotPiece{std::move(*chunk)}, bytes);
    if (io::Status written = stream.write(std::move(bytes), env_.after(settings_.write_timeout)); !written.ok()) return written;
    auto state = next_state(stream, frames);
    if (!state.ok()) return state.error();
    if (state->is_done) return verdict(*state);
    tries = state->next_offset > offset ? 0 : tries + 1;
    if (tries >= kPieceTries) return io::fail(io::ErrorKind::io, "the same piece was refused again and again");
    offset = state->next_offset;
  }
  for (;;) {
    if (!is_wanted()) return io::fail(io::ErrorKind::cancelled, "it is not wanted any more");
    auto state = next_state(stream, frames);
    if (!state.ok()) return state.error();
    if (state->is_done) return verdict(*state);
  }
}

io::Result<wire::SnapshotState> SnapshotSender::next_state(io::Stream& stream, wire::FrameReader& frames) {
  auto frame = next_frame(stream, frames, wire::kGreetingBytesMax, env_.after(kStateTimeout));
  if (!frame.ok()) return frame.error();
  auto* state = std::get_if<wire::SnapshotState>(&*frame);
  if (state == nullptr) return io::fail(io::ErrorKind::corrupt, "a piece was answered by something else");
  return std::move(*state);
}

}  // namespace raft

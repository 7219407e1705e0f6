// Images from a leader: judged by the core, received chunk by chunk, checked as a whole, put in place, and told to the core.
#include <utility>
#include <variant>

#include "io/check.h"
#include "io/probe.h"
#include "raft/greeting.h"
#include "raft/server.h"

namespace raft {

namespace {
// Between two pieces; the sender waits for its rate and its disk.
constexpr io::Duration kPieceTimeout = std::chrono::seconds(60);
constexpr io::Duration kSignOfLife = std::chrono::seconds(1);
}  // namespace

void RaftServer::receive_snapshot(io::Stream& stream, wire::FrameReader& frames, const wire::Hello& hello) {
  auto frame = next_frame(stream, frames, wire::kSnapshotFrameBytesMax, env_.after(options_.link.dial_timeout));
  if (!frame.ok() || is_stopping_) return;
  const auto* head = std::get_if<wire::SnapshotHead>(&*frame);
  if (head == nullptr) return log_refused_connection(hello.from, stream.peer_address(), "server " + hello.from + ": no head of a snapshot");
  if (offer(stream, hello, *head) != OfferAnswer::Verdict::wanted) return;
  // The newest stream is the one to listen to. The one before ends at its next wait, and leaves what it has received.
  if (snapshot_stream_ != nullptr) {
    SOMETIMES("raft: a second stream of an image takes the first one's place");
    snapshot_stream_->close();
  }
  snapshot_stream_ = &stream;
  struct Forget {
    io::Stream*& slot;
    io::Stream* stream;
    ~Forget() {
      if (slot == stream) slot = nullptr;
    }
  } forget{snapshot_stream_, &stream};
  io::MutexLock lock(receiving_);
  if (is_stopping_ || snapshot_stream_ != &stream) return;
  const wire::SnapshotState end = receive_image(stream, frames, hello, *head);
  if (is_stopping_) return;
  std::string bytes;
  wire::encode(end, bytes);
  (void)stream.write(std::move(bytes), env_.after(options_.link.write_timeout));
}

// Asks the core, and answers for it unless the image is wanted.
OfferAnswer::Verdict RaftServer::offer(io::Stream& stream, const wire::Hello& hello, const wire::SnapshotHead& head) {
  SnapshotOffer offer{hello.from, options_.id, head.term, hello.store, hello.cluster, hello.session, head.info.label};
  const OfferAnswer answer = core_->offer_snapshot(offer, env_.now());
  if (observer_ != nullptr) observer_->offer_taken(*core_, offer, answer);
  wake();
  if (answer.verdict == OfferAnswer::Verdict::refused) note_refused_image(hello, head, answer.reason);
  if (answer.verdict != OfferAnswer::Verdict::wanted) {
    std::string bytes;
    wire::encode(wire::SnapshotAnswer{answer.verdict, answer.term, 0}, bytes);
    (void)stream.write(std::move(bytes), env_.after(options_.link.write_timeout));
  }
  return answer.verdict;
}

void RaftServer::note_refused_image(const wire::Hello& hello, const wire::SnapshotHead& head, const char* reason) {
  ++counters_.images_refused;
  const auto left_out = image_lines_.admit(hello.from + '\n' + reason, env_.now());
  if (!left_out) return;
  env_.log.info("raft: image refused", {{"server", hello.from},
                                        {"its_term", head.term},
                                        {"term", core_->term()},
                                        {"index", head.info.label.index},
                                        {"reason", reason},
                                        {"refused_since_last_line", *left_out}});
}

// Returns the last word to the sender.
wire::SnapshotState RaftServer::receive_image(io::Stream& stream, wire::FrameReader& frames, const wire::Hello& hello,
                                              const wire::SnapshotHead& head) {
  wire::SnapshotState end;
  end.is_done = true;
  const auto failed = [&end](std::string reason) {
    end.reason = std::move(reason);
    return end;
  };
  // What happened while another stream was listened to may have made it superfluous.
  const SnapshotInfo& info = head.info;
  if (offer(stream, hello, head) != OfferAnswer::Verdict::wanted) return failed("not wanted any more");
  bool is_in_place = false;
  if (io::Status ready = begin_receiving(info, is_in_place); !ready.ok()) return failed(ready.error().to_text());
  std::string bytes;
  wire::encode(wire::SnapshotAnswer{OfferAnswer::Verdict::wanted, core_->term(), is_in_place ? info.bytes : receiver_->next_offset()},
               bytes);
  if (!stream.write(std::move(bytes), env_.after(options_.link.write_timeout)).ok() || is_stopping_) return failed("broken off");
  while (!is_in_place && !receiver_->is_complete()) {
    auto frame = next_frame(stream, frames, wire::kSnapshotFrameBytesMax, env_.after(kPieceTimeout));
    if (is_stopping_ || !frame.ok()) return failed("broken off");
    const auto* piece = std::get_if<wire::SnapshotPiece>(&*frame);
    if (piece == nullptr) return failed("no piece of a snapshot");
    io::Status taken = receiver_->append(piece->chunk);
    if (is_stopping_) return failed("stopping");
    if (!taken.ok() && !taken.is(io::ErrorKind::invalid) && !taken.is(io::ErrorKind::corrupt)) {
      SOMETIMES("raft: an image cannot be kept");
      receiver_.reset();
      return failed(taken.error().to_text());
    }
    wire::SnapshotState state;
    state.next_offset = receiver_->next_offset();
    bytes.clear();
    wire::encode(state, bytes);
    if (!stream.write(std::move(bytes), env_.after(options_.link.write_timeout)).ok() || is_stopping_) return failed("broken off");
  }
  io::Status finished = is_in_place ? io::Status() : finish_while_alive(stream);
  if (is_stopping_) return failed("stopping");
  if (!finished.ok()) {
    SOMETIMES("raft: a received image is refused");
    env_.log.warn("raft: a received image is of no use",
                  {{"server", hello.from}, {"index", info.label.index}, {"reason", finished.error().to_text()}});
    return failed(finished.error().to_text());
  }
  SOMETIMES("raft: image received");
  ++counters_.snapshots_received;
  env_.log.info("raft: image received",
                {{"server", hello.from}, {"index", info.label.index}, {"term", info.label.term}, {"bytes", info.bytes}});
  core_->snapshot_received(info.label);
  wake();
  end.next_offset = info.bytes;
  end.is_good = true;
  return end;
}

// Goes on with what is there of the same image, or begins. `is_in_place`: this very snapshot is kept already.
io::Status RaftServer::begin_receiving(const SnapshotInfo& info, bool& is_in_place) {
  if (receiver_ && receiver_->info() == info) return {};
  receiver_.reset();
  auto receiver = snapshots_->receive(info);
  if (receiver.ok()) {
    receiver_ = std::move(*receiver);
    return {};
  }
  is_in_place = receiver.is(io::ErrorKind::exists) && !snapshots_->kept().empty() && snapshots_->kept().front().label == info.label;
  return is_in_place ? io::Status() : io::Status(receiver.error());
}

// Checks the whole image and puts it in place, and meanwhile tells the sender that this server lives.
io::Status RaftServer::finish_while_alive(io::Stream& stream) {
  io::Status finished;
  io::with_scope([&](io::Scope& scope) {
    io::Task work = scope.spawn("raft/snapshot/check", [&] { finished = finish_receiving(); });
    while (!work.join(env_.after(kSignOfLife))) {
      std::string bytes;
      wire::SnapshotState state;
      state.next_offset = receiver_ ? receiver_->next_offset() : 0;
      wire::encode(state, bytes);
      (void)stream.write(std::move(bytes), env_.after(kSignOfLife));
    }
  });
  return finished;
}

io::Status RaftServer::finish_receiving() {
  const SnapshotLabel& whole = receiver_->info().label;
  const Index label = whole.index;
  io::Status status = receiver_->seal(options_.snapshots.write_bytes_per_second);
  if (status.ok()) {
    auto image = receiver_->image();
    status = image.ok() ? state_machine_->check_image(**image, label) : io::Status(image.error());
    if (!status.ok()) receiver_->abandon();
    if (!status.ok() && state_machine_->is_stopped()) {
      SOMETIMES("raft: an image stops the state machine");
      fail(status.error());
      return status;
    }
  }
  // An image beside no record of a term would look like a server that has lost its vote.
  while (status.ok() && !is_stopping_ && core_->durable_hard_state().term < whole.term) {
    SOMETIMES("raft: an image waits until its term is durable");
    hard_state_saved_.wait();
  }
  if (is_stopping_) return io::fail(io::ErrorKind::cancelled, "this server stops");
  if (status.ok()) status = receiver_->publish();
  receiver_.reset();
  return status;
}

}  // namespace raft

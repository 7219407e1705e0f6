// Writing, reading and receiving one image.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/crc32c.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/snapshot_files.h"
#include "raft/snapshot_store.h"

namespace raft {

using namespace snapshot_format;

namespace {

io::Error over() { return io::fail(io::ErrorKind::invalid, "raft/snapshots: this snapshot is finished or was given up"); }

// The sync that stands before a snapshot is put in place.
io::Status sync_before_publishing(io::File& file) {
  return io::defence(io::Defence::snapshot_published_unsynced) ? file.sync() : io::Status();
}

}  // namespace

// ---- SnapshotWriter --------------------------------------------------------------------------------------------------------------

SnapshotWriter::SnapshotWriter(SnapshotStore& store, std::string path, std::uint64_t bytes_per_second)
    : store_(store), path_(std::move(path)), pace_(store.clock_, bytes_per_second) {
  info_.chunk_bytes = store.settings_.chunk_bytes;
  store_.is_writing_ = true;
}

SnapshotWriter::~SnapshotWriter() {
  store_.is_writing_ = false;
  if (!is_over_) store_.left_over_.push_back(path_);
}

// The file goes and gives its room back; what was kept before stays.
io::Status SnapshotWriter::fail(io::Error error) {
  SOMETIMES("raft snapshot: writing failed, its file removed");
  failure_ = std::move(error);
  abandon();
  return *failure_;
}

void SnapshotWriter::abandon() {
  if (is_over_) return;
  file_.reset();
  store_.discard(path_);
  is_over_ = true;
}

io::Status SnapshotWriter::write_at(std::uint64_t offset, std::string bytes) {
  unsynced_ += bytes.size();
  if (io::Status written = file_->write(offset, std::move(bytes)); !written.ok()) return written;
  if (unsynced_ < store_.settings_.sync_step_bytes) return {};
  unsynced_ = 0;
  return sync_before_publishing(*file_);
}

io::Status SnapshotWriter::write_chunk(std::string_view payload) {
  pace_.pass(payload.size());
  digest_.add(payload);
  const std::uint64_t number = chunks_++;
  info_.bytes += payload.size();
  return write_at(chunk_at(info_, number), encode_chunk(number, payload));
}

io::Status SnapshotWriter::write(std::string bytes) {
  if (failure_) return *failure_;
  if (is_over_) return over();
  std::string_view rest = bytes;
  while (buffer_.size() + rest.size() >= info_.chunk_bytes) {
    const std::size_t taken = info_.chunk_bytes - buffer_.size();
    buffer_.append(rest.substr(0, taken));
    rest.remove_prefix(taken);
    if (io::Status written = write_chunk(buffer_); !written.ok()) return fail(written.error());
    buffer_.clear();
  }
  buffer_.append(rest);
  return {};
}

io::Result<SnapshotInfo> SnapshotWriter::publish(const SnapshotLabel& label) {
  if (failure_) return *failure_;
  if (is_over_) return over();
  NARAD_CHECK(label.index > 0 && label.configuration_index <= label.index, "a snapshot says what it contains");
  if (!buffer_.empty()) {
    if (io::Status written = write_chunk(buffer_); !written.ok()) return fail(written.error()).error();
    buffer_.clear();
  }
  info_.label = label;
  info_.digest = digest_.value();
  NARAD_CHECK(chunk_count(info_) == chunks_, "every chunk but the last is full");
  io::Status status = write_at(trailer_at(info_), encode_trailer(info_, store_.store_));
  if (status.ok()) status = write_at(0, encode_header(info_, store_.store_));
  if (status.ok()) status = sync_before_publishing(*file_);
  if (!status.ok()) return fail(status.error()).error();
  file_.reset();
  status = store_.publish(path_, info_);
  is_over_ = true;
  if (status.ok()) return info_;
  failure_ = status.error();
  return *failure_;
}

// ---- SnapshotReader --------------------------------------------------------------------------------------------------------------

io::Result<SnapshotChunk> SnapshotReader::read_number(std::uint64_t number) {
  pace_.pass(chunk_payload_bytes(info_, number));
  return snapshot_format::read_chunk(*file_, info_, number);
}

io::Result<SnapshotChunk> SnapshotReader::read_chunk(std::uint64_t offset) {
  NARAD_CHECK(offset < info_.bytes && offset % info_.chunk_bytes == 0, "a chunk begins here");
  return read_number(offset / info_.chunk_bytes);
}

io::Result<std::string> SnapshotReader::read(std::size_t bytes_max) {
  NARAD_CHECK(bytes_max > 0, "something is asked for");
  if (taken_ == chunk_.size()) {
    if (next_chunk_ == chunk_count(info_)) {
      if (digest_.value() == info_.digest) return std::string();
      return io::fail(io::ErrorKind::corrupt, file_->path() + ": the digest of the image differs");
    }
    auto chunk = read_number(next_chunk_);
    if (!chunk.ok()) return chunk.error();
    ++next_chunk_;
    digest_.add(chunk->bytes);
    chunk_ = std::move(chunk->bytes);
    taken_ = 0;
  }
  std::string piece = chunk_.substr(taken_, bytes_max);
  taken_ += piece.size();
  return piece;
}

// ---- SnapshotReceiver ------------------------------------------------------------------------------------------------------------

SnapshotReceiver::SnapshotReceiver(SnapshotStore& store, SnapshotInfo info) : store_(store), info_(std::move(info)) {
  store_.is_receiving_ = true;
}

SnapshotReceiver::~SnapshotReceiver() { store_.is_receiving_ = false; }

io::Status SnapshotReceiver::fail(io::Error error) {
  SOMETIMES("raft snapshot: receiving failed, its file removed");
  failure_ = std::move(error);
  abandon();
  return *failure_;
}

void SnapshotReceiver::abandon() {
  if (is_over_) return;
  file_.reset();
  store_.discard(std::string(snapshot_files::kReceivingPath));
  is_over_ = true;
}

io::Status SnapshotReceiver::begin(std::uint64_t bytes_per_second) {
  std::erase(store_.left_over_, snapshot_files::kReceivingPath);  // from now on the file is wanted
  Pace pace(store_.clock_, bytes_per_second);
  auto resumed = resume(pace);
  if (!resumed.ok()) return fail(resumed.error());
  if (*resumed) return {};
  next_ = unsynced_ = 0;
  digest_ = Digest();
  file_.reset();
  if (io::Status removed = store_.disk_.remove(snapshot_files::kReceivingPath);
      !removed.ok() && !removed.is(io::ErrorKind::not_found)) {
    return fail(removed.error());
  }
  auto file = store_.disk_.open(snapshot_files::kReceivingPath, io::OpenMode::create_new);
  if (!file.ok()) return fail(file.error());
  file_ = std::move(*file);
  io::Status written = write_at(0, encode_header(info_, store_.store_));
  return written.ok() ? written : fail(written.error());
}

io::Result<bool> SnapshotReceiver::resume(Pace& pace) {
  auto file = store_.disk_.open(snapshot_files::kReceivingPath, io::OpenMode::read_write);
  if (file.is(io::ErrorKind::not_found)) return false;
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  const std::string head = encode_header(info_, store_.store_);
  auto found = file_->read(0, kHeaderBytes);
  if (!found.ok()) return found.error();
  if (*found != head) {
    SOMETIMES("raft snapshot: another transfer's leftover dropped");
    return false;
  }
  if (io::Status written = write_at(0, head); !written.ok()) return written.error();
  for (std::uint64_t number = 0; number < chunk_count(info_); ++number) {
    auto chunk = snapshot_format::read_chunk(*file_, info_, number);
    if (chunk.is(io::ErrorKind::corrupt)) break;
    if (!chunk.ok()) return chunk.error();
    pace.pass(chunk->bytes.size());
    digest_.add(chunk->bytes);
    next_ += chunk->bytes.size();
    if (io::Status written = write_at(chunk_at(info_, number), encode_chunk(number, chunk->bytes)); !written.ok()) {
      return written.error();
    }
  }
  if (next_ > 0) SOMETIMES("raft snapshot: transfer resumed");
  // Torn chunks behind the last good one, or the trailer of an image that was sealed.
  const std::uint64_t end = next_ == info_.bytes ? trailer_at(info_) : chunk_at(info_, next_ / info_.chunk_bytes);
  if (io::Status cut = file_->truncate(end); !cut.ok()) return cut.error();
  return true;
}

io::Status SnapshotReceiver::write_at(std::uint64_t offset, std::string bytes) {
  unsynced_ += bytes.size();
  if (io::Status written = file_->write(offset, std::move(bytes)); !written.ok()) return written;
  if (unsynced_ < store_.settings_.sync_step_bytes) return {};
  unsynced_ = 0;
  return sync_before_publishing(*file_);
}

io::Status SnapshotReceiver::append(const SnapshotChunk& chunk) {
  if (failure_) return *failure_;
  if (is_over_ || is_sealed_) return over();
  if (chunk.offset != next_ || is_complete()) {
    SOMETIMES("raft snapshot: chunk out of turn refused");
    return io::fail(io::ErrorKind::invalid, "a chunk for offset " + std::to_string(chunk.offset) + " came, the next is " +
                                                std::to_string(next_));
  }
  const std::uint64_t number = next_ / info_.chunk_bytes;
  if (chunk.bytes.size() != chunk_payload_bytes(info_, number)) {
    return io::fail(io::ErrorKind::invalid, "a chunk of " + std::to_string(chunk.bytes.size()) + " bytes came, not of " +
                                                std::to_string(chunk_payload_bytes(info_, number)));
  }
  if (io::crc32c(chunk.bytes) != chunk.crc) {
    SOMETIMES("raft snapshot: damaged chunk refused");
    return io::fail(io::ErrorKind::corrupt, "the chunk for offset " + std::to_string(chunk.offset) + " came damaged");
  }
  io::Status written = write_at(chunk_at(info_, number), encode_chunk(number, chunk.bytes));
  if (!written.ok()) return fail(written.error());
  digest_.add(chunk.bytes);
  next_ += chunk.bytes.size();
  return {};
}

io::Status SnapshotReceiver::seal(std::uint64_t bytes_per_second) {
  if (failure_) return *failure_;
  if (is_over_ || is_sealed_) return over();
  NARAD_CHECK(is_complete(), "an image is sealed once all of it is here");
  if (digest_.value() != info_.digest) {
    SOMETIMES("raft snapshot: received image refused by its digest");
    return fail(io::fail(io::ErrorKind::corrupt, "the image that was received has another digest than was announced"));
  }
  io::Status status = write_at(trailer_at(info_), encode_trailer(info_, store_.store_));
  if (status.ok()) status = sync_before_publishing(*file_);
  if (!status.ok()) return fail(status.error());
  auto head = read_head(*file_);
  if (!head.ok()) return fail(head.error());
  if (head->info != info_) return fail(io::fail(io::ErrorKind::corrupt, file_->path() + ": its label is not what was written"));
  Pace pace(store_.clock_, bytes_per_second);
  if (status = read_all(*file_, info_, pace); !status.ok()) return fail(status.error());
  is_sealed_ = true;
  return {};
}

io::Result<std::unique_ptr<SnapshotReader>> SnapshotReceiver::image() {
  NARAD_CHECK(is_sealed_, "only a sealed image is read");
  if (is_over_) return over();
  auto file = store_.disk_.open(snapshot_files::kReceivingPath, io::OpenMode::read);
  if (!file.ok()) return file.error();
  return std::unique_ptr<SnapshotReader>(new SnapshotReader(store_.clock_, info_, std::move(*file)));
}

io::Status SnapshotReceiver::publish() {
  if (failure_) return *failure_;
  NARAD_CHECK(is_sealed_, "only a sealed image is published");
  if (is_over_) return over();
  file_.reset();
  io::Status published = store_.publish(std::string(snapshot_files::kReceivingPath), info_);
  is_over_ = true;
  if (!published.ok()) failure_ = published.error();
  return published;
}

}  // namespace raft

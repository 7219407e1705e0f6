#include "sim/snapshot_look.h"

#include <limits>
#include <string>
#include <utility>

#include "engine/metastore/image.h"
#include "raft/snapshot_format.h"

namespace sim {

namespace {

// The bytes of one chunk, as if they were the whole image: its head is in the first.
class FirstChunk final : public raft::ImageSource {
 public:
  explicit FirstChunk(std::string bytes) : bytes_(std::move(bytes)) {}
  io::Result<std::string> read(std::size_t bytes_max) override {
    std::string next = bytes_.substr(0, bytes_max);
    bytes_.erase(0, bytes_max);
    return next;
  }

 private:
  std::string bytes_;
};

}  // namespace

std::optional<engine::metastore::FsmState> read_image_head(std::string_view file) {
  namespace format = raft::snapshot_format;
  format::Header header;
  if (file.size() < format::kHeaderBytes ||
      format::parse_header(file.substr(0, format::kHeaderBytes), header) != format::BlockState::valid || header.info.bytes == 0) {
    return std::nullopt;
  }
  const uint64_t at = format::chunk_at(header.info, 0);
  const uint64_t bytes = format::kChunkHeaderBytes + format::chunk_payload_bytes(header.info, 0);
  if (file.size() < at + bytes) {
    return std::nullopt;
  }
  const auto payload = format::parse_chunk(file.substr(at, bytes), 0, format::chunk_payload_bytes(header.info, 0));
  if (!payload) {
    return std::nullopt;
  }
  FirstChunk source{std::string(*payload)};
  engine::metastore::ImageReader image(source);
  if (!image.read_head(std::numeric_limits<uint32_t>::max()).ok()) {
    return std::nullopt;
  }
  return image.state();
}

}  // namespace sim

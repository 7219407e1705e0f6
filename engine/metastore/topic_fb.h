// The FlatBuffers side of records and payloads, for the files of this folder that read or write them.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/metastore/entries_generated.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/records_generated.h"
#include "engine/metastore/topic.h"
#include "io/check.h"

namespace engine::metastore {

// Bytes at an address that FlatBuffers may read words from; copied only when they are not there already. The verifier judges
// offsets within the buffer, so the outcome never depends on where the bytes happened to lie.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::string_view bytes) : bytes_(bytes) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) != 0) {
      NARAD_CHECK(bytes.size() < (size_t{1} << 32), "a record of more than 4 GiB");  // also what GCC 12 needs to see
      words_.resize((bytes.size() + 7) / 8);
      if (!bytes.empty()) {
        std::memcpy(words_.data(), bytes.data(), bytes.size());
      }
      bytes_ = std::string_view(reinterpret_cast<const char*>(words_.data()), bytes.size());
    }
  }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  std::string_view view() const { return bytes_; }

 private:
  std::string_view bytes_;
  std::vector<uint64_t> words_;
};

// The root table, or null when the verifier refuses the bytes.
template <typename Table>
const Table* verified_root(const AlignedBytes& bytes) {
  std::string_view view = bytes.view();
  if (view.size() > kPayloadBytesMax) {
    return nullptr;
  }
  const auto* data = reinterpret_cast<const uint8_t*>(view.data());
  flatbuffers::Verifier verifier(data, view.size(), kPayloadDepthMax, kPayloadTablesMax);
  return verifier.VerifyBuffer<Table>(nullptr) ? flatbuffers::GetRoot<Table>(data) : nullptr;
}

flatbuffers::Offset<fb::Topic> build_topic(flatbuffers::FlatBufferBuilder& builder, const Topic& topic);
// nullopt for a verified table that is no record all the same (a role that does not exist, a partition named twice).
std::optional<Topic> read_topic(const fb::Topic& stored);

}  // namespace engine::metastore

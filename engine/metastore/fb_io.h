// What reading and writing FlatBuffers share in this folder: aligned bytes, the pinned verifier, and a reader whose memory is
// bounded by the bytes it reads.
//
// The verifier lets offsets share what they point to, so that a few kilobytes may name the same long text a thousand times. A
// reader that copies would then need memory without any bound. Every text, list and table is therefore charged to the bytes that
// hold them, and what spends more than there are is not well-formed. Our own bytes never share anything but vtables.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/envelope.h"
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

// Copies out of verified tables, and refuses once the copies come to more than `bytes`. After that everything reads empty and
// is_ok() is false, so a caller asks once, at the end.
class Copies {
 public:
  explicit Copies(size_t bytes) : left_(bytes) {}

  bool is_ok() const { return is_ok_; }
  // What is well-formed to the verifier but no value all the same.
  void fail() { is_ok_ = false; }

  // One table; false: leave it alone.
  bool table() { return charge(sizeof(flatbuffers::soffset_t)); }
  std::string text(const flatbuffers::String* stored) { return chars(stored, stored == nullptr ? 0 : stored->size() + 1); }
  std::optional<std::string> optional_text(const flatbuffers::String* stored) {
    return stored == nullptr ? std::nullopt : std::optional<std::string>(text(stored));
  }
  std::string bytes(const flatbuffers::Vector<uint8_t>* stored) { return chars(stored, stored == nullptr ? 0 : stored->size()); }
  std::vector<std::string> texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* stored) {
    std::vector<std::string> all;
    if (list(stored)) {
      all.reserve(stored->size());
      for (const flatbuffers::String* one : *stored) {
        all.push_back(text(one));
      }
    }
    return all;
  }
  // Bytewise: the verifier lets 8-byte elements stand at any multiple of 4, where they must not be read as words.
  template <typename Integer>
  std::vector<Integer> integers(const flatbuffers::Vector<Integer>* stored) {
    std::vector<Integer> all(list(stored) ? stored->size() : 0);
    for (size_t i = 0; i < all.size(); ++i) {
      std::memcpy(&all[i], stored->Data() + i * sizeof(Integer), sizeof(Integer));
      all[i] = flatbuffers::EndianScalar(all[i]);
    }
    return all;
  }
  // Charges the list itself, not what its elements point to. False: there is nothing to read.
  template <typename T>
  bool list(const flatbuffers::Vector<T>* stored) {
    return stored != nullptr && charge(sizeof(flatbuffers::uoffset_t) + size_t{stored->size()} * sizeof(T));
  }

 private:
  template <typename Stored>
  std::string chars(const Stored* stored, size_t size) {
    if (stored == nullptr || !charge(sizeof(flatbuffers::uoffset_t) + size)) {
      return {};
    }
    return std::string(reinterpret_cast<const char*>(stored->Data()), stored->size());
  }
  bool charge(size_t bytes) {
    is_ok_ = is_ok_ && bytes <= left_;
    left_ -= is_ok_ ? bytes : 0;
    return is_ok_;
  }

  size_t left_;
  bool is_ok_ = true;
};

// Reads bytes as one `Table`: read(const Table&, Copies&) gives the value. nullopt when they are not well-formed.
template <typename Table, typename Read>
auto read_root(std::string_view bytes, Read read) {
  using Value = decltype(read(std::declval<const Table&>(), std::declval<Copies&>()));
  AlignedBytes aligned(bytes);
  const Table* table = verified_root<Table>(aligned);
  if (table == nullptr) {
    return std::optional<Value>();
  }
  Copies copies(bytes.size());
  copies.table();
  Value value = read(*table, copies);
  return copies.is_ok() ? std::optional<Value>(std::move(value)) : std::nullopt;
}

inline std::string_view finished(const flatbuffers::FlatBufferBuilder& builder) {
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

// Empty fields are left out, so that equal records have equal bytes however they came about.
inline flatbuffers::Offset<flatbuffers::String> text_or_none(flatbuffers::FlatBufferBuilder& builder, std::string_view text) {
  return text.empty() ? 0 : builder.CreateString(text.data(), text.size());
}
inline flatbuffers::Offset<flatbuffers::String> optional_text(flatbuffers::FlatBufferBuilder& builder,
                                                              const std::optional<std::string>& text) {
  return text ? builder.CreateString(*text) : 0;
}
inline flatbuffers::Offset<flatbuffers::Vector<uint8_t>> bytes_or_none(flatbuffers::FlatBufferBuilder& builder,
                                                                       std::string_view bytes) {
  return bytes.empty() ? 0 : builder.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}
template <typename Integer>
flatbuffers::Offset<flatbuffers::Vector<Integer>> integers_or_none(flatbuffers::FlatBufferBuilder& builder,
                                                                   const std::vector<Integer>& integers) {
  return integers.empty() ? 0 : builder.CreateVector(integers);
}
inline flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> texts_or_none(
    flatbuffers::FlatBufferBuilder& builder, const std::vector<std::string>& texts) {
  return texts.empty() ? 0 : builder.CreateVectorOfStrings(texts);
}

}  // namespace engine::metastore

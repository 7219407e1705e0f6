#include "engine/metastore/image.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/images.h"

namespace {

using namespace engine::metastore;
using tests::MemorySource;

using Rows = std::map<std::string, std::string>;

Rows some_rows(size_t count, size_t value_bytes = 40) {
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    rows["topics/t" + std::to_string(1000 + i)] = std::string(value_bytes + i % 7, static_cast<char>('a' + i % 26));
  }
  return rows;
}

FsmState state_of(const Rows& rows, raft::Index index = 17) {
  FsmState state{index, 3, 3, 0};
  for (const auto& [key, value] : rows) {
    state.digest += row_hash(key, value);
  }
  return state;
}

std::string encode(const Rows& rows, const FsmState& state) {
  ImageEncoder encoder(state);
  std::string image = encoder.head();
  for (const auto& [key, value] : rows) {
    EXPECT_TRUE(encoder.add(key, value).ok());
    if (encoder.block_bytes() >= kImageBlockBytes) {
      image += encoder.block();
    }
  }
  if (encoder.block_bytes() > 0) {
    image += encoder.block();
  }
  io::Result<std::string> end = encoder.end();
  EXPECT_TRUE(end.ok());
  return image + *end;
}

struct Read {
  io::Status status;
  FsmState state;
  Rows rows;
};

Read read_all(const std::string& bytes, size_t piece = 1000, uint32_t newest_type = 3) {
  MemorySource source(bytes, piece);
  ImageReader reader(source);
  Read read;
  read.status = reader.read_head(newest_type);
  read.state = reader.state();
  while (read.status.ok()) {
    io::Result<std::string> block = reader.next_block();
    if (!block.ok()) {
      read.status = block.error();
    } else if (block->empty()) {
      EXPECT_EQ(reader.rows(), read.rows.size());
      break;
    } else {
      ImageRows rows(*block);
      while (rows.next()) {
        read.rows.emplace(rows.key, rows.value);
      }
      EXPECT_FALSE(rows.is_damaged);
    }
  }
  return read;
}

TEST(Image, WhatIsWrittenIsRead) {
  for (size_t count : {size_t{0}, size_t{1}, size_t{5}, size_t{3000}}) {
    const Rows rows = some_rows(count);
    const FsmState state = state_of(rows);
    const std::string image = encode(rows, state);
    for (size_t piece : {size_t{1}, size_t{999}, size_t{1} << 20}) {
      if (piece == 1 && count > 100) {
        continue;
      }
      const Read read = read_all(image, piece);
      ASSERT_TRUE(read.status.ok()) << read.status.error().to_text();
      EXPECT_EQ(read.state, state);
      EXPECT_EQ(read.rows, rows);
    }
  }
}

TEST(Image, ABlockIsBoundedAndALargeRowHasOneOfItsOwn) {
  Rows rows = some_rows(2000, 200);
  rows["topics/large"] = std::string(3u << 20, 'x');
  EXPECT_EQ(read_all(encode(rows, state_of(rows))).rows, rows);
  ImageEncoder encoder(FsmState{});
  (void)encoder.head();
  EXPECT_TRUE(encoder.add("topics/a", std::string(kImageBlockBytesMax + 1, 'x')).is(io::ErrorKind::invalid));
}

TEST(Image, ACutAnywhereIsRefused) {
  const Rows rows = some_rows(40);
  const std::string image = encode(rows, state_of(rows));
  for (size_t length = 0; length < image.size(); ++length) {
    EXPECT_TRUE(read_all(image.substr(0, length)).status.is(io::ErrorKind::corrupt)) << "cut to " << length;
  }
  EXPECT_TRUE(read_all(image + "x").status.is(io::ErrorKind::corrupt)) << "something follows";
}

TEST(Image, AFlippedBitAnywhereIsRefused) {
  const Rows rows = some_rows(40);
  const std::string image = encode(rows, state_of(rows));
  for (size_t byte = 0; byte < image.size(); ++byte) {
    std::string flipped = image;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << byte % 8));
    EXPECT_FALSE(read_all(flipped).status.ok()) << "byte " << byte;
  }
}

TEST(Image, BlocksOutOfPlaceAreRefused) {
  const Rows rows = some_rows(4, 70'000);  // a block each
  const std::string image = encode(rows, state_of(rows));
  std::vector<size_t> begins;
  for (size_t at = image.find("topics/t"); at != std::string::npos; at = image.find("topics/t", at + 1)) {
    begins.push_back(at - 16);
  }
  ASSERT_EQ(begins.size(), 4u);
  const std::string first = image.substr(begins[0], begins[1] - begins[0]);
  const std::string second = image.substr(begins[1], begins[2] - begins[1]);
  const std::string head = image.substr(0, begins[0]);
  EXPECT_TRUE(read_all(head + first + second + image.substr(begins[2])).status.ok()) << "this is how they are told apart";
  EXPECT_FALSE(read_all(head + second + first + image.substr(begins[2])).status.ok()) << "swapped";
  EXPECT_FALSE(read_all(head + first + image.substr(begins[2])).status.ok()) << "one is missing";
  EXPECT_FALSE(read_all(head + first + first + image.substr(begins[1])).status.ok()) << "one is doubled";
}

TEST(Image, RowsThatDoNotAddUpAreNotWritten) {
  const Rows rows = some_rows(3);
  FsmState state = state_of(rows);
  state.digest ^= 1;
  ImageEncoder encoder(state);
  (void)encoder.head();
  for (const auto& [key, value] : rows) {
    ASSERT_TRUE(encoder.add(key, value).ok());
  }
  (void)encoder.block();
  EXPECT_TRUE(encoder.end().is(io::ErrorKind::corrupt));
}

TEST(Image, OneOfANewerReleaseIsRefusedAsSuch) {
  const Rows rows = some_rows(3);
  FsmState state = state_of(rows);
  state.newest_type = 9;
  const Read read = read_all(encode(rows, state), 1000, 8);
  ASSERT_TRUE(read.status.is(io::ErrorKind::invalid));
  EXPECT_NE(read.status.error().message.find("the raft snapshot holds raft entry type 9, written by a newer Narad release"),
            std::string::npos);
}

TEST(Image, AnImageOfThisReleaseStaysWhatItIs) {
  const std::string image = encode({{"topics/a", "1"}}, FsmState{5, 2, 1, row_hash("topics/a", "1")});
  // Released nodes install it: a change here needs another format number.
  EXPECT_EQ(image.size(), 48u + 8 + 8 + 9 + 4 + 8 + 20);
  EXPECT_EQ(image.substr(0, 16), std::string("NARADIMG\1\0\0\0\x1c\0\0\0", 16));
  EXPECT_TRUE(read_all(image).status.ok());
}

}  // namespace

#include "raft/wire.h"

#include <gtest/gtest.h>

#include "io/random.h"

namespace {

using raft::Message;
using raft::MessageType;
namespace wire = raft::wire;

Message sample() {
  Message message;
  message.type = MessageType::append_request;
  message.term = 9;
  message.cluster = {1, 2};
  message.sent_at_ns = 123456789012;
  message.echo_ns = -5;
  message.echo_session = 77;
  message.log_index = 40;
  message.log_term = 8;
  message.commit = 39;
  message.round = 6;
  for (raft::Index i = 41; i <= 45; ++i) {
    raft::Entry entry{9, i, raft::EntryType::command, nullptr};
    if (i != 43) entry.data = std::make_shared<const std::string>(std::string(i * 3, static_cast<char>(i)));
    if (i == 43) entry.type = raft::EntryType::noop;
    message.entries.push_back(entry);
  }
  return message;
}

std::string encoded(const auto& frame) {
  std::string bytes;
  wire::encode(frame, bytes);
  return bytes;
}

void expect_equal(const Message& a, const Message& b) {
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.term, b.term);
  EXPECT_EQ(a.cluster, b.cluster);
  EXPECT_EQ(a.sent_at_ns, b.sent_at_ns);
  EXPECT_EQ(a.echo_ns, b.echo_ns);
  EXPECT_EQ(a.echo_session, b.echo_session);
  EXPECT_EQ(a.campaign_term, b.campaign_term);
  EXPECT_EQ(a.granted, b.granted);
  EXPECT_EQ(a.is_transfer, b.is_transfer);
  EXPECT_EQ(a.log_index, b.log_index);
  EXPECT_EQ(a.log_term, b.log_term);
  EXPECT_EQ(a.commit, b.commit);
  EXPECT_EQ(a.round, b.round);
  EXPECT_EQ(a.rejected, b.rejected);
  EXPECT_EQ(a.match, b.match);
  EXPECT_EQ(a.hint_index, b.hint_index);
  EXPECT_EQ(a.hint_term, b.hint_term);
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (size_t i = 0; i < a.entries.size(); ++i) EXPECT_TRUE(raft::same_entry(a.entries[i], b.entries[i]));
}

TEST(RaftWire, BringsEveryKindOfMessageOver) {
  expect_equal(std::get<Message>(*wire::decode(encoded(sample()))), sample());
  for (int type = 1; type <= 7; ++type) {
    Message message;
    message.type = static_cast<MessageType>(type);
    message.term = 3;
    message.campaign_term = 4;
    message.granted = type % 2 == 0;
    message.is_transfer = type == 3;
    message.rejected = type % 3 == 0;
    message.match = 10;
    message.hint_index = 11;
    message.hint_term = 2;
    expect_equal(std::get<Message>(*wire::decode(encoded(message))), message);
  }
}

TEST(RaftWire, BringsGreetingsOver) {
  wire::Hello hello;
  hello.from = "n1";
  hello.to = "n2";
  hello.store = {3, 4};
  hello.cluster = {5, 6};
  hello.session = 99;
  hello.address = "n1:7943";
  const auto back = std::get<wire::Hello>(*wire::decode(encoded(hello)));
  EXPECT_EQ(back.version, wire::kProtocolVersion);
  EXPECT_EQ(back.from, "n1");
  EXPECT_EQ(back.to, "n2");
  EXPECT_EQ(back.store, hello.store);
  EXPECT_EQ(back.cluster, hello.cluster);
  EXPECT_EQ(back.session, 99u);
  EXPECT_EQ(back.address, "n1:7943");
  EXPECT_TRUE(std::holds_alternative<wire::Welcome>(*wire::decode(encoded(wire::Welcome{}))));
  EXPECT_EQ(std::get<wire::Refusal>(*wire::decode(encoded(wire::Refusal{"no"}))).reason, "no");
  EXPECT_EQ(std::get<wire::Ack>(*wire::decode(encoded(wire::Ack{12}))).frames, 12u);
}

TEST(RaftWire, BringsTheFramesOfASnapshotOver) {
  wire::SnapshotHead head;
  head.term = 7;
  head.info.label = {40, 6, 12, raft::bootstrap_configuration({{"n1", "n1:7943"}, {"n2", "n2:7943"}})};
  head.info.bytes = 123'456;
  head.info.digest = 0xfeed;
  head.info.chunk_bytes = 4096;
  const auto back = std::get<wire::SnapshotHead>(*wire::decode(encoded(head)));
  EXPECT_EQ(back.term, 7u);
  EXPECT_EQ(back.info, head.info);
  const auto answer = std::get<wire::SnapshotAnswer>(
      *wire::decode(encoded(wire::SnapshotAnswer{raft::OfferAnswer::Verdict::outdated, 8, 8192})));
  EXPECT_EQ(answer.verdict, raft::OfferAnswer::Verdict::outdated);
  EXPECT_EQ(answer.term, 8u);
  EXPECT_EQ(answer.next_offset, 8192u);
  const auto piece = std::get<wire::SnapshotPiece>(*wire::decode(encoded(wire::SnapshotPiece{{4096, "bytes", 99}})));
  EXPECT_EQ(piece.chunk.offset, 4096u);
  EXPECT_EQ(piece.chunk.bytes, "bytes");
  EXPECT_EQ(piece.chunk.crc, 99u);
  const auto state = std::get<wire::SnapshotState>(*wire::decode(encoded(wire::SnapshotState{5, true, false, "no room"})));
  EXPECT_EQ(state.next_offset, 5u);
  EXPECT_TRUE(state.is_done);
  EXPECT_FALSE(state.is_good);
  EXPECT_EQ(state.reason, "no room");
}

TEST(RaftWire, RefusesASnapshotThatCannotBe) {
  wire::SnapshotHead head;
  head.term = 7;
  head.info.label = {40, 6, 12, raft::bootstrap_configuration({{"n1", "n1:7943"}})};
  head.info.chunk_bytes = 4096;
  ASSERT_TRUE(wire::decode(encoded(head)).ok());
  for (const std::uint32_t chunk_bytes : {0u, 511u, (1u << 20) + 1}) {
    wire::SnapshotHead wrong = head;
    wrong.info.chunk_bytes = chunk_bytes;
    EXPECT_TRUE(wire::decode(encoded(wrong)).is(io::ErrorKind::corrupt)) << chunk_bytes;
  }
  wire::SnapshotHead ahead = head;
  ahead.info.label.configuration_index = 41;
  EXPECT_TRUE(wire::decode(encoded(ahead)).is(io::ErrorKind::corrupt)) << "a configuration beyond the image";
  wire::SnapshotHead nothing = head;
  nothing.info.label.index = 0;
  EXPECT_TRUE(wire::decode(encoded(nothing)).is(io::ErrorKind::corrupt));
  EXPECT_TRUE(wire::decode(encoded(wire::SnapshotPiece{{0, "", 0}})).is(io::ErrorKind::corrupt)) << "a piece of nothing";
}

TEST(RaftWire, FramesBeginWithTheMagicAndTheirLength) {
  const std::string bytes = encoded(sample());
  EXPECT_EQ(bytes.substr(0, 4), "NRF1");
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_EQ(**wire::frame_length(bytes, wire::kFrameBytesMax), bytes.size());
}

TEST(RaftWire, CutsAnyByteStreamIntoItsFrames) {
  std::string stream;
  for (int i = 0; i < 5; ++i) {
    wire::encode(sample(), stream);
    wire::encode(wire::Ack{static_cast<uint64_t>(i)}, stream);
  }
  for (size_t step : {1, 3, 7, 8, 100, 1000, 100000}) {
    wire::FrameReader reader;
    size_t frames = 0;
    for (size_t at = 0; at < stream.size(); at += step) {
      reader.add(stream.substr(at, step));
      for (auto frame = reader.next(); *frame; frame = reader.next()) {
        ASSERT_TRUE(wire::decode(**frame).ok());
        ++frames;
      }
    }
    EXPECT_EQ(frames, 10u);
    EXPECT_EQ(reader.buffered(), 0u);
  }
}

TEST(RaftWire, RefusesLengthsBeforeItReadsThem) {
  const auto header = [](uint32_t length) {
    std::string bytes = "NRF1";
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(length >> shift));
    return bytes;
  };
  EXPECT_FALSE(wire::frame_length(header(0), 100).ok());
  EXPECT_FALSE(wire::frame_length(header(12), 100).ok());
  EXPECT_FALSE(wire::frame_length(header(104), 100).ok());
  EXPECT_FALSE(wire::frame_length(header(0xfffffff8), wire::kFrameBytesMax).ok());
  EXPECT_FALSE(wire::frame_length("HTTP/1.1", 100).ok());
  EXPECT_FALSE(wire::frame_length("X", 100).ok());
  EXPECT_FALSE(wire::frame_length("NRF", 100)->has_value());
}

TEST(RaftWire, SurvivesEveryFlippedBitAndEveryCut) {
  const std::string whole = encoded(sample());
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    auto decoded = wire::decode(bytes);
    if (!decoded.ok()) continue;
    // What still decodes adds up.
    if (const auto* message = std::get_if<Message>(&*decoded)) {
      for (size_t i = 0; i < message->entries.size(); ++i) {
        EXPECT_EQ(message->entries[i].index, message->log_index + 1 + i);
      }
    }
  }
  for (size_t length = 8; length < whole.size(); length += 8) {
    std::string bytes = whole.substr(0, length);
    const uint32_t rest = static_cast<uint32_t>(length - 8);
    for (int i = 0; i < 4; ++i) bytes[4 + static_cast<size_t>(i)] = static_cast<char>(rest >> (24 - 8 * i));
    (void)wire::decode(bytes);
  }
}

TEST(RaftWire, SurvivesRandomBytes) {
  io::RandomStream random(11);
  for (int round = 0; round < 20000; ++round) {
    const size_t length = 8 * random.between(int64_t{1}, int64_t{40});
    std::string bytes = "NRF1";
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(length >> shift));
    for (size_t i = 0; i < length; ++i) {
      bytes.push_back(random.chance_ppm(700'000) ? static_cast<char>(random.below(32)) : static_cast<char>(random.next()));
    }
    (void)wire::decode(bytes);
  }
}

}  // namespace

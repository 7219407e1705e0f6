// Metastore commands: the envelope of a raft entry, its payloads, and the stored record. Every node must judge the same bytes
// alike, so where the bytes lie must not matter either.
//
// Input: one byte that chooses (0: a whole envelope, 1: a stored record, else: an envelope of that type in front of a payload).

#include "engine/metastore/commands.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/topic.h"
#include "io/check.h"
#include "tests/fuzz/support/fuzz.h"

namespace fuzz {

namespace {

using namespace engine::metastore;

// Decodes at an aligned place and at one that is not; both must agree.
template <typename Decode>
auto decode_twice(std::string_view bytes, const Decode& decode) {
  const Aligned aligned(bytes);
  const AllocationBound bound(2 * (64 * bytes.size() + 4096));
  auto decoded = decode(aligned.view());
  std::string shifted(1, 'x');
  shifted.append(bytes);
  NARAD_CHECK(decode(std::string_view(shifted).substr(1)) == decoded, "the outcome does not depend on where the bytes lie");
  return decoded;
}

void decode_command(std::string_view bytes) {
  const Aligned aligned(bytes);
  const std::optional<Envelope> envelope = read_envelope(aligned.view());
  if (!envelope) return;
  NARAD_CHECK(envelope->version != 0 && envelope->payload.size() == bytes.size() - kEnvelopeHeaderBytes,
              "the payload is what follows the header");
  if (envelope->type == 0 || envelope->type > kNewestEntryType) return;
  const auto decode = [&](std::string_view payload) { return decode_payload(envelope->type, payload); };
  const auto decoded = decode_twice(envelope->payload, decode);
  if (!decoded) return;
  const std::string command = encode_command(*decoded);
  const std::optional<Envelope> again = read_envelope(command);
  NARAD_CHECK(again && again->version == kEnvelopeVersion && again->type == envelope->type, "what was encoded has a header");
  NARAD_CHECK(decode(again->payload) == decoded, "decode(encode(x)) is x");
}

void decode_record(std::string_view bytes) {
  const auto topic = decode_twice(bytes, decode_topic);
  if (!topic) return;
  const std::string stored = encode_topic(*topic);
  const auto again = decode_topic(stored);
  NARAD_CHECK(again == topic, "decode(encode(x)) is x");
  NARAD_CHECK(encode_topic(*again) == stored, "equal records have equal bytes");
}

std::vector<Topic> topics() {
  Topic plain;
  plain.name = "orders";
  plain.id = "0123456789abcdef";
  plain.partitions = 4;
  plain.retention_ms = 604'800'000;
  plain.created_at = 1'700'000'000;
  Topic child = plain;
  child.role = Role::child;
  child.parent = "all";
  child.attach_epoch = "fedcba9876543210";
  child.fanout_delay_ms = 5000;
  child.attach_offsets = {1, 2, 3, 4};
  Topic parent = plain;
  parent.owner = "admin";
  parent.role = Role::parent;
  parent.children = {"orders-a", "orders-b", "a-name-that-is-longer-than-a-short-string"};
  Topic stub = child;
  stub.remote = RemoteLink{"west", "orders", "0011223344556677", "earliest", 4, true, "by hand", "admin", 1'700'000'000'000,
                           {{0, {5, 6}}, {3, {9}}}, "admin"};
  return {plain, child, parent, stub};
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const Topic& topic : topics()) {
    all.push_back(std::string(1, '\0') + encode_create_topic(topic));
    all.push_back(std::string(1, '\2') + encode_update_topic(topic).substr(kEnvelopeHeaderBytes));
    all.push_back(std::string(1, '\1') + encode_topic(topic));
  }
  const Topic child = topics()[1];
  const RemoteLink link = *topics()[3].remote;
  const User user{"ann", "$2a$10$hash", {{"produce", {"orders", "logs-*"}}, {"admin", {}}}, true, 1, 2};
  const Remote remote{"west", "https://west:7942", "ann", "", {}, "sealed", "key1", 1, 1, "ann", 3, "bob", 4};
  const std::vector<Command> commands = {
      DeleteTopic{"orders"},
      PutSchemaIf{"orders", 2, R"({"type":"object"})", "0123456789abcdef"},
      AssignPartition{{"orders", 3, "n1", "n2"}},
      RegisterMember{{"n1", "n1:7942", "n1:7943", MemberStatus::dead, 1'700'000'000, true, "3.2.2", 37}},
      CreateUser{user},
      SetUserGrants{"ann", user.grants, 5},
      AttachChildIf{{"all", "orders", "e1", 5000, {1, 2, 3}}, "a", "b"},
      CreateTopicLinked{child, "true", ParentLink{"all", "a", "e1", 5000, {1, 2, 3}}},
      AttachRemoteChild{"all", "a", "stub", "b", "e1", 0, {4, 5}, link, 1'700'000'000, "ann", "r1"},
      ChangeRemoteChild{"all", "stub", "e1", PauseChange{true, "by hand", "ann", 6}, "c", 4, SkipOffset{1, 2}, "ann", "r2"},
      CreateRemote{remote, "salt", 7, "ann", "r3"},
      ChangeRemote{"west", {"https://w", "bob", "pem", RemoteLimits{}}, "sealed", "key2", SealedAgainst{"https://w", "bob", "pem"},
                   1, 2, true, 8, "ann", "r4"},
  };
  for (const Command& command : commands) {
    all.push_back(std::string(1, '\0') + encode_command(command));
  }
  return all;
}

void run_one(std::string_view bytes) {
  Input input(bytes);
  const std::uint8_t choice = input.byte();
  if (choice == 0) return decode_command(input.rest());
  if (choice == 1) return decode_record(input.rest());
  std::string command("NC\0\1\0\0\0", 7);
  command.push_back(static_cast<char>(choice % (kNewestEntryType + 2)));
  command.append(input.rest());
  decode_command(command);
}

}  // namespace fuzz

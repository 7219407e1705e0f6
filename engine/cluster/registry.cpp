#include "engine/cluster/registry.h"

#include <algorithm>
#include <utility>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";
// Ids whose last stamp is remembered; members are far fewer.
constexpr size_t kGivenMax = 4096;

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) {
    return {};
  }
  return std::string(text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1));
}

NodeReply not_registered() { return error_reply(409, "register member failed"); }

}  // namespace

std::optional<metastore::MemberStatus> parse_member_status(std::string_view text) {
  if (text.empty() || text == metastore::to_string(metastore::MemberStatus::alive)) {
    return metastore::MemberStatus::alive;
  }
  if (text == metastore::to_string(metastore::MemberStatus::dead)) {
    return metastore::MemberStatus::dead;
  }
  return std::nullopt;
}

NodeReply Registry::register_member(const io::Result<RegisterMemberRequest>& request) {
  if (!request.ok()) {
    return error_reply(400, "invalid register member request: " + request.error().message);
  }
  metastore::Member member;
  member.id = trimmed(request->id);
  member.addr = trimmed(request->addr);
  member.cluster_addr = trimmed(request->cluster_addr);
  if (member.id.empty()) {
    return error_reply(400, "member id is required");
  }
  if (member.addr.empty()) {
    return error_reply(400, "member addr is required");
  }
  const std::optional<metastore::MemberStatus> status = parse_member_status(trimmed(request->status));
  if (!status) {
    return error_reply(400, "member status is invalid");
  }
  member.status = *status;
  if (request->release) {
    member.build = trimmed(request->release->build);
    member.entry_types = request->release->entry_types;
  }
  return record(std::move(member));
}

NodeReply Registry::record(metastore::Member member) {
  const io::Instant deadline = env_.after(kRegisterTimeout);
  const io::Result<int64_t> stamp = next_stamp(member.id, deadline);
  if (!stamp.ok()) {
    return not_registered();
  }
  member.last_heartbeat = *stamp;
  const Proposed proposed = proposer_.propose(metastore::encode_command(metastore::RegisterMember{std::move(member)}), deadline);
  if (proposed.outcome != Proposed::Outcome::applied) {
    return not_registered();
  }
  const std::optional<metastore::Answer> answer = metastore::decode_answer(proposed.answer);
  if (answer && answer->code == metastore::Code::member_removed) {
    SOMETIMES("heartbeat: refused, the member was removed");
    return error_reply(410, kMemberRemovedText);
  }
  return answer && answer->ok() ? NodeReply{204, {}, {}} : not_registered();
}

int64_t Registry::newest_given(std::string_view id) const {
  const auto given = given_.find(std::string(id));
  return given == given_.end() || term_ != proposer_.term() ? 0 : given->second;
}

io::Result<int64_t> Registry::next_stamp(const std::string& id, io::Instant deadline) {
  if (!proposer_.is_leader()) {
    return io::fail(io::ErrorKind::busy, "this node does not lead");
  }
  const raft::Term term = proposer_.term();
  if (term_ != term) {
    if (io::Status reached = proposer_.barrier(deadline); !reached.ok()) {
      return reached.error();
    }
    if (proposer_.term() != term) {
      return io::fail(io::ErrorKind::busy, "leadership was lost");
    }
    if (term_ != term) {  // others may have come here meanwhile
      given_.clear();
      term_ = term;
    }
  }
  const io::Result<std::optional<metastore::Member>> stored = metastore::get_member(reader_, id, deadline);
  if (!stored.ok()) {
    return stored.error();
  }
  // A stamp of another leader's may stand beside what was read by now, also when this node leads again.
  if (!proposer_.is_leader() || proposer_.term() != term || term_ != term) {
    SOMETIMES("heartbeat: leadership was lost while it was stamped");
    return io::fail(io::ErrorKind::busy, "leadership was lost");
  }
  // From here to the proposal nothing waits, so stamps are in the log in the order in which they are given.
  const int64_t clock = io::to_unix_seconds(env_.clock.wall());
  int64_t stamp = clock;
  if (stored->has_value()) {
    stamp = std::max(stamp, (*stored)->last_heartbeat + 1);
  }
  if (const auto given = given_.find(id); given != given_.end()) {
    stamp = std::max(stamp, given->second + 1);
  }
  if (stamp > clock) {
    SOMETIMES("heartbeat: stamped past the leader's clock");
  }
  if (given_.size() >= kGivenMax) {
    given_.clear();
  }
  given_[id] = stamp;
  return stamp;
}

}  // namespace engine::cluster

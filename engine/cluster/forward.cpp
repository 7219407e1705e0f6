#include "engine/cluster/forward.h"

#include <charconv>
#include <utility>

#include "engine/cluster/cluster_frames.h"
#include "engine/topics/reply.h"
#include "io/probe.h"

namespace engine::cluster {

namespace {

// 503 that this node gives in the leader's place, as plain text.
NodeReply no_leader_reply(std::string_view why) {
  return NodeReply{503, "text/plain; charset=utf-8", std::string(why) + "\n"};
}

NodeReply outcome_unknown() {
  const Reply reply = outcome_unknown_reply();
  return NodeReply{static_cast<uint16_t>(reply.status), "application/json", reply.body};
}

}  // namespace

std::string applied_index_json(raft::Index index) { return "{\"applied_index\":" + std::to_string(index) + "}"; }

std::optional<raft::Index> parse_applied_index_json(std::string_view body) {
  static constexpr std::string_view kKey = "\"applied_index\":";
  const size_t at = body.find(kKey);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  body.remove_prefix(at + kKey.size());
  while (!body.empty() && body.front() == ' ') {
    body.remove_prefix(1);
  }
  raft::Index index = 0;
  if (std::from_chars(body.data(), body.data() + body.size(), index).ec != std::errc()) {
    return std::nullopt;
  }
  return index;
}

NodeReply Forwarder::write(std::string_view payload, std::string_view older) {
  NodeReply reply = forward(payload);
  if (!older.empty() && is_refused_as_trailing(reply)) {
    SOMETIMES("forward: a leader of an older release is asked without the actor");
    reply = forward(older);
  }
  if (reply.status < 300) {
    // Whether the replica got there or not, the write stands and the answer is the leader's.
    if (!catch_up_with_leader(env_.after(kReadYourWriteWait))) {
      SOMETIMES("forward: a write is answered before this replica holds it");
    }
  }
  return reply;
}

NodeReply Forwarder::forward(std::string_view payload) {
  const io::Instant deadline = env_.after(kForwardTimeout);
  std::string tried;
  std::string detail;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const raft::LeaderHint leader = raft_.leader();
    if (leader.address.empty() || raft_.is_leader()) {
      return no_leader_reply(kNoLeaderText);
    }
    if (leader.address == tried) {
      break;
    }
    tried = leader.address;
    CallResult result = clients_.call(leader.address, payload, deadline);
    switch (result.kind) {
      case CallResult::Kind::answered:
        return std::move(result.reply);
      case CallResult::Kind::unknown:
        return outcome_unknown();
      case CallResult::Kind::never_sent:
        detail = std::move(result.detail);
        break;
    }
  }
  return no_leader_reply("the raft leader cannot be reached: " + detail);
}

// One question to the leader that several callers wait for.
struct Forwarder::Question {
  io::Event answered;
  std::optional<raft::Index> index;
};

std::optional<raft::Index> Forwarder::ask_leader_index(io::Instant deadline) {
  const raft::LeaderHint leader = raft_.leader();
  if (leader.address.empty() || raft_.is_leader()) {
    return std::nullopt;
  }
  const CallResult result = clients_.call(leader.address, encode_applied_index_request(), deadline);
  if (result.kind != CallResult::Kind::answered || result.reply.status != 200) {
    return std::nullopt;
  }
  return parse_applied_index_json(result.reply.body);
}

// An answer is good for everybody who came before it was asked for. So while one question is on its way, all who come wait for
// the next, which the first of them sends.
std::optional<raft::Index> Forwarder::leader_index(io::Instant deadline) {
  if (asking_ != nullptr && next_ != nullptr) {
    const std::shared_ptr<Question> question = next_;
    if (!question->answered.wait(deadline)) {
      return std::nullopt;
    }
    return question->index;
  }
  const auto question = std::make_shared<Question>();
  // However the asker leaves, those who wait for its question are told.
  struct Answer {
    Forwarder& forwarder;
    const std::shared_ptr<Question>& question;
    ~Answer() {
      if (forwarder.asking_ == question) {
        forwarder.asking_.reset();
      }
      if (forwarder.next_ == question) {
        forwarder.next_.reset();
      }
      question->answered.set();
    }
  } answer{*this, question};
  if (asking_ != nullptr) {
    next_ = question;
    const std::shared_ptr<Question> before = asking_;
    if (!before->answered.wait(deadline)) {
      return std::nullopt;
    }
    next_.reset();
  }
  asking_ = question;
  question->index = ask_leader_index(deadline);
  return question->index;
}

bool Forwarder::catch_up_with_leader(io::Instant deadline) {
  const std::optional<raft::Index> index = leader_index(deadline);
  return index.has_value() && raft_.wait_applied(*index, deadline);
}

}  // namespace engine::cluster

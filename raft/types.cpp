#include "raft/types.h"

namespace raft {

const char* to_string(EntryType type) {
  switch (type) {
    case EntryType::noop: return "noop";
    case EntryType::command: return "command";
    case EntryType::configuration: return "configuration";
  }
  return "unknown";
}

const char* to_string(Role role) {
  switch (role) {
    case Role::follower: return "follower";
    case Role::pre_candidate: return "pre-candidate";
    case Role::candidate: return "candidate";
    case Role::leader: return "leader";
  }
  return "unknown";
}

const char* to_string(MessageType type) {
  switch (type) {
    case MessageType::pre_vote_request: return "pre_vote_request";
    case MessageType::pre_vote_reply: return "pre_vote_reply";
    case MessageType::vote_request: return "vote_request";
    case MessageType::vote_reply: return "vote_reply";
    case MessageType::append_request: return "append_request";
    case MessageType::append_reply: return "append_reply";
    case MessageType::timeout_now: return "timeout_now";
  }
  return "unknown";
}

bool same_entry(const Entry& a, const Entry& b) {
  return a.term == b.term && a.index == b.index && a.type == b.type && (a.data == b.data || a.bytes() == b.bytes());
}

}  // namespace raft

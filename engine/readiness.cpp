#include "engine/readiness.h"

#include "engine/config.h"

namespace engine {

namespace {
constexpr io::Duration kPoll = std::chrono::milliseconds(100);
constexpr io::Duration kTry = std::chrono::seconds(5);
}  // namespace

void Readiness::wait_until_caught_up() {
  while (!catch_up_once()) {
    io::sleep_for(kPoll);
  }
  caught_up_ = true;
}

bool Readiness::catch_up_once() {
  const io::Instant deadline = env_.after(kTry);
  if (raft_.is_leader()) {
    return raft_.barrier(deadline).ok();
  }
  return !raft_.leader().address.empty() && catch_up_(deadline);
}

std::optional<std::string> Readiness::why_not_ready() const {
  static const std::string kPrefix = "metastore: node is not ready: ";
  if (!started_ || stopping_) {
    return "not ready";
  }
  const raft::ServerStatus status = raft_.status();
  const bool leads = status.role == raft::Role::leader;
  if (status.is_stopped || (status.leader.id.empty() && !leads)) {
    return kPrefix + "no raft leader known";
  }
  if (!leads) {
    if (!status.leader_contact.has_value()) {
      return kPrefix + "no contact with the raft leader yet";
    }
    const io::Duration age = env_.now() - *status.leader_contact;
    if (age > kContactFreshness) {
      return kPrefix + "last raft leader contact " + format_duration(std::chrono::floor<std::chrono::milliseconds>(age)) + " ago";
    }
  }
  if (!caught_up_) {
    return kPrefix + "replica has not caught up with the leader since start";
  }
  return std::nullopt;
}

}  // namespace engine

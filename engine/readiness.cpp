#include "engine/readiness.h"

#include "engine/config.h"

namespace engine {

std::optional<std::string> Readiness::why_not_ready() const {
  static const std::string kPrefix = "metastore: node is not ready: ";
  if (!started_ || stopping_) {
    return "not ready";
  }
  const metastore::Currency currency = replica_.currency();
  if (currency == metastore::Currency::stopped || currency == metastore::Currency::no_leader) {
    return kPrefix + "no raft leader known";
  }
  if (!raft_.is_leader()) {
    if (currency == metastore::Currency::no_contact) {
      return kPrefix + "no contact with the raft leader yet";
    }
    if (currency == metastore::Currency::old_contact) {
      const auto age = std::chrono::floor<std::chrono::milliseconds>(replica_.contact_age().value_or(io::Duration(0)));
      return kPrefix + "last raft leader contact " + format_duration(age) + " ago";
    }
  }
  if (!replica_.has_caught_up()) {
    return kPrefix + "replica has not caught up with the leader since start";
  }
  return std::nullopt;
}

}  // namespace engine

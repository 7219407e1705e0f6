#include "raft/log_limit.h"

#include <algorithm>
#include <utility>

namespace raft {

std::optional<std::uint64_t> LogLimit::admit(std::string_view key, io::Instant now) {
  auto at = keys_.find(key);
  if (at != keys_.end() && now < at->second.next) {
    ++at->second.left_out;
    return std::nullopt;
  }
  if (at == keys_.end()) {
    if (keys_.size() >= kKeysMax) forget_oldest();
    at = keys_.emplace(key, Key()).first;
  }
  at->second.next = now + interval_;
  return std::exchange(at->second.left_out, 0);
}

void LogLimit::forget_oldest() {
  keys_.erase(std::min_element(keys_.begin(), keys_.end(),
                               [](const auto& a, const auto& b) { return a.second.next < b.second.next; }));
}

}  // namespace raft

#include "sim/linearizability.h"

#include <algorithm>
#include <set>
#include <utility>

namespace sim {

const char* to_string(Linearizable verdict) {
  switch (verdict) {
    case Linearizable::yes: return "yes";
    case Linearizable::no: return "no";
    case Linearizable::unknown: return "unknown";
  }
  return "";
}

namespace {

class Search {
 public:
  Search(const std::vector<Step>& history, uint64_t steps_max) : history_(history), steps_left_(steps_max) {
    for (size_t i = 0; i < history.size(); ++i) {
      order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return history[a].asked < history[b].asked; });
    done_.assign(history.size(), false);
    for (const Step& step : history) {
      answered_left_ += step.answered != io::kNever ? 1 : 0;
    }
  }

  Linearizable run(const std::string& state) {
    if (answered_left_ == 0) {
      return Linearizable::yes;  // what is left may never have happened
    }
    if (!seen_.emplace(done_, state).second) {
      return Linearizable::no;
    }
    // Only a call asked before every answered one's answer can be next.
    io::Instant first_answer = io::kNever;
    for (const size_t i : order_) {
      if (!done_[i]) {
        first_answer = std::min(first_answer, history_[i].answered);
      }
    }
    for (const size_t i : order_) {
      if (history_[i].asked > first_answer) {
        break;
      }
      if (done_[i]) {
        continue;
      }
      if (steps_left_ == 0) {
        return Linearizable::unknown;
      }
      --steps_left_;
      std::string next = state;
      if (!history_[i].apply(next)) {
        continue;
      }
      const bool counts = history_[i].answered != io::kNever;
      done_[i] = true;
      answered_left_ -= counts ? 1 : 0;
      const Linearizable verdict = run(next);
      done_[i] = false;
      answered_left_ += counts ? 1 : 0;
      if (verdict != Linearizable::no) {
        return verdict;
      }
    }
    return Linearizable::no;
  }

 private:
  const std::vector<Step>& history_;
  uint64_t steps_left_;
  std::vector<size_t> order_;
  std::vector<bool> done_;
  size_t answered_left_ = 0;
  std::set<std::pair<std::vector<bool>, std::string>> seen_;
};

}  // namespace

Linearizable is_linearizable(const std::vector<Step>& history, const std::string& start, uint64_t steps_max) {
  return Search(history, steps_max).run(start);
}

}  // namespace sim

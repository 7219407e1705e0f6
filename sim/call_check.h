// Each answer against the log: a write that was acknowledged is an entry of the log that took effect while the call ran; a
// refusal holds at some index within the call; a read shows the node's state as it was at some index that the node had applied
// within the call. Judged at the moment of the answer: by then everything the answer may rest on has been applied.
//
// Rules (signatures):
//   an acknowledged write is in the log      and took effect between asking and answering
//   a write takes effect once                no call has two effects, no entry answers two calls
//   a write does what it asks and no more    a patch keeps every field that it does not name, as it was just before its entry;
//                                            a create finds no name that differs in letter case alone
//   a refused write has no effect            "unknown" is never reported as "failed"
//   a refusal is true at some index          of those that the call may rest on
//   a read shows a state that was            the node's own, at an index it had applied within the call
//   a read after a write sees it             on the node that answered the write, within one life
//   404 rests on the leader's applied index
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "sim/claims.h"
#include "sim/history.h"
#include "sim/log_book.h"
#include "sim/violation.h"

namespace sim {

class CallCheck {
 public:
  explicit CallCheck(const LogBook& book) : book_(book) {}

  // `call` has just been answered (or given up). `may_answer_early`: something kept the answering node from catching up (no
  // leader to ask, or the wait of 3 s ran out), which the specification allows.
  std::optional<Violation> judge(const Call& call, bool may_answer_early);
  // The entry at `index` has just taken effect, for the first time anywhere; `call` is the one that asked for it, as its tag tells.
  // Judged whether or not the call is ever answered.
  std::optional<Violation> judge_effect(const Call& call, Index index) const;
  // At the end of a run: a write that was refused must not have taken effect later either.
  std::optional<Violation> judge_refused_again(const Call& call) const;

  // The newest index whose write has been acknowledged to anybody.
  Index acked() const { return acked_; }
  uint64_t judged() const { return judged_; }

 private:
  std::optional<Violation> judge_create(const Call& call);
  std::optional<Violation> judge_patch(const Call& call);
  std::optional<Violation> judge_remove(const Call& call, bool may_answer_early);
  std::optional<Violation> judge_link(const Call& call, bool may_answer_early);
  std::optional<Violation> judge_put_schema(const Call& call, bool may_answer_early);
  std::optional<Violation> judge_children(const Call& call);
  std::optional<Violation> judge_schemas(const Call& call);
  // An answer to a write that carries no mark: any of `indexes` within the call's time may be its entry, that has not answered another.
  std::optional<Violation> claims_one(const Call& call, const std::vector<Index>& indexes, Claims& claims, bool may_answer_early,
                                      const char* what);
  std::optional<Violation> judge_refusal(const Call& call);
  bool is_true(const Call& call, Index index) const;
  std::optional<Violation> judge_not_found(const Call& call);
  std::optional<Violation> judge_read(const Call& call);
  std::optional<Violation> judge_list(const Call& call);
  std::optional<Violation> acknowledged(const Call& call, Index index);
  // A read's answer fits at some index: `fits` is asked for each moment the node may have read at.
  std::optional<Violation> fits_somewhere(const Call& call, const std::vector<Index>& moments, const char* rule,
                                          const std::string& shown, const std::function<bool(Index)>& fits) const;

  const LogBook& book_;
  std::set<Index> claimed_;  // entries of creates and patches, which carry a mark
  Claims deletions_;
  Claims links_;
  Index acked_ = 0;
  Index last_acked_ = 0;  // the index that the call judged last was acknowledged with; a delete: the least it may have been
  uint64_t judged_ = 0;
};

}  // namespace sim

// One follower against a plain model: whatever leaders send, in whatever order, its log is what a list would be.
//
// The model knows the truth: the log of each term's leader, each of which keeps what was committed before it. From these the
// requests and images are made; they arrive late, repeated, or not at all. The follower's disk and state machine run by steps
// of their own, its log is cut in front at will, and it dies.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "raft/core.h"

namespace raft {
namespace {

struct LeaderLog {
  std::vector<Term> terms;  // of entries 1, 2, ...
  Index commit = 0;
};

class Follower {
 public:
  Follower() {
    configuration_.cluster = ClusterId{5, 5};
    for (const char* id : {"a", "b", "c"}) {
      configuration_.servers.push_back(Server{id, id, true, StoreId{1, static_cast<std::uint64_t>(id[0])}});
    }
    start();
  }

  Core& core() { return *core_; }
  const Configuration& configuration() const { return configuration_; }
  io::Instant now() const { return io::Instant(std::chrono::seconds(100)); }

  // What the disk and the state machine have to do, oldest first.
  void take() {
    Ready ready;
    while (core_->has_ready()) {
      core_->ready(ready);
      const bool is_alone = !ready.install || (ready.committed.empty() && to_apply_.empty());
      RC_ASSERT(is_alone);
      for (const Entry& entry : ready.committed) to_apply_.push_back(entry);
      if (ready.install) to_install_ = ready.install;
      if (ready.hard_state || ready.log_reset || !ready.entries.empty()) writes_.push_back(std::move(ready));
      ready = Ready();
    }
  }
  void write_one() {
    if (writes_.empty()) return;
    const Ready write = std::move(writes_.front());
    writes_.erase(writes_.begin());
    if (write.hard_state) stored_.hard_state = *write.hard_state;
    if (write.log_reset) {
      stored_.entries.clear();
      stored_.base_index = write.log_reset->index;
      stored_.base_term = write.log_reset->term;
    }
    if (!write.entries.empty()) {
      const Index first = write.entries.front().index;
      RC_ASSERT(first > stored_.base_index);
      RC_ASSERT(first <= stored_.base_index + stored_.entries.size() + 1);
      stored_.entries.resize(first - stored_.base_index - 1);
      stored_.entries.insert(stored_.entries.end(), write.entries.begin(), write.entries.end());
    }
    if (write.hard_state) core_->hard_state_persisted(*write.hard_state);
    if (write.log_reset) core_->log_reset(write.log_reset->index);
    if (!write.entries.empty()) core_->persisted(write.append_term, write.entries.back().index);
    take();
  }
  void apply_one() {
    if (!to_apply_.empty()) {
      RC_ASSERT(to_apply_.front().index == stored_.applied + 1);
      applied_terms.push_back(to_apply_.front().term);
      stored_.applied = to_apply_.front().index;
      to_apply_.erase(to_apply_.begin());
      core_->applied(stored_.applied);
    } else if (to_install_) {
      RC_ASSERT(stored_.base_index >= to_install_->index);  // the stored log was reset before
      stored_.applied = to_install_->index;
      applied_terms = images.at(to_install_->index);
      to_install_.reset();
      core_->snapshot_installed(stored_.applied);
    }
    take();
  }
  void snapshot() {
    const auto label = core_->label_at(stored_.applied);
    if (!label) return;
    images[label->index] = applied_terms;
    stored_.snapshot = *label;
    core_->snapshot_available(*label);
    take();
  }
  void compact(Index index) {
    const Index base = core_->compact(index);
    RC_ASSERT(base <= stored_.snapshot.index);
    if (base <= stored_.base_index || base > stored_.base_index + stored_.entries.size()) return;
    const auto end = stored_.entries.begin() + static_cast<std::ptrdiff_t>(base - stored_.base_index);
    stored_.base_term = std::prev(end)->term;
    stored_.base_index = base;
    stored_.entries.erase(stored_.entries.begin(), end);
  }
  void receive(const SnapshotLabel& label, std::vector<Term> content) {
    images[label.index] = std::move(content);
    if (label.index > stored_.snapshot.index) stored_.snapshot = label;
    core_->snapshot_received(label);
    take();
  }
  void restart() {
    writes_.clear();
    to_apply_.clear();
    to_install_.reset();
    const SnapshotLabel& snapshot = stored_.snapshot;
    const Index last = stored_.base_index + stored_.entries.size();
    bool leads_there = snapshot.index >= stored_.base_index && snapshot.index <= last;
    if (leads_there) {
      leads_there = snapshot.term == (snapshot.index == stored_.base_index
                                          ? stored_.base_term
                                          : stored_.entries[snapshot.index - stored_.base_index - 1].term);
    }
    if (!leads_there) {
      stored_.entries.clear();
      stored_.base_index = snapshot.index;
      stored_.base_term = snapshot.term;
    }
    if (stored_.applied < stored_.base_index) {
      stored_.applied = snapshot.index;
      applied_terms = images.at(snapshot.index);
    }
    start();
  }

  std::vector<Term> applied_terms;
  std::map<Index, std::vector<Term>> images;

 private:
  void start() {
    InitialState initial = stored_;
    initial.base_configuration = configuration_;
    Settings settings;
    settings.tail_bytes_max = 100;
    core_ = std::make_unique<Core>(Identity{"a", StoreId{1, 'a'}, ++sessions_, ClusterId{6, 6}}, settings,
                                   std::move(initial), io::RandomStream(1), now());
    take();
  }

  Configuration configuration_;
  InitialState stored_;
  std::unique_ptr<Core> core_;
  std::vector<Ready> writes_;
  std::vector<Entry> to_apply_;
  std::optional<SnapshotLabel> to_install_;
  std::uint64_t sessions_ = 0;
};

Entry entry_of(Index index, Term term) {
  return Entry{term, index, EntryType::command, std::make_shared<const std::string>(std::to_string(index))};
}

struct Truth {
  std::vector<LeaderLog> leaders{LeaderLog{}};  // by term; term 0 has none

  // The next leader keeps what was committed, and some of the rest.
  void elect() {
    const LeaderLog& old = leaders.back();
    LeaderLog next = old;
    next.terms.resize(*rc::gen::inRange<std::size_t>(old.commit, old.terms.size() + 1));
    next.terms.push_back(leaders.size());
    leaders.push_back(std::move(next));
  }
  void grow() {
    LeaderLog& log = leaders.back();
    for (int i = *rc::gen::inRange(1, 6); i > 0; --i) log.terms.push_back(leaders.size() - 1);
    // Only an entry of the leader's own term commits.
    log.commit = *rc::gen::inRange<Index>(log.commit, log.terms.size() + 1);
    if (log.commit > 0 && log.terms[log.commit - 1] != leaders.size() - 1) log.commit = old_commit();
  }
  Index old_commit() const { return leaders[leaders.size() - 2].commit; }
  Term term_at(const LeaderLog& log, Index index) const { return index == 0 ? 0 : log.terms[index - 1]; }
};

Message request_of(const Truth& truth, Term term) {
  const LeaderLog& log = truth.leaders[term];
  Message message;
  message.type = MessageType::append_request;
  message.from = term % 2 == 0 ? "b" : "c";
  message.to = "a";
  message.term = term;
  message.from_store = StoreId{1, static_cast<std::uint64_t>(message.from[0])};
  message.cluster = ClusterId{5, 5};
  message.session = 9;
  message.log_index = *rc::gen::inRange<Index>(0, log.terms.size() + 1);
  message.log_term = truth.term_at(log, message.log_index);
  const Index last = *rc::gen::inRange<Index>(message.log_index, std::min<Index>(log.terms.size(), message.log_index + 5) + 1);
  for (Index i = message.log_index + 1; i <= last; ++i) message.entries.push_back(entry_of(i, log.terms[i - 1]));
  message.commit = *rc::gen::inRange<Index>(0, log.commit + 1);
  return message;
}

TEST(FollowerProperty, ItsLogAndItsStateAreThoseOfItsLeadersInAnyOrderOfEvents) {
  EXPECT_TRUE(rc::check([] {
    Truth truth;
    truth.elect();
    Follower follower;
    Index commit_before = 0;
    Index applied_before = 0;
    for (int step = *rc::gen::inRange(1, 250); step > 0; --step) {
      Core& core = follower.core();
      switch (*rc::gen::inRange(0, 14)) {
        case 0:
          if (*rc::gen::inRange(0, 3) == 0) truth.elect();
          break;
        case 1:
        case 2:
          truth.grow();
          break;
        case 3:
        case 4:
        case 5:
        case 6: {
          // Mostly of the newest leader, now and then a late one.
          const Term newest = truth.leaders.size() - 1;
          const Term term = *rc::gen::inRange(0, 5) == 0 ? *rc::gen::inRange<Term>(1, newest + 1) : newest;
          core.step(request_of(truth, term), follower.now());
          follower.take();
          break;
        }
        case 7: {
          const Term term = *rc::gen::inRange<Term>(1, truth.leaders.size());
          const LeaderLog& log = truth.leaders[term];
          if (log.commit == 0) break;
          const Index index = *rc::gen::inRange<Index>(1, log.commit + 1);
          const ServerId from = term % 2 == 0 ? "b" : "c";
          SnapshotOffer offer{from, "a", term, StoreId{1, static_cast<std::uint64_t>(from[0])}, ClusterId{5, 5}, 9,
                              SnapshotLabel{index, log.terms[index - 1], 0, follower.configuration()}};
          const OfferAnswer answer = core.offer_snapshot(offer, follower.now());
          RC_ASSERT((answer.verdict == OfferAnswer::Verdict::refused) == (term < core.term()));
          follower.take();
          if (answer.verdict != OfferAnswer::Verdict::wanted) break;
          follower.receive(offer.label, std::vector<Term>(log.terms.begin(), log.terms.begin() + static_cast<std::ptrdiff_t>(index)));
          RC_ASSERT(core.commit_index() >= index);
          break;
        }
        case 8:
        case 9:
          follower.write_one();
          break;
        case 10:
        case 11:
          follower.apply_one();
          break;
        case 12:
          follower.snapshot();
          follower.compact(*rc::gen::inRange<Index>(0, core.snapshot().index + 2));
          break;
        case 13:
          if (*rc::gen::inRange(0, 6) != 0) break;
          follower.restart();
          commit_before = 0;
          applied_before = 0;
          break;
      }
      const Core& now = follower.core();
      // What it has committed is what was committed; what it has applied is the prefix of that.
      const LeaderLog& newest = truth.leaders.back();
      RC_ASSERT(now.commit_index() <= newest.commit);
      for (Index i = now.log().base_index(); i <= now.commit_index(); ++i) {
        RC_ASSERT(now.log().term(i) == truth.term_at(newest, i));
      }
      RC_ASSERT(follower.applied_terms.size() <= newest.terms.size());
      RC_ASSERT(std::equal(follower.applied_terms.begin(), follower.applied_terms.end(), newest.terms.begin()));
      RC_ASSERT(now.commit_index() >= commit_before);
      RC_ASSERT(now.applied_index() >= applied_before);
      RC_ASSERT(now.applied_index() <= now.durable_index());
      const bool reaches_base = now.is_installing() || now.applied_index() >= now.log().base_index();
      RC_ASSERT(reaches_base);
      RC_ASSERT(now.log().base_index() <= now.snapshot().index);
      commit_before = now.commit_index();
      applied_before = now.applied_index();
    }
    // Left alone with the newest leader, it ends where that one is.
    const Term term = truth.leaders.size() - 1;
    const LeaderLog& log = truth.leaders[term];
    Message all = request_of(truth, term);
    all.log_index = std::min<Index>(follower.core().commit_index(), log.terms.size());
    all.log_term = truth.term_at(log, all.log_index);
    all.entries.clear();
    for (Index i = all.log_index + 1; i <= log.terms.size(); ++i) all.entries.push_back(entry_of(i, log.terms[i - 1]));
    all.commit = log.commit;
    follower.core().step(std::move(all), follower.now());
    follower.take();
    for (int i = 0; i < 2000; ++i) {
      follower.write_one();
      follower.apply_one();
    }
    RC_ASSERT(follower.core().last_index() == log.terms.size());
    RC_ASSERT(follower.core().applied_index() == log.commit);
    RC_ASSERT(follower.core().durable_index() == log.terms.size());
  }));
}

}  // namespace
}  // namespace raft

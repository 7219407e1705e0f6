// The small parts of raft/ against models that are too simple to be wrong.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "raft/configuration.h"
#include "raft/log_view.h"
#include "raft/progress.h"
#include "raft/quorum.h"

namespace {

using raft::Entry;
using raft::EntryType;
using raft::Index;
using raft::LogView;
using raft::Term;

TEST(QuorumProperty, TheValueIsReachedByAMajorityAndNoGreaterOneIs) {
  EXPECT_TRUE(rc::check([](std::vector<std::uint64_t> values) {
    RC_PRE(!values.empty());
    std::vector<std::uint64_t> scratch = values;
    const std::uint64_t value = raft::quorum_value(scratch);
    const auto reached = [&](std::uint64_t bound) {
      return 2 * static_cast<std::size_t>(std::count_if(values.begin(), values.end(),
                                                        [&](std::uint64_t each) { return each >= bound; })) > values.size();
    };
    RC_ASSERT(reached(value));
    if (value < ~std::uint64_t{0}) RC_ASSERT(!reached(value + 1));
  }));
}

TEST(BallotProperty, ElectionsOfOneTermCannotBothBeWon) {
  EXPECT_TRUE(rc::check([] {
    const int count = *rc::gen::inRange(1, 8);
    std::vector<std::pair<raft::ServerId, std::string>> members;
    for (int i = 0; i < count; ++i) members.emplace_back("s" + std::to_string(i), "");
    const raft::Configuration configuration = raft::bootstrap_configuration(members);
    raft::Ballot first(raft::ElectionKind::vote, 3, configuration);
    raft::Ballot second(raft::ElectionKind::vote, 3, configuration);
    // Every voter grants one of the two at most, however often its answers arrive.
    for (int i = 0; i < count; ++i) {
      const int choice = *rc::gen::inRange(0, 3);
      for (int copies = *rc::gen::inRange(1, 4); copies > 0; --copies) {
        first.record(raft::ElectionKind::vote, 3, members[static_cast<std::size_t>(i)].first, {1, 1}, choice == 1);
        second.record(raft::ElectionKind::vote, 3, members[static_cast<std::size_t>(i)].first, {1, 1}, choice == 2);
      }
    }
    const bool are_both_won = first.result() == raft::ElectionResult::won && second.result() == raft::ElectionResult::won;
    RC_ASSERT(!are_both_won);
    RC_ASSERT(first.result() != raft::ElectionResult::pending);
  }));
}

Entry entry_of(Index index, Term term, std::size_t size) {
  return Entry{term, index, EntryType::command, std::make_shared<const std::string>(size, 'x')};
}

// A log as a plain list of (term, payload size) above a base; those up to `unheld` are not in memory.
struct ModelLog {
  Index base = 0;
  Index unheld = 0;
  Term base_term = 0;
  std::vector<std::pair<Term, std::size_t>> entries;
  Index last() const { return base + entries.size(); }
};

void compare(const LogView& log, const ModelLog& model) {
  RC_ASSERT(log.base_index() == model.base);
  RC_ASSERT(log.base_term() == model.base_term);
  RC_ASSERT(log.held_from() == std::max(model.base, model.unheld) + 1);
  RC_ASSERT(log.last_index() == model.last());
  RC_ASSERT(log.last_term() == (model.entries.empty() ? model.base_term : model.entries.back().first));
  std::uint64_t cost = 0;
  for (std::size_t i = 0; i < model.entries.size(); ++i) {
    const Index index = model.base + 1 + i;
    RC_ASSERT(log.term(index) == model.entries[i].first);
    if (index <= model.unheld) continue;
    RC_ASSERT(log.at(index).index == index);
    RC_ASSERT(log.at(index).data->size() == model.entries[i].second);
    cost += Entry::kFrameBytes + model.entries[i].second;
  }
  RC_ASSERT(log.cost_bytes() == cost);
  RC_ASSERT(!log.term(model.last() + 1).has_value());
  RC_ASSERT(model.base == 0 || !log.term(model.base - 1).has_value());
}

TEST(LogViewProperty, BehavesLikeAListOfTerms) {
  EXPECT_TRUE(rc::check([] {
    ModelLog model;
    model.base = *rc::gen::inRange<Index>(0, 3000);
    model.base_term = *rc::gen::inRange<Term>(0, 3);
    LogView log(model.base, model.base_term);
    const int steps = *rc::gen::inRange(1, 60);
    for (int step = 0; step < steps; ++step) {
      const Index first_cut = std::max(model.base, model.unheld) + 1;
      switch (*rc::gen::inRange(0, 7)) {
        case 4:
        case 5: {
          model.unheld = *rc::gen::inRange<Index>(model.base, model.last() + 1);
          log.release(model.unheld);
          model.unheld = std::max(model.unheld, first_cut - 1);
          break;
        }
        case 6: {
          if (*rc::gen::inRange(0, 4) != 0) break;
          model.base_term = log.last_term() + *rc::gen::element<Term>(0, 1);
          model.base = model.unheld = model.last() + *rc::gen::inRange<Index>(0, 600);
          model.entries.clear();
          log.reset(model.base, model.base_term);
          break;
        }
        case 0:
        case 1: {
          const Term term = log.last_term() + *rc::gen::element<Term>(0, 0, 0, 1, 2);
          for (int i = *rc::gen::inRange(1, 400); i > 0; --i) {
            log.append(entry_of(model.last() + 1, term, static_cast<std::size_t>(i % 7)));
            model.entries.emplace_back(term, i % 7);
          }
          break;
        }
        case 2: {
          const Index from = *rc::gen::inRange<Index>(first_cut, model.last() + 3);
          log.truncate(from);
          if (from <= model.last()) model.entries.resize(from - model.base - 1);
          break;
        }
        case 3: {
          const Index at = model.base + *rc::gen::inRange<Index>(0, model.entries.size() + 1);
          log.compact(at);
          if (at == model.base) break;
          model.base_term = model.entries[at - model.base - 1].first;
          model.entries.erase(model.entries.begin(), model.entries.begin() + static_cast<std::ptrdiff_t>(at - model.base));
          model.base = at;
          break;
        }
      }
    }
    compare(log, model);

    // Where two logs may agree, by looking at every place.
    const Index index = *rc::gen::inRange<Index>(0, model.last() + 5);
    const Term term = *rc::gen::inRange<Term>(0, log.last_term() + 2);
    Index expected = model.base;
    for (Index i = model.base + 1; i <= std::min(index, model.last()); ++i) {
      if (model.entries[i - model.base - 1].first <= term) expected = i;
    }
    RC_ASSERT(log.find_possible_match(index, term) == expected);
  }));
}

TEST(LogViewProperty, CopiesConsecutiveEntriesWithinTheBoundAndAlwaysOne) {
  EXPECT_TRUE(rc::check([] {
    LogView log;
    const auto sizes = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>()));
    for (const std::uint8_t size : sizes) log.append(entry_of(log.last_index() + 1, 1, size));
    const Index first = *rc::gen::inRange<Index>(1, log.last_index() + 1);
    const std::uint64_t bound = *rc::gen::inRange<std::uint64_t>(0, 2000);
    std::vector<Entry> out;
    std::uint64_t cost = 0;
    const Index last = log.copy(first, log.last_index(), bound, out, &cost);
    RC_ASSERT(last >= first);
    RC_ASSERT(out.size() == last - first + 1);
    const bool is_within = cost <= bound || out.size() == 1;
    RC_ASSERT(is_within);
    for (std::size_t i = 0; i < out.size(); ++i) RC_ASSERT(out[i].index == first + i);
    if (last < log.last_index()) RC_ASSERT(cost + log.at(last + 1).cost_bytes() > bound);
  }));
}

// A server behind a Progress: it holds a prefix of the leader's log in memory and a shorter one on disk. Requests and
// answers pass a network that loses, repeats and reorders.
TEST(ProgressProperty, MatchIsTrueAndNeverGoesBackAndTheWindowHolds) {
  EXPECT_TRUE(rc::check([] {
    const raft::FlightLimits limits{3, 1000};
    struct Request {
      Index prev;
      Index last;
    };
    struct Answer {
      bool rejected;
      Index log_index;
      Index match;
      Index hint;
    };
    Index leader_last = 10;
    Index held = *rc::gen::inRange<Index>(0, 11);
    Index durable = held;
    raft::Progress progress(leader_last + 1);
    std::vector<Request> requests;
    std::vector<Answer> answers;
    Index match_before = 0;
    for (int step = *rc::gen::inRange(1, 300); step > 0; --step) {
      switch (*rc::gen::inRange(0, 8)) {
        case 0:
          ++leader_last;
          break;
        case 1:
        case 2:
          if (progress.next() <= leader_last && progress.can_send_entries(limits)) {
            const Index last = std::min(leader_last, progress.next() + 1);
            requests.push_back(Request{progress.next() - 1, last});
            progress.sent_entries(last, 400);
          }
          break;
        case 3:
          progress.allow_probe();
          requests.push_back(Request{progress.next() - 1, progress.next() - 1});
          progress.sent_probe();
          break;
        case 4:
        case 5:
          if (!requests.empty()) {
            const std::size_t at = *rc::gen::inRange<std::size_t>(0, requests.size());
            const Request request = requests[at];
            if (*rc::gen::arbitrary<bool>()) requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(at));
            if (request.prev > held) {
              answers.push_back(Answer{true, request.prev, 0, held});
            } else {
              held = std::max(held, request.last);
              if (*rc::gen::arbitrary<bool>()) durable = held;
              answers.push_back(Answer{false, held, durable, 0});
            }
          }
          break;
        case 6:
          if (!answers.empty()) {
            const std::size_t at = *rc::gen::inRange<std::size_t>(0, answers.size());
            const Answer answer = answers[at];
            if (*rc::gen::arbitrary<bool>()) answers.erase(answers.begin() + static_cast<std::ptrdiff_t>(at));
            if (answer.rejected) {
              progress.refused(answer.log_index, answer.hint);
            } else {
              progress.accepted(answer.log_index, answer.match);
            }
          }
          break;
        case 7:
          // The server restarts: what was not durable is gone, and its old answers are recognised by their session.
          held = durable;
          answers.clear();
          requests.clear();
          progress.restart(0);
          break;
      }
      RC_ASSERT(progress.match() >= match_before);
      RC_ASSERT(progress.match() <= durable);
      RC_ASSERT(progress.next() > progress.match());
      RC_ASSERT(progress.next() <= leader_last + 1);
      RC_ASSERT(progress.in_flight_messages() <= limits.messages_max);
      RC_ASSERT(progress.in_flight_bytes() <= limits.bytes_max + 400);
      match_before = progress.match();
    }
    // Left alone, the server catches up: heartbeats find where the logs meet, then everything is sent.
    for (int round = 0; round < 40; ++round) {
      progress.allow_probe();
      requests = {Request{progress.next() - 1, progress.next() - 1}};
      while (progress.next() <= leader_last && progress.can_send_entries(limits)) {
        const Index last = std::min(leader_last, progress.next() + 1);
        requests.push_back(Request{progress.next() - 1, last});
        progress.sent_entries(last, 400);
      }
      for (const Request& request : requests) {
        if (request.prev > held) {
          progress.refused(request.prev, held);
        } else {
          durable = held = std::max(held, request.last);
          progress.accepted(held, durable);
        }
      }
      if (progress.match() == leader_last) break;
    }
    RC_ASSERT(progress.match() == leader_last);
  }));
}

// The same with a leader whose log loses its front: what the server lacks below `base` comes as an image, which may fail.
TEST(ProgressProperty, AServerBelowTheBaseIsBroughtUpByAnImageWhateverHappensMeanwhile) {
  EXPECT_TRUE(rc::check([] {
    const raft::FlightLimits limits{3, 1000};
    Index leader_last = 10;
    Index base = 0;
    Index held = *rc::gen::inRange<Index>(0, 11);
    raft::Progress progress(leader_last + 1);
    std::uint64_t number = 0;
    const auto place = [&] {
      if (progress.state() != raft::Progress::State::snapshot && progress.next() <= base) {
        progress.begin_snapshot(base, ++number);
      }
    };
    const auto exchange = [&](Index prev, Index last) {
      if (prev > held) {
        progress.refused(prev, held);
      } else {
        held = std::max(held, last);
        if (held >= base) progress.accepted(held, held);
      }
    };
    Index match_before = 0;
    for (int step = *rc::gen::inRange(1, 200); step > 0; --step) {
      switch (*rc::gen::inRange(0, 7)) {
        case 0:
          leader_last += 3;
          break;
        case 1:
          base = *rc::gen::inRange<Index>(base, leader_last + 1);
          if (progress.state() != raft::Progress::State::snapshot && progress.next() <= base) progress.restart(base);
          break;
        case 2:
        case 3: {
          place();
          if (progress.next() > leader_last || !progress.can_send_entries(limits)) break;
          const Index prev = progress.next() - 1;
          progress.sent_entries(prev + 1, 400);
          if (*rc::gen::arbitrary<bool>()) exchange(prev, prev + 1);
          break;
        }
        case 4: {
          progress.allow_probe();
          place();
          const bool awaits = progress.state() == raft::Progress::State::snapshot;
          const Index prev = awaits ? 0 : progress.next() - 1;
          if (progress.state() == raft::Progress::State::probe) progress.sent_probe();
          if (*rc::gen::arbitrary<bool>()) exchange(prev, prev);
          break;
        }
        case 5:
          if (progress.awaits_snapshot(number)) {
            const bool has_arrived = *rc::gen::arbitrary<bool>();
            if (has_arrived) held = std::max(held, progress.snapshot_index());
            progress.end_snapshot(has_arrived, base);
            RC_ASSERT(!progress.awaits_snapshot(number));
          }
          break;
        case 6:
          progress.restart(base);
          break;
      }
      RC_ASSERT(progress.match() >= match_before);
      RC_ASSERT(progress.match() <= held);
      RC_ASSERT(progress.next() > progress.match());
      RC_ASSERT((progress.snapshot_index() != 0) == (progress.state() == raft::Progress::State::snapshot));
      match_before = progress.match();
    }
    for (int round = 0; round < 400 && progress.match() < leader_last; ++round) {
      progress.allow_probe();
      place();
      if (progress.awaits_snapshot(number)) {
        held = std::max(held, progress.snapshot_index());
        progress.end_snapshot(true, base);
        continue;
      }
      exchange(progress.next() - 1, progress.next() - 1);
      if (progress.next() > base && progress.next() <= leader_last && progress.can_send_entries(limits)) {
        const Index prev = progress.next() - 1;
        progress.sent_entries(prev + 1, 400);
        exchange(prev, prev + 1);
      }
    }
    RC_ASSERT(progress.match() == leader_last);
  }));
}

TEST(ConfigurationProperty, EncodingIsOneToOne) {
  EXPECT_TRUE(rc::check([] {
    raft::Configuration configuration;
    configuration.cluster = raft::ClusterId{*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
    const int count = *rc::gen::inRange(0, 9);
    for (int i = 0; i < count; ++i) {
      configuration.servers.push_back(raft::Server{"s" + std::to_string(i) + *rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
                                                   *rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
                                                   *rc::gen::arbitrary<bool>(),
                                                   raft::StoreId{*rc::gen::arbitrary<std::uint64_t>(), 1}});
    }
    configuration.normalise();
    const std::string bytes = encode(configuration);
    RC_ASSERT(raft::decode_configuration(bytes) == configuration);
    // No shorter, longer or bent form decodes to the same value.
    RC_ASSERT(!raft::decode_configuration(bytes + "x").has_value());
    const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size());
    RC_ASSERT(!raft::decode_configuration(bytes.substr(0, cut)).has_value());
    std::string bent = bytes;
    bent[cut] = static_cast<char>(bent[cut] ^ static_cast<char>(*rc::gen::inRange(1, 256)));
    const auto decoded = raft::decode_configuration(bent);
    if (decoded) RC_ASSERT(encode(*decoded) == bent);
  }));
}

TEST(ConfigurationProperty, TheLogOfConfigurationsForgetsNoneThatIsInForce) {
  EXPECT_TRUE(rc::check([] {
    const auto named = [](int n) {
      return raft::bootstrap_configuration({{"s" + std::to_string(n), ""}});
    };
    raft::ConfigurationLog log(0, named(0));
    std::vector<std::pair<Index, raft::Configuration>> model{{0, named(0)}};
    Index last = 0;
    Index base = 0;
    for (int step = *rc::gen::inRange(1, 60); step > 0; --step) {
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          last += *rc::gen::inRange<Index>(1, 4);
          log.append(last, named(step));
          model.emplace_back(last, named(step));
          break;
        case 1: {
          const Index from = base + *rc::gen::inRange<Index>(1, last - base + 3);
          const bool changes = model.back().first >= from;
          while (model.back().first >= from) model.pop_back();
          RC_ASSERT(log.truncate(from) == changes);
          last = std::min(last, from - 1);
          break;
        }
        case 2:
          base = *rc::gen::inRange<Index>(base, last + 1);
          log.compact(base);
          break;
      }
      last = std::max(last, base);
      RC_ASSERT(log.current() == model.back().second);
      RC_ASSERT(log.current_index() == model.back().first);
      const Index at = *rc::gen::inRange<Index>(base, last + 1);
      const auto newest = std::find_if(model.rbegin(), model.rend(), [&](const auto& item) { return item.first <= at; });
      RC_ASSERT(log.at(at) == newest->second);
      RC_ASSERT(log.index_at(at) == newest->first);
    }
  }));
}

}  // namespace

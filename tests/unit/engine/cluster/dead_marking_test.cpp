// Each promise of engine/cluster/dead_marking.h.

#include "engine/cluster/dead_marking.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/commands.h"
#include "tests/support/apply_table.h"

namespace {

using namespace engine::cluster;
using engine::metastore::Member;
using engine::metastore::MemberStatus;
using namespace std::chrono_literals;

Member member(std::string id, int64_t stamp, MemberStatus status = MemberStatus::alive) {
  return {std::move(id), "h:7942", "h:7943", status, stamp, false, "3.2.0", 37};
}

io::Instant at(io::Duration since) { return io::Instant(1000s) + since; }

// Five voters, of whom a leads; v is a non-voter.
const std::vector<std::string> kVoters{"a", "b", "c", "d", "e"};

// A leader that looks every 10 s, as its controller does, at records whose stamps a test moves.
struct Leader {
  DeadMarking marking;
  raft::Term term = 1;
  io::Duration time{0};
  std::vector<Member> members{member("a", 100), member("b", 100), member("c", 100), member("d", 100), member("e", 100), member("v", 100)};

  Member& of(const std::string& id) {
    return *std::find_if(members.begin(), members.end(), [&](const Member& one) { return one.id == id; });
  }
  void beat(const std::string& id) { ++of(id).last_heartbeat; }
  void beat_all_but(const std::string& silent) {
    for (Member& one : members) {
      one.last_heartbeat += silent.find(one.id) == std::string::npos ? 1 : 0;
    }
  }
  DeadPass look() { return marking.judge(term, at(time), members, kVoters, "a"); }
  // The ticks up to `until`, with everybody but the named beating; the last pass.
  DeadPass run_silent(const std::string& silent, io::Duration until) {
    DeadPass pass = look();
    while (time < until) {
      time += 10s;
      beat_all_but(silent);
      pass = look();
    }
    return pass;
  }
};

std::vector<std::string> ids(const DeadPass& pass) {
  std::vector<std::string> found;
  for (const DeadMark& mark : pass.marks) {
    found.push_back(mark.id);
  }
  return found;
}

using Ids = std::vector<std::string>;

TEST(DeadMarking, MarksAMemberAfterThirtySecondsOfSilence) {
  Leader leader;
  EXPECT_EQ(ids(leader.run_silent("b", 20s)), Ids{});
  const DeadPass pass = leader.run_silent("b", 30s);
  EXPECT_EQ(pass.marks, (std::vector<DeadMark>{{"b", 100}})) << "with the heartbeat that was observed";
  EXPECT_TRUE(pass.refused.empty());
}

TEST(DeadMarking, SilenceIsCountedFromTheLastChangeThatWasSeen) {
  Leader leader;
  leader.run_silent("b", 20s);
  leader.beat("b");
  EXPECT_EQ(ids(leader.run_silent("b", 40s)), Ids{});
  EXPECT_EQ(ids(leader.run_silent("b", 50s)), Ids{"b"});
}

TEST(DeadMarking, CalendarTimesAreNotCompared) {
  Leader leader;
  leader.of("b").last_heartbeat = 7;               // hours behind the others
  leader.of("c").last_heartbeat = 4'000'000'000;   // years ahead
  EXPECT_EQ(ids(leader.run_silent("", 60s)), Ids{}) << "both stamps change";
  leader.of("d").last_heartbeat = 50;  // a stamp that went back has changed too
  EXPECT_EQ(ids(leader.run_silent("d", 80s)), Ids{});
}

TEST(DeadMarking, ANewLeaderWaitsAFullThirtySeconds) {
  Leader leader;
  leader.run_silent("bv", 20s);
  leader.term = 2;
  EXPECT_EQ(ids(leader.run_silent("bv", 40s)), Ids{});
  EXPECT_EQ(ids(leader.run_silent("bv", 50s)), (Ids{"b", "v"}));
  leader.marking.stop();
  EXPECT_EQ(ids(leader.look()), Ids{}) << "nothing is remembered of a leadership that ended";
}

TEST(DeadMarking, ALeaderThatDidNotWatchBeginsAnew) {
  Leader leader;
  leader.run_silent("v", 20s);
  leader.time += kWatchGapMax + 1ns;
  EXPECT_EQ(ids(leader.look()), Ids{}) << "nobody was heard while it was frozen";
  leader.time += 10s;
  leader.look();
  leader.time += kWatchGapMax;
  EXPECT_EQ(ids(leader.look()), Ids{});
  leader.time += 5s;
  EXPECT_EQ(ids(leader.look()), (Ids{"v"})) << "of the voters the breaker keeps all";
}

TEST(DeadMarking, ADeadMemberIsNotMarkedAgainAndALeaderNeverItself) {
  Leader leader;
  leader.of("b").status = MemberStatus::dead;
  EXPECT_EQ(ids(leader.run_silent("ab", 60s)), Ids{});
}

TEST(DeadMarking, AMemberThatRegistersIsCountedFromThen) {
  Leader leader;
  leader.run_silent("", 20s);
  leader.members.push_back(member("w", 3));
  EXPECT_EQ(ids(leader.run_silent("w", 40s)), Ids{});
  EXPECT_EQ(ids(leader.run_silent("w", 50s)), Ids{"w"});
}

TEST(DeadMarking, TheBreakerRefusesAllVotersOfAPassThatWouldLeaveNoQuorum) {
  Leader leader;
  const DeadPass pass = leader.run_silent("bcdv", 30s);
  EXPECT_EQ(ids(pass), Ids{"v"}) << "non-voters are judged as ever";
  EXPECT_EQ(pass.refused, (Ids{"b", "c", "d"}));
  EXPECT_EQ(pass.alive_voters_after, 2u);
  EXPECT_EQ(pass.quorum, 3u);
  EXPECT_EQ(pass.voters, 5u);
  EXPECT_EQ(leader.marking.refused(), 3u);
}

TEST(DeadMarking, MarksThatLeaveAQuorumAreMadeWithTheLeaderCountingItself) {
  Leader leader;
  leader.of("a").status = MemberStatus::dead;  // its own record says nothing against it
  EXPECT_EQ(ids(leader.run_silent("bc", 30s)), (Ids{"b", "c"})) << "a, d and e are three of five";
  EXPECT_EQ(leader.marking.refused(), 0u);
}

TEST(DeadMarking, VotersThatAreDeadOrWithoutARecordDoNotCountAsAlive) {
  Leader leader;
  leader.of("c").status = MemberStatus::dead;
  std::erase_if(leader.members, [](const Member& one) { return one.id == "d"; });
  const DeadPass pass = leader.run_silent("b", 30s);
  EXPECT_EQ(ids(pass), Ids{});
  EXPECT_EQ(pass.refused, Ids{"b"});
  EXPECT_EQ(pass.alive_voters_after, 2u) << "a and e";
}

struct Lines final : io::Log {
  void write(io::LogLevel level, std::string_view text, const std::vector<io::LogField>& fields) override {
    lines.push_back(std::string(io::to_string(level)) + " " + std::string(text.substr(0, text.find(':', 12))));
    for (const io::LogField& field : fields) {
      if (const auto* value = std::get_if<std::string>(&field.value)) lines.back() += " " + std::string(field.key) + "=" + *value;
      if (const auto* value = std::get_if<uint64_t>(&field.value)) lines.back() += " " + std::string(field.key) + "=" + std::to_string(*value);
    }
  }
  bool enabled(io::LogLevel) const override { return true; }
  std::vector<std::string> lines;
};

TEST(DeadMarking, AStreakOfRefusalsIsLoggedOnceAndItsEndOnce) {
  Leader leader;
  Lines log;
  auto run = [&](const std::string& silent, io::Duration until) {
    while (leader.time < until) {
      leader.time += 10s;
      leader.beat_all_but(silent);
      log_dead_pass(log, leader.look());
    }
  };
  leader.look();
  run("bcd", 60s);
  EXPECT_EQ(log.lines, (Ids{"error controller: refusing to mark voters dead refused=b,c,d alive_voters_after=2 quorum=3 voters=5"}));
  run("", 90s);
  ASSERT_EQ(log.lines.size(), 2u);
  EXPECT_EQ(log.lines[1], "info controller: dead-marking breaker cleared");
  run("bcd", 120s);
  EXPECT_EQ(log.lines.size(), 3u) << "another streak";
}

TEST(DeadMarking, TheMarkIsRefusedByAHeartbeatThatCommittedMeanwhile) {
  tests::AppliedRows rows;
  const DeadMark mark{"b", 100};
  ASSERT_TRUE(rows.answer_of(engine::metastore::RegisterMember{member("b", 101)}).ok());
  const auto answer = *engine::metastore::decode_answer(rows.apply(dead_mark_command(mark, true)).answers.at(0));
  EXPECT_EQ(answer.code, engine::metastore::Code::member_heartbeat_newer);
  const auto older = *engine::metastore::decode_answer(rows.apply(dead_mark_command(mark, false)).answers.at(0));
  EXPECT_TRUE(older.ok()) << "the older mark asks nothing: its proposer has looked again";
}

TEST(DeadMarking, TheOlderMarkIsForARecordThatIsStillSilent) {
  const DeadMark mark{"b", 100};
  EXPECT_TRUE(still_silent(mark, member("b", 100)));
  EXPECT_FALSE(still_silent(mark, member("b", 101)));
  EXPECT_FALSE(still_silent(mark, member("b", 100, MemberStatus::dead)));
  EXPECT_FALSE(still_silent(mark, std::nullopt));
}

}  // namespace

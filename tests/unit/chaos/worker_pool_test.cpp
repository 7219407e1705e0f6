// Worker processes: every piece is answered once, a piece that crashes or hangs is reported with its number and the rest goes on.

#include "chaos/host/worker_pool.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace chaos {
namespace {

struct Counted {
  uint64_t next = 1;
  uint64_t last;
  std::map<uint64_t, PieceResult> done;

  std::function<std::optional<Piece>()> source() {
    return [this]() -> std::optional<Piece> {
      if (next > last) {
        return std::nullopt;
      }
      Piece piece{next, std::to_string(next)};
      ++next;
      return piece;
    };
  }
  std::function<bool(const PieceResult&)> sink() {
    return [this](const PieceResult& result) {
      EXPECT_TRUE(done.emplace(result.piece.number, result).second) << "answered twice";
      return true;
    };
  }
};

TEST(WorkerPool, EveryPieceIsAnsweredOnce) {
  Counted pieces{1, 40, {}};
  EXPECT_TRUE(run_pieces({3, std::chrono::seconds(60)}, [](const std::string& request) { return request + "!"; },
                         pieces.source(), pieces.sink()));
  ASSERT_EQ(pieces.done.size(), 40u);
  EXPECT_EQ(pieces.done.at(17).response, "17!");
  EXPECT_EQ(pieces.done.at(17).fault, "");
}

TEST(WorkerPool, ACrashIsReportedWithItsPieceAndTheRestGoesOn) {
  Counted pieces{1, 10, {}};
  EXPECT_TRUE(run_pieces(
      {2, std::chrono::seconds(60)},
      [](const std::string& request) {
        if (request == "4") {
          std::fprintf(stderr, "the reason\n");
          std::abort();
        }
        return request;
      },
      pieces.source(), pieces.sink()));
  ASSERT_EQ(pieces.done.size(), 10u);
  EXPECT_NE(pieces.done.at(4).fault.find("signal 6"), std::string::npos) << pieces.done.at(4).fault;
  EXPECT_NE(pieces.done.at(4).fault.find("the reason"), std::string::npos);
  EXPECT_EQ(pieces.done.at(5).fault, "");
}

TEST(WorkerPool, AHangIsStoppedAtItsBound) {
  Counted pieces{1, 2, {}};
  EXPECT_TRUE(run_pieces(
      {1, std::chrono::seconds(1)},
      [](const std::string& request) {
        while (request == "1") {
          volatile int spin = 0;
          spin = spin + 1;
        }
        return request;
      },
      pieces.source(), pieces.sink()));
  ASSERT_EQ(pieces.done.size(), 2u);
  EXPECT_NE(pieces.done.at(1).fault.find("stopped after 1 s"), std::string::npos);
  EXPECT_EQ(pieces.done.at(2).response, "2");
}

TEST(WorkerPool, EndsWhenTheCallerHasSeenEnough) {
  Counted pieces{1, 1'000'000, {}};
  EXPECT_FALSE(run_pieces({2, std::chrono::seconds(60)}, [](const std::string& request) { return request; }, pieces.source(),
                          [](const PieceResult& result) { return result.piece.number < 5; }));
}

}  // namespace
}  // namespace chaos

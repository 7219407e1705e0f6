// File operations that are given up: the deadline or a cancellation ends the wait, not the operation. Its handle
// refuses further use, its file is not opened again before it has ended, and other files go on.
#include <string>

#include "tests/conformance/arms/conformance.h"

namespace {

using namespace io;

constexpr tests::ArmSettings kStalls{.disk_bytes = std::nullopt, .may_stall = true};

class Abandoned : public tests::Conformance {
 protected:
  static std::unique_ptr<File> open_with(Env& env, std::string_view path, std::string text) {
    auto file = std::move(*env.disk.open(path, OpenMode::create));
    EXPECT_TRUE(file->write_and_sync(0, std::move(text)).ok());
    return file;
  }

  // Waits until the abandoned operation has ended and the file can be opened again.
  static std::unique_ptr<File> reopen(Env& env, std::string_view path) {
    const Instant limit = env.after(30s);
    while (env.now() < limit) {
      Result<std::unique_ptr<File>> opened = env.disk.open(path, OpenMode::read_write);
      if (opened.ok()) {
        return std::move(*opened);
      }
      EXPECT_TRUE(opened.is(ErrorKind::busy)) << opened.error().to_text();
      sleep_for(1ms);
    }
    ADD_FAILURE() << "the abandoned operation never ended";
    return nullptr;
  }

  static void expect_refused(File& file) {
    EXPECT_TRUE(file.refuses_use());
    EXPECT_TRUE(file.read(0, 1).is(ErrorKind::invalid));
    EXPECT_TRUE(file.write(0, "x").is(ErrorKind::invalid));
    EXPECT_TRUE(file.sync().is(ErrorKind::invalid));
    EXPECT_TRUE(file.size().is(ErrorKind::invalid));
  }
};
NARAD_ALL_ARMS(Abandoned);

TEST_P(Abandoned, ATimedOutWriteLandsLateOrNotAtAllAndItsHandleIsClosedForUse) {
  run(
      [&](Env& env) {
        auto file = open_with(env, "a", "old bytes");
        arm().stall_next("write", "a");
        EXPECT_TRUE(file->write(0, "NEW BYTES", env.after(20ms)).is(ErrorKind::timed_out));
        expect_refused(*file);
        EXPECT_TRUE(env.disk.open("a", OpenMode::read).is(ErrorKind::busy));
        file.reset();
        EXPECT_TRUE(env.disk.open("a", OpenMode::read_write).is(ErrorKind::busy));
        arm().release();
        auto again = reopen(env, "a");
        ASSERT_NE(again, nullptr);
        const std::string now = *again->read(0, 100);
        EXPECT_TRUE(now == "NEW BYTES" || now == "old bytes") << now;
        // Nothing of it comes after the file could be opened again.
        ASSERT_TRUE(again->write(0, "yet again").ok());
        sleep_for(20ms);
        EXPECT_EQ(*again->read(0, 100), "yet again");
      },
      kStalls);
}

TEST_P(Abandoned, ACancelledWriteIsGivenUpLikeATimedOutOne) {
  run(
      [&](Env& env) {
        auto file = open_with(env, "a", "old bytes");
        arm().stall_next("write", "a");
        with_scope([&](Scope& scope) {
          Task writer = scope.spawn("writer", [&] {
            (void)file->write(0, "NEW BYTES");
            ADD_FAILURE() << "a cancelled write returned";
          });
          sleep_for(5ms);
          writer.cancel();
          EXPECT_TRUE(writer.join(env.after(10s)));
        });
        expect_refused(*file);
        EXPECT_TRUE(env.disk.open("a", OpenMode::read).is(ErrorKind::busy));
        arm().release();
        EXPECT_NE(reopen(env, "a"), nullptr);
      },
      kStalls);
}

TEST_P(Abandoned, ATimedOutSyncClosesTheHandleForUse) {
  run(
      [&](Env& env) {
        auto file = open_with(env, "a", "bytes");
        ASSERT_TRUE(file->write(0, "BYTES").ok());
        arm().stall_next("sync", "a");
        EXPECT_TRUE(file->sync(env.after(20ms)).is(ErrorKind::timed_out));
        expect_refused(*file);
        arm().release();
        auto again = reopen(env, "a");
        ASSERT_NE(again, nullptr);
        EXPECT_EQ(*again->read(0, 100), "BYTES");
        EXPECT_TRUE(again->sync().ok());
      },
      kStalls);
}

TEST_P(Abandoned, OtherFilesGoOnWhileOneHangs) {
  run(
      [&](Env& env) {
        auto hung = open_with(env, "hung", "x");
        auto other = open_with(env, "other", "x");
        arm().stall_next("write", "hung");
        with_scope([&](Scope& scope) {
          scope.spawn("hangs", [&] { EXPECT_TRUE(hung->write(0, "y").ok()); });
          sleep_for(5ms);
          for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE(other->write_and_sync(0, "z").ok());
          }
          EXPECT_TRUE(env.disk.list("").ok());
          arm().release();
        });
        EXPECT_EQ(*hung->read(0, 10), "y") << "a slow write that was waited for succeeds";
        EXPECT_FALSE(hung->refuses_use());
      },
      kStalls);
}

TEST_P(Abandoned, AnOperationUnderWayDoesNotKeepAnotherHandleFromBeingOpened) {
  run(
      [&](Env& env) {
        auto file = open_with(env, "a", "x");
        arm().stall_next("write", "a");
        with_scope([&](Scope& scope) {
          scope.spawn("hangs", [&] { EXPECT_TRUE(file->write(0, "y").ok()); });
          sleep_for(5ms);
          EXPECT_TRUE(env.disk.open("a", OpenMode::read).ok()) << "nobody has given it up";
          arm().release();
        });
      },
      kStalls);
}

TEST_P(Abandoned, ARemovedFilesNameIsFreeAtOnce) {
  run(
      [&](Env& env) {
        auto file = open_with(env, "a", "old");
        arm().stall_next("write", "a");
        EXPECT_TRUE(file->write(0, "LATE", env.after(20ms)).is(ErrorKind::timed_out));
        ASSERT_TRUE(env.disk.remove("a").ok());
        auto fresh = env.disk.open("a", OpenMode::create_new);
        ASSERT_TRUE(fresh.ok()) << fresh.error().to_text();
        ASSERT_TRUE((*fresh)->write(0, "new").ok());
        arm().release();
        sleep_for(20ms);
        EXPECT_EQ(*(*fresh)->read(0, 100), "new") << "the late write reaches the removed file only";
      },
      kStalls);
}

}  // namespace

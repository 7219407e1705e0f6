// A full disk: every step that needs room says `no_space`, nothing that was there is lost, and room that comes back is
// used.
#include <string>

#include "tests/conformance/arms/conformance.h"

namespace {

using namespace io;

constexpr uint64_t kDiskBytes = 1 << 20;
constexpr size_t kPartBytes = 64 * 1024;
constexpr tests::ArmSettings kSmallDisk{.disk_bytes = kDiskBytes, .may_stall = false};

class NoSpace : public tests::Conformance {
 protected:
  // Writes parts of `letter` until the disk is full; the bytes that were accepted.
  static uint64_t fill(File& file, char letter) {
    uint64_t offset = 0;
    while (true) {
      Status written = file.write(offset, std::string(kPartBytes, letter));
      if (!written.ok()) {
        EXPECT_TRUE(written.is(ErrorKind::no_space)) << written.error().to_text();
        EXPECT_NE(written.error().message.find(file.path()), std::string::npos) << written.error().message;
        return offset;
      }
      offset += kPartBytes;
      if (offset > 4 * kDiskBytes) {
        ADD_FAILURE() << "the disk never fills";
        return offset;
      }
    }
  }
};
NARAD_ALL_ARMS(NoSpace);

TEST_P(NoSpace, AWriteThatDoesNotFitSaysSoAndLosesNothing) {
  run(
      [&](Env& env) {
        auto kept = std::move(*env.disk.open("kept", OpenMode::create));
        ASSERT_TRUE(kept->write_and_sync(0, "precious").ok());
        auto filler = std::move(*env.disk.open("filler", OpenMode::create));
        const uint64_t accepted = fill(*filler, 'f');
        EXPECT_GE(accepted, kDiskBytes / 2);
        EXPECT_LE(accepted, kDiskBytes);
        EXPECT_EQ(*kept->read(0, 100), "precious");
        EXPECT_EQ(*filler->read(accepted - 10, 10), std::string(10, 'f'));
        EXPECT_FALSE(filler->refuses_use());
        EXPECT_LT(*env.disk.free_space(), kPartBytes);
      },
      kSmallDisk);
}

TEST_P(NoSpace, EveryStepThatNeedsRoomIsRefusedAlike) {
  run(
      [&](Env& env) {
        auto other = std::move(*env.disk.open("other", OpenMode::create));
        auto filler = std::move(*env.disk.open("filler", OpenMode::create));
        fill(*filler, 'f');
        EXPECT_TRUE(other->write_and_sync(0, std::string(kPartBytes, 'o')).is(ErrorKind::no_space));
        EXPECT_FALSE(other->refuses_use()) << "nothing was synced: the handle can go on";
        EXPECT_TRUE(other->fill_zero(0, kPartBytes).is(ErrorKind::no_space));
        EXPECT_TRUE(filler->sync().ok()) << "what was accepted can be synced";
      },
      kSmallDisk);
}

TEST_P(NoSpace, RoomThatComesBackIsUsedThroughTheSameHandle) {
  run(
      [&](Env& env) {
        auto survivor = std::move(*env.disk.open("survivor", OpenMode::create));
        auto filler = std::move(*env.disk.open("filler", OpenMode::create));
        fill(*filler, 'f');
        const uint64_t before = *env.disk.free_space();
        EXPECT_TRUE(survivor->write(0, std::string(kPartBytes, 's')).is(ErrorKind::no_space));
        filler.reset();
        ASSERT_TRUE(env.disk.remove("filler").ok());
        EXPECT_GT(*env.disk.free_space(), before + kDiskBytes / 4);
        EXPECT_TRUE(survivor->write_and_sync(0, std::string(kPartBytes, 's')).ok());
        EXPECT_EQ(*survivor->read(kPartBytes - 1, 10), "s");
      },
      kSmallDisk);
}

TEST_P(NoSpace, AFullDiskCanBeReadAndCleared) {
  run(
      [&](Env& env) {
        auto filler = std::move(*env.disk.open("filler", OpenMode::create));
        const uint64_t accepted = fill(*filler, 'f');
        EXPECT_EQ(*env.disk.list(""), (std::vector<std::string>{"filler"}));
        EXPECT_GE(env.disk.stat("filler")->size, accepted);
        EXPECT_TRUE(env.disk.rename("filler", "renamed").ok());
        EXPECT_TRUE(env.disk.sync_directory("").ok());
        EXPECT_TRUE(filler->truncate(10).ok());
        EXPECT_TRUE(env.disk.remove("renamed").ok());
      },
      kSmallDisk);
}

}  // namespace

// What io/disk.h promises of one file.
#include <string>

#include "tests/conformance/arms/conformance.h"

namespace {

using namespace io;

class Files : public tests::Conformance {};
NARAD_ALL_ARMS(Files);

std::unique_ptr<File> must_open(Env& env, std::string_view path, OpenMode mode) {
  Result<std::unique_ptr<File>> opened = env.disk.open(path, mode);
  EXPECT_TRUE(opened.ok()) << opened.error().to_text();
  return opened.ok() ? std::move(*opened) : nullptr;
}

std::string content(Env& env, std::string_view path) {
  std::unique_ptr<File> file = must_open(env, path, OpenMode::read);
  Result<std::string> read = file->read(0, 1 << 20);
  EXPECT_TRUE(read.ok());
  return read.ok() ? *read : "";
}

TEST_P(Files, AReadReturnsWhatWasWrittenAtItsOffset) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create_new);
    ASSERT_TRUE(file->write(0, "hello world").ok());
    ASSERT_TRUE(file->write(6, "there").ok());
    EXPECT_EQ(*file->read(0, 11), "hello there");
    EXPECT_EQ(*file->read(6, 3), "the");
    EXPECT_EQ(*file->size(), 11u);
  });
}

TEST_P(Files, AReadIsShortOnlyAtTheEndOfTheFile) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    ASSERT_TRUE(file->write(0, "0123456789").ok());
    EXPECT_EQ(*file->read(7, 100), "789");
    EXPECT_EQ(*file->read(10, 100), "");
    EXPECT_EQ(*file->read(1000, 100), "");
    EXPECT_EQ(*file->read(3, 0), "");
  });
}

TEST_P(Files, AWriteBehindTheEndLeavesZerosBetween) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    ASSERT_TRUE(file->write(3, "x").ok());
    EXPECT_EQ(*file->read(0, 10), std::string("\0\0\0x", 4));
    ASSERT_TRUE(file->write(8192, "y").ok());
    EXPECT_EQ(*file->size(), 8193u);
    EXPECT_EQ(*file->read(4, 8188), std::string(8188, '\0'));
  });
}

TEST_P(Files, WritesAndReadsOfManyMegabytesAreWhole) {
  run([&](Env& env) {
    std::string big(9 * 1024 * 1024 + 17, '\0');
    for (size_t i = 0; i < big.size(); ++i) {
      big[i] = static_cast<char>(i * 31 + (i >> 12));
    }
    auto file = must_open(env, "big", OpenMode::create);
    ASSERT_TRUE(file->write_and_sync(5, big).ok());
    Result<std::string> back = file->read(5, big.size());
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(*back == big);
  });
}

TEST_P(Files, WritingNothingChangesNothing) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    EXPECT_TRUE(file->write(100, "").ok());
    EXPECT_TRUE(file->write_and_sync(100, "").ok());
    EXPECT_EQ(*file->size(), 0u);
  });
}

TEST_P(Files, SyncAndWriteAndSyncSucceedOnAHealthyDisk) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    ASSERT_TRUE(file->write(0, "one").ok());
    EXPECT_TRUE(file->sync().ok());
    EXPECT_TRUE(file->write_and_sync(3, "two").ok());
    EXPECT_TRUE(file->sync().ok());
    EXPECT_FALSE(file->refuses_use());
    EXPECT_EQ(content(env, "a"), "onetwo");
  });
}

TEST_P(Files, TruncateCutsAndGrowsWithZeros) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    ASSERT_TRUE(file->write(0, "0123456789").ok());
    ASSERT_TRUE(file->truncate(4).ok());
    EXPECT_EQ(*file->read(0, 100), "0123");
    ASSERT_TRUE(file->truncate(6).ok());
    EXPECT_EQ(*file->read(0, 100), std::string("0123\0\0", 6));
  });
}

TEST_P(Files, FillZeroOverwritesAndGrows) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    ASSERT_TRUE(file->write(0, std::string(100, 'x')).ok());
    ASSERT_TRUE(file->fill_zero(90, 1'000'000).ok());
    EXPECT_EQ(*file->size(), 1'000'090u);
    EXPECT_EQ(*file->read(89, 3), std::string("x\0\0", 3));
    EXPECT_EQ(*file->read(1'000'080, 100), std::string(10, '\0'));
    ASSERT_TRUE(file->fill_zero(0, 2).ok());
    EXPECT_EQ(*file->size(), 1'000'090u);
    EXPECT_EQ(*file->read(0, 3), std::string("\0\0x", 3));
    EXPECT_TRUE(file->fill_zero(5, 0).ok());
  });
}

TEST_P(Files, OpenModesSayWhatMustBeThere) {
  run([&](Env& env) {
    EXPECT_TRUE(env.disk.open("a", OpenMode::read).is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.open("a", OpenMode::read_write).is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.open("missing/a", OpenMode::create).is(ErrorKind::not_found));
    auto made = must_open(env, "a", OpenMode::create_new);
    ASSERT_TRUE(made->write(0, "kept").ok());
    EXPECT_TRUE(env.disk.open("a", OpenMode::create_new).is(ErrorKind::exists));
    must_open(env, "a", OpenMode::create);
    EXPECT_EQ(content(env, "a"), "kept");
  });
}

TEST_P(Files, AHandleForReadingRefusesToWrite) {
  run([&](Env& env) {
    must_open(env, "a", OpenMode::create);
    auto file = must_open(env, "a", OpenMode::read);
    EXPECT_TRUE(file->write(0, "x").is(ErrorKind::invalid));
    EXPECT_TRUE(file->truncate(1).is(ErrorKind::invalid));
    EXPECT_TRUE(file->fill_zero(0, 1).is(ErrorKind::invalid));
    EXPECT_EQ(*file->size(), 0u);
    EXPECT_FALSE(file->refuses_use());
  });
}

TEST_P(Files, TwoHandlesOfOneFileSeeEachOther) {
  run([&](Env& env) {
    auto writer = must_open(env, "a", OpenMode::create);
    auto reader = must_open(env, "a", OpenMode::read);
    ASSERT_TRUE(writer->write(0, "seen").ok());
    EXPECT_EQ(*reader->read(0, 10), "seen");
    writer = nullptr;
    EXPECT_EQ(*reader->read(0, 10), "seen");
  });
}

TEST_P(Files, AHandleFollowsItsFileThroughRenameAndRemoval) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    ASSERT_TRUE(env.disk.rename("a", "b").ok());
    ASSERT_TRUE(file->write(0, "moved").ok());
    EXPECT_EQ(content(env, "b"), "moved");
    ASSERT_TRUE(env.disk.remove("b").ok());
    EXPECT_EQ(*file->read(0, 10), "moved");
    EXPECT_TRUE(env.disk.open("b", OpenMode::read).is(ErrorKind::not_found));
  });
}

TEST_P(Files, FilesOutliveTheirProcess) {
  run([&](Env& env) {
    auto file = must_open(env, "a", OpenMode::create);
    ASSERT_TRUE(file->write(0, "from before").ok());
  });
  if (IsSkipped()) {
    return;
  }
  run([&](Env& env) { EXPECT_EQ(content(env, "a"), "from before"); });
}

TEST_P(Files, PathsThatLeaveTheDataDirectoryAreInvalid) {
  run([&](Env& env) {
    for (std::string_view path : {"", "/etc/passwd", "../a", "a/../../b", "a//b", "a/", "./a", "."}) {
      EXPECT_TRUE(env.disk.open(path, OpenMode::create).is(ErrorKind::invalid)) << path;
      EXPECT_TRUE(env.disk.remove(path).is(ErrorKind::invalid)) << path;
      EXPECT_TRUE(env.disk.rename("x", path).is(ErrorKind::invalid)) << path;
    }
  });
}

TEST_P(Files, ErrorsNameThePath) {
  run([&](Env& env) {
    auto missing = env.disk.open("not-there", OpenMode::read);
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(missing.error().message.find("not-there"), std::string::npos) << missing.error().message;
  });
}

TEST_P(Files, ManyFilesAreWrittenAtOnce) {
  run([&](Env& env) {
    with_scope([&](Scope& scope) {
      for (int i = 0; i < 100; ++i) {
        scope.spawn("writer", [&env, i] {
          const std::string name = "f" + std::to_string(i);
          auto file = must_open(env, name, OpenMode::create_new);
          for (int part = 0; part < 5; ++part) {
            EXPECT_TRUE(file->write_and_sync(static_cast<uint64_t>(part) * name.size(), name).ok());
          }
        });
      }
    });
    for (int i = 0; i < 100; ++i) {
      const std::string name = "f" + std::to_string(i);
      EXPECT_EQ(content(env, name), name + name + name + name + name);
    }
  });
}

}  // namespace

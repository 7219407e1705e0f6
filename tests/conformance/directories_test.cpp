// What io/disk.h promises of names: directories, rename, remove, list, stat, lock.
#include <string>
#include <vector>

#include "tests/conformance/arms/conformance.h"

namespace {

using namespace io;

class Directories : public tests::Conformance {};
NARAD_ALL_ARMS(Directories);

void put(Env& env, std::string_view path, std::string text) {
  Result<std::unique_ptr<File>> file = env.disk.open(path, OpenMode::create);
  ASSERT_TRUE(file.ok()) << file.error().to_text();
  ASSERT_TRUE((*file)->write(0, std::move(text)).ok());
}

std::string get(Env& env, std::string_view path) {
  Result<std::unique_ptr<File>> file = env.disk.open(path, OpenMode::read);
  return file.ok() ? *(*file)->read(0, 1000) : file.error().to_text();
}

TEST_P(Directories, MakeDirectoryMakesItsParentsAndIsRepeatable) {
  run([&](Env& env) {
    ASSERT_TRUE(env.disk.make_directory("a/b/c").ok());
    EXPECT_TRUE(env.disk.make_directory("a/b/c").ok());
    EXPECT_TRUE(env.disk.make_directory("a").ok());
    EXPECT_TRUE(env.disk.stat("a/b")->is_directory);
    put(env, "a/b/c/file", "x");
    EXPECT_EQ(get(env, "a/b/c/file"), "x");
  });
}

TEST_P(Directories, ADirectoryIsNotMadeOverAFile) {
  run([&](Env& env) {
    put(env, "file", "x");
    EXPECT_TRUE(env.disk.make_directory("file").is(ErrorKind::exists));
    EXPECT_FALSE(env.disk.make_directory("file/below").ok());
    EXPECT_EQ(get(env, "file"), "x");
  });
}

TEST_P(Directories, ListIsSortedByBytesAndComplete) {
  run([&](Env& env) {
    for (std::string_view name : {"b", "a", "Z", "a.log", "10", "9"}) {
      put(env, name, "");
    }
    ASSERT_TRUE(env.disk.make_directory("dir/below").ok());
    EXPECT_EQ(*env.disk.list(""), (std::vector<std::string>{"10", "9", "Z", "a", "a.log", "b", "dir"}));
    EXPECT_EQ(*env.disk.list("dir"), (std::vector<std::string>{"below"}));
    EXPECT_EQ(*env.disk.list("dir/below"), std::vector<std::string>());
  });
}

TEST_P(Directories, ListAndStatOfWhatIsMissing) {
  run([&](Env& env) {
    put(env, "file", "12345");
    EXPECT_TRUE(env.disk.list("missing").is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.list("file").is(ErrorKind::invalid));
    EXPECT_TRUE(env.disk.stat("missing").is(ErrorKind::not_found));
    EXPECT_EQ(env.disk.stat("file")->size, 5u);
    EXPECT_FALSE(env.disk.stat("file")->is_directory);
    EXPECT_TRUE(env.disk.stat("")->is_directory);
  });
}

TEST_P(Directories, RenameReplacesWhatStoodThere) {
  run([&](Env& env) {
    put(env, "new", "new content");
    put(env, "old", "old");
    ASSERT_TRUE(env.disk.rename("new", "old").ok());
    EXPECT_EQ(get(env, "old"), "new content");
    EXPECT_TRUE(env.disk.stat("new").is(ErrorKind::not_found));
    EXPECT_EQ(*env.disk.list(""), (std::vector<std::string>{"old"}));
  });
}

TEST_P(Directories, RenameMovesAcrossDirectoriesWithWhatIsBelow) {
  run([&](Env& env) {
    ASSERT_TRUE(env.disk.make_directory("a/b").ok());
    ASSERT_TRUE(env.disk.make_directory("c").ok());
    put(env, "a/b/file", "x");
    ASSERT_TRUE(env.disk.rename("a/b/file", "c/file").ok());
    EXPECT_EQ(get(env, "c/file"), "x");
    ASSERT_TRUE(env.disk.rename("c", "d").ok());
    EXPECT_EQ(get(env, "d/file"), "x");
    EXPECT_TRUE(env.disk.stat("c").is(ErrorKind::not_found));
  });
}

TEST_P(Directories, RenameRefusesWhatCannotBe) {
  run([&](Env& env) {
    put(env, "file", "x");
    ASSERT_TRUE(env.disk.make_directory("dir/below").ok());
    EXPECT_TRUE(env.disk.rename("missing", "b").is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.rename("file", "missing/b").is(ErrorKind::not_found));
    EXPECT_FALSE(env.disk.rename("file", "dir").ok());
    EXPECT_FALSE(env.disk.rename("dir", "file").ok());
    EXPECT_EQ(get(env, "file"), "x");
    EXPECT_TRUE(env.disk.stat("dir/below")->is_directory);
  });
}

TEST_P(Directories, RemoveTakesAFileOrAnEmptyDirectory) {
  run([&](Env& env) {
    put(env, "file", "x");
    ASSERT_TRUE(env.disk.make_directory("dir/below").ok());
    EXPECT_TRUE(env.disk.remove("file").ok());
    EXPECT_TRUE(env.disk.remove("file").is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.remove("dir").is(ErrorKind::exists));
    EXPECT_TRUE(env.disk.remove("dir/below").ok());
    EXPECT_TRUE(env.disk.remove("dir").ok());
    EXPECT_EQ(*env.disk.list(""), std::vector<std::string>());
  });
}

TEST_P(Directories, ADirectoryIsNotOpenedAsAFile) {
  run([&](Env& env) {
    ASSERT_TRUE(env.disk.make_directory("dir").ok());
    EXPECT_TRUE(env.disk.open("dir", OpenMode::read).is(ErrorKind::invalid));
    EXPECT_FALSE(env.disk.open("dir", OpenMode::create).ok());
    put(env, "file", "x");
    EXPECT_FALSE(env.disk.open("file/below", OpenMode::create).ok());
  });
}

TEST_P(Directories, SyncDirectorySucceedsForWhatIsThere) {
  run([&](Env& env) {
    ASSERT_TRUE(env.disk.make_directory("a/b").ok());
    put(env, "a/b/file", "x");
    EXPECT_TRUE(env.disk.sync_directory("a/b").ok());
    EXPECT_TRUE(env.disk.sync_directory("").ok());
    EXPECT_TRUE(env.disk.sync_directory("missing").is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.sync_directory("a/b/file").is(ErrorKind::invalid));
  });
}

TEST_P(Directories, ALockIsHeldUntilItIsGivenUp) {
  run([&](Env& env) {
    Result<std::unique_ptr<DirectoryLock>> lock = env.disk.lock("LOCK");
    ASSERT_TRUE(lock.ok()) << lock.error().to_text();
    EXPECT_TRUE(env.disk.lock("LOCK").is(ErrorKind::busy));
    EXPECT_TRUE(env.disk.lock("OTHER").ok());
    lock->reset();
    EXPECT_TRUE(env.disk.lock("LOCK").ok());
  });
}

TEST_P(Directories, ALockEndsWithItsProcess) {
  run([&](Env& env) { ASSERT_TRUE(env.disk.lock("LOCK").ok()); });
  if (IsSkipped()) {
    return;
  }
  run([&](Env& env) { EXPECT_TRUE(env.disk.lock("LOCK").ok()); });
}

}  // namespace

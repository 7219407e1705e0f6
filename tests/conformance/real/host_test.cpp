// What io/real adds to the contract: the choice of the poller, the data directory's refusals, signals, posts of other
// threads.
#include "io/real/host.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

using namespace io;
using namespace io::real;

class Hosts : public testing::Test {
 protected:
  Hosts() {
    directory_ = (std::filesystem::temp_directory_path() / "narad-host-XXXXXX").string();
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  }
  ~Hosts() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  HostSettings settings(std::string data_dir) const {
    HostSettings made;
    made.data_dir = std::move(data_dir);
    made.log = {LogLevel::error, LogFormat::text};
    made.handle_signals = false;
    return made;
  }
  HostSettings settings() const { return settings(directory_ + "/data"); }

  std::string directory_;
};

// From here on the kernel answers `call` with `error`, for this process and what it starts.
void refuse(long call, int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{std::size(program), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    _exit(99);
  }
}

// A file, a stream and a sleep through this process's loop; 0 when all went well.
int exercise(Env& env) {
  auto file = env.disk.open("f", OpenMode::create);
  if (!file.ok() || !(*file)->write_and_sync(0, "x").ok() || *(*file)->read(0, 5) != "x") {
    return 1;
  }
  auto listener = env.net.listen("127.0.0.1:0");
  auto stream = env.net.connect((*listener)->address());
  auto accepted = (*listener)->accept();
  if (!stream.ok() || !(*stream)->write("y").ok() || *(*accepted)->read(5) != "y") {
    return 2;
  }
  const Instant begin = env.now();
  sleep_for(2ms);
  return env.now() - begin >= 2ms ? 0 : 3;
}

// Ends the process: 0 when the loop fell back to epoll, gave the reason, and works.
[[noreturn]] void expect_fallback(HostSettings settings, std::string_view reason) {
  Result<std::unique_ptr<Host>> host = Host::make(std::move(settings));
  if (!host.ok()) {
    std::_Exit(10);
  }
  if ((*host)->loop().io_name() != "epoll") {
    std::_Exit(11);
  }
  if ((*host)->loop().fallback_reason().find(reason) == std::string::npos) {
    std::fprintf(stderr, "%s\n", (*host)->loop().fallback_reason().c_str());
    std::_Exit(12);
  }
  std::_Exit((*host)->run([](Env& env, Event&) { return exercise(env); }));
}

class Fallback : public Hosts, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Errors, Fallback, testing::Values(EPERM, ENOSYS, EMFILE, ENOMEM, EINVAL));

TEST_P(Fallback, ARefusedSetUpOfIoUringFallsBackToEpoll) {
  for (IoChoice choice : {IoChoice::automatic, IoChoice::uring}) {
    HostSettings wanted = settings();
    wanted.io = choice;
    EXPECT_EXIT(
        {
          refuse(SYS_io_uring_setup, GetParam());
          expect_fallback(wanted, "io_uring set-up");
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST_P(Fallback, ARefusedFirstSubmissionFallsBackToEpoll) {
  HostSettings wanted = settings();
  EXPECT_EXIT(
      {
        refuse(SYS_io_uring_enter, GetParam());
        expect_fallback(wanted, "io_uring");
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Hosts, EpollIsTakenWhenAskedForWithoutAReason) {
  HostSettings wanted = settings();
  wanted.io = IoChoice::epoll;
  auto host = Host::make(wanted);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ((*host)->loop().io_name(), "epoll");
  EXPECT_EQ((*host)->loop().fallback_reason(), "");
  EXPECT_EQ((*host)->run([](Env& env, Event&) { return exercise(env); }), 0);
}

TEST_F(Hosts, EpollWorksOnKernelsWithoutExactTimeouts) {
  HostSettings wanted = settings();
  wanted.io = IoChoice::epoll;
  EXPECT_EXIT(
      {
        refuse(SYS_epoll_pwait2, ENOSYS);
        auto host = Host::make(wanted);
        std::_Exit((*host)->run([](Env& env, Event&) { return exercise(env); }));
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Hosts, TheNamesOfTheChoicesAreParsed) {
  EXPECT_EQ(*parse_io_choice("auto"), IoChoice::automatic);
  EXPECT_EQ(*parse_io_choice("uring"), IoChoice::uring);
  EXPECT_EQ(*parse_io_choice("epoll"), IoChoice::epoll);
  EXPECT_TRUE(parse_io_choice("kqueue").is(ErrorKind::invalid));
}

TEST_F(Hosts, ADataDirectoryThatIsAFileIsRefusedAndKept) {
  const std::string path = directory_ + "/file";
  std::ofstream(path) << "content";
  auto host = Host::make(settings(path));
  ASSERT_TRUE(host.is(ErrorKind::invalid));
  EXPECT_EQ(host.error().message, "data directory " + path + ": it is a file, not a directory");
  EXPECT_EQ(std::filesystem::file_size(path), 7u);
  auto below = Host::make(settings(path + "/below"));
  ASSERT_FALSE(below.ok());
  EXPECT_NE(below.error().message.find(path + "/below"), std::string::npos) << below.error().message;
}

TEST_F(Hosts, ADataDirectoryThatCannotBeWrittenIsRefused) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can make a directory that another user cannot write";
  }
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  const std::string path = directory_ + "/readonly";
  ASSERT_EQ(mkdir(path.c_str(), 0555), 0);
  EXPECT_EXIT(
      {
        if (setresuid(65534, 65534, 65534) != 0) {
          std::_Exit(9);
        }
        auto host = Host::make(settings(path));
        const std::string expected = "data directory " + path + ": not writable (permission denied)";
        std::_Exit(host.is(ErrorKind::denied) && host.error().message == expected ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Hosts, ADataDirectoryIsMadeWithItsParents) {
  auto host = Host::make(settings(directory_ + "/a/b/c"));
  ASSERT_TRUE(host.ok()) << host.error().to_text();
  EXPECT_TRUE(std::filesystem::is_directory(directory_ + "/a/b/c"));
}

TEST_F(Hosts, ALockIsHeldAgainstOtherProcessesUntilItsHolderDies) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto host = Host::make(settings());
    (*host)->run([&](Env& env, Event&) {
      auto lock = env.disk.lock("LOCK");
      const char answer = lock.ok() ? 'y' : 'n';
      [[maybe_unused]] const ssize_t written = ::write(ready[1], &answer, 1);
      sleep_for(1h);
      return 0;
    });
    std::_Exit(0);
  }
  char answer = '?';
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  auto host = Host::make(settings());
  ASSERT_TRUE(host.ok());
  (*host)->run([&](Env& env, Event&) {
    auto lock = env.disk.lock("LOCK");
    EXPECT_TRUE(lock.is(ErrorKind::busy));
    EXPECT_EQ(lock.error().message, "LOCK: locked by another process");
    return 0;
  });
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  (*host)->run([&](Env& env, Event&) {
    EXPECT_TRUE(env.disk.lock("LOCK").ok());
    return 0;
  });
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Hosts, TheMainFibersValueIsTheExitCode) {
  EXPECT_EQ(run_host(settings(), [](Env&, Event&) { return 7; }), 7);
}

TEST_F(Hosts, AHostThatCannotBeMadeSaysWhyAndAnswersOne) {
  const std::string path = directory_ + "/file";
  std::ofstream(path) << "x";
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_host(settings(path), [](Env&, Event&) { return 0; }), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(path), std::string::npos);
}

TEST_F(Hosts, TheFirstSignalAsksToStop) {
  for (int number : {SIGTERM, SIGINT}) {
    HostSettings wanted = settings();
    wanted.handle_signals = true;
    EXPECT_EQ(run_host(wanted,
                       [number](Env& env, Event& stop) {
                         EXPECT_FALSE(stop.is_set());
                         raise(number);
                         return stop.wait(env.after(30s)) ? 5 : 6;
                       }),
              5);
  }
}

TEST_F(Hosts, ASecondSignalEndsTheProcessAtOnce) {
  HostSettings wanted = settings();
  wanted.handle_signals = true;
  EXPECT_EXIT(run_host(wanted,
                       [](Env&, Event&) {
                         raise(SIGTERM);
                         raise(SIGTERM);
                         return 0;
                       }),
              testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST_F(Hosts, AHangingDiskDoesNotKeepTheProcessFromEnding) {
  HostSettings wanted = settings();
  wanted.drain_patience = 20ms;
  wanted.before_file_operation = [](std::string_view operation, std::string_view) {
    if (operation == "write") {
      pause();
    }
  };
  EXPECT_EXIT(run_host(wanted,
                       [](Env& env, Event&) {
                         auto file = env.disk.open("f", OpenMode::create);
                         EXPECT_TRUE((*file)->write(0, "x", env.after(5ms)).is(ErrorKind::timed_out));
                         return 4;
                       }),
              testing::ExitedWithCode(4), "file operations hang");
}

TEST_F(Hosts, SeedsDifferFromHostToHost) {
  auto one = Host::make(settings());
  auto two = Host::make(settings());
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE((*one)->env().random.stream("x", 1).next(), (*two)->env().random.stream("x", 1).next());
}

TEST_F(Hosts, DatabasePathsAreAbsolute) {
  auto host = Host::make(settings());
  ASSERT_TRUE(host.ok());
  EXPECT_EQ((*host)->env().kv.path("fsm.db"), directory_ + "/data/fsm.db");
  EXPECT_NE((*host)->env().kv.env(), nullptr);
}

TEST_F(Hosts, PostsOfOtherThreadsRunInOrderAndWakeASleepingLoop) {
  for (IoChoice choice : {IoChoice::automatic, IoChoice::epoll}) {
    auto loop = Loop::make({choice, nullptr});
    ASSERT_TRUE(loop.ok());
    std::vector<int> ran;
    Event all;
    std::thread poster([&] {
      for (int i = 0; i < 1000; ++i) {
        (*loop)->post([&ran, &all, i] {
          ran.push_back(i);
          if (i == 999) {
            all.set();
          }
        });
        if (i % 100 == 0) {
          std::this_thread::yield();
        }
      }
    });
    (*loop)->run("main", [&] { EXPECT_TRUE(all.wait((*loop)->clock().now() + 60s)); });
    poster.join();
    ASSERT_EQ(ran.size(), 1000u);
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(ran[static_cast<size_t>(i)], i);
    }
  }
}

TEST_F(Hosts, ListeningOnEveryAddressTakesBothFamilies) {
  auto host = Host::make(settings());
  ASSERT_TRUE(host.ok());
  (*host)->run([&](Env& env, Event&) {
    auto listener = env.net.listen(":0");
    EXPECT_TRUE(listener.ok()) << listener.error().to_text();
    const std::string port = (*listener)->address().substr((*listener)->address().rfind(':'));
    auto stream = env.net.connect("localhost" + port, env.after(30s));
    EXPECT_TRUE(stream.ok()) << stream.error().to_text();
    EXPECT_TRUE(env.net.connect("127.0.0.1" + port, env.after(30s)).ok());
    return 0;
  });
}

}  // namespace

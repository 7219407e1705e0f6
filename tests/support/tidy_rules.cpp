// The rules of the tree, as data, and the places where they do not hold. Each rule carries lines that it must refuse and lines
// that it must let pass; the tidy test plants them all.

#include <algorithm>
#include <map>
#include <regex>

#include "tests/support/tidy.h"

namespace tests::tidy {
namespace {

// ---- Which files -----------------------------------------------------------------------------------------------------------

bool starts_with(const std::string& path, const char* prefix) { return path.rfind(prefix, 0) == 0; }

bool is_header(const Source& source) { return source.path.ends_with(".h"); }

bool is_product(const Source& source) { return !starts_with(source.path, "tests/") && !starts_with(source.path, "bench/"); }

// chaos/host/ is narad-chaos's own side of the real machine: worker processes, files of plans, the budget's clock.
bool is_main(const Source& source) {
  return source.path == "engine/main.cpp" || source.path == "chaos/main.cpp" || starts_with(source.path, "chaos/host/");
}

bool in_real(const Source& source) { return starts_with(source.path, "io/real/"); }

// Code that must see the world through io::Env alone.
bool is_sealed(const Source& source) { return is_product(source) && !is_main(source) && !in_real(source); }

bool is_node(const Source& source) {
  return is_sealed(source) && !starts_with(source.path, "sim/") && !starts_with(source.path, "chaos/");
}

bool anywhere(const Source&) { return true; }

// ---- Rules that need more than a list of names -------------------------------------------------------------------------------

int layer_of(std::string_view path) {
  static const std::vector<std::pair<std::string_view, int>> kLayers = {
      {"io/", 0}, {"raft/", 1}, {"engine/", 2}, {"sim/", 3}, {"chaos/", 4}, {"tests/", 5}, {"bench/", 5}};
  for (const auto& [folder, layer] : kLayers) {
    if (path.substr(0, folder.size()) == folder) {
      return layer;
    }
  }
  return -1;
}

// The path of a project include on this line, else empty.
std::string project_include(const std::string& line) {
  static const std::string kMark = "#include \"";
  if (line.rfind(kMark, 0) != 0) {
    return "";
  }
  return line.substr(kMark.size(), line.find('"', kMark.size()) - kMark.size());
}

template <typename Bad>
std::vector<size_t> includes_where(const Source& source, Bad bad) {
  std::vector<size_t> found;
  for (size_t i = 0; i < source.lines.size(); ++i) {
    std::string target = project_include(source.code[i].substr(0, 8) == "#include" ? source.lines[i] : "");
    if (!target.empty() && bad(target)) {
      found.push_back(i + 1);
    }
  }
  return found;
}

std::vector<size_t> includes_against_the_arrows(const Source& source) {
  return includes_where(source, [&](const std::string& target) {
    bool beside = target.find('/') == std::string::npos;
    return beside || layer_of(target) > layer_of(source.path) || target.ends_with(".cpp");
  });
}

std::vector<size_t> includes_of_a_backend(const Source& source) {
  return includes_where(source, [&](const std::string& target) {
    bool real = starts_with(target, "io/real/");
    bool simulated = starts_with(target, "io/sim/");
    if (real) {
      return !in_real(source) && source.path != "engine/main.cpp";
    }
    return simulated && !starts_with(source.path, "io/sim/") && !starts_with(source.path, "sim/") &&
           source.path != "chaos/main.cpp";
  });
}

std::vector<size_t> lines_matching(const std::vector<std::string>& lines, const char* hint, const std::regex& pattern) {
  std::vector<size_t> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(hint) != std::string::npos && std::regex_search(lines[i], pattern)) {
      found.push_back(i + 1);
    }
  }
  return found;
}

// The first template argument that opens at `at` ("<"), and where it ends.
std::string first_argument(const std::string& text, size_t at) {
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    depth += text[i] == '<' || text[i] == '(' ? 1 : 0;
    depth -= text[i] == '>' || text[i] == ')' ? 1 : 0;
    if (depth == 0 || (depth == 1 && text[i] == ',')) {
      return text.substr(at + 1, i - at - 1);
    }
  }
  return text.substr(std::min(at + 1, text.size()));
}

std::vector<size_t> pointer_keys(const Source& source) {
  static const std::vector<std::string> kOrdered = {"std::map<",     "std::set<",  "std::multimap<", "std::multiset<",
                                                    "std::greater<", "std::less<", "std::priority_queue<"};
  std::vector<size_t> found;
  for (size_t i = 0; i < source.code.size(); ++i) {
    for (const std::string& container : kOrdered) {
      for (size_t at = source.code[i].find(container); at != std::string::npos;
           at = source.code[i].find(container, at + 1)) {
        std::string key = first_argument(source.code[i], at + container.size() - 1);
        if (key.find('*') != std::string::npos || key.find("_ptr<") != std::string::npos) {
          found.push_back(i + 1);
        }
      }
    }
  }
  return found;
}

// Names declared as unordered containers in this file or in its header.
std::vector<std::string> unordered_names(const Source& source) {
  std::string all;
  for (const auto* code : {&source.header_code, &source.code}) {
    for (const std::string& line : *code) {
      all += line + "\n";
    }
  }
  std::vector<std::string> names;
  for (size_t at = all.find("unordered_"); at != std::string::npos; at = all.find("unordered_", at + 1)) {
    size_t open = all.find_first_of("<>;", at);
    if (open == std::string::npos || all[open] != '<') {
      continue;
    }
    int depth = 0;
    size_t end = open;
    for (; end < all.size(); ++end) {
      depth += all[end] == '<' ? 1 : 0;
      depth -= all[end] == '>' ? 1 : 0;
      if (depth == 0) {
        break;
      }
    }
    size_t begin = all.find_first_not_of("> &\n", end);
    size_t stop = begin;
    while (stop < all.size() && (std::isalnum(static_cast<unsigned char>(all[stop])) != 0 || all[stop] == '_')) {
      ++stop;
    }
    if (begin != std::string::npos && stop > begin) {
      names.push_back(all.substr(begin, stop - begin));
    }
  }
  return names;
}

std::vector<size_t> unordered_iteration(const Source& source) {
  std::vector<size_t> found;
  for (const std::string& name : unordered_names(source)) {
    std::regex walks("(for\\s*\\(.*:\\s*(this->|[\\w.]+\\.)?" + name + "\\s*\\))|(\\b" + name + "\\s*\\.\\s*c?begin\\s*\\()");
    for (size_t line : lines_matching(source.code, name.c_str(), walks)) {
      found.push_back(line);
    }
  }
  return found;
}

std::vector<size_t> floating_literals(const Source& source) {
  static const std::regex kLiteral("(^|[^\\w.])([0-9][0-9']*\\.[0-9]+|[0-9]+e-?[0-9]+)");
  std::vector<size_t> found;
  for (size_t i = 0; i < source.code.size(); ++i) {
    if (source.code[i].find_first_of("0123456789") != std::string::npos && std::regex_search(source.code[i], kLiteral)) {
      found.push_back(i + 1);
    }
  }
  return found;
}

std::vector<size_t> catch_alls(const Source& source) {
  static const std::regex kCatch("catch\\s*\\(\\s*(\\.\\.\\.|(const\\s+)?(io::)?Cancelled)");
  return lines_matching(source.code, "catch", kCatch);
}

std::vector<size_t> pointer_formats(const Source& source) {
  static const std::regex kFormat("\"[^\"]*%p[^\"]*\"");
  return lines_matching(source.lines, "%p", kFormat);
}

std::vector<size_t> unfinished_marks(const Source& source) {
  static const std::vector<std::string> kMarks = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                                  std::string("XX") + "X", std::string("HA") + "CK"};
  std::vector<size_t> found;
  for (const std::string& mark : kMarks) {
    for (size_t line : lines_matching(source.lines, mark.c_str(), std::regex("\\b" + mark + "\\b"))) {
      found.push_back(line);
    }
  }
  return found;
}

std::vector<size_t> header_shape(const Source& source) {
  std::vector<size_t> found;
  if (source.lines.empty() || source.lines.front().rfind("//", 0) != 0) {
    found.push_back(1);
  }
  if (std::find(source.lines.begin(), source.lines.end(), "#pragma once") == source.lines.end()) {
    found.push_back(1);
  }
  return found;
}

// ---- The table ---------------------------------------------------------------------------------------------------------------

std::vector<Rule> make_rules() {
  std::vector<Rule> table;

  table.push_back({.name = "arrow",
                   .why = "includes point down only: chaos -> sim -> engine -> raft -> io, and nothing includes a .cpp",
                   .covers = anywhere,
                   .finds = includes_against_the_arrows,
                   .fires_on = {{"raft/core.h", "#include \"engine/node.h\""},
                                {"io/fiber.cpp", "#include \"raft/core.h\""},
                                {"sim/world.cpp", "#include \"chaos/plan.h\""},
                                {"engine/node.cpp", "#include \"tests/support/paths.h\""},
                                {"raft/core.cpp", "#include \"quorum.h\""},
                                {"chaos/plan.cpp", "#include \"sim/world.cpp\""}},
                   .passes_on = {{"raft/core.h", "#include \"raft/quorum.h\""},
                                 {"chaos/plan.cpp", "#include \"io/time.h\""},
                                 {"tests/unit/x_test.cpp", "#include \"chaos/plan.h\""},
                                 {"raft/core.h", "// #include \"engine/node.h\""}}});

  table.push_back({.name = "backend",
                   .why = "io/real is known to the node's main file alone, io/sim to sim/ and the simulator's main file",
                   .covers = is_product,
                   .finds = includes_of_a_backend,
                   .fires_on = {{"engine/node.cpp", "#include \"io/real/loop.h\""},
                                {"raft/server.cpp", "#include \"io/sim/world.h\""},
                                {"io/sim/disk.cpp", "#include \"io/real/loop.h\""},
                                {"io/disk.cpp", "#include \"io/sim/disk.h\""},
                                {"sim/world.cpp", "#include \"io/real/loop.h\""}},
                   .passes_on = {{"engine/main.cpp", "#include \"io/real/loop.h\""},
                                 {"sim/world.cpp", "#include \"io/sim/world.h\""},
                                 {"io/real/loop.cpp", "#include \"io/real/loop.h\""}}});

  table.push_back({.name = "clock",
                   .why = "time is io::Clock's: the machine's clock would make two runs of a seed differ",
                   .covers = is_sealed,
                   .headers = {"<ctime>", "<time.h>", "<sys/time.h>"},
                   .names = {"system_clock", "steady_clock", "high_resolution_clock", "clock_gettime", "clock_nanosleep",
                             "gettimeofday", "timespec_get", "nanosleep", "usleep", "std::this_thread", "__rdtsc",
                             "__rdtscp", "std::time", "std::clock", "localtime", "localtime_r", "timerfd_*", "setitimer",
                             "getrusage", "SystemClock::Default"},
                   .calls = {"::time", "time", "::clock", "clock", "::sleep", "sleep", "alarm"},
                   .fires_on = {{"raft/core.cpp", "auto now = std::chrono::steady_clock::now();"},
                                {"sim/world.cpp", "uint64_t at = time(nullptr);"},
                                {"engine/node.cpp", "  return std::time(nullptr);"},
                                {"chaos/sweep.cpp", "clock_gettime(CLOCK_MONOTONIC, &ts);"},
                                {"io/disk.cpp", "std::this_thread::sleep_for(1ms);"},
                                {"io/sim/kv.cpp", "rocksdb::SystemClock::Default()"}},
                   .passes_on = {{"raft/core.cpp", "Instant now = env.clock.now();"},
                                 {"raft/core.cpp", "  // steady_clock is not for us"},
                                 {"raft/core.cpp", "log.info(\"steady_clock\");"},
                                 {"sim/world.h", "  Instant time() const;"},
                                 {"io/real/clock.cpp", "clock_gettime(CLOCK_BOOTTIME, &ts);"},
                                 {"io/sim/kv.h", "class SimClock : public rocksdb::SystemClock {"}}});

  table.push_back({.name = "thread",
                   .why = "one loop thread runs every fiber; only the production backend knows other threads",
                   .covers = is_sealed,
                   .headers = {"<thread>", "<mutex>", "<shared_mutex>", "<condition_variable>", "<future>", "<atomic>",
                               "<barrier>", "<latch>", "<semaphore>", "<stop_token>", "<pthread.h>", "<sched.h>",
                               "<sys/wait.h>", "<boost/thread"},
                   .names = {"std::thread", "std::jthread", "std::mutex", "std::recursive_mutex", "std::shared_mutex",
                             "std::timed_mutex", "std::condition_variable", "std::condition_variable_any", "std::atomic",
                             "std::atomic_*", "std::future", "std::promise", "std::async", "std::lock_guard",
                             "std::unique_lock", "std::scoped_lock", "std::call_once", "pthread_*", "thread_local",
                             "sched_yield", "std::thread::id", "gettid"},
                   .calls = {"::fork", "fork", "vfork", "waitpid", "posix_spawn", "execv", "execve", "getpid"},
                   .fires_on = {{"raft/server.cpp", "std::mutex lock_;"},
                                {"engine/node.cpp", "#include <thread>"},
                                {"sim/world.cpp", "std::atomic<int> count_;"},
                                {"io/sim/loop.cpp", "thread_local int x;"},
                                {"chaos/sweep.cpp", "pid_t child = fork();"}},
                   .passes_on = {{"raft/server.cpp", "io::Mutex mutex_;"},
                                 {"io/real/lane.cpp", "std::mutex mutex_;"},
                                 {"engine/main.cpp", "std::thread watcher;"}}});

  table.push_back({.name = "socket",
                   .why = "bytes reach other nodes through io::Net alone",
                   .covers = is_sealed,
                   .headers = {"<sys/socket.h>", "<netinet/", "<arpa/", "<netdb.h>", "<sys/epoll.h>", "<poll.h>",
                               "<sys/select.h>", "<sys/un.h>", "<liburing.h>", "<linux/", "<boost/asio/ip/",
                               "<boost/asio/io_context.hpp>", "<boost/asio.hpp>", "<sys/eventfd.h>", "<sys/signalfd.h>",
                               "<openssl/ssl.h>"},
                   .names = {"::socket", "::connect", "::bind", "::listen", "::accept", "::accept4", "::send", "::recv",
                             "::shutdown", "::poll", "getaddrinfo", "epoll_*", "io_uring_*", "setsockopt", "getsockname",
                             "inet_pton", "inet_ntop"},
                   .calls = {"socket"},
                   .fires_on = {{"engine/api.cpp", "#include <sys/socket.h>"},
                                {"raft/server.cpp", "int fd = ::socket(AF_INET, SOCK_STREAM, 0);"},
                                {"io/net.cpp", "epoll_wait(fd, events, 8, 0);"}},
                   .passes_on = {{"raft/server.cpp", "auto stream = env.net.connect(address, deadline);"},
                                 {"io/net.h", "  virtual Result<int> listen(std::string_view address) = 0;"},
                                 {"io/real/net.cpp", "::socket(AF_INET, SOCK_STREAM, 0);"}}});

  table.push_back({.name = "file",
                   .why = "files are io::Disk's: any other access escapes the simulated disk",
                   .covers = is_sealed,
                   .headers = {"<fstream>", "<filesystem>", "<fcntl.h>", "<unistd.h>", "<dirent.h>", "<sys/stat.h>",
                               "<sys/file.h>", "<sys/statvfs.h>", "<sys/mman.h>", "<sys/uio.h>"},
                   .names = {"std::ifstream", "std::ofstream", "std::fstream", "std::filesystem", "::open", "::close",
                             "::read", "::write", "::rename", "::unlink", "::mkdir", "::rmdir", "::stat", "::truncate",
                             "fopen", "freopen", "fdopen", "tmpfile", "mkstemp", "mkdtemp", "pread", "pwrite", "fsync",
                             "fdatasync", "ftruncate", "fallocate", "posix_fallocate", "openat", "opendir", "readdir",
                             "unlinkat", "renameat", "statvfs", "flock", "mmap", "Env::Default", "FileSystem::Default"},
                   .calls = {"std::remove", "std::rename"},
                   .fires_on = {{"raft/log_store.cpp", "std::ofstream out(path);"},
                                {"engine/metastore/fsm.cpp", "#include <filesystem>"},
                                {"io/sim/kv.cpp", "int fd = ::open(path, O_RDONLY);"},
                                {"chaos/plan.cpp", "FILE* file = fopen(path, \"r\");"},
                                {"engine/metastore/fsm.cpp", "options.env = rocksdb::Env::Default();"}},
                   .passes_on = {{"raft/log_store.cpp", "auto file = env.disk.open(path, io::OpenMode::read);"},
                                 {"io/real/disk.cpp", "::fdatasync(fd);"},
                                 {"raft/log_store.cpp", "if (auto s = file->write(0, data); !s.ok()) {"}}});

  table.push_back({.name = "entropy",
                   .why = "every draw is io::Random's, so that a seed replays",
                   .covers = [](const Source& source) { return is_product(source) && !in_real(source) && !is_main(source); },
                   .headers = {"<random>", "<sys/random.h>", "<openssl/rand.h>", "<boost/random", "<boost/uuid"},
                   .names = {"std::random_device", "std::mt19937", "std::mt19937_64", "std::default_random_engine",
                             "std::minstd_rand", "std::ranlux24", "arc4random", "getrandom", "getentropy", "RAND_bytes",
                             "drand48", "srand", "srandom", "rand_r", "std::rand"},
                   .calls = {"rand", "::random"},
                   .fires_on = {{"raft/core.cpp", "int x = rand() % 7;"},
                                {"sim/workload.cpp", "std::mt19937 engine(seed);"},
                                {"engine/node.cpp", "#include <random>"}},
                   .passes_on = {{"raft/core.cpp", "auto stream = env.random.stream(\"election timeout\", id);"},
                                 {"io/real/entropy.cpp", "getrandom(&seed, sizeof seed, 0);"}}});

  table.push_back({.name = "environment",
                   .why = "settings arrive as values from the main file, never from the process environment",
                   .covers = is_sealed,
                   .names = {"getenv", "secure_getenv", "setenv", "putenv", "unsetenv", "environ", "gethostname", "getuid",
                             "std::thread::hardware_concurrency", "getlogin"},
                   .calls = {"uname"},
                   .fires_on = {{"engine/config.cpp", "const char* level = std::getenv(\"NARAD_LOG_LEVEL\");"},
                                {"chaos/sweep.cpp", "  if (getenv(\"SEED\")) {"}},
                   .passes_on = {{"engine/main.cpp", "const char* level = std::getenv(\"NARAD_LOG_LEVEL\");"},
                                 {"engine/config.cpp", "auto level = environment.find(\"NARAD_LOG_LEVEL\");"}}});

  table.push_back({.name = "print",
                   .why = "the node speaks through io::Log, which the simulator reads",
                   .covers = is_node,
                   .headers = {"<iostream>"},
                   .names = {"std::cout", "std::cerr", "std::clog", "std::puts", "stdout", "stderr"},
                   .calls = {"printf", "std::printf", "puts", "perror"},
                   .fires_on = {{"raft/core.cpp", "std::cerr << 1;"}, {"engine/node.cpp", "std::printf(\"x\");"}},
                   .passes_on = {{"raft/core.cpp", "std::snprintf(buffer, sizeof buffer, \"%d\", 1);"},
                                 {"chaos/report.cpp", "std::printf(\"x\");"}}});

  table.push_back({.name = "unordered-iteration",
                   .why = "the order of an unordered container is the library's, not ours",
                   .covers = is_product,
                   .finds = unordered_iteration,
                   .fires_on = {{"raft/core.cpp", "std::unordered_map<int, int> votes_; void f() { for (auto& v : votes_) {} }"},
                                {"io/real/loop.cpp", "std::unordered_set<int> ids; auto first = ids.begin();"},
                                {"sim/world.cpp", "std::unordered_map<std::string, std::vector<int>> by_name;\n"
                                                  "for (const auto& [name, ids] : by_name) {}"}},
                   .passes_on = {{"raft/core.cpp", "std::unordered_map<int, int> votes_; int n = votes_.at(3);"},
                                 {"raft/core.cpp", "std::map<int, int> votes_; void f() { for (auto& v : votes_) {} }"}}});

  table.push_back({.name = "std-hash",
                   .why = "std::hash may differ between builds and libraries; io::stable_hash does not",
                   .covers = is_product,
                   .headers = {"<boost/container_hash", "<boost/functional/hash"},
                   .names = {"std::hash", "boost::hash", "boost::hash_combine", "boost::hash_value", "std::_Hash_bytes"},
                   .fires_on = {{"raft/core.cpp", "uint64_t h = std::hash<std::string>{}(name);"}},
                   .passes_on = {{"raft/core.cpp", "uint64_t h = io::stable_hash(name);"}}});

  table.push_back({.name = "pointer-order",
                   .why = "addresses differ between runs: no order and no value may come from one",
                   .covers = is_product,
                   .names = {"uintptr_t", "intptr_t", "std::owner_less"},
                   .finds =
                       [](const Source& source) {
                         std::vector<size_t> found = pointer_keys(source);
                         for (size_t line : pointer_formats(source)) {
                           found.push_back(line);
                         }
                         return found;
                       },
                   .fires_on = {{"raft/core.h", "std::map<Node*, int> by_node_;"},
                                {"sim/world.h", "std::set<std::shared_ptr<Node>> nodes_;"},
                                {"io/sim/loop.h", "std::set<std::pair<Instant, Fiber*>> timers_;"},
                                {"engine/node.cpp", "auto key = reinterpret_cast<uintptr_t>(this);"},
                                {"chaos/report.cpp", "std::snprintf(out, n, \"%p\", pointer);"}},
                   .passes_on = {{"raft/core.h", "std::map<int, Node*> by_id_;"},
                                 {"raft/core.h", "std::set<std::string> names_;"}}});

  table.push_back({.name = "std-random-algorithm",
                   .why = "the library chooses how its distributions and shuffles use their draws",
                   .covers = is_product,
                   .names = {"std::shuffle", "std::random_shuffle", "std::sample", "std::ranges::shuffle",
                             "std::ranges::sample", "std::generate_canonical", "std::uniform_int_distribution",
                             "std::uniform_real_distribution", "std::bernoulli_distribution", "std::normal_distribution",
                             "std::exponential_distribution", "std::poisson_distribution", "std::discrete_distribution",
                             "std::geometric_distribution", "std::binomial_distribution"},
                   .fires_on = {{"sim/workload.cpp", "std::shuffle(a.begin(), a.end(), engine);"},
                                {"io/real/net.cpp", "std::uniform_int_distribution<int> draw(0, 7);"}},
                   .passes_on = {{"sim/workload.cpp", "stream.shuffle(items);"}}});

  table.push_back({.name = "floating-point",
                   .why = "floating point rounds by build and machine; rates are integers, tails are tables",
                   .covers = is_sealed,
                   .headers = {"<cmath>", "<math.h>"},
                   .names = {"double", "float"},
                   .finds = floating_literals,
                   .fires_on = {{"io/sim/net.cpp", "double loss = 1;"},
                                {"raft/core.cpp", "auto timeout = base * 1.5;"},
                                {"sim/workload.cpp", "if (draw < 1e-3) {"},
                                {"engine/metastore/fsm.cpp", "float share;"}},
                   .passes_on = {{"io/sim/net.cpp", "uint32_t loss_ppm = 10'000;"},
                                 {"io/real/metrics.cpp", "double seconds = 0.5;"},
                                 {"raft/core.cpp", "auto version = \"3.1\";"},
                                 {"raft/core.cpp", "auto bytes = 0x1e5;"}}});

  table.push_back({.name = "catch-all",
                   .why = "a cancelled fiber unwinds by an exception that only io/ may catch",
                   .covers = [](const Source& source) { return is_product(source) && !starts_with(source.path, "io/"); },
                   .finds = catch_alls,
                   .fires_on = {{"raft/server.cpp", "} catch (...) {"}, {"sim/world.cpp", "} catch (const io::Cancelled&) {"}},
                   .passes_on = {{"raft/server.cpp", "} catch (const std::exception& error) {"},
                                 {"io/fiber.cpp", "} catch (const Cancelled&) {"}}});

  table.push_back({.name = "assert",
                   .why = "checks are on in every build: NARAD_CHECK, never assert",
                   .covers = is_product,
                   .headers = {"<cassert>", "<assert.h>"},
                   .names = {"NDEBUG"},
                   .calls = {"assert"},
                   .fires_on = {{"raft/core.cpp", "assert(term > 0);"}, {"sim/world.h", "#include <cassert>"}},
                   .passes_on = {{"raft/core.cpp", "static_assert(sizeof(int) == 4);"},
                                 {"raft/core.cpp", "NARAD_CHECK(term > 0, \"a term is positive\");"}}});

  table.push_back({.name = "heavy-header",
                   .why = "spdlog, JSON and Beast cost many seconds a file: they stay behind headers of our own",
                   .covers = [](const Source& source) { return is_header(source) && is_product(source); },
                   .headers = {"<spdlog/", "<nlohmann/json.hpp>", "<boost/beast", "<fmt/"},
                   .fires_on = {{"engine/api/http.h", "#include <boost/beast/http.hpp>"},
                                {"io/real/log.h", "#include <spdlog/spdlog.h>"}},
                   .passes_on = {{"engine/api/http.cpp", "#include <boost/beast/http.hpp>"},
                                 {"engine/api/json.h", "#include <nlohmann/json_fwd.hpp>"}}});

  table.push_back({.name = "header-shape",
                   .why = "a header opens with a comment that says what the part is for, and is included once",
                   .covers = is_header,
                   .finds = header_shape,
                   .fires_on = {{"raft/core.h", "#pragma once"}, {"raft/core.h", "// The core."}},
                   .passes_on = {{"raft/core.h", "// The core.\n#pragma once"}}});

  table.push_back({.name = "unfinished",
                   .why = "what is not built is not in the tree",
                   .covers = anywhere,
                   .finds = unfinished_marks,
                   .fires_on = {{"raft/core.cpp", std::string("// TO") + "DO: snapshots"}},
                   .passes_on = {{"raft/core.cpp", "// to do so would lose the vote"}}});

  return table;
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = make_rules();
  return kRules;
}

const std::vector<Exception>& exceptions() {
  static const std::vector<Exception> kExceptions = {
      {"engine/metastore/database_options.cpp", "floating-point", "kFilterBitsPerKey", "RocksDB takes it as a double"},
      {"engine/metastore/database_options.cpp", "floating-point", "memtable_prefix_bloom_size_ratio", "RocksDB takes it as a double"},
      {"engine/metastore/fb_io.h", "pointer-order", "alignof", "copies unaligned rows; both ways read the same values"},
      {"engine/metrics.cpp", "floating-point", "", "Prometheus values are doubles; they are shown and decide nothing"},
      {"engine/metrics.h", "floating-point", "_seconds", "a metric in seconds, handed in at scrape time"},
      {"engine/node.cpp", "floating-point", "const auto seconds", "a metric in seconds, handed in at scrape time"},
      {"raft/wire.cpp", "pointer-order", "kAlignment", "a check of where a frame was put; its value goes nowhere"},
      {"io/check.cpp", "print", "stderr", "a failed check has no log to speak through"},
      {"io/fiber.cpp", "print", "stderr", "an exception that leaves a fiber ends the process, as a failed check does"},
      {"io/fiber.cpp", "thread", "thread_local", "the fiber that runs now and the pool of stacks belong to a loop's thread"},
      {"io/fiber.cpp", "file", "<unistd.h>", "the page size, for guard pages"},
      {"io/fiber.cpp", "file", "<sys/mman.h>", "stacks with guard pages"},
      {"io/fiber.cpp", "file", "mmap(", "stacks with guard pages"},
      {"io/fiber.h", "pointer-order", "timers_", "the sequence number before the pointer is unique, so it never orders"},
      {"io/real/uring_poller.h", "pointer-order", "polls_", "which records are armed; released at the end, in any order"},
      {"io/sim/rocksdb_unique_id.cpp", "thread", "thread_local", "RocksDB asks for an id without saying which world asks"},
      {"io/sim/switches.cpp", "thread", "thread_local", "the switchboard of the world that this thread runs"},
      {"io/sim/world.cpp", "thread", "thread_local", "the world that this thread runs"},
  };
  return kExceptions;
}

}  // namespace tests::tidy

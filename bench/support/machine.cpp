#include "bench/support/machine.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/support/report.h"

namespace bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

int64_t ns_since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now() - start).count();
}

void must(bool good, const char* what) {
  if (!good) {
    throw std::runtime_error(what);
  }
}

std::vector<int64_t> sync_loop(const std::string& path, double seconds) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  must(file >= 0, "cannot create the file to sync");
  const std::vector<char> block(4096, 'x');
  for (int i = 0; i < 256; ++i) {
    must(pwrite(file, block.data(), block.size(), i * 4096) == 4096, "cannot fill the file to sync");
  }
  must(fsync(file) == 0, "cannot sync");
  std::vector<int64_t> samples;
  const auto begin = SteadyClock::now();
  for (int i = 0; ns_since(begin) < static_cast<int64_t>(seconds * 1e9); ++i) {
    const auto start = SteadyClock::now();
    must(pwrite(file, block.data(), block.size(), (i % 256) * 4096) == 4096, "cannot write");
    must(fdatasync(file) == 0, "cannot sync");
    samples.push_back(ns_since(start));
  }
  close(file);
  unlink(path.c_str());
  return samples;
}

}  // namespace

SyncLimit measure_sync(const std::string& directory, int writers, double seconds) {
  std::vector<std::vector<int64_t>> per_writer(static_cast<size_t>(writers));
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      per_writer[static_cast<size_t>(w)] = sync_loop(directory + "/sync-" + std::to_string(w), seconds);
    });
  }
  std::vector<int64_t> all;
  for (int w = 0; w < writers; ++w) {
    threads[static_cast<size_t>(w)].join();
    all.insert(all.end(), per_writer[static_cast<size_t>(w)].begin(), per_writer[static_cast<size_t>(w)].end());
  }
  SyncLimit limit;
  limit.syncs_per_s = static_cast<double>(all.size()) / seconds;
  limit.p50_ns = quantile(all, 500);
  limit.p99_ns = quantile(all, 990);
  return limit;
}

double measure_sequential_write(const std::string& directory, uint64_t bytes) {
  const std::string path = directory + "/sequential";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  must(file >= 0, "cannot create the file to write");
  const std::vector<char> block(1u << 20, 'x');
  const auto begin = SteadyClock::now();
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    must(pwrite(file, block.data(), block.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(block.size()), "cannot write");
    if ((at / block.size()) % 8 == 7) must(fdatasync(file) == 0, "cannot sync");
  }
  must(fdatasync(file) == 0, "cannot sync");
  const auto took = static_cast<double>(ns_since(begin));
  close(file);
  unlink(path.c_str());
  return static_cast<double>(bytes) * 1e3 / took;
}

double measure_loopback(uint64_t bytes) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  must(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener, 1) == 0 &&
           getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0,
       "cannot listen on the loopback address");
  const std::vector<char> block(1u << 20, 'x');
  std::thread sink([listener] {
    const int peer = accept(listener, nullptr, nullptr);
    std::vector<char> taken(1u << 20);
    while (read(peer, taken.data(), taken.size()) > 0) {
    }
    close(peer);  // tells the sender that all has been taken
  });
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "cannot connect to the reading thread");
  const auto begin = SteadyClock::now();
  for (uint64_t sent = 0; sent < bytes;) {
    const ssize_t taken = write(client, block.data(), std::min<uint64_t>(block.size(), bytes - sent));
    must(taken > 0, "the reading thread went away");
    sent += static_cast<uint64_t>(taken);
  }
  shutdown(client, SHUT_WR);
  char rest = 0;
  must(read(client, &rest, 1) == 0, "the reading thread went away");
  const auto took = static_cast<double>(ns_since(begin));
  sink.join();
  close(client);
  close(listener);
  return static_cast<double>(bytes) * 1e3 / took;
}

int64_t measure_round_trip(int rounds) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  must(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener, 1) == 0 &&
           getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0,
       "cannot listen on the loopback address");
  std::thread echo([listener] {
    const int peer = accept(listener, nullptr, nullptr);
    const int on = 1;
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char byte = 0;
    while (read(peer, &byte, 1) == 1 && write(peer, &byte, 1) == 1) {
    }
    close(peer);
  });
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  must(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "cannot connect to the echo thread");
  std::vector<int64_t> samples;
  for (int i = 0; i < rounds; ++i) {
    char byte = 1;
    const auto start = SteadyClock::now();
    must(write(client, &byte, 1) == 1 && read(client, &byte, 1) == 1, "the echo thread went away");
    samples.push_back(ns_since(start));
  }
  close(client);
  echo.join();
  close(listener);
  return quantile(samples, 500);
}

}  // namespace bench

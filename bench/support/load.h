// A closed-loop load: N connections to one address, each sending its next request when the last was answered. One thread on
// epoll, so that the load itself takes little of the machine that the servers share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench {

// How requests look on the wire and where an answer ends.
struct Protocol {
  // The bytes of request number `n` (unique over the whole run).
  std::function<std::string(uint64_t n)> request;
  // Bytes of `received` that make up one whole answer, 0 when more must come; sets `accepted` to whether the write succeeded.
  std::function<size_t(const std::string& received, bool& accepted)> answer;
};

// An HTTP request with a JSON body, kept alive, and its answer; accepted when the status is 2xx.
Protocol http_protocol(std::function<std::string(uint64_t n)> target, std::function<std::string(uint64_t n)> body);
// CreateTopic (operation 4) over the node protocol; accepted when the status is 201.
Protocol create_topic_protocol(std::function<std::string(uint64_t n)> topic, std::function<std::string(uint64_t n)> body);

struct LoadResult {
  uint64_t accepted = 0;
  uint64_t refused = 0;
  double seconds = 0;
  std::vector<int64_t> latencies_ns;  // of accepted requests
  std::string first_refusal;          // the answer, for people
};

// Runs for `seconds`, then waits for the answers under way. `next` numbers the requests across calls. Throws std::runtime_error
// when a connection cannot be made or breaks.
LoadResult run_load(int port, int clients, double seconds, const Protocol& protocol, uint64_t& next);

}  // namespace bench

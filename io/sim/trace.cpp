#include "io/sim/trace.h"

#include <cinttypes>
#include <cstdio>
#include <string>

namespace io::sim {

const char* to_string(TraceKind kind) {
  switch (kind) {
    case TraceKind::slice: return "slice";
    case TraceKind::timer: return "timer";
    case TraceKind::lane: return "lane";
    case TraceKind::disk: return "disk";
    case TraceKind::kv: return "kv";
    case TraceKind::net_open: return "net-open";
    case TraceKind::net_send: return "net-send";
    case TraceKind::net_deliver: return "net-deliver";
    case TraceKind::net_end: return "net-end";
    case TraceKind::process: return "process";
    case TraceKind::fault: return "fault";
    case TraceKind::log: return "log";
    case TraceKind::world: return "world";
  }
  return "unknown";
}

void Trace::print(TraceKind kind, int64_t at_ns, std::string_view who_name, std::string_view what, uint64_t a,
                  uint64_t b, uint64_t c) const {
  char head[64];
  std::snprintf(head, sizeof head, "%" PRId64 ".%09" PRId64 " ", at_ns / 1'000'000'000, at_ns % 1'000'000'000);
  char tail[80];
  std::snprintf(tail, sizeof tail, " %" PRIu64 " %" PRIu64 " %" PRIx64, a, b, c);
  std::string line = head;
  line.append(who_name).append(" ").append(to_string(kind)).append(" ").append(what).append(tail);
  sink_(line);
}

}  // namespace io::sim

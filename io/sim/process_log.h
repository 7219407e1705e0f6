// The log of a simulated process: the latest lines are kept, and each goes to the world's sink.
#pragma once

#include <deque>
#include <string>

#include "io/log.h"
#include "io/time.h"

namespace io::sim {

class Incarnation;

struct LogLine {
  Instant at;
  LogLevel level;
  std::string text;  // the fixed text, then " key=value" for each field
};

class ProcessLog final : public Log {
 public:
  explicit ProcessLog(Incarnation& process) : process_(process) {}
  void write(LogLevel level, std::string_view text, const std::vector<LogField>& fields) override;
  bool enabled(LogLevel level) const override;
  // The last lines, oldest first; 200 at most.
  const std::deque<LogLine>& lines() const { return lines_; }

 private:
  Incarnation& process_;
  std::deque<LogLine> lines_;
};

}  // namespace io::sim

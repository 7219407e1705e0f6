// The node's log: a level, a fixed text and named fields. Production writes text or JSON lines; the simulator keeps them, and an
// error-level line that the run's plan does not explain fails the run.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace io {

enum class LogLevel { debug, info, warn, error };

std::string_view to_string(LogLevel level);

struct LogField {
  std::string_view key;
  std::variant<std::string, int64_t, uint64_t, bool> value;

  LogField(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  LogField(std::string_view k, std::string_view v) : key(k), value(std::string(v)) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  template <std::signed_integral I>
  LogField(std::string_view k, I v) : key(k), value(static_cast<int64_t>(v)) {}
  template <std::unsigned_integral I>
    requires(!std::same_as<I, bool>)
  LogField(std::string_view k, I v) : key(k), value(static_cast<uint64_t>(v)) {}
};

class Log {
 public:
  virtual ~Log() = default;
  // Keeps nothing of its arguments; never waits. `text` is one line.
  virtual void write(LogLevel level, std::string_view text, const std::vector<LogField>& fields) = 0;
  virtual bool enabled(LogLevel level) const = 0;

  void debug(std::string_view text, const std::vector<LogField>& fields = {}) { put(LogLevel::debug, text, fields); }
  void info(std::string_view text, const std::vector<LogField>& fields = {}) { put(LogLevel::info, text, fields); }
  void warn(std::string_view text, const std::vector<LogField>& fields = {}) { put(LogLevel::warn, text, fields); }
  void error(std::string_view text, const std::vector<LogField>& fields = {}) { put(LogLevel::error, text, fields); }

 private:
  void put(LogLevel level, std::string_view text, const std::vector<LogField>& fields) {
    if (enabled(level)) {
      write(level, text, fields);
    }
  }
};

}  // namespace io

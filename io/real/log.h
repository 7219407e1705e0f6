// The node's log on standard error, one line an event, as text or as JSON.
//
//   text   2026-01-02T03:04:05.678Z INFO  http listening addr=127.0.0.1:7942 note="two words"
//   json   {"time":"2026-01-02T03:04:05.678Z","level":"INFO","msg":"http listening","addr":"127.0.0.1:7942"}
//
// Lines are written as they come, in the calling thread. Bytes that are not UTF-8 are shown as U+FFFD in JSON and
// escaped in text, so that each event stays one valid line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/log.h"
#include "io/result.h"
#include "io/time.h"

namespace io::real {

enum class LogFormat { text, json };

struct LogSettings {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::json;
};

// "debug", "info", "warn", "error" (config: log.level) and "json", "text" (log.format); `invalid` for another text.
Result<LogLevel> parse_log_level(std::string_view text);
Result<LogFormat> parse_log_format(std::string_view text);

// One event as a line without its end.
std::string format_line(LogFormat format, WallTime at, LogLevel level, std::string_view text,
                        const std::vector<LogField>& fields);

// A log on standard error; `clock` outlives it.
std::unique_ptr<Log> make_stderr_log(LogSettings settings, Clock& clock);

}  // namespace io::real

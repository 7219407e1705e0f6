#include "io/real/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <time.h>

#include <cstdio>

namespace io::real {

namespace {

std::string_view level_word(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "DEBUG";
    case LogLevel::info: return "INFO";
    case LogLevel::warn: return "WARN";
    case LogLevel::error: return "ERROR";
  }
  return "UNKNOWN";
}

std::string time_text(WallTime at) {
  const int64_t ms = to_unix_ms(at);
  const time_t seconds = to_unix_seconds(at);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(ms - int64_t{seconds} * 1000));
  return text;
}

// Length of the well-formed UTF-8 sequence at the start of `bytes` (no overlong forms, surrogates or values past
// U+10FFFF); 0 when there is none.
size_t sequence_length(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) {
    return 1;
  }
  const size_t length = first < 0xC2 ? 0 : first <= 0xDF ? 2 : first <= 0xEF ? 3 : first <= 0xF4 ? 4 : 0;
  if (length == 0 || bytes.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  const bool misplaced = (first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F) ||
                         (first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F);
  return misplaced ? 0 : length;
}

void append_escape(std::string& out, unsigned char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", byte);
  out += text;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = sequence_length(text.substr(i));
    if (length == 0) {
      out += "\\ufffd";
      ++i;
      continue;
    }
    switch (byte) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (byte < 0x20 || byte == 0x7F) {
          append_escape(out, byte);
        } else {
          out += text.substr(i, length);
        }
    }
    i += length;
  }
  out += '"';
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) {
    return true;
  }
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = sequence_length(text.substr(i));
    if (length == 0 || byte <= 0x20 || byte == 0x7F || byte == '"' || byte == '=' || byte == '\\') {
      return true;
    }
    i += length;
  }
  return false;
}

void append_value(std::string& out, LogFormat format, const LogField& field) {
  if (const auto* text = std::get_if<std::string>(&field.value)) {
    if (format == LogFormat::json || needs_quotes(*text)) {
      append_json_string(out, *text);
    } else {
      out += *text;
    }
  } else if (const auto* number = std::get_if<int64_t>(&field.value)) {
    out += std::to_string(*number);
  } else if (const auto* natural = std::get_if<uint64_t>(&field.value)) {
    out += std::to_string(*natural);
  } else {
    out += std::get<bool>(field.value) ? "true" : "false";
  }
}

// The text of an event is ours, but it may quote what came from outside: no line ends, no control bytes.
void append_plain(std::string& out, std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  if (quoted.size() == text.size() + 2) {
    out += text;
    return;
  }
  std::string_view inner(quoted);
  inner = inner.substr(1, inner.size() - 2);
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == '\\' && i + 1 < inner.size() && inner[i + 1] == '"') {
      continue;  // a quotation mark reads well in a text line
    }
    out += inner[i];
  }
}

class StderrLog final : public Log {
 public:
  StderrLog(LogSettings settings, Clock& clock)
      : settings_(settings), clock_(clock), logger_("narad", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%v");
    logger_.set_level(spdlog::level::trace);  // enabled() has judged
  }

  bool enabled(LogLevel level) const override { return level >= settings_.level; }

  void write(LogLevel level, std::string_view text, const std::vector<LogField>& fields) override {
    const std::string line = format_line(settings_.format, clock_.wall(), level, text, fields);
    logger_.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
  }

 private:
  LogSettings settings_;
  Clock& clock_;
  spdlog::logger logger_;
};

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  for (LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error}) {
    if (text == to_string(level)) {
      return level;
    }
  }
  return fail(ErrorKind::invalid, "log level \"" + std::string(text) + "\": one of debug, info, warn, error");
}

Result<LogFormat> parse_log_format(std::string_view text) {
  if (text == "json") {
    return LogFormat::json;
  }
  if (text == "text") {
    return LogFormat::text;
  }
  return fail(ErrorKind::invalid, "log format \"" + std::string(text) + "\": one of json, text");
}

std::string format_line(LogFormat format, WallTime at, LogLevel level, std::string_view text,
                        const std::vector<LogField>& fields) {
  std::string line;
  if (format == LogFormat::json) {
    line += "{\"time\":\"" + time_text(at) + "\",\"level\":\"" + std::string(level_word(level)) + "\",\"msg\":";
    append_json_string(line, text);
    for (const LogField& field : fields) {
      line += ',';
      append_json_string(line, field.key);
      line += ':';
      append_value(line, format, field);
    }
    line += '}';
    return line;
  }
  line += time_text(at) + " " + std::string(level_word(level));
  line.append(6 - level_word(level).size(), ' ');
  append_plain(line, text);
  for (const LogField& field : fields) {
    line += ' ';
    append_plain(line, field.key);
    line += '=';
    append_value(line, format, field);
  }
  return line;
}

std::unique_ptr<Log> make_stderr_log(LogSettings settings, Clock& clock) {
  return std::make_unique<StderrLog>(settings, clock);
}

}  // namespace io::real

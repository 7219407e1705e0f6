#include "io/real/log.h"

#include <gtest/gtest.h>

#include "io/real/clock.h"

namespace {

using namespace io;
using namespace io::real;

constexpr WallTime kAt{1'767'323'045'678ms};

std::string json(std::string_view text, const std::vector<LogField>& fields = {}) {
  return format_line(LogFormat::json, kAt, LogLevel::info, text, fields);
}

std::string text_line(std::string_view text, const std::vector<LogField>& fields = {}) {
  return format_line(LogFormat::text, kAt, LogLevel::warn, text, fields);
}

TEST(LogLines, JsonHasTimeLevelMessageAndTypedFields) {
  EXPECT_EQ(json("http listening",
                 {{"addr", "127.0.0.1:7942"}, {"count", -3}, {"bytes", uint64_t{1} << 63}, {"on", true}}),
            R"({"time":"2026-01-02T03:04:05.678Z","level":"INFO","msg":"http listening","addr":"127.0.0.1:7942",)"
            R"("count":-3,"bytes":9223372036854775808,"on":true})");
}

TEST(LogLines, JsonEscapesWhatJsonForbids) {
  EXPECT_EQ(json("a\"b\\c\n\r\t\x01\x7f"),
            R"({"time":"2026-01-02T03:04:05.678Z","level":"INFO","msg":"a\"b\\c\n\r\t\u0001\u007f"})");
  EXPECT_NE(json("x", {{"k\"ey", "v"}}).find(R"("k\"ey":"v")"), std::string::npos);
}

TEST(LogLines, JsonKeepsUtf8AndReplacesOtherBytes) {
  EXPECT_NE(json("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80").find("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"), std::string::npos);
  for (std::string_view bad : {"\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\x80", "\xE2\x82"}) {
    const std::string line = json(bad);
    EXPECT_NE(line.find("\\ufffd"), std::string::npos) << line;
    for (char c : line) {
      EXPECT_LT(static_cast<unsigned char>(c), 0x80);
    }
  }
}

TEST(LogLines, TextQuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(text_line("raft: slow", {{"node", "n1"}, {"why", "two words"}, {"none", ""}, {"took", 5}}),
            "2026-01-02T03:04:05.678Z WARN  raft: slow node=n1 why=\"two words\" none=\"\" took=5");
  EXPECT_EQ(text_line("a \"quoted\" word").substr(31), "a \"quoted\" word");
}

TEST(LogLines, OneEventIsOneLine) {
  for (LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line =
        format_line(format, kAt, LogLevel::error, "forged\nline", {{"k", "v\r\nx"}, {"k\n2", "v"}});
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(line.find('\r'), std::string::npos);
  }
}

TEST(LogLines, LevelsAndFormatsAreParsedByName) {
  EXPECT_EQ(*parse_log_level("warn"), LogLevel::warn);
  EXPECT_TRUE(parse_log_level("loud").is(ErrorKind::invalid));
  EXPECT_EQ(*parse_log_format("text"), LogFormat::text);
  EXPECT_TRUE(parse_log_format("xml").is(ErrorKind::invalid));
}

TEST(LogLines, BelowItsLevelNothingIsWritten) {
  BootClock clock;
  std::unique_ptr<Log> log = make_stderr_log({LogLevel::warn, LogFormat::text}, clock);
  testing::internal::CaptureStderr();
  log->info("quiet");
  log->error("loud", {{"percent", "100%{}"}});
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find("quiet"), std::string::npos);
  EXPECT_NE(written.find("ERROR loud percent=100%{}\n"), std::string::npos) << written;
}

}  // namespace

#include "io/sim/process_log.h"

#include "io/sim/world.h"

namespace io::sim {

namespace {

constexpr size_t kLinesMax = 200;

std::string to_text(const LogField& field) {
  struct Show {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(uint64_t number) const { return std::to_string(number); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  };
  return std::visit(Show{}, field.value);
}

}  // namespace

bool ProcessLog::enabled(LogLevel level) const {
  return process_.live() && level >= process_.machine().world().log_level();
}

void ProcessLog::write(LogLevel level, std::string_view text, const std::vector<LogField>& fields) {
  if (!process_.live()) {
    return;
  }
  World& world = process_.machine().world();
  std::string line(text);
  for (const LogField& field : fields) {
    line.append(" ").append(field.key).append("=").append(to_text(field));
  }
  world.record(TraceKind::log, &process_, line, static_cast<uint64_t>(level));
  if (world.log_sink()) {
    world.log_sink()(process_, level, line);
  }
  lines_.push_back({world.now(), level, std::move(line)});
  if (lines_.size() > kLinesMax) {
    lines_.pop_front();
  }
}

}  // namespace io::sim

#include "sim/load.h"

#include <algorithm>

namespace sim {

io::Duration LoadDraws::pause() {
  const uint64_t rate = std::max<uint64_t>(settings_.ops_per_minute, 1);
  const io::Duration mean = io::Duration(std::chrono::minutes(1)) * settings_.clients / static_cast<int64_t>(rate);
  return stream_.between(mean / 2, mean * 3 / 2);
}

std::string LoadDraws::any_name() {
  std::string name = "orders-" + std::to_string(stream_.below(settings_.names));
  if (stream_.below(16) == 0) {
    name[0] = 'O';  // the same name to people, another one to the machine
  }
  return name;
}

void LoadDraws::fill_change(Call& call) {
  if (stream_.below(3) == 0) {
    call.partitions = 3 + static_cast<int64_t>(stream_.below(10));
  }
  if (stream_.below(4) == 0) {
    call.max_in_flight = 1 + static_cast<int64_t>(stream_.below(2'000));
  }
}

CallKind LoadDraws::draw_kind(bool& is_race) {
  const struct {
    uint64_t weight;
    CallKind kind;
    bool is_race = false;
  } kKinds[] = {{settings_.create, CallKind::create},     {settings_.patch, CallKind::patch},
                {settings_.remove, CallKind::remove},     {settings_.read, CallKind::read},
                {settings_.list, CallKind::list},         {settings_.race, CallKind::create, true},
                {settings_.attach, CallKind::attach},     {settings_.detach, CallKind::detach},
                {settings_.children, CallKind::children}, {settings_.put_schema, CallKind::put_schema},
                {settings_.schemas, CallKind::schemas}};
  uint64_t sum = 0;
  for (const auto& each : kKinds) {
    sum += each.weight;
  }
  uint64_t at = sum == 0 ? 0 : stream_.below(sum);
  for (const auto& each : kKinds) {
    if (at < each.weight) {
      is_race = each.is_race;
      return each.kind;
    }
    at -= each.weight;
  }
  return CallKind::read;
}

void LoadDraws::fill_links(Call& call) {
  // One in sixteen asks for a delay that no parent of this load can hold.
  const auto delay = [this]() -> int64_t { return stream_.below(16) == 0 ? 1'000'000'000 : stream_.below(8) == 0 ? 1 : 0; };
  if (call.kind == CallKind::attach || call.kind == CallKind::detach) {
    call.child = any_name();
    call.delay_ms = call.kind == CallKind::attach ? delay() : 0;
  } else if (call.kind == CallKind::create && stream_.below(6) == 0) {
    call.parent = any_name();
    call.delay_ms = delay();
  }
  // A topic is no child of itself; a delay needs a parent.
  if (call.child == call.name || call.parent == call.name) {
    call.child = call.child.empty() ? "" : "orders-other";
    call.delay_ms = call.parent.empty() ? call.delay_ms : 0;
    call.parent = "";
  }
}

Wish LoadDraws::wish() {
  Wish wish;
  Call& call = wish.call;
  call.node = any_node();
  call.kind = draw_kind(wish.is_race);
  if (call.kind == CallKind::list) {
    call.limit = static_cast<int64_t>(stream_.below(2) == 0 ? 1'000 : 1 + stream_.below(20));
    if (stream_.below(2) == 0) {
      call.name = any_name();
    }
    return wish;
  }
  call.name = any_name();
  fill_links(call);
  if (call.kind == CallKind::put_schema || (call.kind == CallKind::create && stream_.below(6) == 0)) {
    call.has_schema = true;
  }
  if (call.writes_topic()) {
    fill_change(call);
  }
  return wish;
}

std::string body_of(const Call& call) {
  const std::string schema = "\"schema\":{\"maxLength\":" + std::to_string(call.tag()) + "}";
  if (call.kind == CallKind::attach) {
    return "{\"child\":\"" + call.child + "\"" + (call.delay_ms == 0 ? "" : ",\"delay_ms\":" + std::to_string(call.delay_ms)) + "}";
  }
  if (call.kind == CallKind::put_schema) {
    return "{" + schema + "}";
  }
  if (!call.writes_topic()) {
    return "";
  }
  std::string body = "{";
  if (call.kind == CallKind::create) {
    body += "\"name\":\"" + call.name + "\",";
  }
  body += "\"retention_ms\":" + std::to_string(call.tag());
  if (call.partitions != 0) {
    body += ",\"partitions\":" + std::to_string(call.partitions);
  }
  if (call.max_in_flight != 0) {
    body += ",\"max_in_flight_per_partition\":" + std::to_string(call.max_in_flight);
  }
  if (!call.parent.empty()) {
    body += ",\"parent\":\"" + call.parent + "\"";
  }
  if (call.kind == CallKind::create && call.delay_ms != 0) {
    body += ",\"fanout_delay_ms\":" + std::to_string(call.delay_ms);
  }
  if (call.has_schema) {
    body += "," + schema;
  }
  return body + "}";
}

std::string target_of(const Call& call) {
  switch (call.kind) {
    case CallKind::create: return "/v1/topics";
    case CallKind::list:
      return "/v1/topics?limit=" + std::to_string(call.limit) + (call.name.empty() ? "" : "&page_token=" + call.name);
    case CallKind::attach:
    case CallKind::children: return "/v1/topics/" + call.name + "/children";
    case CallKind::detach: return "/v1/topics/" + call.name + "/children/" + call.child;
    case CallKind::schemas: return "/v1/topics/" + call.name + "/schema";
    default: return "/v1/topics/" + call.name;
  }
}

const char* method_of(CallKind kind) {
  switch (kind) {
    case CallKind::create:
    case CallKind::attach: return "POST";
    case CallKind::patch:
    case CallKind::put_schema: return "PATCH";
    case CallKind::remove:
    case CallKind::detach: return "DELETE";
    default: return "GET";
  }
}

}  // namespace sim

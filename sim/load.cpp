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

Wish LoadDraws::wish() {
  Wish wish;
  Call& call = wish.call;
  call.node = any_node();
  const uint64_t sum =
      settings_.create + settings_.patch + settings_.remove + settings_.read + settings_.list + settings_.race;
  uint64_t at = sum == 0 ? 0 : stream_.below(sum);
  const auto falls_in = [&at](uint64_t weight) {
    if (at < weight) {
      return true;
    }
    at -= weight;
    return false;
  };
  call.kind = CallKind::read;
  if (falls_in(settings_.create)) {
    call.kind = CallKind::create;
  } else if (falls_in(settings_.patch)) {
    call.kind = CallKind::patch;
  } else if (falls_in(settings_.remove)) {
    call.kind = CallKind::remove;
  } else if (falls_in(settings_.read)) {
    call.kind = CallKind::read;
  } else if (falls_in(settings_.list)) {
    call.kind = CallKind::list;
  } else if (falls_in(settings_.race)) {
    call.kind = CallKind::create;
    wish.is_race = true;
  }
  if (call.kind == CallKind::list) {
    call.limit = static_cast<int64_t>(stream_.below(2) == 0 ? 1'000 : 1 + stream_.below(20));
    if (stream_.below(2) == 0) {
      call.name = any_name();
    }
    return wish;
  }
  call.name = any_name();
  if (call.kind == CallKind::create || call.kind == CallKind::patch) {
    fill_change(call);
  }
  return wish;
}

std::string body_of(const Call& call) {
  if (call.kind != CallKind::create && call.kind != CallKind::patch) {
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
  return body + "}";
}

std::string target_of(const Call& call) {
  switch (call.kind) {
    case CallKind::create: return "/v1/topics";
    case CallKind::list:
      return "/v1/topics?limit=" + std::to_string(call.limit) + (call.name.empty() ? "" : "&page_token=" + call.name);
    default: return "/v1/topics/" + call.name;
  }
}

const char* method_of(CallKind kind) {
  switch (kind) {
    case CallKind::create: return "POST";
    case CallKind::patch: return "PATCH";
    case CallKind::remove: return "DELETE";
    default: return "GET";
  }
}

}  // namespace sim

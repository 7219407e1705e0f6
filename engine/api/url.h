// The target of a request: path segments and query values, percent-decoded.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace engine::api {

struct Target {
  std::vector<std::string> segments;  // of the path, without empty first one: "/v1/topics/a" is v1, topics, a
  std::vector<std::pair<std::string, std::string>> query;

  // The first value under `name`; nullopt when absent.
  std::optional<std::string> value(std::string_view name) const;
};

// nullopt for a target with a bad percent escape in its path. A pair with a bad escape in the query is dropped.
std::optional<Target> parse_target(std::string_view target);

// Percent-encodes everything but unreserved characters; for clients.
std::string url_escape(std::string_view text);

}  // namespace engine::api

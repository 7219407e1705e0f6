#include "engine/api/router.h"

#include <algorithm>

#include "engine/json_text.h"

namespace engine::api {

namespace {

std::vector<std::string_view> split(std::string_view pattern) {
  std::vector<std::string_view> segments;
  pattern.remove_prefix(1);
  while (true) {
    const size_t slash = pattern.find('/');
    segments.push_back(pattern.substr(0, slash));
    if (slash == std::string_view::npos) {
      return segments;
    }
    pattern.remove_prefix(slash + 1);
  }
}

// Browsers send neither on their own: a page of another site cannot make one write.
bool has_write_header(const HttpRequest& request) {
  if (request.header("X-Narad-Client") != nullptr) {
    return true;
  }
  const std::string* type = request.header("Content-Type");
  if (type == nullptr) {
    return false;
  }
  std::string media = type->substr(0, type->find(';'));
  while (!media.empty() && media.back() == ' ') {
    media.pop_back();
  }
  std::transform(media.begin(), media.end(), media.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return media == "application/json" || media == "application/octet-stream";
}

bool needs_write_header(std::string_view method) { return method == "POST" || method == "PUT" || method == "PATCH"; }

}  // namespace

HttpResponse json_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::move(body);
  return response;
}

HttpResponse error_response(int status, std::string_view text) {
  return json_response(status, "{\"error\":" + json_quoted(text) + "}\n");
}

HttpResponse text_response(int status, std::string_view text) {
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::string(text) + "\n";
  return response;
}

void Router::add(std::string_view method, std::string_view pattern, Handler handler) {
  routes_.push_back({method, std::string(method) + " " + std::string(pattern), split(pattern), std::move(handler)});
}

bool Router::matches(const Route& route, const Target& target, std::vector<std::string_view>& parameters) {
  parameters.clear();
  for (size_t i = 0; i < route.segments.size(); ++i) {
    const std::string_view wanted = route.segments[i];
    if (wanted.ends_with("...}")) {
      return true;
    }
    if (i >= target.segments.size()) {
      return false;
    }
    const std::string& given = target.segments[i];
    if (wanted.starts_with('{')) {
      if (given.empty()) {
        return false;
      }
      parameters.push_back(given);
    } else if (wanted != given) {
      return false;
    }
  }
  return target.segments.size() == route.segments.size();
}

Router::Routed Router::dispatch(const HttpRequest& request) const {
  static constexpr std::string_view kUnmatched = "unmatched";
  const std::optional<Target> target = parse_target(request.target);
  if (!target.has_value()) {
    return {text_response(400, "malformed request target"), kUnmatched};
  }
  const std::string_view method = request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
  std::string allowed;
  Call call{request, *target, {}};
  for (const Route& route : routes_) {
    if (!matches(route, *target, call.parameters)) {
      continue;
    }
    if (route.method == method) {
      if (needs_write_header(method) && !has_write_header(request)) {
        return {error_response(415,
                               "Content-Type must be application/json or application/octet-stream, or the X-Narad-Client "
                               "header must be set"),
                route.name};
      }
      return {route.handler(call), route.name};
    }
    if (allowed.find(route.method) == std::string::npos) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method) + (route.method == "GET" ? ", HEAD" : "");
    }
  }
  if (allowed.empty()) {
    return {text_response(404, "404 page not found"), kUnmatched};
  }
  HttpResponse response = text_response(405, "Method Not Allowed");
  response.headers.push_back({"Allow", allowed});
  return {std::move(response), kUnmatched};
}

}  // namespace engine::api

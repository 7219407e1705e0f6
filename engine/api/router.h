// From a request to its handler: routes by method and path pattern, and the answers that no handler gives (unknown route,
// method not allowed, missing write header).
//
// A pattern is segments; "{name}" takes any one non-empty segment, "{rest...}" at the end any number. GET routes answer HEAD.
// Source: narad/http-api.md section 1.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/http_types.h"
#include "engine/api/url.h"

namespace engine::api {

// A request on its way through a route.
struct Call {
  const HttpRequest& request;
  const Target& target;
  std::vector<std::string_view> parameters;  // what the pattern's "{...}" took, in order
};

class Router {
 public:
  using Handler = std::function<HttpResponse(const Call&)>;

  // `pattern` is a literal: it names the route in metrics ("GET /v1/topics/{topic}" is method and pattern).
  void add(std::string_view method, std::string_view pattern, Handler handler);

  struct Routed {
    HttpResponse response;
    std::string_view route;  // "GET /v1/topics/{topic}"; "unmatched" when no handler was called
  };
  Routed dispatch(const HttpRequest& request) const;

 private:
  struct Route {
    std::string_view method;
    std::string name;
    std::vector<std::string_view> segments;
    Handler handler;
  };
  static bool matches(const Route& route, const Target& target, std::vector<std::string_view>& parameters);

  std::vector<Route> routes_;
};

HttpResponse json_response(int status, std::string body);
// {"error":"<text>"}
HttpResponse error_response(int status, std::string_view text);
HttpResponse text_response(int status, std::string_view text);

}  // namespace engine::api

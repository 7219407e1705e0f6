// An HTTP request and response as values: what the server hands to a handler and takes back, and what the client sends and
// gets. Nothing of the wire (framing, keep-alive, chunks) shows here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace engine::api {

struct Header {
  std::string name;
  std::string value;
};

// The first value under `name`, compared without case; nullptr when there is none.
const std::string* find_header(const std::vector<Header>& headers, std::string_view name);

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  // path and query, as sent
  std::vector<Header> headers;
  std::string body;

  const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

struct HttpResponse {
  int status = 200;
  std::string content_type;     // empty: no Content-Type line
  std::vector<Header> headers;  // beside Content-Type, Content-Length, Date and Connection
  std::string body;

  const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

}  // namespace engine::api

#include "engine/api/url.h"

namespace engine::api {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

std::optional<std::string> unescape(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
      if (low < 0) {
        return std::nullopt;
      }
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

void parse_query(std::string_view text, Target& target) {
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const size_t equals = pair.find('=');
    std::optional<std::string> name = unescape(pair.substr(0, equals), true);
    std::optional<std::string> value =
        equals == std::string_view::npos ? std::optional<std::string>("") : unescape(pair.substr(equals + 1), true);
    if (!pair.empty() && name.has_value() && value.has_value()) {
      target.query.emplace_back(std::move(*name), std::move(*value));
    }
  }
}

}  // namespace

std::optional<std::string> Target::value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<Target> parse_target(std::string_view text) {
  Target target;
  text = text.substr(0, text.find('#'));
  const size_t question = text.find('?');
  if (question != std::string_view::npos) {
    parse_query(text.substr(question + 1), target);
  }
  std::string_view path = text.substr(0, question);
  if (path.empty() || path.front() != '/') {
    return std::nullopt;
  }
  path.remove_prefix(1);
  while (true) {
    const size_t slash = path.find('/');
    std::optional<std::string> segment = unescape(path.substr(0, slash), false);
    if (!segment.has_value()) {
      return std::nullopt;
    }
    target.segments.push_back(std::move(*segment));
    if (slash == std::string_view::npos) {
      return target;
    }
    path.remove_prefix(slash + 1);
  }
}

std::string url_escape(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                            c == '_' || c == '~';
    if (unreserved) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

}  // namespace engine::api

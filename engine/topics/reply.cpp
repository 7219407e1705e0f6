#include "engine/topics/reply.h"

#include "engine/topics/json.h"

namespace engine {

Reply error_reply(int status, std::string_view text) {
  json::Writer writer;
  writer.begin_object().key("error").string(text).end_object();
  return Reply{status, writer.take() + "\n"};
}

bool is_unavailable(int status, std::string_view body) {
  return status == 503 && body.find(kUnavailableText) != std::string_view::npos &&
         body.find(kOutcomeUnknownText) == std::string_view::npos;
}

Reply unavailable_reply(std::string_view reason) {
  std::string text(kUnavailableText);
  if (!reason.empty()) {
    text.append(": ").append(reason);
  }
  return error_reply(503, text);
}

Reply outcome_unknown_reply() { return unavailable_reply(kOutcomeUnknownText); }

}  // namespace engine

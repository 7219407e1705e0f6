// An answer to an API request before it has a transport: a status and a JSON body. HTTP and the node protocol send the same.
#pragma once

#include <string>
#include <string_view>

namespace engine {

struct Reply {
  int status = 200;
  std::string body;  // JSON ending with a newline; empty for 204

  bool ok() const { return status < 300; }
};

// {"error":"<text>"}
Reply error_reply(int status, std::string_view text);

// The control plane cannot take the request now; nothing was changed.
inline constexpr std::string_view kUnavailableText = "control plane temporarily unavailable";
// The change was handed to raft and its fate is not known. A forwarding node recognises the outcome by this text.
inline constexpr std::string_view kOutcomeUnknownText = "the change may still be applied, read it back before retrying";

// 413: the change is longer than an entry may be, on any leader.
inline constexpr std::string_view kTooLargeText = "change too large";

// Whether an answer says that nothing was changed for want of a leader that takes writes, so that the write may be tried again.
bool is_unavailable(int status, std::string_view body);

// 503 with kUnavailableText, and what is the matter.
Reply unavailable_reply(std::string_view reason = {});
// 503 with both texts.
Reply outcome_unknown_reply();

}  // namespace engine

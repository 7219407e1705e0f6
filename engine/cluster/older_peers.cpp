#include "engine/cluster/older_peers.h"

#include <utility>

#include "io/probe.h"

namespace engine::cluster {

namespace {

bool must_resend(const CallResult& result) {
  return result.kind == CallResult::Kind::answered && is_refused_as_trailing(result.reply);
}

}  // namespace

CallResult call_any_release(NodeClientPool& clients, std::string_view address, const JoinClusterRequest& request,
                            const FrameFields& fields, io::Instant deadline) {
  JoinClusterRequest sent = request;
  if (!fields.entry_types) {
    sent.entry_types.reset();
  }
  if (!fields.fresh) {
    sent = older_frame(std::move(sent));
  }
  CallResult result = clients.call(address, encode(sent), deadline);
  // The newest field first: there are releases that know only the other one.
  if (must_resend(result) && sent.entry_types) {
    SOMETIMES("older peer: join sent again without entry types");
    sent.entry_types.reset();
    result = clients.call(address, encode(sent), deadline);
  }
  if (must_resend(result) && sent.fresh) {
    SOMETIMES("older peer: join sent again without any new field");
    result = clients.call(address, encode(older_frame(std::move(sent))), deadline);
  }
  return result;
}

CallResult call_any_release(NodeClientPool& clients, std::string_view address, const RegisterMemberRequest& request,
                            const FrameFields& fields, io::Instant deadline) {
  RegisterMemberRequest sent = fields.build ? request : older_frame(request);
  CallResult result = clients.call(address, encode(sent), deadline);
  if (must_resend(result) && sent.release) {
    SOMETIMES("older peer: heartbeat sent again without the release");
    result = clients.call(address, encode(older_frame(std::move(sent))), deadline);
  }
  return result;
}

}  // namespace engine::cluster

// Requests that carry fields which an older release does not know, sent so that every release understands them: a peer that refuses the
// request as trailing data is sent it again at once without the new fields, within the same call. Nothing is remembered of it: the peer
// may be upgraded before the next one. Source: narad/node-protocol.md section 7; scenario UG-05.
#pragma once

#include <string_view>

#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/node_client.h"

namespace engine::cluster {

// The answer to the last of the requests that were needed. `fields`: what this node's own release sends. Wait; throw Cancelled.
CallResult call_any_release(NodeClientPool& clients, std::string_view address, const JoinClusterRequest& request,
                            const FrameFields& fields, io::Instant deadline);
CallResult call_any_release(NodeClientPool& clients, std::string_view address, const RegisterMemberRequest& request,
                            const FrameFields& fields, io::Instant deadline);

}  // namespace engine::cluster

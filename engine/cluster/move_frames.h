// Requests of the node protocol about moves and membership of the controller's part: operations 25 to 28 and 33
// (narad/node-protocol.md section 4). Pure; conventions and errors as in node_frames.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/cluster/node_frames.h"
#include "io/result.h"

namespace engine::cluster {

// 25: the operator asks for a member to be drained and removed, or takes that back.
struct DecommissionRequest {
  std::string id;
  bool cancel = false;
};

// 26: the destination holds everything and asks for the flip.
struct CompleteMoveRequest {
  std::string topic;
  int32_t partition = 0;
  std::string expected_owner;
  std::string target;
};

// 27. `expected_target` empty: whichever there is.
struct AbortMoveRequest {
  std::string topic;
  int32_t partition = 0;
  std::string expected_target;
};

// 28
struct GetAssignmentRequest {
  std::string topic;
  int32_t partition = 0;
};

std::string encode(const DecommissionRequest& request);
std::string encode(const CompleteMoveRequest& request);
std::string encode(const AbortMoveRequest& request);
std::string encode(const GetAssignmentRequest& request);
// 33 has no fields.
std::string encode_node_status_request();

io::Result<DecommissionRequest> decode_decommission(std::string_view payload);
io::Result<CompleteMoveRequest> decode_complete_move(std::string_view payload);
io::Result<AbortMoveRequest> decode_abort_move(std::string_view payload);
io::Result<GetAssignmentRequest> decode_get_assignment(std::string_view payload);
io::Status decode_node_status(std::string_view payload);

}  // namespace engine::cluster

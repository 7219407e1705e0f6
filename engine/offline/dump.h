// `narad metastore dump`: everything that a stopped node's metastore holds, one JSON object a line.
//
//   {"database":"fsm.db/000001"}
//   {"bucket":"fsm_meta","key":"state","value":{"applied_index":12,"applied_term":3,"newest_type":1,"digest":"8f..."}}
//   {"bucket":"topics","key":"orders","value":{"name":"orders","id":"...",...}}
//   ...
//   {"rows":42,"digest":"8f..."}
//
// Rows come in key order. The last line is there only when every row was read; its digest is summed anew over the rows and equals
// the state's. A value that this release cannot read is shown as "undecodable":true with its bytes in hexadecimal. Secrets do
// not leave: of a password hash, of a sealed credential and of the salt only the length is shown.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "io/env.h"
#include "io/result.h"

namespace engine::offline {

// Calls `line` with each line, without its line end. Errors: those of open_directory() and of the database; `corrupt`, after the last
// line, when a row could not be read or the digests differ. A directory without a database gives no line and no error. Fiber only.
io::Status dump(io::Env& env, const std::function<void(std::string_view)>& line);

// The line of one row. `row_key` as stored ("topics/orders"); sets `is_readable`.
std::string row_line(std::string_view row_key, std::string_view value, bool& is_readable);

}  // namespace engine::offline

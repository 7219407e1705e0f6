// Answers as probes: the state machine's, "answer: create topic: already exists", and those that clients get, "call: attach: 409". A long
// sweep is asked to see each refusal that a run can reach (chaos/floors.h).
#pragma once

#include <cstdint>
#include <string>

#include "engine/metastore/answer.h"
#include "engine/metastore/envelope.h"
#include "sim/history.h"

namespace sim {

// `type` 0: of an entry that is no command.
std::string answer_probe(uint32_t type, engine::metastore::Code code);

// `status`: of the HTTP answer.
std::string call_probe(CallKind kind, int status);

// Reaches the probe of an entry's answer. `bytes`: the entry's.
void note_answer(std::string_view bytes, const engine::metastore::Answer& answer);

}  // namespace sim

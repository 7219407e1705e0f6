// The state machine's answers as probes: "answer: create topic: already exists". A long sweep is asked to see each refusal that a run
// can reach (chaos/floors.h).
#pragma once

#include <cstdint>
#include <string>

#include "engine/metastore/answer.h"
#include "engine/metastore/envelope.h"

namespace sim {

// `type` 0: of an entry that is no command.
std::string answer_probe(uint32_t type, engine::metastore::Code code);

// Reaches the probe of an entry's answer. `bytes`: the entry's.
void note_answer(std::string_view bytes, const engine::metastore::Answer& answer);

}  // namespace sim

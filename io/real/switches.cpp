// Production's answers: every defence is in force, probes cost nothing.
#include "io/defence.h"
#include "io/probe.h"

namespace io {

bool defence(Defence) { return true; }

void probe(const char*) {}

}  // namespace io

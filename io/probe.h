// Probes: SOMETIMES("raft: vote refused, a leader is heard") marks a rare path. In production it does nothing; in the
// simulator the world counts it, and a sweep prints how many seeds reached each. The name is a literal, unique in the tree.
#pragma once

namespace io {

// Defined in io/real/switches.cpp (nothing) and io/sim/switches.cpp (counts). `name` is a string literal.
void probe(const char* name);

}  // namespace io

#define SOMETIMES(name) ::io::probe("" name)

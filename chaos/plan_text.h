// The text form of a plan: what a person reads and edits.
//
//     narad-chaos plan 1              first line: the format's version
//     # a comment; blank lines are ignored
//     seed 42
//     nodes 5                         a setting: name and value; what is left out has its default
//     election_min 150ms              durations have a unit (ns us ms s m) and may have a fraction
//     defect vote-not-durable         a defect switched on
//     d1 at 12.5s kill node=leader down=2s
//     d2 at 13s partition shape=half for=4s
//     d3 at 20s power_loss on=elected node=leader down=50ms
//
// A decision is: id, time, kind, then key=value pairs in any order; plan_manual() tells which keys a kind has. Nodes are
// numbers from 0, several joined by commas, or leader, follower, any, all (voter with on=vote).
//
// print() writes every setting that is not the default and every decision; parse(print(p)) == p.
#pragma once

#include <string>
#include <string_view>

#include "chaos/plan.h"
#include "io/result.h"

namespace chaos {

// Errors are `invalid` and begin with "line N: ".
io::Result<Plan> parse_plan(std::string_view text);
std::string print_plan(const Plan& plan);

// "1500ms", "12.5s": exact, the largest unit that fits.
std::string print_duration(io::Duration duration);
io::Result<io::Duration> parse_duration(std::string_view text);

// One decision as its line, without the line end.
std::string print_decision(const Decision& decision);

// The manual: one line a setting and one line a kind.
std::string plan_manual();

}  // namespace chaos

// The defences that a defect switches off, by name (simulation.md, Defects).
//
// Production code asks `if (defence(Defence::vote_not_durable))` where a rule protects it, and keeps the rule when the answer
// is true. In `narad` the answer is always true (io/real/switches.cpp); in the simulator the world's switchboard answers
// (io/sim/switches.cpp), so that a run with a defect switched on shows what the rule is for. The enumerator carries the name
// of the DEFECT that its absence makes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace io {

enum class Defence {
  vote_not_durable,
  commit_older_term,
  ack_before_sync,
  apply_before_durable,
  stale_append_truncates,
  same_term_stepdown_clears_vote,
  config_change_before_term_commit,
  config_not_undone_on_truncate,
  late_prevote_counts,
  index_apart_from_effects,
  snapshot_published_unsynced,
  snapshot_while_ahead,
  restore_unchecked,
  refused_index_not_recorded,
  foreign_write_unnoticed,
  unknown_entry_skipped,
  refused_write_counted,
  bootstrap_over_data,
  older_raft_rebuilt_silently,
  contact_freshness_ignored,
  confirm_answer_unbarriered,
  self_leader_skips_barrier,
  no_reread_after_barrier,
  assignments_before_caught_up,
  gate_ignores_dead,
  gate_ignores_unrecorded,
  gate_drops_stopped_report,
  older_joiner_admitted,
  dead_mark_over_newer_heartbeat,
  placement_replaces_owner,
  rows_survive_topic,
  user_delete_keeps_owner,
};

inline constexpr int kDefenceCount = static_cast<int>(Defence::user_delete_keeps_owner) + 1;

// True: the rule is in force.
bool defence(Defence which);

// "vote-not-durable" and back; nullopt for a name that is none.
std::string_view defect_name(Defence which);
std::optional<Defence> defect_by_name(std::string_view name);
// One line that says what the defect switches off.
std::string_view defect_summary(Defence which);

}  // namespace io

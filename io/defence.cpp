#include "io/defence.h"

#include <array>

#include "io/check.h"

namespace io {

namespace {

struct Row {
  Defence which;
  std::string_view name;
  std::string_view summary;
};

constexpr std::array<Row, kDefenceCount> kRows{{
    {Defence::vote_not_durable, "vote-not-durable", "a vote is sent before it is synced"},
    {Defence::commit_older_term, "commit-older-term", "an entry of an older term is committed by counting replicas"},
    {Defence::ack_before_sync, "ack-before-sync", "an append is acknowledged before it is synced"},
    {Defence::apply_before_durable, "apply-before-durable", "an entry is applied before it is durable in this node's log"},
    {Defence::stale_append_truncates, "stale-append-truncates", "an old append cuts a suffix that matches"},
    {Defence::same_term_stepdown_clears_vote, "same-term-stepdown-clears-vote",
     "stepping down within a term forgets the vote"},
    {Defence::config_change_before_term_commit, "config-change-before-term-commit",
     "a configuration change is accepted before an entry of the term has committed"},
    {Defence::config_not_undone_on_truncate, "config-not-undone-on-truncate",
     "a truncated configuration stays in force"},
    {Defence::late_prevote_counts, "late-prevote-counts", "a late pre-vote grant counts as a vote"},
    {Defence::index_apart_from_effects, "index-apart-from-effects",
     "the applied index is written in another batch than the effects"},
    {Defence::snapshot_published_unsynced, "snapshot-published-unsynced",
     "a snapshot is renamed into place before it is synced"},
    {Defence::snapshot_while_ahead, "snapshot-while-ahead", "a snapshot is taken while the database is ahead of the replay"},
    {Defence::restore_unchecked, "restore-unchecked", "an installed image is renamed into place before it is checked"},
    {Defence::refused_index_not_recorded, "refused-index-not-recorded", "a refused entry does not move the index"},
    {Defence::foreign_write_unnoticed, "foreign-write-unnoticed",
     "the index is trusted after another program wrote the database"},
    {Defence::unknown_entry_skipped, "unknown-entry-skipped", "an unknown entry type is skipped"},
    {Defence::refused_write_counted, "refused-write-counted",
     "an entry whose write the disk refused counts as applied"},
    {Defence::bootstrap_over_data, "bootstrap-over-data",
     "a node without raft state bootstraps over a database that holds topics"},
    {Defence::older_raft_rebuilt_silently, "older-raft-rebuilt-silently",
     "a database newer than raft's state is rebuilt from the older state"},
    {Defence::contact_freshness_ignored, "contact-freshness-ignored",
     "caught-up does not require leader contact within 5 s"},
    {Defence::confirm_answer_unbarriered, "confirm-answer-unbarriered",
     "the leader answers a confirmation from its replica without a barrier"},
    {Defence::self_leader_skips_barrier, "self-leader-skips-barrier",
     "a node that leads takes its own state as the authority without a barrier"},
    {Defence::no_reread_after_barrier, "no-reread-after-barrier", "the decision stands on the read made before the barrier"},
    {Defence::assignments_before_caught_up, "assignments-before-caught-up",
     "ownership is served before the node has caught up since its start"},
    {Defence::gate_ignores_dead, "gate-ignores-dead", "dead members do not hold a type back"},
    {Defence::gate_ignores_unrecorded, "gate-ignores-unrecorded", "servers without a member record do not hold a type back"},
    {Defence::gate_drops_stopped_report, "gate-drops-stopped-report", "the last report of a stopped node is forgotten"},
    {Defence::older_joiner_admitted, "older-joiner-admitted", "a joiner of an older release is admitted"},
    {Defence::dead_mark_over_newer_heartbeat, "dead-mark-over-newer-heartbeat",
     "a dead mark stands although a newer heartbeat committed"},
    {Defence::placement_replaces_owner, "placement-replaces-owner", "a placement overwrites an owner on record"},
    {Defence::rows_survive_topic, "rows-survive-topic", "rows of a removed topic stay for the next topic of the name"},
    {Defence::user_delete_keeps_owner, "user-delete-keeps-owner", "deleting a user leaves its topics owned by the name"},
}};

}  // namespace

std::string_view defect_name(Defence which) {
  const Row& row = kRows.at(static_cast<size_t>(which));
  NARAD_CHECK(row.which == which, "the table of defences is in the order of the enumeration");
  return row.name;
}

std::string_view defect_summary(Defence which) { return kRows.at(static_cast<size_t>(which)).summary; }

std::optional<Defence> defect_by_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      return row.which;
    }
  }
  return std::nullopt;
}

}  // namespace io

#include "chaos/plan.h"

#include <algorithm>
#include <tuple>

namespace chaos {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kill: return "kill";
    case Kind::power_loss: return "power_loss";
    case Kind::stop: return "stop";
    case Kind::freeze: return "freeze";
    case Kind::slow: return "slow";
    case Kind::kill_at: return "kill_at";
    case Kind::fault_at: return "fault_at";
    case Kind::rolling: return "rolling";
    case Kind::cut: return "cut";
    case Kind::partition: return "partition";
    case Kind::heal: return "heal";
    case Kind::loss: return "loss";
    case Kind::tail: return "tail";
    case Kind::disk_full: return "disk_full";
    case Kind::disk_error: return "disk_error";
    case Kind::disk_stall: return "disk_stall";
    case Kind::disk_slow: return "disk_slow";
    case Kind::restart_loop: return "restart_loop";
    case Kind::slow_reader: return "slow_reader";
    case Kind::disk_shrink: return "disk_shrink";
    case Kind::disk_damage: return "disk_damage";
    case Kind::snapshot_damage: return "snapshot_damage";
    case Kind::store_old: return "store_old";
    case Kind::store_gone: return "store_gone";
    case Kind::store_blind: return "store_blind";
    case Kind::store_foreign: return "store_foreign";
    case Kind::grow: return "grow";
    case Kind::wipe: return "wipe";
    case Kind::rejoin: return "rejoin";
    case Kind::foreign_write: return "foreign_write";
    case Kind::release: return "release";
    case Kind::move: return "move";
    case Kind::wall_jump: return "wall_jump";
    case Kind::transfer: return "transfer";
    case Kind::take_out: return "take_out";
    case Kind::decommission: return "decommission";
    case Kind::abort_moves: return "abort_moves";
    case Kind::forget: return "forget";
    case Kind::drift: return "drift";
  }
  return "";
}

std::string_view trigger_name(Trigger trigger) {
  switch (trigger) {
    case Trigger::now: return "now";
    case Trigger::elected: return "elected";
    case Trigger::campaign: return "campaign";
    case Trigger::vote: return "vote";
    case Trigger::append: return "append";
    case Trigger::install: return "install";
  }
  return "";
}

void normalise(Plan& plan) {
  std::sort(plan.decisions.begin(), plan.decisions.end(),
            [](const Decision& a, const Decision& b) { return std::tie(a.at, a.id) < std::tie(b.at, b.id); });
}

uint32_t next_id(const Plan& plan) {
  uint32_t highest = 0;
  for (const Decision& decision : plan.decisions) {
    highest = std::max(highest, decision.id);
  }
  return highest + 1;
}

}  // namespace chaos

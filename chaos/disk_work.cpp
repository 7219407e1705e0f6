#include "chaos/disk_work.h"

#include <algorithm>
#include <utility>

#include "raft/log_format.h"
#include "raft/snapshot_files.h"
#include "raft/snapshot_format.h"
#include "raft/server.h"

namespace chaos {
namespace {

using io::sim::DiskOp;

constexpr std::pair<std::string_view, std::string_view> kFaults[] = {{"kill", "a process ends"},
                                                                     {"power_loss", "the power goes"},
                                                                     {"no_space", "the disk is full"},
                                                                     {"error", "an operation fails"},
                                                                     {"stall", "the disk hangs"}};

bool is_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string_view place_of(Work work) {
  switch (work) {
    case Work::append: return "in an append to the log";
    case Work::compaction: return "in a compaction of the log";
    case Work::snapshot: return "in a snapshot";
    case Work::install: return "in an install";
    case Work::vote: return "in a write of term and vote";
    case Work::apply: return "in a write of the metastore";
    case Work::start: return "in a start";
  }
  return "";
}

}  // namespace

std::string_view work_name(Work work) {
  switch (work) {
    case Work::append: return "append";
    case Work::compaction: return "compaction";
    case Work::snapshot: return "snapshot";
    case Work::install: return "install";
    case Work::vote: return "vote";
    case Work::apply: return "apply";
    case Work::start: return "start";
  }
  return "";
}

std::optional<Work> work_by_name(std::string_view name) {
  const auto* found = std::find_if(kWorks.begin(), kWorks.end(), [name](Work work) { return work_name(work) == name; });
  return found == kWorks.end() ? std::nullopt : std::optional(*found);
}

std::string struck_probe(std::string_view fault, Work work) {
  const auto* found = std::find_if(std::begin(kFaults), std::end(kFaults), [fault](const auto& each) { return each.first == fault; });
  NARAD_CHECK(found != std::end(kFaults), "a fault that plans do not know");
  return "simulator: " + std::string(found->second) + " " + std::string(place_of(work));
}

std::vector<std::string> struck_probes() {
  std::vector<std::string> names;
  for (const auto& [fault, text] : kFaults) {
    for (const Work work : kWorks) names.push_back(struck_probe(fault, work));
  }
  return names;
}

void DiskWork::observe(DiskOp op, std::string_view path) {
  if (is_below(path, raft::log_format::kDirectory) && op != DiskOp::sync_directory) {
    is_compacting_ = op == DiskOp::remove || (op == DiskOp::rename && raft::log_format::is_spare(path));
  }
  if (is_below(path, raft::snapshot_format::kDirectory) && (op == DiskOp::create || op == DiskOp::write)) {
    is_receiving_ = path == raft::snapshot_files::kReceivingPath;
  }
}

std::optional<Work> DiskWork::work_of(DiskOp op, std::string_view path) const {
  if (world_.is_starting(node_)) return Work::start;
  const engine::NodeView* view = world_.view(node_);
  if (view == nullptr) return std::nullopt;  // on its way out, or another program
  const bool is_installing = view->raft.core().is_installing();
  if (is_below(path, raft::log_format::kDirectory)) {
    const bool takes = op == DiskOp::remove || (op == DiskOp::rename && raft::log_format::is_spare(path));
    return takes || (op == DiskOp::sync_directory && is_compacting_) ? Work::compaction : Work::append;
  }
  if (is_below(path, raft::snapshot_format::kDirectory)) {
    const bool is_received = op == DiskOp::create || op == DiskOp::write || op == DiskOp::sync
                                 ? path == raft::snapshot_files::kReceivingPath
                                 : is_receiving_ || is_installing;
    return is_received ? Work::install : Work::snapshot;
  }
  if (is_below(path, "fsm.db")) return is_installing ? Work::install : Work::apply;
  return path.starts_with("raft/") ? std::optional(Work::vote) : std::nullopt;
}

}  // namespace chaos

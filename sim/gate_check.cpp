#include "sim/gate_check.h"

#include <algorithm>

#include "engine/metastore/commands.h"
#include "engine/metastore/envelope.h"

namespace sim {

namespace ms = engine::metastore;

void GateCheck::note(raft::Index index, const std::string& id, uint32_t types) {
  Reports& reports = reports_[id];
  if ((reports.empty() ? 0 : reports.back().second) != types) {
    reports.emplace_back(index, types);
  }
}

void GateCheck::committed(const raft::Entry& entry) {
  const auto envelope = entry.type == raft::EntryType::command ? ms::read_envelope(entry.bytes()) : std::nullopt;
  if (!envelope) {
    return;
  }
  if (envelope->type == static_cast<uint32_t>(ms::EntryType::register_member)) {
    if (const auto command = ms::decode_payload<ms::RegisterMember>(envelope->payload); command && !removed_[command->member.id]) {
      const uint32_t types = command->member.entry_types;
      note(entry.index, command->member.id, types == 0 ? ms::kEveryReleaseEntryType : types);
    }
  } else if (envelope->type == static_cast<uint32_t>(ms::EntryType::remove_member)) {
    if (const auto command = ms::decode_payload<ms::RemoveMember>(envelope->payload)) {
      note(entry.index, command->id, 0);
      removed_[command->id] = true;
    }
  } else if (envelope->type == static_cast<uint32_t>(ms::EntryType::readmit_member)) {
    if (const auto command = ms::decode_payload<ms::ReadmitMember>(envelope->payload)) {
      removed_[command->id] = false;
    }
  }
}

bool GateCheck::has_reported(const std::string& id, uint32_t type) const {
  const auto used = used_.find(id);
  if (used != used_.end() && used->second >= type) {
    return true;
  }
  const auto found = reports_.find(id);
  return found != reports_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const auto& report) { return report.second >= type; });
}

uint32_t GateCheck::types_of(const std::string& id) const {
  const auto found = reports_.find(id);
  return found == reports_.end() ? 0 : found->second.back().second;
}

uint32_t GateCheck::types_of(const std::string& id, raft::Index applied) const {
  const auto found = reports_.find(id);
  if (found == reports_.end()) {
    return 0;
  }
  const Reports& reports = found->second;
  const auto after = std::upper_bound(reports.begin(), reports.end(), applied, [](raft::Index at, const auto& report) { return at < report.first; });
  return after == reports.begin() ? 0 : std::prev(after)->second;
}

std::optional<std::string> GateCheck::holder(uint32_t type, const std::string& leader, uint32_t own, raft::Index applied,
                                             const raft::Configuration& newest) const {
  if (own < type) {
    return leader;
  }
  for (const raft::Server& server : newest.servers) {
    if (server.id != leader && types_of(server.id, applied) < type) {
      return server.id;
    }
  }
  for (const auto& [id, reports] : reports_) {
    const uint32_t types = types_of(id, applied);
    if (id != leader && types != 0 && types < type) {
      return id;
    }
  }
  return std::nullopt;
}

std::optional<std::string> GateCheck::appended(const std::string& leader, uint32_t own, raft::Index applied_from, raft::Index applied_to,
                                               const raft::Configuration& newest, const raft::Entry& entry) {
  const auto envelope = entry.type == raft::EntryType::command ? ms::read_envelope(entry.bytes()) : std::nullopt;
  if (!envelope || envelope->type <= ms::kEveryReleaseEntryType) {
    return std::nullopt;
  }
  if (applied_to < applied_from) {
    return leader + " appended entry type " + std::to_string(envelope->type) + " at index " + std::to_string(entry.index) +
           " while its replica stood at index " + std::to_string(applied_to) + ", before " + std::to_string(applied_from) +
           ", the log that it came with";
  }
  std::optional<std::string> held;
  for (raft::Index applied = applied_from; applied <= applied_to; ++applied) {
    held = holder(envelope->type, leader, own, applied, newest);
    if (!held) {
      uint32_t& used = used_[leader];
      used = std::max(used, own);
      return std::nullopt;
    }
  }
  const uint32_t types = *held == leader ? own : types_of(*held, applied_to);
  return leader + " appended entry type " + std::to_string(envelope->type) + " at index " + std::to_string(entry.index) + " although " + *held +
         (types == 0 ? " had no member record" : " had reported types up to " + std::to_string(types));
}

}  // namespace sim

// The handlers of members: entry types 6, 7, 8, 18, 19, 20 and 31. Routing versions move when who can be reached where has
// changed; heartbeats alone move nothing.
#pragma once

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/effects.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

// Type 6, proposed with every heartbeat. Refused for a removed member. Puts the record; the stored draining flag stays.
Answer apply_entry(Transaction& rows, const RegisterMember& entry, Effects& effects);
// Type 7. Refused when there is no such member.
Answer apply_entry(Transaction& rows, const HeartbeatMember& entry, Effects& effects);
// Type 8. Refused when there is no such member.
Answer apply_entry(Transaction& rows, const MarkMemberDead& entry, Effects& effects);
// Type 18. Refused when there is no such member.
Answer apply_entry(Transaction& rows, const SetMemberDraining& entry, Effects& effects);
// Type 19. Never refused: deletes the record, if any, and leaves a tombstone.
Answer apply_entry(Transaction& rows, const RemoveMember& entry, Effects& effects);
// Type 20. Never refused: deletes the tombstone, if any.
Answer apply_entry(Transaction& rows, const ReadmitMember& entry, Effects& effects);
// Type 31. Refused when there is no such member, or a newer heartbeat than the one observed is on record.
Answer apply_entry(Transaction& rows, const MarkMemberDeadIf& entry, Effects& effects);

}  // namespace engine::metastore

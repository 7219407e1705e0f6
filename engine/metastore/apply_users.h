// The handlers of users: entry types 9 to 12, 21, 22 and 32. The root user cannot be deleted, nor its grants changed.
#pragma once

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/effects.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

// Type 9. Refused when the name exists. Never makes a root user.
Answer apply_entry(Transaction& rows, const CreateUser& entry, Effects& effects);
// Type 10. Refused when there is no such user. Replaces the record; the root flag stays, and with it a root user's grants.
Answer apply_entry(Transaction& rows, const UpdateUser& entry, Effects& effects);
// Type 11. Refused when there is no such user, or it is root. Topics go on naming it as their owner.
Answer apply_entry(Transaction& rows, const DeleteUser& entry, Effects& effects);
// Type 12. Refused when the name exists. Makes a root user.
Answer apply_entry(Transaction& rows, const SeedRootUser& entry, Effects& effects);
// Type 21. Refused when there is no such user.
Answer apply_entry(Transaction& rows, const SetUserPassword& entry, Effects& effects);
// Type 22. Refused when there is no such user, or it is root.
Answer apply_entry(Transaction& rows, const SetUserGrants& entry, Effects& effects);
// Type 32. As 11, and no topic names it as its owner any more.
Answer apply_entry(Transaction& rows, const DeleteUserReleasing& entry, Effects& effects);

}  // namespace engine::metastore

// The handlers of partition assignments: entry types 5, 15, 16, 17, 29 and 30.
#pragma once

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/effects.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

// Type 5. Never refused: puts the row, whether or not there is such a topic or partition.
Answer apply_entry(Transaction& rows, const AssignPartition& entry, Effects& effects);

// Type 15. Refused when there is no row. Sets or clears where the partition moves; the same target again changes nothing.
Answer apply_entry(Transaction& rows, const SetMoveTarget& entry, Effects& effects);

// Type 16. Refused when there is no row, or its owner or target is not the one expected. The target becomes the owner. What is
// done already is done.
Answer apply_entry(Transaction& rows, const CompleteMove& entry, Effects& effects);

// Type 17. Refused when there is no row. Clears the target; another target than the one expected changes nothing.
Answer apply_entry(Transaction& rows, const AbortMove& entry, Effects& effects);

// Type 29. Refused, in this order: a topic that is missing or another incarnation; a partition out of its range, an owner that is
// empty or was removed from the cluster; a partition that has a row.
Answer apply_entry(Transaction& rows, const PlacePartition& entry, Effects& effects);

// Type 30. Refused when there is no row, or it belongs to a partition of a topic that exists. Deletes the row.
Answer apply_entry(Transaction& rows, const PruneAssignment& entry, Effects& effects);

}  // namespace engine::metastore

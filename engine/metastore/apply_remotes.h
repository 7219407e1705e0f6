// The handlers of remotes and remote children: entry types 33 to 37.
//
// A credential arrives sealed; here it is opaque bytes, and what can be told of it is which key sealed it (its fingerprint). A key
// may seal kSealsMax times, so every seal that a well-formed entry carries is counted under its key, even when the entry is
// refused: a refused 35 or 36 may write that one row. Salt and counters outlive the remotes.
//
// Where the facts (narad/entry-types.md section 5) leave a choice:
//  - seals are counted by the key's fingerprint, and the one that would be number kSealsMax + 1 is refused;
//  - a salt race is a salt that differs from the one on record, or none where none is on record;
//  - a credential is malformed without bytes, without a fingerprint, without what it was sealed against (36), or over its bounds;
//    "what it was sealed against" is compared with the remote as it would be after the change;
//  - a reseal (the same password under another key) leaves the credential version as it is;
//  - an offset that would be the one after kSkippedMax of its partition is refused as invalid, one that is there already is no change.
#pragma once

#include <cstdint>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/effects.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

inline constexpr uint64_t kRemotesMax = 64;
inline constexpr uint64_t kRemoteChildrenMax = 16;  // of a parent
inline constexpr uint64_t kSealsMax = uint64_t{1} << 30;
inline constexpr int32_t kLanesMax = 8;
inline constexpr size_t kPauseReasonMax = 256;  // bytes
inline constexpr size_t kSkippedMax = 4000;     // offsets of a partition
inline constexpr size_t kSkippingMax = 1024;    // partitions with such offsets

inline constexpr size_t kRemoteNameMax = 63;
inline constexpr size_t kRemoteUrlMax = 2048;
inline constexpr size_t kRemoteUsernameMax = 255;
inline constexpr size_t kRemoteCaMax = 64u << 10;
inline constexpr size_t kCredentialMax = 4096;
inline constexpr size_t kFingerprintMax = 128;
inline constexpr size_t kSaltMax = 128;

// Rows of bucket remotes that are no remote.
inline constexpr std::string_view kSaltRow = "_salt";
// The counter of a key's seals.
std::string seals_row(std::string_view fingerprint);

// Type 33. A stub and its link. Refused, in this order: an empty parent, stub, remote or topic there; a topic and itself; no epoch; a
// delay below 0, or over a year; lanes or a start that do not exist; a parent that is missing, another incarnation, or a child; a
// remote that is missing; a stub's name that is taken; kChildrenMax children; kRemoteChildrenMax of them remote; a retention under
// a day; one that cannot hold the delay; another stub with this remote and topic.
Answer apply_entry(Transaction& rows, const AttachRemoteChild& entry, Effects& effects);

// Type 34. Refused: a stub that is missing or not of this parent; another epoch; a reason, lanes or an offset out of bounds. Changes
// the fields given.
Answer apply_entry(Transaction& rows, const ChangeRemoteChild& entry, Effects& effects);

// Type 35. Refused, in this order: a malformed record; a salt race; a key that has sealed kSealsMax times; a remote that exists;
// kRemotesMax remotes.
Answer apply_entry(Transaction& rows, const CreateRemote& entry, Effects& effects);

// Type 36. Refused, in this order: a malformed credential; no such remote; fields out of bounds; nothing to change; another address,
// name or certificate without a credential; another credential version than expected; a credential sealed against something else;
// a key that has sealed kSealsMax times.
Answer apply_entry(Transaction& rows, const ChangeRemote& entry, Effects& effects);

// Type 37. Refused: no such remote; stubs that name it, unless forced.
Answer apply_entry(Transaction& rows, const DeleteRemote& entry, Effects& effects);

}  // namespace engine::metastore

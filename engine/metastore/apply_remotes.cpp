#include "engine/metastore/apply_remotes.h"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/metastore/kept_rows.h"
#include "engine/metastore/printable.h"
#include "engine/metastore/records.h"
#include "io/check.h"

namespace engine::metastore {

namespace {

constexpr int64_t kDayMs = 86'400'000;

bool is_between(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }

// [a-z][a-z0-9-]*, so that no remote meets the rows that begin with '_'.
bool is_remote_name(std::string_view name) {
  auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  auto is_allowed = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= kRemoteNameMax && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

bool is_url(std::string_view url) {
  constexpr std::string_view kScheme = "https://";
  return url.starts_with(kScheme) && url.size() > kScheme.size() && url.size() <= kRemoteUrlMax && is_printable(url);
}

bool is_username(std::string_view name) { return !name.empty() && name.size() <= kRemoteUsernameMax && is_printable(name); }

bool is_credential(std::string_view credential, std::string_view fingerprint) {
  return !credential.empty() && credential.size() <= kCredentialMax && !fingerprint.empty() &&
         fingerprint.size() <= kFingerprintMax && is_printable(fingerprint);
}

bool are_limits(const RemoteLimits& limits) {
  return is_between(limits.max_in_flight, 1, 256) && is_between(limits.request_timeout_ms, 5'000, 120'000) &&
         is_between(limits.idle_conn_timeout_ms, 1, kDayMs) && is_between(limits.conn_max_age_ms, 1, kDayMs) &&
         is_between(limits.check_interval_ms, 1, kDayMs) && (limits.compression == "none" || limits.compression == "zstd");
}

bool is_malformed(const CreateRemote& entry) {
  const Remote& record = entry.record;
  return !is_remote_name(record.name) || !is_url(record.url) || !is_username(record.username) ||
         record.ca_pem.size() > kRemoteCaMax || !are_limits(record.limits) ||
         !is_credential(record.credential, record.fingerprint) || entry.salt.size() > kSaltMax;
}

Answer check_fields(const RemoteFields& fields) {
  if (fields.limits && !are_limits(*fields.limits)) {
    return refuse(Code::invalid_argument, "limits out of bounds");
  }
  if ((fields.url && !is_url(*fields.url)) || (fields.username && !is_username(*fields.username)) ||
      (fields.ca_pem && fields.ca_pem->size() > kRemoteCaMax)) {
    return refuse(Code::invalid_argument, "a field out of bounds");
  }
  return {};
}

std::optional<Remote> load(Transaction& rows, const std::string& name) {
  // Rows that begin with '_' are no remotes.
  std::optional<std::string> bytes = name.starts_with('_') ? std::nullopt : rows.get(Bucket::remotes, name);
  if (!bytes) {
    return std::nullopt;
  }
  std::optional<Remote> remote = decode_remote(*bytes);
  NARAD_CHECK(remote.has_value(), "a remote's row that is no record");
  return remote;
}

// Counts a seal, for good whatever the answer will be. False: the key had none left.
bool count_seal(Transaction& rows, std::string_view fingerprint, Effects& effects) {
  const std::string row = seals_row(fingerprint);
  const uint64_t seals = counter(rows, Bucket::remotes, row);
  set_counter(rows, Bucket::remotes, row, seals + 1);
  effects.keeps_rows = true;
  return seals < kSealsMax;
}

Answer exhausted(std::string_view fingerprint) { return refuse(Code::remote_key_exhausted, "key " + std::string(fingerprint)); }

Remote with_fields(Remote remote, const RemoteFields& fields) {
  remote.url = fields.url.value_or(remote.url);
  remote.username = fields.username.value_or(remote.username);
  remote.ca_pem = fields.ca_pem.value_or(remote.ca_pem);
  remote.limits = fields.limits.value_or(remote.limits);
  return remote;
}

bool is_same_tuple(const Remote& one, const Remote& other) {
  return one.url == other.url && one.username == other.username && one.ca_pem == other.ca_pem;
}

Answer changed(const Remote& remote) {
  return refuse(Code::remote_changed, "remote " + remote.name + " is at revision " + std::to_string(remote.revision));
}

// From the remote on; a credential is well-formed by now.
Answer check_change(const ChangeRemote& entry, const std::optional<Remote>& stored, bool has_seals_left) {
  if (!stored) {
    return refuse(Code::not_found, "remote " + entry.name);
  }
  if (Answer refused = check_fields(entry.fields); !refused.ok()) {
    return refused;
  }
  const bool has_credential = !entry.credential.empty();
  if (entry.fields.is_empty() && !has_credential) {
    return refuse(Code::invalid_argument, "nothing to change");
  }
  const Remote after = with_fields(*stored, entry.fields);
  if (!has_credential && !is_same_tuple(*stored, after)) {
    return changed(*stored);
  }
  if (entry.expect_credential_version && *entry.expect_credential_version != stored->credential_version) {
    return changed(*stored);
  }
  if (has_credential && SealedAgainst{after.url, after.username, after.ca_pem} != *entry.sealed_against) {
    return changed(*stored);
  }
  return has_seals_left ? Answer() : exhausted(entry.fingerprint);
}

}  // namespace

std::string seals_row(std::string_view fingerprint) { return "_seals/" + std::string(fingerprint); }

Answer apply_entry(Transaction& rows, const CreateRemote& entry, Effects& effects) {
  if (is_malformed(entry)) {
    return refuse(Code::invalid_argument, "a malformed remote");
  }
  const Remote& given = entry.record;
  const bool has_seals_left = count_seal(rows, given.fingerprint, effects);
  const std::string salt = rows.get(Bucket::remotes, kSaltRow).value_or(std::string());
  if (salt.empty() ? entry.salt.empty() : !entry.salt.empty() && entry.salt != salt) {
    return refuse(Code::remote_salt_race, "remote " + given.name);
  }
  if (!has_seals_left) {
    return exhausted(given.fingerprint);
  }
  if (rows.get(Bucket::remotes, given.name)) {
    return refuse(Code::remote_exists, "remote " + given.name);
  }
  const uint64_t remotes = counter(rows, kRemotes);
  if (remotes >= kRemotesMax) {
    return refuse(Code::remote_limit, std::to_string(kRemotesMax) + " remotes");
  }
  Remote remote = given;
  remote.credential_version = 1;
  remote.revision = 1;
  remote.created_by = entry.actor;
  remote.updated_by = entry.actor;
  remote.created_at_ms = entry.sealed_at_ms;
  remote.updated_at_ms = entry.sealed_at_ms;
  if (salt.empty()) {
    rows.put(Bucket::remotes, kSaltRow, entry.salt);
  }
  rows.put(Bucket::remotes, remote.name, encode_remote(remote));
  set_counter(rows, kRemotes, remotes + 1);
  effects.moved(Domain::remotes);
  return {};
}

Answer apply_entry(Transaction& rows, const ChangeRemote& entry, Effects& effects) {
  const bool has_credential = !entry.credential.empty();
  if (has_credential && (!is_credential(entry.credential, entry.fingerprint) || !entry.sealed_against)) {
    return refuse(Code::invalid_argument, "a malformed credential");
  }
  const bool has_seals_left = !has_credential || count_seal(rows, entry.fingerprint, effects);
  const std::optional<Remote> stored = load(rows, entry.name);
  if (Answer refused = check_change(entry, stored, has_seals_left); !refused.ok()) {
    return refused;
  }
  Remote remote = with_fields(*stored, entry.fields);
  if (has_credential) {
    remote.credential = entry.credential;
    remote.fingerprint = entry.fingerprint;
    remote.credential_version += entry.reseal ? 0 : 1;
  }
  ++remote.revision;
  remote.updated_by = entry.actor;
  remote.updated_at_ms = entry.sealed_at_ms;
  rows.put(Bucket::remotes, remote.name, encode_remote(remote));
  effects.moved(Domain::remotes);
  return {};
}

Answer apply_entry(Transaction& rows, const DeleteRemote& entry, Effects& effects) {
  const std::optional<Remote> stored = load(rows, entry.name);
  if (!stored) {
    return refuse(Code::not_found, "remote " + entry.name);
  }
  const uint64_t children = counter(rows, remote_children_counter(entry.name));
  if (children != 0 && !entry.force) {
    return refuse(Code::remote_in_use, std::to_string(children) + " remote children of remote " + entry.name);
  }
  rows.erase(Bucket::remotes, entry.name);
  const uint64_t remotes = counter(rows, kRemotes);
  set_counter(rows, kRemotes, remotes - std::min<uint64_t>(remotes, 1));
  effects.moved(Domain::remotes);
  return {};
}

}  // namespace engine::metastore

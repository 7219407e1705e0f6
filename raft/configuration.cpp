#include "raft/configuration.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/defence.h"

namespace raft {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint32_t kServersMax = 1024;
constexpr std::uint32_t kTextMax = 4096;

void put_number(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size(), 4);
  out.append(text);
}

// Reads from the front of a view; every getter fails for good once the bytes run out.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool number(std::uint64_t& value, int bytes) {
    if (rest_.size() < static_cast<std::size_t>(bytes)) return false;
    value = 0;
    for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    rest_.remove_prefix(static_cast<std::size_t>(bytes));
    return true;
  }

  bool text(std::string& value) {
    std::uint64_t size = 0;
    if (!number(size, 4) || size > kTextMax || rest_.size() < size) return false;
    value.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return true;
  }

  bool is_done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool read_server(Reader& in, Server& server) {
  std::uint64_t voter = 0;
  if (!in.text(server.id) || server.id.empty() || !in.text(server.address) || !in.number(voter, 1) || voter > 1) {
    return false;
  }
  server.voter = voter == 1;
  return in.number(server.store.high, 8) && in.number(server.store.low, 8);
}

}  // namespace

const Server* Configuration::find(std::string_view id) const {
  const auto at = std::lower_bound(servers.begin(), servers.end(), id,
                                   [](const Server& server, std::string_view wanted) { return server.id < wanted; });
  return at != servers.end() && at->id == id ? &*at : nullptr;
}

bool Configuration::is_voter(std::string_view id) const {
  const Server* server = find(id);
  return server != nullptr && server->voter;
}

std::size_t Configuration::voter_count() const {
  return static_cast<std::size_t>(
      std::count_if(servers.begin(), servers.end(), [](const Server& server) { return server.voter; }));
}

bool Configuration::admits(std::string_view id, const StoreId& store) const {
  const Server* server = find(id);
  return server != nullptr && server->voter && (!server->store.is_known() || server->store == store);
}

bool Configuration::same_voters(const Configuration& other) const {
  const auto voters = [](const Configuration& configuration) {
    std::vector<std::string_view> ids;
    for (const Server& server : configuration.servers) {
      if (server.voter) ids.push_back(server.id);
    }
    return ids;
  };
  return voters(*this) == voters(other);
}

void Configuration::normalise() {
  std::sort(servers.begin(), servers.end(), [](const Server& a, const Server& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < servers.size(); ++i) {
    NARAD_CHECK(servers[i - 1].id != servers[i].id, "a server stands once in a configuration");
  }
}

Configuration bootstrap_configuration(std::vector<std::pair<ServerId, std::string>> members) {
  Configuration configuration;
  for (auto& [id, address] : members) configuration.servers.push_back(Server{std::move(id), std::move(address), true, {}});
  configuration.normalise();
  return configuration;
}

const char* to_string(ConfigurationChange::Kind kind) {
  switch (kind) {
    case ConfigurationChange::Kind::add: return "add";
    case ConfigurationChange::Kind::promote: return "promote";
    case ConfigurationChange::Kind::demote: return "demote";
    case ConfigurationChange::Kind::remove: return "remove";
    case ConfigurationChange::Kind::change_address: return "change_address";
  }
  return "unknown";
}

namespace {

bool is_name(std::string_view text) { return !text.empty() && text.size() <= kTextMax; }

ChangeVerdict apply_add(const ConfigurationChange& change, Configuration& configuration) {
  if (!is_name(change.id) || !is_name(change.address)) return ChangeVerdict::invalid;
  if (const Server* known = configuration.find(change.id)) {
    // Another volume under a member's name is a new server: the old one has to leave first.
    const bool is_same = known->address == change.address && (!change.store.is_known() || known->store == change.store);
    return is_same ? ChangeVerdict::already_so : ChangeVerdict::invalid;
  }
  if (configuration.servers.size() >= kServersMax) return ChangeVerdict::invalid;
  configuration.servers.push_back(Server{change.id, change.address, false, change.store});
  configuration.normalise();
  return ChangeVerdict::changed;
}

}  // namespace

ChangeVerdict apply(const ConfigurationChange& change, Configuration& configuration) {
  using Kind = ConfigurationChange::Kind;
  if (change.kind == Kind::add) return apply_add(change, configuration);
  const auto at = std::find_if(configuration.servers.begin(), configuration.servers.end(),
                               [&](const Server& server) { return server.id == change.id; });
  if (at == configuration.servers.end()) {
    return change.kind == Kind::remove ? ChangeVerdict::already_so : ChangeVerdict::not_a_member;
  }
  const Server before = *at;
  switch (change.kind) {
    case Kind::add:
      break;
    case Kind::promote:
      at->voter = true;
      break;
    case Kind::demote:
      at->voter = false;
      break;
    case Kind::remove:
      configuration.servers.erase(at);
      return ChangeVerdict::changed;
    case Kind::change_address:
      if (!is_name(change.address)) return ChangeVerdict::invalid;
      at->address = change.address;
      break;
  }
  return *at == before ? ChangeVerdict::already_so : ChangeVerdict::changed;
}

std::string encode(const Configuration& configuration) {
  NARAD_CHECK(configuration.servers.size() <= kServersMax, "a configuration stays within its bound");
  std::string out;
  put_number(out, kVersion, 1);
  put_number(out, configuration.cluster.high, 8);
  put_number(out, configuration.cluster.low, 8);
  put_number(out, configuration.servers.size(), 4);
  for (const Server& server : configuration.servers) {
    NARAD_CHECK(!server.id.empty() && server.id.size() <= kTextMax && server.address.size() <= kTextMax,
                "a server's names stay within their bound");
    put_text(out, server.id);
    put_text(out, server.address);
    put_number(out, server.voter ? 1 : 0, 1);
    put_number(out, server.store.high, 8);
    put_number(out, server.store.low, 8);
  }
  return out;
}

std::optional<Configuration> decode_configuration(std::string_view bytes) {
  Reader in(bytes);
  Configuration configuration;
  std::uint64_t version = 0;
  std::uint64_t count = 0;
  if (!in.number(version, 1) || version != kVersion) return std::nullopt;
  if (!in.number(configuration.cluster.high, 8) || !in.number(configuration.cluster.low, 8)) return std::nullopt;
  if (!in.number(count, 4) || count > kServersMax) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    Server server;
    if (!read_server(in, server)) return std::nullopt;
    if (!configuration.servers.empty() && !(configuration.servers.back().id < server.id)) return std::nullopt;
    configuration.servers.push_back(std::move(server));
  }
  if (!in.is_done()) return std::nullopt;
  return configuration;
}

ConfigurationLog::ConfigurationLog(Index index, Configuration base) : items_{Item{index, std::move(base)}} {}

std::size_t ConfigurationLog::position(Index index) const {
  std::size_t at = items_.size() - 1;
  while (at > 0 && items_[at].index > index) --at;
  return at;
}

const Configuration& ConfigurationLog::at(Index index) const { return items_[position(index)].configuration; }

Index ConfigurationLog::index_at(Index index) const { return items_[position(index)].index; }

std::size_t ConfigurationLog::voter_changes_above(Index index) const {
  std::size_t changes = 0;
  for (std::size_t at = items_.size() - 1; at > 0 && items_[at].index > index; --at) {
    if (!items_[at].configuration.same_voters(items_[at - 1].configuration)) ++changes;
  }
  return changes;
}

std::vector<Index> ConfigurationLog::voter_changes_after(Index index) const {
  std::vector<Index> changes;
  for (std::size_t at = 1; at < items_.size(); ++at) {
    if (items_[at].index <= index) continue;
    if (!items_[at].configuration.same_voters(items_[at - 1].configuration)) changes.push_back(items_[at].index);
  }
  return changes;
}

void ConfigurationLog::append(Index index, Configuration configuration) {
  NARAD_CHECK(index > current_index(), "configurations are appended in log order");
  items_.push_back(Item{index, std::move(configuration)});
}

bool ConfigurationLog::truncate(Index from) {
  bool changed = false;
  while (items_.size() > 1 && items_.back().index >= from) {
    Configuration cut = std::move(items_.back().configuration);
    items_.pop_back();
    changed = true;
    if (!io::defence(io::Defence::config_not_undone_on_truncate)) items_.back().configuration = std::move(cut);
  }
  NARAD_CHECK(from > items_.front().index, "the base configuration is never cut");
  return changed;
}

void ConfigurationLog::compact(Index index) {
  items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(position(index)));
}

}  // namespace raft

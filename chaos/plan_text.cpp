#include "chaos/plan_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <vector>

namespace chaos {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// ---- values ----------------------------------------------------------------------------------------------------------------

struct Unit {
  std::string_view name;
  int64_t ns;
};
constexpr std::array<Unit, 5> kUnits{{{"m", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

constexpr std::array<std::pair<std::string_view, int>, 5> kRoles{
    {{"leader", kLeader}, {"follower", kFollower}, {"any", kAnyNode}, {"voter", kVoter}, {"all", kAll}}};

std::string print_nodes(const std::vector<int>& nodes) {
  std::string text;
  for (const int node : nodes) {
    if (!text.empty()) {
      text += ',';
    }
    const auto role = std::find_if(kRoles.begin(), kRoles.end(), [node](const auto& r) { return r.second == node; });
    text += role != kRoles.end() ? std::string(role->first) : std::to_string(node);
  }
  return text;
}

std::optional<std::vector<int>> parse_nodes(std::string_view text) {
  std::vector<int> nodes;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const auto role = std::find_if(kRoles.begin(), kRoles.end(), [item](const auto& r) { return r.first == item; });
    if (role != kRoles.end()) {
      nodes.push_back(role->second);
    } else if (const auto number = parse_number<uint32_t>(item); number && *number < 64) {
      nodes.push_back(static_cast<int>(*number));
    } else {
      return std::nullopt;
    }
    if (comma == std::string_view::npos) {
      return nodes;
    }
    text.remove_prefix(comma + 1);
  }
}

// ---- settings --------------------------------------------------------------------------------------------------------------

struct Setting {
  std::string_view name;
  uint64_t Setup::*number = nullptr;
  io::Duration Setup::*duration = nullptr;
  int64_t low = 0;
  int64_t high = 0;  // both included; of durations in nanoseconds
  std::string_view meaning;
};

constexpr Setting number(std::string_view name, uint64_t Setup::*field, int64_t low, int64_t high, std::string_view meaning) {
  return {name, field, nullptr, low, high, meaning};
}
constexpr Setting duration(std::string_view name, io::Duration Setup::*field, io::Duration low, io::Duration high,
                           std::string_view meaning) {
  return {name, nullptr, field, low.count(), high.count(), meaning};
}

constexpr Setting kSettings[] = {
    number("nodes", &Setup::nodes, 1, 5, "nodes of the cluster"),
    number("initial", &Setup::initial, 0, 5, "of them begin, from the first on; the others join later; 0: all begin"),
    number("clients", &Setup::clients, 1, 64, "clients, each with one call at a time"),
    duration("safety", &Setup::safety, seconds(1), hours(24), "length of the phase with faults and load"),
    duration("healing", &Setup::healing, seconds(10), hours(1), "longest length of the phase after the heal"),
    duration("heartbeat", &Setup::heartbeat, milliseconds(1), seconds(60), "raft heartbeat interval"),
    duration("election_min", &Setup::election_min, milliseconds(5), seconds(600), "raft election timeout, shortest"),
    duration("election_max", &Setup::election_max, milliseconds(5), seconds(600), "raft election timeout, longest"),
    number("append_entries_max", &Setup::append_entries_max, 1, 65536, "entries in one append request"),
    number("segment_bytes", &Setup::segment_bytes, 0, 1 << 30, "size of a raft log segment; 0: the default"),
    duration("net_low", &Setup::net_low, nanoseconds(0), seconds(60), "one-way latency, shortest"),
    duration("net_high", &Setup::net_high, nanoseconds(0), seconds(60), "one-way latency, longest of the usual"),
    number("loss_ppm", &Setup::loss_ppm, 0, 500'000, "share of messages lost"),
    number("tail_ppm", &Setup::tail_ppm, 0, 500'000, "share of messages with a latency up to tail_max"),
    duration("tail_max", &Setup::tail_max, nanoseconds(0), seconds(600), "see tail_ppm"),
    duration("sync_low", &Setup::sync_low, nanoseconds(0), seconds(60), "latency of a data sync, shortest"),
    duration("sync_high", &Setup::sync_high, nanoseconds(0), seconds(60), "latency of a data sync, longest of the usual"),
    number("sync_tail_ppm", &Setup::sync_tail_ppm, 0, 500'000, "share of syncs with a latency up to sync_tail"),
    duration("sync_tail", &Setup::sync_tail, nanoseconds(0), seconds(60), "see sync_tail_ppm"),
    number("scattered_ppm", &Setup::scattered_ppm, 0, 1'000'000,
           "1000000: unsynced log sectors survive a power loss in any order; 0: as a prefix"),
    number("bit_flip_ppm", &Setup::bit_flip_ppm, 0, 1'000'000, "share of surviving unsynced log sectors with a flipped bit"),
    number("late_ppm", &Setup::late_ppm, 0, 500'000, "share of file operations that were given up and land late"),
    number("never_ppm", &Setup::never_ppm, 0, 500'000, "share of them that never land"),
    number("snapshot_threshold", &Setup::snapshot_threshold, 1, 1'000'000, "entries applied that make a snapshot due"),
    duration("snapshot_interval", &Setup::snapshot_interval, milliseconds(5), hours(1), "how often that is looked at, or up to twice as long"),
    number("trailing", &Setup::trailing, 0, 1'000'000, "entries that stay in the log below the older kept snapshot"),
    number("chunk_bytes", &Setup::chunk_bytes, 512, 1 << 20, "bytes of a snapshot's chunks"),
    number("tail_bytes", &Setup::tail_bytes, 1, 1 << 30, "bytes of applied entries that stay in memory"),
    number("unapplied_bytes", &Setup::unapplied_bytes, 1, 1 << 30, "bytes of entries that wait to be applied, past which no more are taken"),
    number("applying_bytes", &Setup::applying_bytes, 1, 1 << 30, "bytes of entries handed to the state machine at a time"),
    number("link_queue_bytes", &Setup::link_queue_bytes, 1, 1 << 30, "bytes of messages that wait for a connection, past which they are dropped"),
    number("ops_per_minute", &Setup::ops_per_minute, 0, 1'000'000, "client calls a simulated minute, all clients together"),
    number("create", &Setup::create, 0, 1'000'000, "weight of creates in the load"),
    number("patch", &Setup::patch, 0, 1'000'000, "weight of patches"),
    number("remove", &Setup::remove, 0, 1'000'000, "weight of deletes"),
    number("read", &Setup::read, 0, 1'000'000, "weight of reads of one topic"),
    number("list", &Setup::list, 0, 1'000'000, "weight of lists"),
    number("race", &Setup::race, 0, 1'000'000, "weight of races for one name"),
    number("names", &Setup::names, 1, 10'000, "topic names that the load works on"),
    number("proposals_per_minute", &Setup::proposals_per_minute, 0, 60'000, "metadata commands of every type, proposed beside the requests"),
    number("schema_bytes", &Setup::schema_bytes, 0, 1 << 20, "bytes of half of the schemas among them, so that an image takes several slices; 0: all are small"),
    number("crowd", &Setup::crowd, 0, 5, "they fill one kind of thing up to its limit: 1 children, 2 remotes, 3 remote children, 4 bytes of schemas, 5 versions of a schema"),
    number("gate", &Setup::gate, 0, 1, "1: an entry type is proposed only when every node's release applies it; 0: older ones stop"),
    duration("call_bound", &Setup::call_bound, seconds(1), seconds(600), "a client gives up on an answer after this"),
};

// ---- keys of decisions -----------------------------------------------------------------------------------------------------

struct Key {
  std::string_view name;
  std::vector<int> Decision::*nodes = nullptr;
  io::Duration Decision::*duration = nullptr;
  uint64_t Decision::*number = nullptr;
  int64_t Decision::*signed_number = nullptr;
  std::string Decision::*word = nullptr;
  std::string_view words;  // of a word, joined by '|'
};

Key nodes_key(std::string_view name, std::vector<int> Decision::*field) {
  Key key;
  key.name = name;
  key.nodes = field;
  return key;
}
Key duration_key(std::string_view name, io::Duration Decision::*field) {
  Key key;
  key.name = name;
  key.duration = field;
  return key;
}
Key number_key(std::string_view name, uint64_t Decision::*field) {
  Key key;
  key.name = name;
  key.number = field;
  return key;
}
Key word_key(std::string_view name, std::string Decision::*field, std::string_view words) {
  Key key;
  key.name = name;
  key.word = field;
  key.words = words;
  return key;
}

const std::vector<Key>& keys() {
  static const std::vector<Key> kKeys = [] {
    Key rate;
    rate.name = "rate";
    rate.signed_number = &Decision::rate;
    return std::vector<Key>{
        nodes_key("node", &Decision::node),
        nodes_key("peers", &Decision::peers),
        duration_key("down", &Decision::down),
        duration_key("for", &Decision::span),
        duration_key("gap", &Decision::gap),
        duration_key("delay", &Decision::delay),
        duration_key("by", &Decision::by),
        rate,
        number_key("ppm", &Decision::ppm),
        number_key("percent", &Decision::percent),
        number_key("bytes", &Decision::bytes),
        number_key("nth", &Decision::nth),
        number_key("times", &Decision::times),
        word_key("way", &Decision::way, "one|both"),
        word_key("shape", &Decision::shape, "half|ring|isolate|bridge"),
        word_key("op", &Decision::op, "read|write|sync"),
        word_key("store", &Decision::store, "raft|metastore|images|log|term"),
        word_key("how", &Decision::how, "kill|power_loss"),
        word_key("work", &Decision::work, "append|compaction|snapshot|install|vote|apply|start"),
        word_key("fault", &Decision::fault, "kill|power_loss|no_space|error|stall"),
        word_key("release", &Decision::release, "3.0.1|3.1.0|3.2.0|next"),
    };
  }();
  return kKeys;
}

struct KindRow {
  Kind kind;
  std::string_view keys;  // in the order in which they are printed; every one must be given
  std::string_view meaning;
};

constexpr KindRow kKinds[] = {
    {Kind::kill, "node down", "the process ends; what it wrote stays; started again after `down`"},
    {Kind::power_loss, "node down", "the machine goes dark; what was not durable is lost"},
    {Kind::stop, "node down", "a graceful stop, then a start"},
    {Kind::freeze, "node for", "the process does not run; its clocks go on"},
    {Kind::slow, "node percent for", "what it computes costs that many percent"},
    {Kind::kill_at, "node nth how down", "ends at its nth operation that changes the disk"},
    {Kind::fault_at, "node work nth fault down for",
     "at its nth operation of that work that changes the disk: it ends, the operation fails (error), or the disk is full or hangs `for` so long"},
    {Kind::restart_loop, "node times down gap", "killed so many times, `gap` after each start"},
    {Kind::rolling, "down gap", "every node is stopped gracefully and started, one after another"},
    {Kind::cut, "node peers way for", "nothing passes from node to peers (both: nor back)"},
    {Kind::partition, "shape for", "half: two halves; ring: neighbours only; isolate: the leader alone; bridge: halves joined by one"},
    {Kind::heal, "", "every cut ends"},
    {Kind::loss, "ppm for", "that share of messages is lost"},
    {Kind::tail, "ppm delay for", "that share of messages takes up to `delay`"},
    {Kind::slow_reader, "node delay for", "reads what it is sent that much later"},
    {Kind::disk_full, "node bytes for", "only so many bytes are free"},
    {Kind::disk_shrink, "node bytes for", "only so many bytes are free, and step by step none"},
    {Kind::disk_error, "node op nth", "the nth such operation fails once, with on=install the nth on a snapshot; after a sync the pages are clean all the same"},
    {Kind::disk_stall, "node for", "file operations hang"},
    {Kind::disk_slow, "node ppm for", "that share of file operations takes long"},
    {Kind::disk_damage, "node down for",
     "a bit of a synced log entry flips and the process ends: it cannot start until the bit is right again"},
    {Kind::snapshot_damage, "node down for",
     "a bit of the newest snapshot flips and the process ends: it goes by the older one, or cannot start until the bit is right"},
    {Kind::store_old, "node store gap down for",
     "the node is killed and finds one of its stores as it was `gap` before; one that cannot start with it gets it back after `for`"},
    {Kind::store_gone, "node store down for", "the node is killed and finds one of its stores gone; likewise"},
    {Kind::store_blind, "node down for",
     "the node is killed, finds its snapshots gone, and another program has written into its metastore"},
    {Kind::store_foreign, "node peers down for", "the node is killed and finds the metastore of the first of peers in its own one's place"},
    {Kind::grow, "node", "a node that did not begin is started for the first time, with an empty volume, and joins"},
    {Kind::rejoin, "node store peers down",
     "a store is lost for good (metastore: that of the first of peers stands there); it starts as one that joins, is taken out and in"},
    {Kind::wipe, "node down", "the whole volume is lost; it starts on an empty one under its old name, and is taken out and in"},
    {Kind::foreign_write, "node down", "the node is killed and another program writes a row into its metastore"},
    {Kind::release, "node release down", "stopped and started as that release; at 0s: it begins as that"},
    {Kind::move, "node down", "a graceful stop; it comes back under another address, which an operator tells the cluster"},
    {Kind::wall_jump, "node by", "the calendar clock moves"},
    {Kind::transfer, "node peers", "asked to hand leadership over to the first of peers"},
    {Kind::take_out, "node for", "demoted and removed, and after `for` added and promoted again"},
    {Kind::decommission, "node for down times",
     "decommissioned, and taken back after `for`; once out it comes back on an empty volume (times=2: it tries its old one first)"},
    {Kind::abort_moves, "node", "asked to abort the moves whose destination is not alive"},
    {Kind::forget, "node peers", "asked to forget the first of peers, which is refused to whoever has registered"},
    {Kind::drift, "node rate for", "both clocks run that many parts per million fast"},
};

constexpr Trigger kTriggers[] = {Trigger::now, Trigger::elected, Trigger::campaign, Trigger::vote, Trigger::append,
                                 Trigger::install};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      if (i > start) {
        parts.push_back(text.substr(start, i - start));
      }
      start = i + 1;
    }
  }
  return parts;
}

bool holds_word(std::string_view words, std::string_view word) {
  const auto all = split(words, '|');
  return std::find(all.begin(), all.end(), word) != all.end();
}

const KindRow& row_of(Kind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) {
      return row;
    }
  }
  NARAD_CHECK(false, "a kind without a row");
}

const Key& key_of(std::string_view name) {
  for (const Key& key : keys()) {
    if (key.name == name) {
      return key;
    }
  }
  NARAD_CHECK(false, "a kind with an unknown key");
}

std::string print_value(const Decision& decision, const Key& key) {
  if (key.nodes != nullptr) {
    return print_nodes(decision.*key.nodes);
  }
  if (key.duration != nullptr) {
    return print_duration(decision.*key.duration);
  }
  if (key.number != nullptr) {
    return std::to_string(decision.*key.number);
  }
  if (key.signed_number != nullptr) {
    return std::to_string(decision.*key.signed_number);
  }
  return decision.*key.word;
}

// Returns what is wrong, or "".
std::string take_value(Decision& decision, const Key& key, std::string_view text) {
  const std::string name(key.name);
  if (key.nodes != nullptr) {
    const auto nodes = parse_nodes(text);
    if (!nodes) {
      return name + " wants node numbers, leader, follower, any or all, not \"" + std::string(text) + "\"";
    }
    decision.*key.nodes = *nodes;
    return "";
  }
  if (key.duration != nullptr) {
    const auto value = parse_duration(text);
    if (!value.ok()) {
      return name + ": " + value.error().message;
    }
    decision.*key.duration = *value;
    return *value < io::Duration(0) && key.name != "by" ? name + " is negative" : "";
  }
  if (key.number != nullptr) {
    const auto value = parse_number<uint64_t>(text);
    decision.*key.number = value.value_or(0);
    return value ? "" : name + " wants a whole number, not \"" + std::string(text) + "\"";
  }
  if (key.signed_number != nullptr) {
    const auto value = parse_number<int64_t>(text);
    decision.*key.signed_number = value.value_or(0);
    return value ? "" : name + " wants a whole number, not \"" + std::string(text) + "\"";
  }
  decision.*key.word = std::string(text);
  return holds_word(key.words, text) ? "" : name + " is one of " + std::string(key.words) + ", not \"" + std::string(text) + "\"";
}

// ---- parsing ---------------------------------------------------------------------------------------------------------------

class Parser {
 public:
  io::Result<Plan> run(std::string_view text) {
    size_t line_number = 0;
    bool has_header = false;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++line_number;
      line = line.substr(0, line.find('#'));
      std::string clean(line);
      std::replace_if(clean.begin(), clean.end(), [](char c) { return c == '\t' || c == '\r'; }, ' ');
      const auto words = split(clean, ' ');
      if (words.empty()) {
        continue;
      }
      std::string wrong;
      if (!has_header) {
        wrong = clean.starts_with("narad-chaos plan 1") && words.size() == 3 && words[2] == "1"
                    ? ""
                    : "a plan begins with \"narad-chaos plan 1\"";
        has_header = true;
      } else if (words.size() > 1 && words[1] == "at") {
        wrong = take_decision(words);
      } else {
        wrong = take_setting(words);
      }
      if (!wrong.empty()) {
        return io::fail(io::ErrorKind::invalid, "line " + std::to_string(line_number) + ": " + wrong);
      }
    }
    if (!has_header) {
      return io::fail(io::ErrorKind::invalid, "line 1: a plan begins with \"narad-chaos plan 1\"");
    }
    const std::string wrong = check_whole();
    if (!wrong.empty()) {
      return io::fail(io::ErrorKind::invalid, "line " + std::to_string(line_number) + ": " + wrong);
    }
    normalise(plan_);
    return plan_;
  }

 private:
  std::string take_setting(const std::vector<std::string_view>& words) {
    const std::string name(words[0]);
    if (words.size() != 2) {
      return "a setting is a name and one value, a decision is an id, \"at\", a time and a kind";
    }
    if (name == "defect") {
      const auto defect = io::defect_by_name(words[1]);
      if (!defect) {
        return "no defect is called \"" + std::string(words[1]) + "\"";
      }
      return plan_.defects.insert(*defect).second ? "" : "the defect is switched on twice";
    }
    if (!seen_.insert(name).second) {
      return name + " is set twice";
    }
    if (name == "seed" || name == "salt") {
      const auto value = parse_number<uint64_t>(words[1]);
      (name == "seed" ? plan_.seed : plan_.salt) = value.value_or(0);
      return value ? "" : name + " wants a whole number, not \"" + std::string(words[1]) + "\"";
    }
    for (const Setting& setting : kSettings) {
      if (setting.name == name) {
        return take_value_of(setting, words[1]);
      }
    }
    return "no setting is called \"" + name + "\"";
  }

  std::string take_value_of(const Setting& setting, std::string_view text) {
    const std::string name(setting.name);
    int64_t value = 0;
    if (setting.number != nullptr) {
      const auto parsed = parse_number<uint64_t>(text);
      if (!parsed || *parsed > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return name + " wants a whole number, not \"" + std::string(text) + "\"";
      }
      value = static_cast<int64_t>(*parsed);
      plan_.setup.*setting.number = *parsed;
    } else {
      const auto parsed = parse_duration(text);
      if (!parsed.ok()) {
        return name + ": " + parsed.error().message;
      }
      value = parsed->count();
      plan_.setup.*setting.duration = *parsed;
    }
    if (value < setting.low || value > setting.high) {
      const auto show = [&](int64_t bound) {
        return setting.number != nullptr ? std::to_string(bound) : print_duration(io::Duration(bound));
      };
      return name + " must lie between " + show(setting.low) + " and " + show(setting.high);
    }
    return "";
  }

  std::string take_decision(const std::vector<std::string_view>& words) {
    Decision decision;
    if (words[0].size() < 2 || words[0][0] != 'd') {
      return "a decision's id is d and a number, not \"" + std::string(words[0]) + "\"";
    }
    const auto id = parse_number<uint32_t>(words[0].substr(1));
    if (!id || *id == 0) {
      return "a decision's id is d and a number, not \"" + std::string(words[0]) + "\"";
    }
    decision.id = *id;
    if (!ids_.insert(decision.id).second) {
      return "two decisions are called " + std::string(words[0]);
    }
    if (words.size() < 4) {
      return "a decision is an id, \"at\", a time and a kind";
    }
    const auto at = parse_duration(words[2]);
    if (!at.ok() || *at < io::Duration(0)) {
      return "\"" + std::string(words[2]) + "\" is no time";
    }
    decision.at = *at;
    const KindRow* row = nullptr;
    for (const KindRow& candidate : kKinds) {
      if (kind_name(candidate.kind) == words[3]) {
        row = &candidate;
      }
    }
    if (row == nullptr) {
      return "no kind of decision is called \"" + std::string(words[3]) + "\"";
    }
    decision.kind = row->kind;
    const std::string wrong = take_keys(decision, *row, words);
    if (wrong.empty()) {
      plan_.decisions.push_back(std::move(decision));
    }
    return wrong;
  }

  static std::string take_keys(Decision& decision, const KindRow& row, const std::vector<std::string_view>& words) {
    const auto allowed = split(row.keys, ' ');
    std::set<std::string_view> given;
    for (size_t i = 4; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      const std::string_view name = words[i].substr(0, equals);
      if (equals == std::string_view::npos) {
        return "\"" + std::string(words[i]) + "\" is no key=value pair";
      }
      const std::string_view value = words[i].substr(equals + 1);
      if (!given.insert(name).second) {
        return std::string(name) + " is given twice";
      }
      std::string wrong;
      if (name == "on") {
        const auto* trigger = std::find_if(std::begin(kTriggers), std::end(kTriggers),
                                           [value](Trigger t) { return trigger_name(t) == value; });
        if (trigger == std::end(kTriggers)) {
          return "on is one of now, elected, campaign, vote, append, install, not \"" + std::string(value) + "\"";
        }
        decision.on = *trigger;
      } else if (name == "wait") {
        const auto wait = parse_duration(value);
        if (!wait.ok() || *wait < io::Duration(0)) {
          return "wait: \"" + std::string(value) + "\" is no duration";
        }
        decision.wait = *wait;
      } else if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
        return std::string(kind_name(row.kind)) + " has no key \"" + std::string(name) + "\"";
      } else {
        wrong = take_value(decision, key_of(name), value);
      }
      if (!wrong.empty()) {
        return wrong;
      }
    }
    for (const std::string_view key : allowed) {
      if (!given.contains(key)) {
        return std::string(kind_name(row.kind)) + " wants " + std::string(key) + "=";
      }
    }
    return "";
  }

  std::string check_whole() const {
    if (plan_.setup.election_max < plan_.setup.election_min) {
      return "election_max is below election_min";
    }
    if (plan_.setup.net_high < plan_.setup.net_low || plan_.setup.sync_high < plan_.setup.sync_low) {
      return "a longest latency is below its shortest";
    }
    if (plan_.setup.initial > plan_.setup.nodes) {
      return "initial is above nodes";
    }
    for (const Decision& decision : plan_.decisions) {
      for (const std::vector<int>* list : {&decision.node, &decision.peers}) {
        for (const int node : *list) {
          if (node >= static_cast<int>(plan_.setup.nodes)) {
            return "d" + std::to_string(decision.id) + " names node " + std::to_string(node) + ", but there are " +
                   std::to_string(plan_.setup.nodes) + " (numbered from 0)";
          }
        }
      }
    }
    return "";
  }

  Plan plan_;
  std::set<std::string> seen_;
  std::set<uint32_t> ids_;
};

}  // namespace

std::string print_duration(io::Duration duration) {
  for (const Unit& unit : kUnits) {
    if (unit.name != "m" && duration.count() % unit.ns == 0) {
      return std::to_string(duration.count() / unit.ns) + std::string(unit.name);
    }
  }
  return std::to_string(duration.count()) + "ns";
}

io::Result<io::Duration> parse_duration(std::string_view text) {
  const auto refuse = [text] {
    return io::fail(io::ErrorKind::invalid, "\"" + std::string(text) + "\" is no duration (a number and ns, us, ms, s or m)");
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) {
    rest.remove_prefix(1);
  }
  const size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
  const std::string_view figure = rest.substr(0, digits);
  const auto* unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == rest.substr(digits); });
  const size_t dot = figure.find('.');
  const auto whole = parse_number<uint64_t>(figure.substr(0, dot));
  if (unit == kUnits.end() || !whole) {
    return refuse();
  }
  if (*whole > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / unit->ns / 2)) {
    return refuse();
  }
  int64_t ns = static_cast<int64_t>(*whole) * unit->ns;
  if (dot != std::string_view::npos) {
    int64_t share = unit->ns;
    const std::string_view fraction = figure.substr(dot + 1);
    if (fraction.empty()) {
      return refuse();
    }
    for (const char digit : fraction) {
      if (digit == '.' || share % 10 != 0) {
        return refuse();  // a second point, or finer than a nanosecond
      }
      share /= 10;
      ns += share * (digit - '0');
    }
  }
  return io::Duration(negative ? -ns : ns);
}

io::Result<Plan> parse_plan(std::string_view text) { return Parser().run(text); }

std::string print_decision(const Decision& decision) {
  const KindRow& row = row_of(decision.kind);
  std::string at = print_duration(decision.at);
  // Times read better in seconds: 12500ms is 12.5s.
  if (decision.at >= seconds(1) && decision.at.count() % 1'000'000'000 != 0) {
    std::string fraction = std::to_string(1'000'000'000 + decision.at.count() % 1'000'000'000).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    at = std::to_string(decision.at.count() / 1'000'000'000) + "." + fraction + "s";
  }
  std::string line = "d" + std::to_string(decision.id) + " at " + at + " " + std::string(kind_name(decision.kind));
  if (decision.on != Trigger::now) {
    line += " on=" + std::string(trigger_name(decision.on));
  }
  if (decision.wait != io::Duration(0)) {
    line += " wait=" + print_duration(decision.wait);
  }
  for (const std::string_view key : split(row.keys, ' ')) {
    line += " " + std::string(key) + "=" + print_value(decision, key_of(key));
  }
  return line;
}

std::string print_plan(const Plan& plan) {
  static const Setup kDefaults;
  std::string text = "narad-chaos plan 1\nseed " + std::to_string(plan.seed) + "\n";
  if (plan.salt != 0) {
    text += "salt " + std::to_string(plan.salt) + "\n";
  }
  for (const Setting& setting : kSettings) {
    std::string value;
    if (setting.number != nullptr && plan.setup.*setting.number != kDefaults.*setting.number) {
      value = std::to_string(plan.setup.*setting.number);
    } else if (setting.duration != nullptr && plan.setup.*setting.duration != kDefaults.*setting.duration) {
      value = print_duration(plan.setup.*setting.duration);
    }
    if (!value.empty() || setting.name == "nodes") {
      text += std::string(setting.name) + " " + (value.empty() ? std::to_string(plan.setup.nodes) : value) + "\n";
    }
  }
  for (const io::Defence defect : plan.defects) {
    text += "defect " + std::string(io::defect_name(defect)) + "\n";
  }
  for (const Decision& decision : plan.decisions) {
    text += print_decision(decision) + "\n";
  }
  return text;
}

std::string plan_manual() {
  static const Setup kDefaults;
  std::string text = "Settings (name, default, meaning):\n";
  for (const Setting& setting : kSettings) {
    const std::string value = setting.number != nullptr ? std::to_string(kDefaults.*setting.number)
                                                        : print_duration(kDefaults.*setting.duration);
    std::string line = "  " + std::string(setting.name) + " " + value;
    line.resize(std::max<size_t>(line.size() + 2, 30), ' ');
    text += line + std::string(setting.meaning) + "\n";
  }
  text += "Decisions (kind, keys, meaning); every kind also takes on=elected|campaign|vote|append|install and wait=:\n";
  for (const KindRow& row : kKinds) {
    std::string line = "  " + std::string(kind_name(row.kind)) + " " + std::string(row.keys);
    line.resize(std::max<size_t>(line.size() + 2, 30), ' ');
    text += line + std::string(row.meaning) + "\n";
  }
  return text;
}

}  // namespace chaos

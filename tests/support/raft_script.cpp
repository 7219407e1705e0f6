#include "tests/support/raft_script.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "io/defence.h"
#include "io/sim/switches.h"
#include "tests/support/raft_cluster.h"

namespace tests {

namespace {

using raft::Core;
using raft::Index;
using raft::Message;
using Words = std::vector<std::string>;

// Thrown while a line runs; run_raft_script() adds the line number.
struct Failed {
  ScriptFailure::Kind kind;
  std::string text;
};

[[noreturn]] void bad_line(const std::string& text) { throw Failed{ScriptFailure::Kind::script, text}; }

[[noreturn]] void unmet(const std::string& text) { throw Failed{ScriptFailure::Kind::expectation, text}; }

Words split(std::string_view line) {
  std::istringstream in{std::string(line.substr(0, line.find('#')))};
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::uint64_t to_number(const std::string& word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) bad_line("'" + word + "' is not a number");
  return value;
}

io::Duration to_duration(const std::string& word) {
  if (word.ends_with("ms")) return std::chrono::milliseconds(to_number(word.substr(0, word.size() - 2)));
  if (word.ends_with("s")) return std::chrono::seconds(to_number(word.substr(0, word.size() - 1)));
  bad_line("'" + word + "' is not a time: write 50ms or 2s");
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "nothing" : text;
}

struct Link {
  std::string from;
  std::string to;
};

std::optional<Link> to_link(const std::string& word) {
  const std::size_t arrow = word.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  return Link{word.substr(0, arrow), word.substr(arrow + 2)};
}

class Player {
 public:
  explicit Player(std::uint64_t seed) : cluster_(seed) {}

  RaftCluster& cluster() { return cluster_; }

  // Everything heals and lives on for a while. What is not at rest then; empty: all is.
  std::string settle() {
    cluster_.heal();
    cluster_.are_images_manual = false;
    for (auto& [id, server] : cluster_.nodes()) {
      server.is_disk_manual = server.is_apply_manual = server.is_read_manual = false;
      if (!server.core) cluster_.start(id);
      if (!server.core) return id + " does not start";
      cluster_.persist(id, true);
      cluster_.apply(id);
      cluster_.answer_reads(id, false);
    }
    cluster_.run(std::chrono::seconds(6));
    const Core* leader = cluster_.leader();
    if (leader == nullptr) return "there is no leader";
    if (leader->applied_index() != leader->last_index()) return "the leader has not applied everything";
    for (const auto& [id, server] : cluster_.nodes()) {
      if (leader->configuration().find(id) == nullptr) continue;
      if (server.core->applied_index() != leader->applied_index()) return id + " has not applied everything";
      if (server.commands != cluster_.node(leader->id()).commands) return id + " has applied other commands";
    }
    return "";
  }

  void play(const Words& words) {
    static const std::map<std::string, void (Player::*)(const Words&)> kSteps = {
        {"servers", &Player::servers},   {"bootstrap", &Player::bootstrap}, {"stranger", &Player::stranger},
        {"set", &Player::set},           {"given", &Player::given},         {"start", &Player::start},
        {"kill", &Player::kill},         {"restart", &Player::restart},     {"replay", &Player::replay},
        {"wipe", &Player::wipe},         {"wait", &Player::wait},           {"tick", &Player::tick},
        {"run", &Player::run},           {"deliver", &Player::deliver},     {"exchange", &Player::exchange},
        {"drop", &Player::drop},         {"duplicate", &Player::duplicate}, {"hold", &Player::hold},
        {"release", &Player::release},   {"resend", &Player::resend},       {"cut", &Player::cut},
        {"heal", &Player::heal},
        {"isolate", &Player::isolate},   {"propose", &Player::propose},     {"read", &Player::read},
        {"disk", &Player::disk},         {"persist", &Player::persist},     {"apply", &Player::apply},
        {"change", &Player::change},     {"transfer", &Player::transfer},   {"expect", &Player::expect},
        {"snapshot", &Player::snapshot}, {"compact", &Player::compact},     {"images", &Player::images},
        {"offer", &Player::offer},       {"receive", &Player::receive},     {"break", &Player::break_off},
        {"reads", &Player::reads},
    };
    const auto step = kSteps.find(words[0]);
    if (step == kSteps.end()) bad_line("unknown step '" + words[0] + "'");
    (this->*step->second)(Words(words.begin() + 1, words.end()));
    if (cluster_.violation()) {
      throw Failed{ScriptFailure::Kind::violation,
                   std::string(cluster_.violation()->invariant) + ": " + cluster_.violation()->detail};
    }
  }

 private:
  // --- words to things ---

  const std::string& word(const Words& words, std::size_t at) {
    if (at >= words.size()) bad_line("the line ends too early");
    return words[at];
  }

  RaftCluster::Node& node(const std::string& id) {
    if (!cluster_.nodes().contains(id)) bad_line("no server '" + id + "'");
    return cluster_.node(id);
  }

  Core& core(const std::string& id) {
    RaftCluster::Node& server = node(id);
    if (!server.core) bad_line(id + " is down");
    return *server.core;
  }

  Words ids(const Words& words) {
    if (words.size() != 1 || words[0] != "all") return words;
    Words all;
    for (const auto& [id, each] : cluster_.nodes()) all.push_back(id);
    return all;
  }

  using Place = std::vector<Message>::iterator;

  Place find(const Link& link, const std::string& type) {
    auto& messages = cluster_.in_flight();
    return std::find_if(messages.begin(), messages.end(), [&](const Message& message) {
      return message.from == link.from && message.to == link.to && (type.empty() || type == raft::to_string(message.type));
    });
  }

  // The first message that "A->B" or "A->B type" names.
  Place pick(const Words& words, std::size_t at) {
    const std::optional<Link> link = to_link(word(words, at));
    if (!link) bad_line("expected A->B");
    const std::string type = at + 1 < words.size() ? words[at + 1] : "";
    const Place place = find(*link, type);
    if (place == cluster_.in_flight().end()) {
      unmet("no " + (type.empty() ? "message" : type) + " is under way from " + link->from + " to " + link->to);
    }
    return place;
  }

  Message take(Place place) {
    Message message = std::move(*place);
    cluster_.in_flight().erase(place);
    return message;
  }

  // --- before the start ---

  void servers(const Words& words) { cluster_.add_servers(words, true); }
  void bootstrap(const Words& words) { cluster_.add_servers(words, false); }
  void stranger(const Words& words) { cluster_.add_stranger(word(words, 0)); }

  void set(const Words& words) {
    const std::string& name = word(words, 0);
    raft::Settings& settings = cluster_.settings;
    if (name == "heartbeat") {
      settings.heartbeat_interval = to_duration(word(words, 1));
      return;
    }
    if (name == "election_timeout") {
      settings.election_timeout_min = to_duration(word(words, 1));
      settings.election_timeout_max = to_duration(word(words, 2));
      return;
    }
    if (name == "stall_bound") {
      settings.stall_bound = to_duration(word(words, 1));
      return;
    }
    const std::uint64_t value = to_number(word(words, 1));
    if (name == "append_entries_max") settings.append_entries_max = static_cast<std::uint32_t>(value);
    else if (name == "append_bytes_max") settings.append_bytes_max = value;
    else if (name == "flight_messages_max") settings.flight.messages_max = static_cast<std::uint32_t>(value);
    else if (name == "flight_bytes_max") settings.flight.bytes_max = value;
    else if (name == "unapplied_bytes_max") settings.unapplied_bytes_max = value;
    else if (name == "installing_bytes_max") settings.installing_bytes_max = value;
    else if (name == "payload_bytes_max") settings.payload_bytes_max = value;
    else if (name == "tail_bytes_max") settings.tail_bytes_max = value;
    else if (name == "applying_bytes_max") settings.applying_bytes_max = value;
    else if (name == "voters_min") settings.voters_min = static_cast<std::uint32_t>(value);
    else bad_line("unknown setting '" + name + "'");
  }

  void given(const Words& words) {
    RaftCluster::Node& server = node(word(words, 0));
    for (std::size_t at = 1; at < words.size();) {
      const std::string key = words[at++];
      if (key == "term") server.hard_state.term = to_number(word(words, at++));
      else if (key == "vote") server.hard_state.vote = word(words, at++);
      else if (key == "applied") server.applied = to_number(word(words, at++));
      else if (key == "base") {
        server.base_index = to_number(word(words, at++));
        server.base_term = to_number(word(words, at++));
        server.applied = std::max(server.applied, server.base_index);
      } else if (key == "log") {
        for (; at < words.size() && std::isdigit(static_cast<unsigned char>(words[at][0])); ++at) {
          const Index index = server.base_index + server.entries.size() + 1;
          server.entries.push_back(RaftCluster::given_entry(index, to_number(words[at])));
        }
      } else {
        bad_line("unknown word '" + key + "'");
      }
    }
  }

  // --- processes and time ---

  void start(const Words& words) {
    for (const std::string& id : ids(words)) {
      if (node(id).core) bad_line(id + " is up");
      cluster_.start(id);
    }
  }
  void kill(const Words& words) {
    for (const std::string& id : ids(words)) {
      core(id);
      cluster_.kill(id);
    }
  }
  void restart(const Words& words) {
    kill(words);
    start(words);
  }
  void replay(const Words& words) {
    for (const std::string& id : ids(words)) {
      RaftCluster::Node& server = node(id);
      server.applied = server.base_index;
      server.commands.clear();
      const auto image = server.images.find(server.base_index);
      if (image != server.images.end()) server.commands = image->second.commands;
    }
  }
  void wipe(const Words& words) {
    for (const std::string& id : words) {
      if (node(id).core) bad_line(id + " is up");
      cluster_.wipe(id);
    }
  }
  void wait(const Words& words) { cluster_.pass(to_duration(word(words, 0))); }
  void run(const Words& words) { cluster_.run(to_duration(word(words, 0))); }
  void tick(const Words& words) {
    for (const std::string& id : words) {
      core(id);
      cluster_.tick(id);
    }
  }

  // --- network ---

  void deliver(const Words& words) {
    if (word(words, 0) == "all") {
      cluster_.deliver_all();
      return;
    }
    const bool is_all = words.back() == "all";
    if (!is_all) {
      cluster_.deliver(take(pick(words, 0)));
      return;
    }
    const Link link = to_link(words[0]).value_or(Link{});
    const std::string type = words.size() > 2 ? words[1] : "";
    std::vector<Message> due;
    for (Place at = find(link, type); at != cluster_.in_flight().end(); at = find(link, type)) due.push_back(take(at));
    for (Message& message : due) cluster_.deliver(std::move(message));
  }

  void exchange(const Words& words) {
    const auto is_among = [&](const std::string& id) { return std::find(words.begin(), words.end(), id) != words.end(); };
    for (int step = 0; step < 100'000 && !cluster_.violation(); ++step) {
      auto& messages = cluster_.in_flight();
      const Place at = std::find_if(messages.begin(), messages.end(), [&](const Message& message) {
        return is_among(message.from) && is_among(message.to);
      });
      if (at == messages.end()) return;
      cluster_.deliver(take(at));
    }
  }

  void drop(const Words& words) {
    if (word(words, 0) == "all") {
      cluster_.in_flight().clear();
      return;
    }
    if (words.back() != "all") {
      take(pick(words, 0));
      return;
    }
    const Link link = to_link(words[0]).value_or(Link{});
    const std::string type = words.size() > 2 ? words[1] : "";
    for (Place at = find(link, type); at != cluster_.in_flight().end(); at = find(link, type)) take(at);
  }

  void duplicate(const Words& words) {
    Message copy = *pick(words, 0);
    cluster_.in_flight().push_back(std::move(copy));
  }
  void hold(const Words& words) { held_[word(words, 0)] = take(pick(words, 1)); }
  void release(const Words& words) {
    const auto at = held_.find(word(words, 0));
    if (at == held_.end()) bad_line("nothing is held as '" + words[0] + "'");
    cluster_.deliver(Message(at->second));
  }

  // "resend A->B after 8 count 3": the request that leader A would have sent for entries 9..11, under way again.
  void resend(const Words& words) {
    const std::optional<Link> link = to_link(word(words, 0));
    if (!link || word(words, 1) != "after" || word(words, 3) != "count") bad_line("resend A->B after INDEX count NUMBER");
    const Core& leader = core(link->from);
    const Index after = to_number(words[2]);
    if (leader.role() != raft::Role::leader || after + 1 < leader.log().held_from() ||
        after + to_number(word(words, 4)) > leader.last_index()) {
      bad_line(link->from + " does not lead, or does not hold these entries");
    }
    Message message;
    message.type = raft::MessageType::append_request;
    message.from = link->from;
    message.to = link->to;
    message.term = leader.term();
    message.from_store = leader.store();
    message.cluster = leader.cluster();
    message.session = leader.session();
    message.log_index = after;
    message.log_term = leader.log().term(message.log_index).value_or(0);
    message.commit = leader.commit_index();
    leader.log().copy(message.log_index + 1, message.log_index + to_number(word(words, 4)), ~std::uint64_t{0},
                      message.entries);
    cluster_.in_flight().push_back(std::move(message));
  }

  void each_link(const Words& words, const std::function<void(const std::string&, const std::string&)>& act) {
    if (const std::optional<Link> link = to_link(word(words, 0))) {
      act(link->from, link->to);
      return;
    }
    act(words[0], word(words, 1));
    act(words[1], words[0]);
  }
  void cut(const Words& words) {
    each_link(words, [&](const std::string& from, const std::string& to) { cluster_.cut(from, to); });
  }
  void heal(const Words& words) {
    if (words.empty()) {
      cluster_.heal();
    } else {
      each_link(words, [&](const std::string& from, const std::string& to) { cluster_.join(from, to); });
    }
  }
  void isolate(const Words& words) {
    for (const std::string& id : words) cluster_.isolate(id);
  }

  // --- what clients and surroundings do ---

  void propose(const Words& words) {
    core(word(words, 0));
    const auto refused = std::find(words.begin(), words.end(), "refused");
    const auto as = std::find(words.begin(), words.end(), "as");
    const raft::ProposeResult result = cluster_.propose(words[0], Words(words.begin() + 1, std::min(refused, as)));
    if (as != words.end()) waiters_[word(words, static_cast<std::size_t>(as - words.begin()) + 1)] = {words[0], result};
    const std::string wanted = refused == words.end() ? raft::to_string(raft::Refusal::none) : joined(Words(refused + 1, words.end()));
    if (wanted != raft::to_string(result.refusal)) {
      unmet("the proposal should be '" + wanted + "', was '" + raft::to_string(result.refusal) + "'");
    }
  }
  void read(const Words& words) {
    core(word(words, 0));
    const raft::ReadRefusal refusal = cluster_.read(words[0], to_number(word(words, 1)));
    const std::string wanted = words.size() > 3 ? joined(Words(words.begin() + 3, words.end())) : raft::to_string(raft::Refusal::none);
    if (wanted != raft::to_string(refusal.refusal)) {
      unmet("the read should be '" + wanted + "', was '" + raft::to_string(refusal.refusal) + "'");
    }
  }
  // "change A add D", "change A address D host:9 refused REASON"
  void change(const Words& words) {
    core(word(words, 0));
    using Kind = raft::ConfigurationChange::Kind;
    static const std::map<std::string, Kind> kKinds = {{"add", Kind::add},       {"promote", Kind::promote},
                                                       {"demote", Kind::demote}, {"remove", Kind::remove},
                                                       {"address", Kind::change_address}};
    const auto kind = kKinds.find(word(words, 1));
    if (kind == kKinds.end()) bad_line("add, promote, demote, remove or address");
    raft::ConfigurationChange change{kind->second, word(words, 2), "", {}};
    std::size_t at = 3;
    if (change.kind == Kind::add) change.address = change.id + ":1";
    if (change.kind == Kind::change_address) change.address = word(words, at++);
    expect_refusal("the change", words, at, cluster_.change(words[0], change).refusal);
  }
  // "transfer A", "transfer A to B refused REASON"
  void transfer(const Words& words) {
    core(word(words, 0));
    const bool is_named = words.size() > 1 && words[1] == "to";
    expect_refusal("the transfer", words, is_named ? 3 : 1,
                   cluster_.transfer(words[0], is_named ? word(words, 2) : "").refusal);
  }
  void expect_refusal(const std::string& what, const Words& words, std::size_t at, raft::Refusal refusal) {
    std::string wanted = raft::to_string(raft::Refusal::none);
    if (at < words.size()) {
      if (words[at] != "refused") bad_line("expected refused REASON");
      wanted = joined(Words(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end()));
    }
    if (wanted != raft::to_string(refusal)) unmet(what + " should be '" + wanted + "', was '" + raft::to_string(refusal) + "'");
  }
  bool is_manual(const Words& words) {
    if (word(words, 1) != "manual" && words[1] != "auto") bad_line("manual or auto");
    return words[1] == "manual";
  }
  void disk(const Words& words) {
    RaftCluster::Node& server = node(word(words, 0));
    server.is_disk_manual = is_manual(words);
    if (!server.is_disk_manual && server.core) cluster_.persist(words[0], true);
  }
  void persist(const Words& words) {
    core(word(words, 0));
    if (node(words[0]).writes.empty()) unmet(words[0] + " has nothing to write");
    cluster_.persist(words[0], words.size() > 1 && words[1] == "all");
  }
  void apply(const Words& words) {
    core(word(words, 0));
    if (words.size() > 1) node(words[0]).is_apply_manual = is_manual(words);
    if (words.size() == 1 || words[1] == "auto") cluster_.apply(words[0]);
  }

  // --- snapshots ---

  using Ship = std::vector<RaftCluster::Shipment>::iterator;

  Ship find_shipment(const Link& link) {
    auto& shipments = cluster_.shipments();
    return std::find_if(shipments.begin(), shipments.end(), [&](const RaftCluster::Shipment& shipment) {
      return shipment.offer.from == link.from && shipment.offer.to == link.to;
    });
  }
  RaftCluster::Shipment take_shipment(const Words& words, bool is_wanted) {
    const std::optional<Link> link = to_link(word(words, 0));
    if (!link) bad_line("expected A->B");
    const Ship place = find_shipment(*link);
    if (place == cluster_.shipments().end()) unmet("no image is under way from " + link->from + " to " + link->to);
    if (is_wanted && !place->is_wanted) unmet("the image was not offered yet");
    RaftCluster::Shipment shipment = std::move(*place);
    cluster_.shipments().erase(place);
    return shipment;
  }

  // "snapshot A B", "snapshot A refused"
  void snapshot(const Words& words) {
    const bool is_refused = words.size() > 1 && words.back() == "refused";
    for (const std::string& id : ids(is_refused ? Words(words.begin(), words.end() - 1) : words)) {
      core(id);
      if (cluster_.snapshot(id) == is_refused) unmet(id + (is_refused ? " took a snapshot" : " took no snapshot"));
    }
  }
  // "compact A 5 [anyway] [to 3]"
  void compact(const Words& words) {
    core(word(words, 0));
    const Index index = to_number(word(words, 1));
    std::size_t at = 2;
    const bool is_anyway = at < words.size() && words[at] == "anyway";
    if (is_anyway) ++at;
    const Index base = cluster_.compact(words[0], index, !is_anyway);
    const Index wanted = at < words.size() && words[at] == "to" ? to_number(word(words, at + 1)) : index;
    expect_equal(words[0] + "'s base", std::to_string(wanted), std::to_string(base));
  }
  void images(const Words& words) {
    cluster_.are_images_manual = word(words, 0) == "manual";
    if (!cluster_.are_images_manual && words[0] != "auto") bad_line("manual or auto");
  }
  // "offer A->B [wanted]", "offer A->B outdated", "offer A->B refused"
  void offer(const Words& words) {
    const std::string wanted = words.size() > 1 ? words[1] : "wanted";
    const raft::OfferAnswer::Verdict verdict = cluster_.offer(take_shipment(words, false));
    expect_equal("the offer", wanted, to_string(verdict));
  }
  // "receive A->B [unheard]"
  void receive(const Words& words) {
    const bool is_answer_lost = words.size() > 1 && words[1] == "unheard";
    cluster_.receive(take_shipment(words, true), is_answer_lost);
  }
  void break_off(const Words& words) { cluster_.break_off(take_shipment(words, false)); }
  // "reads A manual", "reads A auto", "reads A", "reads A fail"
  void reads(const Words& words) {
    core(word(words, 0));
    const bool fails = words.size() > 1 && words[1] == "fail";
    if (words.size() > 1 && !fails) node(words[0]).is_read_manual = is_manual(words);
    if (words.size() == 1 || fails || words[1] == "auto") cluster_.answer_reads(words[0], fails);
  }

  // --- expectations ---

  void expect(const Words& words) {
    const std::string& first = word(words, 0);
    if (first == "image") return expect_image(words);
    if (first == "leader") return expect_leader(word(words, 1));
    if (first == "read") return expect_read(words);
    if (first == "none") return expect_silence(words);
    if (first == "same") return word(words, 1) == "cluster" ? expect_same_cluster() : expect_same_logs();
    if (first == "outcome") return expect_outcome(words);
    if (first == "transfer") return expect_transfer(words);
    if (to_link(first)) return expect_message(words);
    expect_server(words);
  }

  void expect_equal(const std::string& what, const std::string& wanted, const std::string& seen) {
    if (wanted != seen) unmet(what + " should be " + wanted + ", is " + seen);
  }

  void expect_leader(const std::string& wanted) {
    const Core* leader = cluster_.leader();
    if (wanted == "some" && leader != nullptr) return;
    expect_equal("the leader", wanted, leader == nullptr ? "none" : leader->id());
  }

  void expect_read(const Words& words) {
    const auto& reads = node(word(words, 1)).reads;
    const auto at = reads.find(to_number(word(words, 2)));
    std::string seen = "pending";
    if (at != reads.end()) seen = at->second.confirmed ? "confirmed" : "failed";
    expect_equal("the read", word(words, 3), seen);
    if (words.size() > 5) expect_equal("the read's index", words[5], std::to_string(at->second.index));
  }

  void expect_transfer(const Words& words) {
    const RaftCluster::Node& server = node(word(words, 1));
    std::string seen = "none";
    if (!server.transfers.empty()) seen = raft::to_string(server.transfers.back().outcome);
    if (server.core && !server.core->transfer_target().empty()) seen = "to " + server.core->transfer_target();
    expect_equal(server.id + "'s transfer", joined(Words(words.begin() + 2, words.end())), seen);
  }

  // "expect image A->B 5", "expect image A->B none"
  void expect_image(const Words& words) {
    const std::optional<Link> link = to_link(word(words, 1));
    if (!link) bad_line("expected A->B");
    const Ship place = find_shipment(*link);
    const std::string seen =
        place == cluster_.shipments().end() ? "none" : std::to_string(place->offer.label.index);
    expect_equal("the image from " + link->from + " to " + link->to, word(words, 2), seen);
  }

  void expect_silence(const Words& words) {
    const std::optional<Link> link = to_link(word(words, 1));
    if (!link) bad_line("expected A->B");
    const std::string type = words.size() > 2 ? words[2] : "";
    if (find(*link, type) != cluster_.in_flight().end()) {
      unmet("a " + (type.empty() ? "message" : type) + " is under way from " + link->from + " to " + link->to);
    }
  }

  void expect_same_logs() {
    const Core* model = nullptr;
    for (const auto& [id, server] : cluster_.nodes()) {
      if (!server.core) continue;
      if (model == nullptr) model = server.core.get();
      expect_equal(id + "'s last index", std::to_string(model->last_index()), std::to_string(server.core->last_index()));
      expect_equal(id + "'s last term", std::to_string(model->log().last_term()),
                   std::to_string(server.core->log().last_term()));
      expect_equal(id + "'s commit", std::to_string(model->commit_index()), std::to_string(server.core->commit_index()));
    }
  }

  void expect_same_cluster() {
    std::string model;
    for (const auto& [id, server] : cluster_.nodes()) {
      if (!server.core) continue;
      if (!server.core->cluster().is_known()) unmet(id + " knows no cluster id");
      if (model.empty()) model = server.core->cluster().to_string();
      expect_equal(id + "'s cluster id", model, server.core->cluster().to_string());
    }
  }

  // What the proposer of a named proposal may tell its client, by the rule of raft/core.h.
  void expect_outcome(const Words& words) {
    const auto at = waiters_.find(word(words, 1));
    if (at == waiters_.end()) bad_line("no proposal is named '" + words[1] + "'");
    const auto& [id, proposal] = at->second;
    const Core& server = core(id);
    std::string seen = "unknown";
    if (server.applied_index() >= proposal.first) {
      seen = server.log().term(proposal.first) == proposal.term ? "committed" : "lost";
    }
    expect_equal("the outcome", word(words, 2), seen);
  }

  void expect_message(const Words& words) {
    const Message& message = *pick(words, 0);
    for (std::size_t at = 2; at < words.size(); ++at) {
      const std::string& key = words[at];
      const std::string what = "the message's " + key;
      if (key == "granted" || key == "refused") {
        expect_equal("the answer", key, message.granted ? "granted" : "refused");
      } else if (key == "accepted" || key == "rejected") {
        expect_equal("the answer", key, message.rejected ? "rejected" : "accepted");
      } else if (key == "entries") {
        expect_equal(what, word(words, ++at), std::to_string(message.entries.size()));
      } else if (key == "prev") {
        expect_equal(what, word(words, ++at), std::to_string(message.log_index));
      } else if (key == "commit") {
        expect_equal(what, word(words, ++at), std::to_string(message.commit));
      } else if (key == "match") {
        expect_equal(what, word(words, ++at), std::to_string(message.match));
      } else if (key == "term") {
        expect_equal(what, word(words, ++at), std::to_string(message.term));
      } else {
        bad_line("unknown word '" + key + "'");
      }
    }
  }

  static Words terms_of(const Core& core) {
    Words terms;
    for (Index index = core.log().first_index(); index <= core.last_index(); ++index) {
      terms.push_back(std::to_string(core.log().term(index).value()));
    }
    return terms;
  }

  void expect_server(const Words& words) {
    const std::string& id = words[0];
    const std::string& key = word(words, 1);
    if (key == "commands") {
      expect_equal(id + "'s applied commands", joined(Words(words.begin() + 2, words.end())), joined(node(id).commands));
      return;
    }
    const Core& server = core(id);
    const std::string what = id + "'s " + key;
    if (key == "leader" || key == "follower" || key == "candidate" || key == "pre-candidate") {
      expect_equal(id + "'s role", key, to_string(server.role()));
    } else if (key == "term") {
      expect_equal(what, word(words, 2), std::to_string(server.term()));
    } else if (key == "vote") {
      expect_equal(what, word(words, 2), server.vote().empty() ? "none" : server.vote());
    } else if (key == "follows") {
      expect_equal(id + "'s leader", word(words, 2), server.leader().empty() ? "none" : server.leader());
    } else if (key == "log") {
      expect_equal(what, joined(Words(words.begin() + 2, words.end())), joined(terms_of(server)));
    } else if (key == "last") {
      expect_equal(what, word(words, 2), std::to_string(server.last_index()));
    } else if (key == "commit") {
      expect_equal(what, word(words, 2), std::to_string(server.commit_index()));
    } else if (key == "durable") {
      expect_equal(what, word(words, 2), std::to_string(server.durable_index()));
    } else if (key == "applied") {
      expect_equal(what, word(words, 2), std::to_string(server.applied_index()));
    } else if (key == "base") {
      expect_equal(what, word(words, 2), std::to_string(server.log().base_index()));
    } else if (key == "held") {
      expect_equal(what, word(words, 2), std::to_string(server.log().held_from()));
    } else if (key == "snapshot") {
      expect_equal(what, word(words, 2), std::to_string(server.snapshot().index));
    } else if (key == "installing") {
      expect_equal(what, word(words, 2), server.is_installing() ? "yes" : "no");
    } else if (key == "caught-up") {
      expect_equal(what, word(words, 3), server.is_caught_up(word(words, 2)) ? "yes" : "no");
    } else if (key == "entry") {
      expect_equal(what, word(words, 3), std::string(server.log().at(to_number(word(words, 2))).bytes()));
    } else if (key == "voters" || key == "non-voters") {
      Words seen;
      for (const raft::Server& each : server.configuration().servers) {
        if (each.voter == (key == "voters")) seen.push_back(each.id);
      }
      expect_equal(what, joined(Words(words.begin() + 2, words.end())), joined(seen));
    } else if (key == "address") {
      const raft::Server* found = server.configuration().find(word(words, 2));
      expect_equal(what, word(words, 3), found == nullptr ? "unknown" : found->address);
    } else if (key == "match" || key == "next" || key == "sends" || key == "counts") {
      expect_progress(server, key, words);
    } else {
      bad_line("unknown word '" + key + "'");
    }
  }

  void expect_progress(const Core& server, const std::string& key, const Words& words) {
    const raft::Progress* progress = server.find_progress(word(words, 2));
    if (progress == nullptr) unmet(server.id() + " follows no log of " + words[2]);
    const std::string what = server.id() + "'s " + key + " of " + words[2];
    std::string seen;
    if (key == "match") seen = std::to_string(progress->match());
    if (key == "next") seen = std::to_string(progress->next());
    if (key == "sends") {
      seen = progress->state() == raft::Progress::State::probe       ? "probe"
             : progress->state() == raft::Progress::State::replicate ? "replicate"
                                                                     : "snapshot";
    }
    if (key == "counts") seen = progress->counts() ? "yes" : "no";
    expect_equal(what, word(words, 3), seen);
  }

  RaftCluster cluster_;
  std::map<std::string, Message> held_;
  std::map<std::string, std::pair<std::string, raft::ProposeResult>> waiters_;
};

}  // namespace

RaftScript load_raft_script(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  RaftScript script{std::filesystem::path(path).stem().string(), text.str(), {}};
  std::istringstream lines(script.text);
  for (std::string line; std::getline(lines, line);) {
    const Words words = split(line);
    if (words.size() == 4 && words[0] == "red" && words[1] == "with" && words[2] == "defect") {
      script.defects.push_back(words[3]);
    }
  }
  return script;
}

namespace {

using Trouble = RaftCluster::Trouble;

// Plays every line, whether it makes sense or not; then settles. A violation is a failure in any case.
std::optional<ScriptFailure> play_in_trouble(const RaftScript& script, const Trouble& trouble, std::string& unrest,
                                             std::uint64_t& deliveries, std::uint64_t& writes) {
  Player player(1);
  player.cluster().expect_trouble(trouble);
  std::istringstream lines(script.text);
  int number = 0;
  const auto violation = [&]() -> std::optional<ScriptFailure> {
    const auto& broken = player.cluster().violation();
    if (!broken) return std::nullopt;
    return ScriptFailure{ScriptFailure::Kind::violation, number, std::string(broken->invariant) + ": " + broken->detail};
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Words words = split(line);
    if (words.empty() || words[0] == "red" || words[0] == "expect") continue;
    try {
      player.play(words);
    } catch (const Failed&) {
      if (auto broken = violation()) return broken;
    }
  }
  deliveries = player.cluster().deliveries();
  writes = player.cluster().writes();
  unrest = player.settle();
  return violation();
}

constexpr std::pair<Trouble::Kind, const char*> kTroubles[] = {
    {Trouble::Kind::lost, "lost"},
    {Trouble::Kind::repeated, "repeated"},
    {Trouble::Kind::late, "late"},
    {Trouble::Kind::receiver_restarts, "its receiver restarted before it"},
    {Trouble::Kind::sender_restarts, "its sender restarted before it"},
    {Trouble::Kind::all_restart, "every server restarted before it"},
    {Trouble::Kind::restarts_before_write, "restarted before it"},
    {Trouble::Kind::restarts_after_write, "restarted behind it"},
};

}  // namespace

std::optional<ScriptFailure> run_raft_script_in_trouble(const RaftScript& script, std::uint64_t positions_max) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  std::string unrest;
  std::uint64_t deliveries = 0;
  std::uint64_t writes = 0;
  const Trouble none{Trouble::Kind::lost, ~std::uint64_t{0}};
  if (auto failure = play_in_trouble(script, none, unrest, deliveries, writes)) return failure;
  const bool comes_to_rest = unrest.empty() && script.text.find("\nwipe ") == std::string::npos;
  for (const auto& [kind, words] : kTroubles) {
    Trouble trouble{kind, 0};
    const std::uint64_t positions = trouble.is_of_write() ? writes : deliveries;
    for (; trouble.at < positions; trouble.at += positions / positions_max + 1) {
      std::uint64_t ignored = 0;
      auto failure = play_in_trouble(script, trouble, unrest, ignored, ignored);
      if (!failure && comes_to_rest && !unrest.empty()) failure = ScriptFailure{ScriptFailure::Kind::expectation, 0, unrest};
      if (!failure) continue;
      failure->text = "with " + std::string(trouble.is_of_write() ? "write " : "delivery ") + std::to_string(trouble.at) + " " + words + ": " +
                      failure->text;
      return failure;
    }
  }
  return std::nullopt;
}

std::optional<ScriptFailure> run_raft_script(const RaftScript& script, std::string_view defect) {
  io::sim::Switchboard board;
  if (!defect.empty()) {
    const std::optional<io::Defence> which = io::defect_by_name(defect);
    if (!which) return ScriptFailure{ScriptFailure::Kind::script, 0, "unknown defect '" + std::string(defect) + "'"};
    board.off.insert(*which);
  }
  const io::sim::SwitchboardGuard guard(&board);
  Player player(1);
  std::istringstream lines(script.text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Words words = split(line);
    if (words.empty() || words[0] == "red") continue;
    try {
      player.play(words);
    } catch (const Failed& failed) {
      return ScriptFailure{failed.kind, number, failed.text + "\n    " + line};
    }
  }
  return std::nullopt;
}

}  // namespace tests

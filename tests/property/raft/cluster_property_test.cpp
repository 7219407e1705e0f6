// A cluster driven by random steps keeps every invariant, and comes to rest once it is left alone.
//
// A step is three small numbers: what, where, which. rapidcheck shrinks a failing list of steps; the failure prints it.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <tuple>
#include <vector>

#include "io/defence.h"
#include "io/sim/switches.h"
#include "tests/support/raft_cluster.h"

namespace tests {
namespace {

using Step = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>;

struct Shape {
  std::uint8_t servers;
  std::uint8_t strangers;  // added later, if at all
  bool is_settled;
  std::uint32_t entries_max;
  std::uint32_t flight_messages_max;
  std::uint64_t tail_bytes_max;
};

class Walk {
 public:
  Walk(const Shape& shape, std::uint64_t seed) : cluster_(seed) {
    for (std::uint8_t i = 0; i < shape.servers; ++i) ids_.push_back(std::string(1, static_cast<char>('A' + i)));
    cluster_.settings.append_entries_max = shape.entries_max;
    cluster_.settings.flight.messages_max = shape.flight_messages_max;
    cluster_.settings.tail_bytes_max = shape.tail_bytes_max;
    cluster_.are_images_manual = true;
    cluster_.add_servers(ids_, shape.is_settled);
    for (std::uint8_t i = 0; i < shape.strangers; ++i) {
      ids_.push_back(std::string(1, static_cast<char>('P' + i)));
      cluster_.add_stranger(ids_.back());
    }
    for (const std::string& id : ids_) cluster_.start(id);
  }

  bool is_intact() const { return !cluster_.violation(); }
  std::string broken() const {
    return is_intact() ? "" : std::string(cluster_.violation()->invariant) + ": " + cluster_.violation()->detail;
  }
  void take(const Step& step) {
    const auto [what, where, which] = step;
    RaftCluster::Node& node = cluster_.node(ids_[where % ids_.size()]);
    const std::string& other = ids_[which % ids_.size()];
    switch (what % 26) {
      case 0:
        if (node.core) cluster_.tick(node.id);
        break;
      case 1:
        // Now and then everything works for a while, so that there is something to lose.
        if (where % 4 == 0) {
          cluster_.run(std::chrono::milliseconds(which));
        } else {
          cluster_.pass(std::chrono::milliseconds(which));
        }
        break;
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        deliver(static_cast<std::size_t>(where) * 7 + which, what % 26 == 6);
        break;
      case 7:
        if (!cluster_.in_flight().empty()) {
          cluster_.in_flight().erase(cluster_.in_flight().begin() +
                                     static_cast<std::ptrdiff_t>(which % cluster_.in_flight().size()));
        }
        break;
      case 8:
      case 9:
        if (node.core && node.core->role() == raft::Role::leader) {
          cluster_.propose(node.id, {"p" + std::to_string(++proposed_)});
        }
        break;
      case 10:
        node.is_disk_manual = which % 2 == 0;
        if (node.core && !node.is_disk_manual) cluster_.persist(node.id, true);
        break;
      case 11:
        if (node.core) cluster_.persist(node.id, which % 4 == 0);
        break;
      case 12:
        if (node.core && which % 3 == 0) cluster_.kill(node.id);
        break;
      case 13:
        if (!node.core) cluster_.start(node.id);
        break;
      case 14:
        if (other != node.id) cluster_.cut(node.id, other);
        break;
      case 15:
        if (which % 4 == 0) {
          cluster_.heal();
        } else if (node.core) {
          cluster_.read(node.id, ++reads_);
        }
        break;
      case 16:
        if (node.core && node.core->role() == raft::Role::leader) change(node.id, which);
        break;
      case 17:
        if (node.core && node.core->role() == raft::Role::leader) {
          cluster_.transfer(node.id, which % 3 == 0 ? "" : other);
        }
        break;
      case 18:
        if (node.core) cluster_.snapshot(node.id);
        break;
      case 19:
        // The leader's log is short, so that whoever was away needs an image.
        if (const raft::Core* leader = cluster_.leader()) {
          const raft::ServerId id = leader->id();
          cluster_.snapshot(id);
          cluster_.compact(id, leader->snapshot().index);
        }
        break;
      case 20:
        if (node.core) {
          const raft::Index newest = node.core->snapshot().index;
          cluster_.compact(node.id, newest - std::min<raft::Index>(which % 4, newest), which % 8 != 0);
        }
        break;
      case 21:
      case 22:
      case 23:
        carry(which, what % 26 == 23);
        break;
      case 24:
        node.is_apply_manual = which % 2 == 0;
        if (node.core) cluster_.apply(node.id);
        break;
      case 25:
        node.is_read_manual = which % 2 == 0;
        if (node.core) cluster_.answer_reads(node.id, which % 5 == 0);
        break;
    }
  }

  void wander(io::RandomStream& random, int steps) {
    for (int i = 0; i < steps && is_intact(); ++i) {
      take(Step{random.below(256), random.below(256), random.below(256)});
    }
  }

  // What has to be true once the cluster was left alone; empty: it is.
  std::string unrest() const {
    const raft::Core* leader = cluster_.leader();
    if (leader == nullptr) return "no leader";
    if (leader->commit_index() != leader->last_index()) return "the leader has uncommitted entries";
    const std::vector<std::string>& commands = cluster_.nodes().at(leader->id()).commands;
    for (const auto& [id, node] : cluster_.nodes()) {
      if (leader->configuration().find(id) == nullptr) continue;
      if (node.core->applied_index() != leader->commit_index()) return id + " has not applied everything";
      if (node.commands != commands) return id + " has applied other commands";
    }
    return "";
  }

  // For a person: what each server believes.
  std::string picture() const {
    std::string text;
    for (const auto& [id, node] : cluster_.nodes()) {
      if (!node.core) continue;
      const raft::Core& core = *node.core;
      text += "\n" + id + ": " + to_string(core.role()) + " of term " + std::to_string(core.term()) + ", last " +
              std::to_string(core.log().last_term()) + "/" + std::to_string(core.last_index()) + ", commit " +
              std::to_string(core.commit_index()) + ", leader '" + core.leader() + "', voters";
      for (const raft::Server& server : core.configuration().servers) {
        if (server.voter) text += " " + server.id + (server.store == cluster_.nodes().at(server.id).store ? "" : "?");
      }
    }
    return text;
  }

  // Heals everything and lets the cluster live for a while.
  void settle() {
    cluster_.heal();
    cluster_.are_images_manual = false;
    for (const std::string& id : ids_) {
      RaftCluster::Node& node = cluster_.node(id);
      if (!node.core) cluster_.start(id);
      node.is_disk_manual = node.is_apply_manual = node.is_read_manual = false;
      if (!node.core) continue;
      cluster_.persist(id, true);
      cluster_.apply(id);
      cluster_.answer_reads(id, false);
    }
    cluster_.run(std::chrono::seconds(12));
  }

 private:
  void change(const raft::ServerId& leader, std::uint8_t which) {
    using Kind = raft::ConfigurationChange::Kind;
    const raft::ServerId& id = ids_[which % ids_.size()];
    const raft::Configuration& now = cluster_.node(leader).core->configuration();
    raft::ConfigurationChange change{Kind::add, id, id + ":1", {}};
    const raft::Server* server = now.find(id);
    if (server != nullptr) {
      const bool goes = which / ids_.size() % 2 == 0;
      change.kind = !server->voter ? (goes && which % 7 == 0 ? Kind::remove : Kind::promote)
                                   : (goes ? Kind::demote : Kind::remove);
      if (which % 11 == 0) {
        change.kind = Kind::change_address;
        change.address = "moved:" + std::to_string(which);
      }
    }
    cluster_.change(leader, change);
  }

  // The next step of an image under way: it is offered, arrives (heard of or not), or breaks.
  void carry(std::uint8_t which, bool breaks) {
    auto& shipments = cluster_.shipments();
    if (shipments.empty()) return;
    const std::size_t at = which % shipments.size();
    RaftCluster::Shipment shipment = shipments[at];
    shipments.erase(shipments.begin() + static_cast<std::ptrdiff_t>(at));
    if (breaks) {
      cluster_.break_off(shipment);
    } else if (shipment.is_wanted) {
      cluster_.receive(std::move(shipment), which % 7 == 0);
    } else {
      cluster_.offer(std::move(shipment));
    }
  }

  void deliver(std::size_t which, bool keeps_copy) {
    auto& messages = cluster_.in_flight();
    if (messages.empty()) return;
    // Mostly near the front: a network that reorders everything gets nothing done.
    const std::size_t at = which % 5 == 0 ? which % messages.size() : which % std::min<std::size_t>(messages.size(), 4);
    raft::Message message = messages[at];
    if (!keeps_copy) messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(at));
    cluster_.deliver(std::move(message));
  }

  RaftCluster cluster_;
  std::vector<std::string> ids_;
  std::uint64_t proposed_ = 0;
  std::uint64_t reads_ = 0;
};

rc::Gen<Shape> any_shape() {
  return rc::gen::construct<Shape>(rc::gen::element<std::uint8_t>(1, 2, 3, 3, 3, 5),
                                   rc::gen::element<std::uint8_t>(0, 1, 2), rc::gen::arbitrary<bool>(),
                                   rc::gen::element<std::uint32_t>(1, 2, 4096), rc::gen::element<std::uint32_t>(1, 3, 256),
                                   rc::gen::element<std::uint64_t>(0, 200, 16 << 20));
}

std::vector<Step> any_steps(int most) {
  return *rc::gen::resize(most, rc::gen::container<std::vector<Step>>(rc::gen::resize(
      1000, rc::gen::tuple(rc::gen::arbitrary<std::uint8_t>(), rc::gen::arbitrary<std::uint8_t>(),
                           rc::gen::arbitrary<std::uint8_t>()))));
}

TEST(RaftClusterProperty, RandomStepsKeepEveryInvariantAndTheClusterRecovers) {
  EXPECT_TRUE(rc::check([] {
    const Shape shape = *any_shape();
    Walk walk(shape, *rc::gen::arbitrary<std::uint64_t>());
    for (const Step& step : any_steps(1500)) {
      walk.take(step);
      if (!walk.is_intact()) RC_FAIL(walk.broken());
    }
    walk.settle();
    if (!walk.is_intact()) RC_FAIL(walk.broken());
    if (!walk.unrest().empty()) RC_FAIL(walk.unrest() + walk.picture());
  }));
}

Shape drawn_shape(io::RandomStream& random) {
  const std::uint32_t limits[] = {1, 2, 4096};
  const bool is_small = random.chance_ppm(700'000);
  const bool is_settled = random.chance_ppm(500'000);
  const std::uint32_t entries_max = limits[random.below(3)];
  const auto strangers = static_cast<std::uint8_t>(random.below(3));
  const std::uint32_t messages_max = limits[random.below(3)];
  const std::uint64_t tails[] = {0, 200, 16u << 20};
  return Shape{static_cast<std::uint8_t>(is_small ? 3 : 5), strangers, is_settled, entries_max, messages_max,
               tails[random.below(3)]};
}

TEST(RaftClusterProperty, ThousandLongWalksKeepEveryInvariantAndTheClusterRecovers) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  io::RandomStream random(2026);
  for (int i = 0; i < 1000; ++i) {
    Walk walk(drawn_shape(random), random.next());
    walk.wander(random, 1500);
    walk.settle();
    ASSERT_TRUE(walk.is_intact()) << "walk " << i << ": " << walk.broken();
    ASSERT_EQ(walk.unrest(), "") << "walk " << i << walk.picture();
  }
  // They come by the rare places.
  for (const char* place :
       {"raft: a server needs an image", "raft: an image takes the log's place", "raft: an image did not arrive",
        "raft: image not needed any more when it had arrived", "raft: image outdated when it was offered",
        "raft: the end of a transfer that nobody waits for", "raft: compaction stops at an image under way",
        "raft: the log is compacted past what a server has", "raft: entries for a server are read from the disk",
        "raft: what was read for a server is not what it needs now", "raft: configuration undone by a cut",
        "raft: leader has removed itself", "raft: append begins below the log's base"}) {
    EXPECT_GE(board.probes[place], 1u) << place;
  }
}

// The walk is worth something only if it finds what it is for.
TEST(RaftClusterProperty, RandomStepsFindEachDefect) {
  for (const io::Defence defect :
       {io::Defence::vote_not_durable, io::Defence::ack_before_sync, io::Defence::apply_before_durable,
        io::Defence::commit_older_term, io::Defence::stale_append_truncates, io::Defence::same_term_stepdown_clears_vote,
        io::Defence::late_prevote_counts, io::Defence::config_change_before_term_commit,
        io::Defence::config_not_undone_on_truncate}) {
    io::sim::Switchboard board;
    board.off.insert(defect);
    const io::sim::SwitchboardGuard guard(&board);
    io::RandomStream random(io::mix(static_cast<std::uint64_t>(defect), 99));
    int walks = 0;
    for (bool is_found = false; !is_found; ++walks) {
      ASSERT_LT(walks, 20'000) << io::defect_name(defect) << " is not found";
      Walk walk(drawn_shape(random), random.next());
      walk.wander(random, 1500);
      is_found = !walk.is_intact();
    }
  }
}

}  // namespace
}  // namespace tests

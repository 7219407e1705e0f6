#include "chaos/administrator.h"

#include "raft/server.h"

namespace chaos {

namespace {

using namespace std::chrono_literals;
using raft::ConfigurationChange;

constexpr io::Duration kTick = 150ms;

}  // namespace

void Administrator::transfer(int node, int to) {
  if (world_.view(node) == nullptr) {
    return;
  }
  const raft::ServerId target = to < 0 ? raft::ServerId() : world_.node_id(to);
  world_.machine(node).process()->spawn("admin/transfer", [this, node, target] {
    const engine::NodeView* view = world_.view(node);
    if (view != nullptr && view->raft.is_running()) {
      (void)view->raft.start_transfer(target);
    }
  });
}

void Administrator::take_out(int node, io::Duration out) {
  if (is_busy() || is_restoring_) {
    return;
  }
  moved_ = node;
  comes_back_ = world_.now() + out;
  keep_going();
}

bool Administrator::move(int node) {
  if (is_busy() || is_restoring_ || world_.node_count() < 3 || !do_all_agree()) {
    return false;
  }
  moved_ = node;
  is_moving_ = true;
  comes_back_ = world_.now();
  // Once the world has changed the address.
  world_.io().after(kTick, [this] { keep_going(); });
  return true;
}

void Administrator::restore() {
  is_restoring_ = true;
  keep_going();
}

void Administrator::keep_going() {
  if (!is_ticking_) {
    is_ticking_ = true;
    world_.io().after(0s, [this] { tick(); });
  }
}

void Administrator::tick() {
  is_ticking_ = false;
  const int leader = world_.leader();
  bool is_done = false;
  if (leader >= 0 && world_.view(leader)->raft.is_running()) {
    const raft::Core& core = world_.view(leader)->raft.core();
    const raft::Configuration& configuration = core.configuration();
    const bool is_committed = core.configurations().current_index() <= core.commit_index() && core.has_committed_in_term();
    std::optional<ConfigurationChange> step;
    for (int node = 0; node < world_.node_count() && !step; ++node) {
      if (is_restoring_ || node == moved_) {
        step = next_step(node, configuration);
      }
    }
    if (step) {
      ask(leader, *step);
    } else if (reserved_ < 0 && is_committed && leads_newest_term(leader) && is_back(configuration) && (is_restoring_ || world_.now() >= comes_back_) &&
               (is_restoring_ || !is_moving_ || do_all_agree())) {
      is_done = true;
    }
  }
  // A server that is out answers less than one that is in, and late.
  world_.note_trouble(world_.now() + 5s);
  if (!is_done) {
    is_ticking_ = true;
    world_.io().after(kTick, [this] { tick(); });
    return;
  }
  moved_ = -1;
  is_moving_ = false;
}

// The node on its way is up and votes through the volume that it has. While one that has lost its volume is still down, nothing shows that
// it does not count: another one taken out then would leave too few (seed 2560).
bool Administrator::is_back(const raft::Configuration& configuration) const {
  if (moved_ < 0 || is_restoring_) {
    return true;
  }
  const engine::NodeView* view = world_.view(moved_);
  const raft::Server* server = configuration.find(world_.node_id(moved_));
  return view != nullptr && server != nullptr && server->voter &&
         (!server->store.is_known() || view->raft.core().store() == server->store);
}

bool Administrator::do_all_agree() const {
  for (int node = 0; node < world_.node_count(); ++node) {
    const engine::NodeView* view = world_.view(node);
    if (view == nullptr || !world_.is_up(0)) {
      return false;
    }
    const raft::Core& core = view->raft.core();
    if (core.configurations().current_index() != world_.view(0)->raft.core().configurations().current_index()) return false;
    const raft::Server* server = core.configuration().find(world_.node_id(node));
    if (server == nullptr || server->address != world_.cluster_address(node)) return false;
  }
  return true;
}

// A leader that was frozen shows a configuration that has long been replaced.
bool Administrator::leads_newest_term(int leader) const {
  for (int node = 0; node < world_.node_count(); ++node) {
    const engine::NodeView* view = world_.view(node);
    if (view != nullptr && view->raft.core().term() > world_.view(leader)->raft.core().term()) {
      return false;
    }
  }
  return true;
}

std::optional<ConfigurationChange> Administrator::next_step(int node, const raft::Configuration& configuration) const {
  if (!world_.has_begun(node) || node == reserved_) {
    return std::nullopt;
  }
  // A server of a release that stops at what the cluster has applied is not taken in: a leader refuses such a joiner too.
  if (configuration.find(world_.node_id(node)) == nullptr && world_.is_outrun(world_.running_release(node))) {
    return std::nullopt;
  }
  ConfigurationChange change;
  change.id = world_.node_id(node);
  change.address = world_.cluster_address(node);
  const raft::Server* server = configuration.find(change.id);
  const bool is_wanted = is_restoring_ || world_.now() >= comes_back_;
  const bool is_on_another_volume = server != nullptr && server->store.is_known() && world_.view(node) != nullptr &&
                                    world_.view(node)->raft.core().store() != server->store;
  if (is_wanted && is_on_another_volume) {
    // It counts for nothing, and is never promoted: out first, and in again.
    change.kind = server->voter ? ConfigurationChange::Kind::demote : ConfigurationChange::Kind::remove;
  } else if (is_wanted && server == nullptr) {
    change.kind = ConfigurationChange::Kind::add;
  } else if (is_wanted && server->address != change.address) {
    change.kind = ConfigurationChange::Kind::change_address;
  } else if (is_wanted && !server->voter && world_.view(node) != nullptr) {
    // One that is down may have lost its volume a moment ago (seed 8).
    change.kind = ConfigurationChange::Kind::promote;
  } else if (!is_wanted && server != nullptr) {
    change.kind = server->voter ? ConfigurationChange::Kind::demote : ConfigurationChange::Kind::remove;
  } else {
    return std::nullopt;
  }
  return change;
}

void Administrator::ask(int leader, const ConfigurationChange& change) {
  world_.machine(leader).process()->spawn("admin/change", [this, leader, change] {
    const engine::NodeView* view = world_.view(leader);
    if (view != nullptr && view->raft.is_running()) {
      (void)view->raft.start_change(change);
    }
  });
}

}  // namespace chaos

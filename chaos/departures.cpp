#include "chaos/departures.h"

#include <string>

#include "chaos/operator_calls.h"
#include "io/probe.h"
#include "raft/server.h"

namespace chaos {

namespace {

using namespace std::chrono_literals;

constexpr io::Duration kTick = 400ms;
// How long one that was removed is left running on its old volume, so that it asks to be let in.
constexpr io::Duration kTryOld = 6s;

}  // namespace

bool Departures::is_voter(int node) const {
  const int leader = world_.leader();
  return leader >= 0 && world_.view(leader)->raft.core().configuration().is_voter(world_.node_id(node));
}

bool Departures::begin(int node, io::Duration patience, io::Duration down, bool tries_old) {
  if (node_ >= 0 || is_restoring_ || administrator_.is_busy() || !stores_.may_renew(node)) {
    return false;
  }
  administrator_.reserve(node);
  node_ = node;
  step_ = Step::asking;
  until_ = world_.now() + patience;
  down_ = down;
  tries_old_ = tries_old;
  keep_going();
  return true;
}

void Departures::restore() {
  is_restoring_ = true;
  keep_going();
}

void Departures::keep_going() {
  if (!is_ticking_) {
    is_ticking_ = true;
    world_.io().after(0s, [this] { tick(); });
  }
}

void Departures::tick() {
  is_ticking_ = false;
  // An answer that was lost may still come true: in the end whoever leaves by it is taken back as well.
  for (int node = 0; node < world_.node_count() && is_restoring_ && node_ < 0; ++node) {
    if (world_.is_draining(node) || world_.is_removed(node)) {
      node_ = node;
      step_ = world_.is_removed(node) ? Step::out : Step::staying;
      administrator_.reserve(node);
    }
  }
  if (node_ >= 0) {
    step();
  }
  if (node_ >= 0 || is_restoring_) {
    is_ticking_ = true;
    world_.io().after(kTick, [this] { tick(); });
  }
}

// One look at where the log is.
void Departures::step() {
  const bool is_late = is_restoring_ || world_.now() >= until_;
  world_.note_trouble(world_.now() + 5s);
  switch (step_) {
    case Step::none: return;
    case Step::asking:
      if (world_.is_draining(node_) || world_.is_removed(node_)) {
        step_ = Step::leaving;
      } else if (is_late && !is_asking_) {
        end();
      } else {
        ask("POST");
      }
      return;
    case Step::leaving:
    case Step::staying:
      if (world_.is_removed(node_)) {
        step_ = Step::out;
      } else if (!world_.is_draining(node_) && !is_asking_) {
        end();
      } else if (is_late) {
        step_ = Step::staying;
        ask("DELETE");
      }
      return;
    case Step::out:
      if (tries_old_ && !is_restoring_) {
        SOMETIMES("chaos: a node that was removed is started with its old volume");
        world_.kill(node_, down_);
        until_ = world_.now() + down_ + kTryOld;
        step_ = Step::trying_old;
      } else {
        come_back();
      }
      return;
    case Step::trying_old:
      if (is_late) come_back();
      return;
    case Step::returning:
      if (!world_.is_removed(node_) && is_voter(node_)) end();
      return;
  }
}

// An error status is no reason to stop asking, but for the one refusal that time does not change.
void Departures::ask(const char* method) {
  if (is_asking_) {
    return;
  }
  is_asking_ = true;
  next_asked_ = (next_asked_ + 1) % world_.node_count();
  ask_as_operator(world_, next_asked_, method, "/v1/cluster/members/" + world_.node_id(node_) + "/decommission",
                  [this](const OperatorAnswer& answer) {
                    is_asking_ = false;
                    const bool is_final = answer.status == 409 && answer.body.find("below_min_voters") != std::string::npos;
                    if (is_final && step_ == Step::asking) until_ = world_.now();
                  });
}

void Departures::come_back() {
  if (stores_.renew(node_, down_)) {
    step_ = Step::returning;
  }
}

void Departures::end() {
  administrator_.release();
  // A removal that was cancelled half way leaves a member that is out of raft.
  administrator_.take_out(node_, 0s);
  node_ = -1;
  step_ = Step::none;
}

}  // namespace chaos

// fsm.db before it is opened: what raft's start decides by (raft/restart.h), and what it then has done to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/metastore/fsm.h"
#include "io/env.h"
#include "raft/state_machine.h"

namespace engine::metastore {

class FsmHome final : public raft::StateMachineHome {
 public:
  // `settings`: their store and cluster are filled in by open(). Fiber only.
  FsmHome(io::Env& env, FsmSettings settings) : env_(env), settings_(std::move(settings)) {}

  raft::StateMachineBuild build() const override;
  io::Result<raft::StateMachineFacts> look() override;
  io::Result<std::uint32_t> newest_type_of(raft::ImageSource& image) override;
  // Log lines: narad/log-lines.md, "Metastore".
  void decided(const raft::RestartFacts& facts, const raft::RestartDecision& decision) override;
  io::Status set_aside(const std::string& reason) override;
  io::Result<raft::StateMachine*> open(const Opening& opening) override;

  // Once it is open; lives as long as this.
  Fsm& fsm() { return *fsm_; }

 private:
  io::Env& env_;
  FsmSettings settings_;
  std::unique_ptr<Fsm> fsm_;
};

}  // namespace engine::metastore

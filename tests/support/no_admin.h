// A cluster without members or moves: for tests of what stands beside the administration.
#pragma once

#include "engine/cluster/admin.h"

namespace tests {

class NoAdmin final : public engine::cluster::Admin {
 public:
  engine::Reply members(bool, io::Instant) override { return {200, "{\"members\":[]}\n"}; }
  engine::Reply moves(bool, io::Instant) override { return {200, "{\"moves\":[]}\n"}; }
  engine::Reply decommission_dry_run(std::string_view, io::Instant) override { return nobody(); }
  engine::Reply decommission_here(std::string_view, bool, io::Instant) override { return nobody(); }
  engine::Reply abort_move_here(std::string_view, int32_t, std::string_view, io::Instant) override { return nobody(); }
  engine::Reply complete_move_here(std::string_view, int32_t, std::string_view, std::string_view, io::Instant) override { return nobody(); }
  engine::Reply assignment_here(std::string_view, int32_t, io::Instant) override { return nobody(); }
  engine::Reply node_status() override { return nobody(); }

 private:
  static engine::Reply nobody() { return engine::error_reply(404, "nobody is here"); }
};

}  // namespace tests

#include "tests/conformance/arms/sim_arm.h"

#include <gtest/gtest.h>

#include "io/sim/world.h"

namespace tests {

namespace {

using namespace std::chrono_literals;

class SimArm final : public Arm {
 public:
  explicit SimArm(const ArmSettings& settings) : world_(1), machine_(world_.add_machine(machine_settings(settings))) {
    io::sim::MachineSettings silent;
    silent.name = "silent";
    world_.add_machine(silent).power_loss();
  }

  void run(std::function<void(io::Env&)> body) override {
    io::sim::Incarnation& process = machine_.start([body = std::move(body)](io::Env& env) {
      body(env);
      return 0;
    });
    world_.run_while([&process] { return process.live(); }, world_.now() + 24h);
    EXPECT_EQ(process.ending(), io::sim::Ending::exited) << "the body ran to its end";
    EXPECT_TRUE(world_.violations().empty());
  }

  void stall_next(std::string_view operation, std::string_view path) override {
    io::sim::ScriptedFault fault;
    fault.action = io::sim::FaultAction::stall;
    fault.op = operation == "sync" ? io::sim::DiskOp::sync : io::sim::DiskOp::write;
    fault.prefix = path;
    machine_.volume().script(fault);
  }
  void release() override { machine_.volume().release(); }

  std::string silent_address() override { return "silent:1"; }

 private:
  static io::sim::MachineSettings machine_settings(const ArmSettings& settings) {
    io::sim::MachineSettings machine;
    machine.name = "node";
    machine.disk_capacity = settings.disk_bytes.value_or(machine.disk_capacity);
    return machine;
  }

  io::sim::World world_;
  io::sim::Machine& machine_;
};

}  // namespace

std::unique_ptr<Arm> make_sim_arm(const ArmSettings& settings) { return std::make_unique<SimArm>(settings); }

}  // namespace tests

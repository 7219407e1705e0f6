// A topic manager over a metastore in memory, with a gate and a placer that a test bends at will.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/metastore/commands.h"
#include "engine/metastore/records.h"
#include "engine/topics/json.h"
#include "engine/topics/manager.h"
#include "io/sim/machine.h"
#include "io/sim/world.h"
#include "tests/support/memory_metastore.h"
#include "tests/support/topic_parts.h"

namespace tests {

inline std::string error_of(const engine::Reply& reply) {
  const auto parsed = engine::json::parse(reply.body);
  return parsed.ok() && parsed->find("error") != nullptr ? parsed->find("error")->text : "no error: " + reply.body;
}

inline engine::metastore::User make_user(std::string name, std::vector<engine::metastore::Grant> grants = {}) {
  engine::metastore::User user;
  user.username = std::move(name);
  user.password_hash = "hash";
  user.grants = std::move(grants);
  return user;
}

inline engine::metastore::Member make_member(std::string id, engine::metastore::MemberStatus status = engine::metastore::MemberStatus::alive) {
  engine::metastore::Member member;
  member.id = std::move(id);
  member.addr = member.id + ":7942";
  member.status = status;
  return member;
}

struct ManagerWorld : testing::Test {
  io::sim::World world{3};
  MemoryMetastore store;
  FixedGate gate;
  NotingPlacer placer;
  std::unique_ptr<engine::topics::Manager> manager;
  io::Env* env = nullptr;
  engine::topics::Actor actor;  // who asks

  // Runs `body` in the first fiber of a simulated process.
  void run(const std::function<void()>& body) {
    io::sim::MachineSettings settings;
    settings.name = "n" + std::to_string(++runs_);
    bool ended = false;
    io::sim::Machine& machine = world.add_machine(settings);
    machine.start([&](io::Env& given) {
      env = &given;
      manager = std::make_unique<engine::topics::Manager>(
          engine::topics::Manager::Parts{given, store, store, gate, placer, engine::topics::Limits{}});
      body();
      manager.reset();
      ended = true;
      return 0;
    });
    world.run_for(std::chrono::hours(1));
    EXPECT_TRUE(ended);
  }

  engine::Reply create_as(const std::string& body) { return manager->create(body, actor, io::kNever); }
  engine::Reply create(const std::string& name) { return create_as("{\"name\":\"" + name + "\"}"); }
  engine::Reply alter(const std::string& name, const std::string& body) { return manager->alter(name, body, actor, io::kNever); }
  engine::Reply remove(const std::string& name) { return manager->remove(name, {}, actor, io::kNever); }
  engine::Reply attach(const std::string& parent, const std::string& child, int64_t delay_ms = 0) {
    return manager->attach(parent, {child, delay_ms}, actor, io::kNever);
  }
  engine::Reply detach(const std::string& parent, const std::string& child) { return manager->detach(parent, child, actor, io::kNever); }
  engine::Reply get(const std::string& name) { return manager->get(name, {}, io::kNever); }

  engine::metastore::Topic stored(const std::string& name) {
    const auto bytes = store.rows.read("topics/" + name);
    EXPECT_TRUE(bytes.has_value()) << name;
    return bytes ? *engine::metastore::decode_topic(*bytes) : engine::metastore::Topic{};
  }
  // A remote child's record below `parent`, which keeps its messages for ever.
  void add_stub(const std::string& parent, const std::string& name) {
    engine::metastore::CreateRemote remote;
    remote.salt = "salt";
    remote.record.name = "far";
    remote.record.url = "https://far";
    remote.record.username = "user";
    remote.record.credential = "sealed";
    remote.record.fingerprint = "key";
    apply(remote);
    engine::metastore::AttachRemoteChild stub;
    stub.parent = parent;
    stub.parent_id = stored(parent).id;
    stub.stub = name;
    stub.stub_id = "0000000000000001";
    stub.epoch = "0000000000000001";
    stub.remote.name = "far";
    stub.remote.topic = "there";
    apply(stub);
    EXPECT_TRUE(stored(name).is_remote_stub());
  }
  template <typename Command>
  void apply(const Command& command) {
    const auto answer = engine::metastore::decode_answer(store.apply(engine::metastore::encode_command(command)));
    EXPECT_TRUE(answer && answer->ok()) << (answer ? answer->text() : "no answer");
  }
  // The entry types that have been proposed since the last call.
  std::vector<uint32_t> proposed() { return std::exchange(store.proposed_types, {}); }

 private:
  int runs_ = 0;
};

}  // namespace tests

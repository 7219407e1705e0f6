#include "chaos/operator_calls.h"

#include <utility>

#include "engine/api/http_client.h"
#include "engine/topics/json.h"
#include "io/check.h"

namespace chaos {

void ask_as_operator(sim::World& world, int node, std::string method, std::string target,
                     std::function<void(const OperatorAnswer&)> done) {
  io::sim::Incarnation* clients = world.client_machine().process();
  NARAD_CHECK(clients != nullptr, "the clients' process runs to the end");
  clients->spawn("operator", [&world, clients, node, method = std::move(method), target = std::move(target), done = std::move(done)] {
    io::Env& env = clients->env();
    engine::api::HttpClient http(env.net, world.http_address(node));
    engine::api::HttpRequest request;
    request.method = method;
    request.target = target;
    request.headers.push_back({"X-Narad-Client", "operator"});
    const auto answer = http.request(request, env.after(kOperatorCallBound));
    done(answer.ok() ? OperatorAnswer{answer->status, answer->body} : OperatorAnswer{});
  });
}

namespace {

std::string text_of(const engine::json::Value& object, const char* name) {
  const engine::json::Value* value = object.find(name);
  return value == nullptr ? "" : value->text;
}

void abort_those_in(sim::World& world, int node, const std::string& body) {
  const auto value = engine::json::parse(body);
  const engine::json::Value* moves = value.ok() ? value->find("moves") : nullptr;
  if (moves == nullptr) {
    return;
  }
  for (const engine::json::Value& move : moves->array) {
    const engine::json::Value* partition = move.find("partition");
    const std::string blocked = text_of(move, "blocked");
    if (partition == nullptr || (blocked != "target_dead" && blocked != "target_not_member")) {
      continue;
    }
    const std::string target = "/v1/cluster/moves/" + text_of(move, "topic") + "/" + std::to_string(partition->integer) + "/abort";
    ask_as_operator(world, node, "POST", target, [](const OperatorAnswer&) {});
  }
}

}  // namespace

void abort_stuck_moves(sim::World& world, int node) {
  ask_as_operator(world, node, "GET", "/v1/cluster/moves", [&world, node](const OperatorAnswer& answer) {
    if (answer.status == 200) {
      abort_those_in(world, node, answer.body);
    }
  });
}

}  // namespace chaos

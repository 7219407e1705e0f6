#include "sim/client.h"

#include "engine/topics/json.h"
#include "engine/topics/topic_json.h"
#include "io/probe.h"
#include "sim/answers.h"
#include "sim/topic_model.h"

namespace sim {
namespace {

// The schemas that the answer of a read, or of the schemas themselves, shows: how many, and the latest.
std::optional<Schemas> shown_schemas(const engine::json::Value& body, const char* version) {
  const engine::json::Value* versions = body.find(version);
  if (versions == nullptr || !versions->is(engine::json::Value::Kind::integer)) {
    return std::nullopt;
  }
  Schemas schemas{versions->integer, 0};
  const engine::json::Value* latest = body.find("schema");
  if (const engine::json::Value* all = body.find("versions"); all != nullptr && !all->array.empty()) {
    latest = all->array.back().find("schema");
  }
  const engine::json::Value* bound = latest == nullptr ? nullptr : latest->find("maxLength");
  schemas.bound = bound == nullptr ? 0 : bound->integer;
  return schemas;
}

// The children in a list of them, each as a topic of name and delay.
bool take_children(Call& call, const engine::json::Value& body) {
  const engine::json::Value* id = body.find("parent_id");
  const engine::json::Value* children = body.find("children");
  if (id == nullptr || children == nullptr || !children->is(engine::json::Value::Kind::array)) {
    return false;
  }
  call.parent_id = id->text;
  for (const engine::json::Value& child : children->array) {
    const engine::json::Value* name = child.find("name");
    const engine::json::Value* delay = child.find("delay_ms");
    if (name == nullptr || delay == nullptr) {
      return false;
    }
    Topic topic;
    topic.name = name->text;
    topic.fanout_delay_ms = delay->integer;
    call.topics.push_back(std::move(topic));
  }
  return true;
}

bool take_list(Call& call, const std::string& body) {
  const auto page = engine::topics::parse_topic_list_json(body);
  if (!page) {
    return false;
  }
  for (const auto& topic : page->topics) {
    call.topics.push_back(model_topic(topic));
  }
  call.next_page = page->next_page_token;
  return true;
}

// What the answer shows, into the call; false when it is not what the API promises.
bool take_body(Call& call, const std::string& body) {
  if (call.kind == CallKind::remove || call.kind == CallKind::detach) {
    return body.empty();
  }
  if (call.kind == CallKind::list) {
    return take_list(call, body);
  }
  if (call.kind == CallKind::children || call.kind == CallKind::schemas || call.kind == CallKind::read) {
    const auto value = engine::json::parse(body);
    if (!value.ok()) {
      return false;
    }
    if (call.kind == CallKind::children) {
      return take_children(call, *value);
    }
    call.schemas = shown_schemas(*value, call.kind == CallKind::read ? "schema_version" : "version");
    if (call.kind == CallKind::schemas || !call.schemas) {
      return call.schemas.has_value();
    }
  }
  const auto topic = engine::topics::parse_topic_json(body);
  if (topic) {
    call.topic = model_topic(*topic);
  }
  return topic.has_value();
}

int expected_status(CallKind kind) {
  switch (kind) {
    case CallKind::create: return 201;
    case CallKind::remove:
    case CallKind::detach: return 204;
    default: return 200;
  }
}

// Each answer by kind of call and status: "call: attach: 409". What was not answered is not among them.
void note_call(const Call& call) { io::probe(call_probe(call.kind, call.status).c_str()); }

}  // namespace

engine::api::HttpClient& Client::connection(int node) {
  auto& connection = connections_[node];
  if (!connection) {
    connection = std::make_unique<engine::api::HttpClient>(env_.net, world_.http_address(node));
  }
  return *connection;
}

const Call& Client::ask(Call wish) {
  wish.client = number_;
  Call& call = world_.begin_call(std::move(wish));
  engine::api::HttpRequest request;
  request.method = method_of(call.kind);
  request.target = target_of(call);
  request.body = body_of(call);
  if (!request.body.empty()) {
    request.headers.push_back({"Content-Type", "application/json"});
  }
  engine::api::HttpClient& http = connection(call.node);
  auto answer = http.request(request, env_.after(world_.options().load.call_bound));
  if (!answer.ok()) {
    call.error = answer.error().to_text();
    call.outcome = http.may_have_arrived() ? Outcome::unknown : Outcome::nothing;
  } else {
    call.status = answer->status;
    if (call.status >= 500) {
      call.outcome = Outcome::unknown;
      call.error = answer->body;
    } else if (call.status >= 400) {
      call.outcome = Outcome::refused;
      call.error = answer->body;
    } else {
      call.outcome = Outcome::ok;
      if (call.status != expected_status(call.kind) || !take_body(call, answer->body)) {
        world_.fail("an answer is what the API promises", to_text(call) + " came with the body " + answer->body);
      }
    }
  }
  if (call.status != 0) {
    note_call(call);
  }
  world_.end_call(call);
  return call;
}

int Client::get_status(int node, const std::string& path, std::string* body) {
  engine::api::HttpRequest request;
  request.target = path;
  auto answer = connection(node).request(request, env_.after(std::chrono::seconds(5)));
  if (!answer.ok()) {
    return 0;
  }
  if (body != nullptr) {
    *body = answer->body;
  }
  return answer->status;
}

namespace {

void run_race(World& world, io::Env& env, uint32_t number, const Call& wish, int first_node) {
  io::with_scope([&](io::Scope& scope) {
    for (int i = 0; i < 3; ++i) {
      scope.spawn("race", [&world, &env, number, wish, node = (first_node + i) % world.node_count()] {
        Client racer(world, env, number);
        Call call = wish;
        call.node = node;
        racer.ask(std::move(call));
      });
    }
  });
}

void make_load(World& world, io::Env& env, uint32_t number) {
  LoadDraws draws(world.options().load, world.node_count(), world.io().stream("load", number));
  Client client(world, env, number);
  io::Instant next = env.now();
  while (true) {
    next = std::max(next + draws.pause(), env.now());
    if (world.load_over_event().wait(next) || world.load_over()) {
      return;
    }
    Wish wish = draws.wish();
    if (wish.is_race) {
      run_race(world, env, number, wish.call, wish.call.node);
    } else {
      client.ask(std::move(wish.call));
    }
  }
}

}  // namespace

int run_clients(World& world, io::Env& env) {
  io::with_scope([&](io::Scope& scope) {
    for (uint32_t number = 0; number < world.options().load.clients && world.options().load.ops_per_minute > 0; ++number) {
      scope.spawn("client", [&world, &env, number] { make_load(world, env, number); });
    }
  });
  io::Event never;
  never.wait();
  return 0;
}

}  // namespace sim

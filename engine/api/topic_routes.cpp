// Topics, schemas and fan-out links (narad/http-api.md sections 3 and 4).
#include "engine/api/routes.h"
#include "engine/topics/rules.h"

namespace engine::api {

namespace {

// Nobody is asked for a name before users exist: no request has an actor.
const topics::Actor kNobody;

io::Instant write_deadline(io::Env& env) { return env.after(cluster::kWriteTimeout); }

}  // namespace

void Api::add_topics() {
  router_.add("POST", "/v1/topics", [this](const Call& call) { return create_topic(call); });
  router_.add("GET", "/v1/topics", [this](const Call& call) { return list_topics(call); });
  router_.add("GET", "/v1/topics/{topic}", [this](const Call& call) {
    const std::optional<std::string> partition = call.target.value("partition");
    return read([&](io::Instant deadline) { return parts_.manager.get(call.parameters[0], partition, deadline); });
  });
  router_.add("PATCH", "/v1/topics/{topic}", [this](const Call& call) { return alter_topic(call); });
  router_.add("DELETE", "/v1/topics/{topic}", [this](const Call& call) { return delete_topic(call); });
  router_.add("GET", "/v1/topics/{topic}/schema", [this](const Call& call) {
    return read([&](io::Instant deadline) { return parts_.manager.schemas(call.parameters[0], deadline); });
  });
}

void Api::add_links() {
  router_.add("POST", "/v1/topics/{topic}/children", [this](const Call& call) { return attach_child(call); });
  router_.add("GET", "/v1/topics/{topic}/children", [this](const Call& call) { return list_children(call); });
  router_.add("DELETE", "/v1/topics/{topic}/children/{child}", [this](const Call& call) { return detach_child(call); });
}

// ---- Topics ----------------------------------------------------------------------------------------------------------------

HttpResponse Api::create_topic(const Call& call) {
  const std::string& body = call.request.body;
  // What the body gets wrong by itself needs no leader; the leader checks it again all the same.
  topics::Checked<topics::CreateRequest> request = topics::parse_create(body, parts_.limits);
  if (Reply* refusal = std::get_if<Reply>(&request)) {
    return to_response(std::move(*refusal));
  }
  const std::string& name = std::get<topics::CreateRequest>(request).name;
  return write([&] { return parts_.manager.create(body, kNobody, write_deadline(parts_.env)); },
               cluster::write_frames(cluster::CreateTopicRequest{name, body, kNobody}));
}

HttpResponse Api::alter_topic(const Call& call) {
  const std::string name(call.parameters[0]);
  const std::string& body = call.request.body;
  topics::Checked<topics::AlterRequest> request = topics::parse_alter(body, parts_.limits);
  if (Reply* refusal = std::get_if<Reply>(&request)) {
    return to_response(std::move(*refusal));
  }
  return write([&] { return parts_.manager.alter(name, body, kNobody, write_deadline(parts_.env)); },
               cluster::write_frames(cluster::AlterTopicRequest{name, body, kNobody}));
}

HttpResponse Api::delete_topic(const Call& call) {
  if (!flag(call, "force")) {
    return bad_flag("force");
  }
  const std::string name(call.parameters[0]);
  return write([&] { return parts_.manager.remove(name, std::nullopt, kNobody, write_deadline(parts_.env)); },
               cluster::write_frames(cluster::DeleteTopicRequest{name, std::nullopt, kNobody}));
}

HttpResponse Api::list_topics(const Call& call) {
  const io::Instant deadline = parts_.env.after(topics::kBarrierTimeout);
  Reply reply = parts_.manager.list(call.target.value("limit"), call.target.value("page_token"), deadline);
  if (!reply.ok() || parts_.replica.has_caught_up()) {
    return to_response(std::move(reply));
  }
  // What this replica held at its start may be of any age, and nothing since then says otherwise.
  if (!replica_is_current(deadline)) {
    return to_response(unavailable_reply("this node has not caught up with a leader since its start"));
  }
  return to_response(parts_.manager.list(call.target.value("limit"), call.target.value("page_token"), deadline));
}

// ---- Links -----------------------------------------------------------------------------------------------------------------

HttpResponse Api::attach_child(const Call& call) {
  const std::string parent(call.parameters[0]);
  topics::Checked<topics::AttachRequest> parsed = topics::parse_attach(parent, call.request.body);
  if (Reply* refusal = std::get_if<Reply>(&parsed)) {
    return to_response(std::move(*refusal));
  }
  const topics::AttachRequest& request = std::get<topics::AttachRequest>(parsed);
  return write([&] { return parts_.manager.attach(parent, request, kNobody, write_deadline(parts_.env)); },
               cluster::write_frames(cluster::AttachChildRequest{parent, request.child, request.delay_ms, kNobody}));
}

HttpResponse Api::detach_child(const Call& call) {
  if (!flag(call, "force")) {
    return bad_flag("force");
  }
  const std::string parent(call.parameters[0]);
  const std::string child(call.parameters[1]);
  return write([&] { return parts_.manager.detach(parent, child, kNobody, write_deadline(parts_.env)); },
               cluster::write_frames(cluster::DetachChildRequest{parent, child, 0, kNobody}));
}

HttpResponse Api::list_children(const Call& call) {
  if (!flag(call, "partitions")) {
    return bad_flag("partitions");
  }
  return read([&](io::Instant deadline) { return parts_.manager.children(call.parameters[0], deadline); });
}

}  // namespace engine::api

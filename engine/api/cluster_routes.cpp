// Members, moves, decommission, forget (narad/http-api.md section 6).
#include <charconv>

#include "engine/api/routes.h"
#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/move_frames.h"

namespace engine::api {

namespace {

constexpr io::Duration kLookTimeout = std::chrono::seconds(5);

HttpResponse unless_bad(const Call& call, std::string_view name, const std::function<Reply(bool)>& look) {
  const std::optional<bool> value = flag(call, name);
  return value ? to_response(look(*value)) : bad_flag(name);
}

bool has_body(const Call& call) { return call.request.body.find_first_not_of(" \t\r\n{}") != std::string::npos; }

HttpResponse takes_no_body() { return error_response(400, "invalid request body: this request takes none"); }

}  // namespace

void Api::add_cluster() {
  router_.add("GET", "/v1/cluster/members", [this](const Call& call) {
    return unless_bad(call, "detail", [&](bool detail) { return parts_.admin.members(detail, parts_.env.after(kLookTimeout)); });
  });
  router_.add("GET", "/v1/cluster/moves", [this](const Call& call) {
    return unless_bad(call, "detail", [&](bool detail) { return parts_.admin.moves(detail, parts_.env.after(kLookTimeout)); });
  });
  router_.add("POST", "/v1/cluster/members/{member}/decommission", [this](const Call& call) { return decommission(call); });
  router_.add("DELETE", "/v1/cluster/members/{member}/decommission", [this](const Call& call) { return cancel_decommission(call); });
  router_.add("POST", "/v1/cluster/members/{member}/forget", [this](const Call& call) { return forget_server(call); });
  router_.add("POST", "/v1/cluster/moves/{topic}/{partition}/abort", [this](const Call& call) { return abort_move(call); });
}

HttpResponse Api::decommission(const Call& call) {
  const std::string id(call.parameters[0]);
  const std::optional<bool> dry_run = flag(call, "dry_run");
  if (!dry_run) {
    return bad_flag("dry_run");
  }
  if (has_body(call)) {
    return takes_no_body();
  }
  if (*dry_run) {
    return to_response(parts_.admin.decommission_dry_run(id, parts_.env.after(kLookTimeout)));
  }
  return write([&] { return parts_.admin.decommission_here(id, false, parts_.env.after(cluster::kWriteTimeout)); },
               {cluster::encode(cluster::DecommissionRequest{id, false}), ""});
}

HttpResponse Api::cancel_decommission(const Call& call) {
  const std::string id(call.parameters[0]);
  if (call.target.value("dry_run")) {
    return error_response(400, "invalid argument: dry_run is for a decommission, not for taking one back");
  }
  return write([&] { return parts_.admin.decommission_here(id, true, parts_.env.after(cluster::kWriteTimeout)); },
               {cluster::encode(cluster::DecommissionRequest{id, true}), ""});
}

HttpResponse Api::abort_move(const Call& call) {
  const std::string topic(call.parameters[0]);
  const std::string_view text = call.parameters[1];
  const std::string target = call.target.value("target").value_or("");
  int32_t partition = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), partition);
  if (error != std::errc() || stop != text.data() + text.size() || partition < 0) {
    return error_response(400, "invalid argument: partition must be an integer from 0 on");
  }
  if (has_body(call)) {
    return takes_no_body();
  }
  HttpResponse response =
      write([&] { return parts_.admin.abort_move_here(topic, partition, target, parts_.env.after(cluster::kWriteTimeout)); },
            {cluster::encode(cluster::AbortMoveRequest{topic, partition, target}), ""});
  if (response.status == 200) {
    response.status = 202;  // of a leader that was asked
  }
  return response;
}

HttpResponse Api::forget_server(const Call& call) {
  const std::string id(call.parameters[0]);
  if (has_body(call)) {
    return takes_no_body();
  }
  const auto here = [&] {
    cluster::NodeReply reply = parts_.forget(id);
    return Reply{reply.status, std::move(reply.body)};
  };
  HttpResponse response = write(here, {cluster::encode(cluster::ForgetServerRequest{id}), ""});
  // A leader of a release without the operation.
  if (response.status == 400 && response.body.find("unsupported rpc operation") != std::string::npos) {
    return error_response(501, "the leader runs a release that cannot forget a server");
  }
  return response;
}

}  // namespace engine::api

// The FlatBuffers side of records, for the files of this folder that read or write them. The read functions fail their Copies for
// a verified table that is no record all the same (a role that does not exist, a partition named twice).
#pragma once

#include "engine/metastore/fb_io.h"
#include "engine/metastore/records.h"
#include "engine/metastore/records_generated.h"
#include "engine/metastore/topic.h"

namespace engine::metastore {

flatbuffers::Offset<fb::Topic> build_topic(flatbuffers::FlatBufferBuilder& builder, const Topic& topic);
Topic read_topic(const fb::Topic& stored, Copies& copies);
flatbuffers::Offset<fb::RemoteLink> build_remote_link(flatbuffers::FlatBufferBuilder& builder, const RemoteLink& link);
RemoteLink read_remote_link(const fb::RemoteLink& stored, Copies& copies);

flatbuffers::Offset<fb::Assignment> build_assignment(flatbuffers::FlatBufferBuilder& builder, const Assignment& assignment);
Assignment read_assignment(const fb::Assignment& stored, Copies& copies);

flatbuffers::Offset<fb::Member> build_member(flatbuffers::FlatBufferBuilder& builder, const Member& member);
Member read_member(const fb::Member& stored, Copies& copies);

using StoredGrants = flatbuffers::Vector<flatbuffers::Offset<fb::Grant>>;
flatbuffers::Offset<StoredGrants> build_grants(flatbuffers::FlatBufferBuilder& builder, const std::vector<Grant>& grants);
std::vector<Grant> read_grants(const StoredGrants* stored, Copies& copies);
flatbuffers::Offset<fb::User> build_user(flatbuffers::FlatBufferBuilder& builder, const User& user);
User read_user(const fb::User& stored, Copies& copies);

flatbuffers::Offset<fb::RemoteLimits> build_remote_limits(flatbuffers::FlatBufferBuilder& builder, const RemoteLimits& limits);
// Null: all zero.
RemoteLimits read_remote_limits(const fb::RemoteLimits* stored, Copies& copies);
flatbuffers::Offset<fb::Remote> build_remote(flatbuffers::FlatBufferBuilder& builder, const Remote& remote);
Remote read_remote(const fb::Remote& stored, Copies& copies);

}  // namespace engine::metastore

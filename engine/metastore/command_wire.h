// How the files that carry commands to bytes and back do it: for the struct C a function build(builder, command), which gives its
// table, and a function read(table, copies), which gives the struct. Private to commands_*.cpp.
#pragma once

#include "engine/metastore/commands.h"
#include "engine/metastore/entries_generated.h"
#include "engine/metastore/fb_io.h"
#include "engine/metastore/records_fb.h"

namespace engine::metastore::wire {

using Builder = flatbuffers::FlatBufferBuilder;

// The envelope's header and the builder's finished bytes.
std::string with_header(EntryType type, const Builder& builder);

template <typename C, typename Table>
std::string encode(const C& command, flatbuffers::Offset<Table> (*build)(Builder&, const C&)) {
  Builder builder(512);
  builder.Finish(build(builder, command));
  return with_header(C::kType, builder);
}

template <typename C, typename Table>
std::optional<C> decode(std::string_view payload, C (*read)(const Table&, Copies&)) {
  return read_root<Table>(payload, read);
}

}  // namespace engine::metastore::wire

// The definitions that commands.h promises for the struct C, whose table is fb::<C>Entry and whose functions are build and read.
#define NARAD_METASTORE_COMMAND(C)                                              \
  template <>                                                                   \
  std::string encode_command<C>(const C& command) {                             \
    return wire::encode<C, fb::C##Entry>(command, build);                       \
  }                                                                             \
  template <>                                                                   \
  std::optional<C> decode_payload<C>(std::string_view payload) {                \
    return wire::decode<C, fb::C##Entry>(payload, [](const fb::C##Entry& stored, Copies& copies) { return read(stored, copies); }); \
  }

#include "engine/metastore/fsm_meta.h"

#include "engine/metastore/fb_io.h"
#include "engine/metastore/records_generated.h"

namespace engine::metastore {

std::string encode_meta(const FsmMeta& meta) {
  const FsmState& state = meta.state;
  flatbuffers::FlatBufferBuilder builder(128);
  builder.Finish(fb::CreateFsmState(builder, state.applied_index, state.applied_term, state.newest_type, state.digest,
                                    meta.generation, meta.manifest, meta.store.high, meta.store.low, meta.cluster.high,
                                    meta.cluster.low));
  return std::string(finished(builder));
}

std::optional<FsmMeta> decode_meta(std::string_view bytes) {
  AlignedBytes aligned(bytes);
  const auto* stored = verified_root<fb::FsmState>(aligned);
  if (stored == nullptr) {
    return std::nullopt;
  }
  FsmMeta meta;
  meta.state = FsmState{stored->applied_index(), stored->applied_term(), stored->newest_type(), stored->digest()};
  meta.generation = stored->generation();
  meta.manifest = stored->manifest();
  meta.store = raft::StoreId{stored->store_high(), stored->store_low()};
  meta.cluster = raft::ClusterId{stored->cluster_high(), stored->cluster_low()};
  return meta;
}

std::string meta_row_key() { return row_key(Bucket::fsm_meta, "state"); }

}  // namespace engine::metastore

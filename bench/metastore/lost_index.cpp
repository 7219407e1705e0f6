// A database whose own row is gone: what is looked at, and what it costs to take its rows as they are.
#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <memory>
#include <string>

#include "bench/metastore/node.h"
#include "bench/metastore/parts.h"
#include "bench/support/image_phases.h"
#include "bench/support/report.h"
#include "engine/metastore/active_file.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/fsm_meta.h"
#include "io/check.h"

namespace bench {

namespace {

using namespace engine::metastore;

// As another program would do it.
void delete_row(io::Env& env, const std::string& data_dir) {
  io::Result<std::optional<std::string>> active = find_active(env.disk);
  NARAD_CHECK(active.ok() && active->has_value(), "there is a database");
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(
      database_options(rocksdb::Env::Default(), false, block_cache(kBlockCacheBytes)), data_dir + "/" + **active, &raw);
  NARAD_CHECK(opened.ok(), "the database opens");
  const std::unique_ptr<rocksdb::DB> db(raw);
  NARAD_CHECK(db->Delete(write_options(), meta_row_key()).ok() && db->Close().ok(), "the row is deleted");
}

template <typename Work>
void timed(io::Env& env, const char* metric, Work work) {
  const io::Instant began = env.now();
  const double cpu_began = process_seconds();
  work();
  report("metastore", "lost-index", 0, metric, "s", to_seconds(env.now() - began));
  report("metastore", "lost-index", 0, (std::string(metric) + "_cpu").c_str(), "s", process_seconds() - cpu_began);
}

}  // namespace

void measure_lost_index(const MetastoreOptions&, const std::string& data_dir) {
  run_apart(data_dir, [&](io::Env& env) {
    raft::Index index = 0;
    timed(env, "look_when_trusted", [&] {
      io::Result<FsmHeld> held = Fsm::look(env);
      NARAD_CHECK(held.ok() && held->is_trusted, "the database is trusted");
      index = held->meta.state.applied_index;
    });
    timed(env, "open_when_trusted", [&] {
      auto fsm = Fsm::open_looked_at(env, {}, {});
      NARAD_CHECK(fsm.ok(), "the metastore opens");
      report("metastore", "lost-index", 0, "database", "MiB", to_mebibytes((*fsm)->stats().fsm_bytes));
      (*fsm)->close();
    });
    delete_row(env, data_dir);
    timed(env, "look_without_the_row", [&] {
      io::Result<FsmHeld> held = Fsm::look(env);
      NARAD_CHECK(held.ok() && !held->is_trusted && held->holds_anything, "the loss is noticed");
    });
    timed(env, "open_without_the_row", [&] {
      auto fsm = Fsm::open_looked_at(env, {}, {OpenAs::Kind::rebased, index, 1});
      NARAD_CHECK(fsm.ok(), "its rows are taken as they are");
      (*fsm)->close();
    });
    return 0;
  });
}

}  // namespace bench

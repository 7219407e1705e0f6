// The metastore by its parts. See bench/README.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/metastore/parts.h"
#include "bench/support/process.h"

int main(int argc, char** argv) {
  bench::MetastoreOptions options;
  std::vector<std::string> parts{"apply", "restart", "image", "lost-index"};
  CLI::App app("The parts of the metastore");
  app.add_option("--dir", options.directory, "where data directories are made")->capture_default_str();
  app.add_option("--entries", options.entries, "entries of the prepared log")->capture_default_str();
  app.add_option("--topics", options.topics, "topics of the large metastore")->capture_default_str();
  app.add_option("--assignments", options.assignments_per_topic, "assignments of each of its topics")->capture_default_str();
  app.add_option("--program", options.program, "the narad program")->capture_default_str();
  app.add_option("--restarts", options.restarts, "how often it is killed and started again")->capture_default_str();
  app.add_option("--parts", parts, "which parts: apply, restart, image, lost-index")->delimiter(',')->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto wanted = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  try {
    if (wanted("apply")) bench::measure_apply(options);
    if (!wanted("restart") && !wanted("image") && !wanted("lost-index")) return 0;
    const bench::ScratchDirectory scratch(options.directory);
    const std::string data_dir = scratch.path() + "/data";
    bench::fill_large(options, data_dir);
    if (wanted("restart")) bench::measure_restart(options, data_dir);
    if (wanted("image")) bench::measure_images(options, data_dir);
    if (wanted("lost-index")) bench::measure_lost_index(options, data_dir);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench/metastore: %s\n", error.what());
    return 1;
  }
  return 0;
}

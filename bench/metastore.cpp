// The metastore by its parts. See bench/README.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "bench/metastore/parts.h"

int main(int argc, char** argv) {
  bench::MetastoreOptions options;
  std::vector<std::string> parts{"apply"};
  CLI::App app("The parts of the metastore");
  app.add_option("--dir", options.directory, "where data directories are made")->capture_default_str();
  app.add_option("--entries", options.entries, "entries of the prepared log")->capture_default_str();
  app.add_option("--parts", parts, "which parts: apply")->delimiter(',')->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto wanted = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  if (wanted("apply")) bench::measure_apply(options);
  return 0;
}

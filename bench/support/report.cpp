#include "bench/support/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace bench {

void report(std::string_view bench, std::string_view name, int clients, std::string_view metric, std::string_view unit,
            double value) {
  nlohmann::ordered_json line;
  line["bench"] = bench;
  line["case"] = name;
  if (clients > 0) {
    line["clients"] = clients;
  }
  line["metric"] = metric;
  line["unit"] = unit;
  line["value"] = std::round(value * 1000.0) / 1000.0;
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

int64_t quantile(std::vector<int64_t>& samples, int per_mille) {
  if (samples.empty()) {
    return 0;
  }
  std::sort(samples.begin(), samples.end());
  return samples[std::min(samples.size() - 1, samples.size() * static_cast<size_t>(per_mille) / 1000)];
}

}  // namespace bench

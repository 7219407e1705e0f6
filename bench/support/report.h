// One figure, one JSON line on standard output:
// {"bench":"commit","case":"leader","clients":64,"metric":"writes","unit":"1/s","value":12345.6}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// `clients` is left out when 0.
void report(std::string_view bench, std::string_view name, int clients, std::string_view metric, std::string_view unit,
            double value);

// The value below which `per_mille` of `samples` lie (500: the median). Sorts `samples`; 0 when there are none.
int64_t quantile(std::vector<int64_t>& samples, int per_mille);

}  // namespace bench

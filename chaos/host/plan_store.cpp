#include "chaos/host/plan_store.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "chaos/plan_text.h"

namespace chaos {

std::string store_for_replay(const std::string& directory, const std::string& program, const Plan& plan) {
  const std::string line = "replay: " + program + " replay ";
  const std::string path = directory + "/seed-" + std::to_string(plan.seed) + ".plan";
  ::mkdir(directory.c_str(), 0777);  // there already, or the file below tells
  errno = 0;
  std::ofstream file(path);
  file << print_plan(plan);
  file.close();
  if (file) {
    return line + path;
  }
  std::string by_seed = line + std::to_string(plan.seed);
  for (const io::Defence defect : plan.defects) {
    by_seed += " --defect " + std::string(io::defect_name(defect));
  }
  return by_seed + "   (" + path + " cannot be written: " + std::strerror(errno) + ")";
}

}  // namespace chaos

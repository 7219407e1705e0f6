#include "sim/releases.h"

#include <algorithm>
#include <array>

#include "engine/metastore/envelope.h"
#include "io/check.h"

namespace sim {

namespace {

namespace ms = engine::metastore;

const std::array<Release, 4>& table() {
  // What 3.0.1 knows of the node protocol: of the fields that came after 2.0.2 only whether a joiner is fresh, and no operation after 32.
  static const engine::cluster::FrameFields kFramesOf301{false, true, false, false, 32};
  static const std::array<Release, 4> kReleases{{{"3.0.1", ms::kEveryReleaseEntryType, true, false, kFramesOf301},
                                                 {"3.1.0", ms::kNewestEntryTypeOf31, false, true, {}},
                                                 {"3.2.0", ms::kNewestEntryType, false, true, {}},
                                                 {"next", ms::kHypotheticalEntryType, false, true, {}}}};
  return kReleases;
}

}  // namespace

std::span<const Release> releases() { return table(); }

const Release* find_release(std::string_view name) {
  const auto found = std::find_if(table().begin(), table().end(), [name](const Release& release) { return release.name == name; });
  return found == table().end() ? nullptr : &*found;
}

const Release& own_release() {
  const Release* own = find_release("3.2.0");
  NARAD_CHECK(own != nullptr && own->newest_type == ms::kNewestEntryType, "the release that this build is");
  return *own;
}

std::string hypothetical_command(uint64_t number) {
  // As the envelope of a command that this build knows, with another type and a payload that nobody takes apart.
  std::string bytes = ms::encode_delete_topic(std::to_string(number));
  bytes[ms::kEnvelopeHeaderBytes - 1] = static_cast<char>(ms::kHypotheticalEntryType);
  return bytes;
}

}  // namespace sim

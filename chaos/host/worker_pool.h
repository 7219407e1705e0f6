// Worker processes that each do one piece of work after another: a run that crashes or hangs takes its worker along, not the
// sweep, and is reported with the piece it was at.
//
// Work is bytes in, bytes out. Workers are forked, so that what the work needs is already there; between two pieces a worker keeps
// its memory, as a sweep must not depend on a fresh one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace chaos {

struct Piece {
  uint64_t number = 0;    // the caller's
  std::string request;
};

struct PieceResult {
  Piece piece;
  std::string response;    // of a piece that ended well
  std::string fault;       // else: how the worker ended, and the last it wrote to stderr
  uint64_t cpu_us = 0;     // that the piece used, when it ended well
};

struct PoolSettings {
  int jobs = 1;
  std::chrono::seconds piece_limit{300};  // real time; a piece that takes longer is stopped and reported
};

// Runs pieces from `next` until it gives none, on `jobs` processes. `work` runs in a worker, `done` in the caller; when `done`
// returns false no further piece is begun, and those under way are stopped. Returns false when it was ended so.
bool run_pieces(const PoolSettings& settings, const std::function<std::string(const std::string& request)>& work,
                const std::function<std::optional<Piece>()>& next, const std::function<bool(const PieceResult&)>& done);

// Runs this program again, with other memory fill and a layout of its own, and returns what it wrote to stdout; nothing when it
// could not be run.
std::optional<std::string> run_fresh(const std::vector<std::string>& arguments);

}  // namespace chaos

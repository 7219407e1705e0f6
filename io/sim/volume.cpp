#include "io/sim/volume.h"

#include <algorithm>

#include "io/sim/world.h"

namespace io::sim {

namespace {

constexpr uint64_t kSectorBytes = 512;

bool mutates(DiskOp op) { return op >= DiskOp::create; }

bool strikes_at_start(FaultAction action) { return action == FaultAction::stall || action == FaultAction::slow; }

bool concerns(const ScriptedFault& fault, DiskOp op, std::string_view path) {
  return path.starts_with(fault.prefix) && (fault.op.has_value() ? *fault.op == op : mutates(op)) &&
         (!fault.when || fault.when(op, path));
}

Error error_at(ErrorKind kind, std::string_view path, std::string_view what) {
  return fail(kind, std::string(path) + ": " + std::string(what));
}

}  // namespace

const char* to_string(DiskOp op) {
  switch (op) {
    case DiskOp::read: return "read";
    case DiskOp::list: return "list";
    case DiskOp::create: return "create";
    case DiskOp::write: return "write";
    case DiskOp::sync: return "sync";
    case DiskOp::truncate: return "truncate";
    case DiskOp::rename: return "rename";
    case DiskOp::remove: return "remove";
    case DiskOp::make_directory: return "make directory";
    case DiskOp::sync_directory: return "sync directory";
  }
  return "unknown";
}

// What the faults decided about one operation.
struct Volume::Verdict {
  std::optional<Error> error;
  bool lands = true;                    // with an error it may have taken effect all the same
  bool pages_clean = false;             // a failed sync whose pages count as written
  uint64_t landing_bytes = UINT64_MAX;  // of a write
  bool misdirected = false;
  bool bit_flipped = false;
  std::optional<Ending> ending;  // of the process, after the operation
};

Volume::Volume(Machine& machine, const MachineSettings& settings)
    : machine_(machine),
      settings_(settings),
      capacity_(settings.disk_capacity),
      draws_(machine.world().stream("disk", stable_hash(settings.name))) {}

Volume::~Volume() = default;

// ---- Faults ---------------------------------------------------------------------------------------------------------

void Volume::script(ScriptedFault fault) {
  NARAD_CHECK(fault.nth > 0, "a scripted fault strikes the first operation or a later one");
  scripted_.push_back(std::move(fault));
}

void Volume::stall() {
  stalled_ = true;
  machine_.world().record(TraceKind::fault, machine_.process(), "disk stalls");
}

void Volume::release() {
  stalled_ = false;
  lane_hangs_ = false;  // noted outside of a lane (a database closed by the end of its process): nobody took it
  machine_.world().record(TraceKind::fault, machine_.process(), "disk goes on");
  for (const auto& resume : std::exchange(hanging_, {})) {
    resume();
  }
}

std::optional<FaultAction> Volume::take_scripted(DiskOp op, std::string_view path, bool at_start) {
  std::optional<FaultAction> taken;
  std::function<void()> struck;
  for (size_t i = 0; i < scripted_.size();) {
    ScriptedFault& fault = scripted_[i];
    const bool matches = strikes_at_start(fault.action) == at_start && concerns(fault, op, path);
    if (matches && --fault.nth == 0 && !taken.has_value()) {
      taken = fault.action;
      struck = std::move(fault.struck);
      scripted_.erase(scripted_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      fault.nth += matches && fault.nth == 0 ? 1 : 0;  // one fault an operation: this one strikes the next
      ++i;
    }
  }
  if (struck) {
    struck();
  }
  return taken;
}

Duration Volume::latency(DiskOp op, std::string_view path, uint64_t bytes) {
  const DiskSettings& disk = machine_.world().settings().disk;
  const bool syncs = op == DiskOp::sync || op == DiskOp::sync_directory;
  const LatencyTable& table = syncs                 ? disk.sync
                              : op == DiskOp::read  ? disk.read
                              : op == DiskOp::write ? disk.write
                                                    : disk.metadata;
  Duration duration = table.draw(draws_) + Duration(static_cast<int64_t>(bytes) * disk.byte_ps / 1000);
  bool slow = false;
  for (const FaultRates& rate : rates_) {
    slow = slow || (rate.slow_ppm > 0 && path.starts_with(rate.prefix) && draws_.chance_ppm(rate.slow_ppm));
  }
  for (const ScriptedFault& fault : scripted_) {
    slow = slow || (fault.action == FaultAction::slow && fault.nth == 1 && concerns(fault, op, path));
  }
  return slow ? duration + disk.slow.draw(draws_) : duration;
}

bool Volume::hangs(DiskOp op, std::string_view path) {
  const std::optional<FaultAction> fault = scripted_.empty() ? std::nullopt : take_scripted(op, path, true);
  return stalled_ || fault == FaultAction::stall;
}

void Volume::strike(Verdict& verdict, FaultAction action, std::string_view path, uint64_t bytes) {
  machine_.world().record(TraceKind::fault, machine_.process(), path, static_cast<uint64_t>(action));
  switch (action) {
    case FaultAction::error:
      verdict.error = error_at(ErrorKind::io, path, "input/output error");
      verdict.landing_bytes = draws_.below(bytes + 1);
      verdict.lands = false;
      verdict.pages_clean = true;
      break;
    case FaultAction::no_space:
      verdict.error = error_at(ErrorKind::no_space, path, "no space left on device");
      verdict.landing_bytes = draws_.below(bytes + 1);
      verdict.lands = false;
      break;
    case FaultAction::bit_flip: verdict.bit_flipped = true; break;
    case FaultAction::misdirect: verdict.misdirected = true; break;
    case FaultAction::kill:
    case FaultAction::power_loss: {
      verdict.error = error_at(ErrorKind::io, path, "the process has ended");
      verdict.ending = action == FaultAction::kill ? Ending::killed : Ending::power_lost;
      const uint64_t how_far = draws_.below(3);
      verdict.lands = how_far > 0;
      verdict.landing_bytes = how_far == 0 ? 0 : how_far == 1 ? draws_.below(bytes + 1) : bytes;
      break;
    }
    case FaultAction::stall:
    case FaultAction::slow: NARAD_CHECK(false, "a stall strikes when an operation begins");
  }
}

Volume::Verdict Volume::judge(Incarnation& process, DiskOp op, std::string_view path, uint64_t bytes, uint64_t growth) {
  Verdict verdict;
  if (no_faults_) {
    verdict.landing_bytes = draws_.below(2) == 0 ? bytes : draws_.below(bytes + 1);
    return verdict;
  }
  if (!process.live()) {
    verdict.error = error_at(ErrorKind::io, path, "the process has ended");
    verdict.lands = false;
    verdict.landing_bytes = 0;
    return verdict;
  }
  if (mutates(op)) {
    ++mutations_;
    if (observer_) {
      observer_(op, path);
    }
  }
  if (!scripted_.empty()) {
    if (const auto action = take_scripted(op, path, false)) {
      strike(verdict, *action, path, bytes);
      return verdict;
    }
  }
  const bool syncs = op == DiskOp::sync || op == DiskOp::sync_directory;
  for (const FaultRates& rate : rates_) {
    const uint32_t ppm = syncs ? rate.sync_error_ppm : mutates(op) ? rate.write_error_ppm : rate.read_error_ppm;
    if ((ppm > 0 || rate.no_space_ppm > 0) && path.starts_with(rate.prefix)) {
      if (ppm > 0 && draws_.chance_ppm(ppm)) {
        strike(verdict, FaultAction::error, path, bytes);
        return verdict;
      }
      if (growth > 0 && rate.no_space_ppm > 0 && draws_.chance_ppm(rate.no_space_ppm)) {
        strike(verdict, FaultAction::no_space, path, bytes);
        return verdict;
      }
    }
  }
  if (growth > free_bytes()) {
    strike(verdict, FaultAction::no_space, path, std::min(bytes, free_bytes()));
  }
  return verdict;
}

void Volume::conclude(Incarnation& process, const Verdict& verdict, DiskOp op, std::string_view path, uint64_t offset,
                      uint64_t length, uint64_t hash, bool opaque) {
  machine_.world().record(opaque ? TraceKind::kv : TraceKind::disk, &process, path,
                          static_cast<uint64_t>(op) << 56 | offset, length, opaque ? 0 : hash);
  if (verdict.ending == Ending::killed) {
    machine_.kill();
  } else if (verdict.ending == Ending::power_lost) {
    machine_.power_loss();
  }
}

// ---- Operations -----------------------------------------------------------------------------------------------------

Result<NodePtr> Volume::open(Incarnation& process, std::string_view path, OpenMode mode) {
  NodePtr node = tree_.find(path);
  if (node != nullptr && node->is_directory) {
    return error_at(ErrorKind::invalid, path, "is a directory");
  }
  if (node == nullptr && (mode == OpenMode::read || mode == OpenMode::read_write)) {
    return error_at(ErrorKind::not_found, path, "no such file");
  }
  if (node != nullptr && mode == OpenMode::create_new) {
    return error_at(ErrorKind::exists, path, "already there");
  }
  if (node != nullptr) {
    const Verdict verdict = judge(process, DiskOp::list, path, 0, 0);
    conclude(process, verdict, DiskOp::list, path, 0, 0, 0, node->opaque);
    return verdict.error.has_value() ? Result<NodePtr>(*verdict.error) : Result<NodePtr>(node);
  }
  const Verdict verdict = judge(process, DiskOp::create, path, 0, 1);
  Result<NodePtr> made = verdict.lands ? tree_.create_file(path) : Result<NodePtr>(*verdict.error);
  conclude(process, verdict, DiskOp::create, path, 0, 0, 0, false);
  return verdict.error.has_value() ? Result<NodePtr>(*verdict.error) : made;
}

Result<std::string> Volume::read(Incarnation& process, const Node& file, std::string_view path, uint64_t offset,
                                 size_t length) {
  const Verdict verdict = judge(process, DiskOp::read, path, 0, 0);
  if (verdict.error.has_value()) {
    conclude(process, verdict, DiskOp::read, path, offset, 0, 0, file.opaque);
    return *verdict.error;
  }
  std::string bytes = offset < file.content.size() ? file.content.substr(offset, length) : std::string();
  conclude(process, verdict, DiskOp::read, path, offset, bytes.size(), file.opaque ? 0 : content_hash(bytes),
           file.opaque);
  return bytes;
}

Status Volume::write(Incarnation& process, Node& file, std::string_view path, uint64_t offset, std::string_view data) {
  const uint64_t end = offset + data.size();
  const uint64_t growth = !data.empty() && end > file.content.size() ? end - file.content.size() : 0;
  const Verdict verdict = judge(process, DiskOp::write, path, data.size(), growth);
  std::string flipped;
  std::string_view landing = data.substr(0, verdict.landing_bytes);
  uint64_t landing_offset = offset;
  if (verdict.bit_flipped && !data.empty()) {
    flipped = data;
    flipped[draws_.below(flipped.size())] ^= static_cast<char>(1 << draws_.below(8));
    landing = flipped;
  }
  if (verdict.misdirected && file.content.size() >= data.size()) {
    landing_offset = draws_.below((file.content.size() - data.size()) / kSectorBytes + 1) * kSectorBytes;
  }
  if (!landing.empty()) {
    tree_.write(file, landing_offset, landing);
  }
  conclude(process, verdict, DiskOp::write, path, landing_offset, landing.size(),
           file.opaque ? 0 : content_hash(landing), file.opaque);
  return verdict.error.has_value() ? Status(*verdict.error) : Status();
}

Status Volume::truncate(Incarnation& process, Node& file, std::string_view path, uint64_t size) {
  const uint64_t growth = size > file.content.size() ? size - file.content.size() : 0;
  const Verdict verdict = judge(process, DiskOp::truncate, path, 0, growth);
  if (verdict.lands) {
    tree_.truncate(file, size);
  }
  conclude(process, verdict, DiskOp::truncate, path, size, 0, 0, file.opaque);
  return verdict.error.has_value() ? Status(*verdict.error) : Status();
}

Status Volume::sync(Incarnation& process, Node& file, std::string_view path, uint64_t mark) {
  const Verdict verdict = judge(process, DiskOp::sync, path, 0, 0);
  if (verdict.lands) {
    tree_.sync(file, mark);
  } else if (verdict.pages_clean) {
    tree_.fail_sync(file, mark);
  }
  conclude(process, verdict, DiskOp::sync, path, 0, 0, file.content.size(), file.opaque);
  return verdict.error.has_value() ? Status(*verdict.error) : Status();
}

template <typename Change>
Status Volume::change_names(Incarnation& process, DiskOp op, std::string_view path, uint64_t growth,
                            const Change& change) {
  const Verdict verdict = judge(process, op, path, 0, growth);
  const Status changed = verdict.lands ? change() : Status(*verdict.error);
  conclude(process, verdict, op, path, 0, 0, changed.ok() ? 0 : 1, false);
  return verdict.error.has_value() ? Status(*verdict.error) : changed;
}

Status Volume::make_directory(Incarnation& process, std::string_view path) {
  for (size_t end = 0; end != std::string_view::npos && !path.empty();) {
    end = path.find('/', end + 1);
    const std::string_view upto = path.substr(0, end);
    const NodePtr node = tree_.find(upto);
    if (node != nullptr && !node->is_directory) {
      return error_at(ErrorKind::exists, upto, "is a file");
    }
    if (node == nullptr) {
      Status made = change_names(process, DiskOp::make_directory, upto, 1, [&] { return tree_.make_directory(upto); });
      if (!made.ok()) {
        return made;
      }
    }
  }
  return {};
}

Status Volume::rename(Incarnation& process, std::string_view from, std::string_view to) {
  return change_names(process, DiskOp::rename, to, 0, [&] { return tree_.rename(from, to); });
}

Status Volume::link(Incarnation& process, std::string_view from, std::string_view to) {
  return change_names(process, DiskOp::create, to, 1, [&] { return tree_.link(from, to); });
}

Status Volume::remove(Incarnation& process, std::string_view path) {
  return change_names(process, DiskOp::remove, path, 0, [&] { return tree_.remove(path); });
}

Status Volume::sync_directory(Incarnation& process, std::string_view path) {
  const NodePtr node = tree_.find(path);
  if (node == nullptr || !node->is_directory) {
    return error_at(node == nullptr ? ErrorKind::not_found : ErrorKind::invalid, path, "no such directory");
  }
  return change_names(process, DiskOp::sync_directory, path, 0, [&] {
    tree_.sync_directory(*node);
    return Status();
  });
}

Result<std::vector<std::string>> Volume::list(Incarnation& process, std::string_view path) {
  const NodePtr node = tree_.find(path);
  const Verdict verdict = judge(process, DiskOp::list, path, 0, 0);
  conclude(process, verdict, DiskOp::list, path, 0, node != nullptr ? node->entries.size() : 0, 0, false);
  if (verdict.error.has_value()) {
    return *verdict.error;
  }
  if (node == nullptr || !node->is_directory) {
    return error_at(node == nullptr ? ErrorKind::not_found : ErrorKind::invalid, path, "no such directory");
  }
  std::vector<std::string> names;
  for (const auto& [name, child] : node->entries) {
    names.push_back(name);
  }
  return names;
}

Result<FileInfo> Volume::stat(Incarnation& process, std::string_view path) {
  const NodePtr node = tree_.find(path);
  const Verdict verdict = judge(process, DiskOp::list, path, 0, 0);
  conclude(process, verdict, DiskOp::list, path, 0, node != nullptr ? node->content.size() : 0, 0, false);
  if (verdict.error.has_value()) {
    return *verdict.error;
  }
  if (node == nullptr) {
    return error_at(ErrorKind::not_found, path, "no such file");
  }
  return FileInfo{node->content.size(), node->is_directory};
}

Status Volume::lock(Incarnation& process, std::string_view path) {
  if (locks_.find(path) != locks_.end()) {
    return error_at(ErrorKind::busy, path, "locked by another process");
  }
  const Result<NodePtr> opened = open(process, path, OpenMode::create);
  if (!opened.ok()) {
    return opened.error();
  }
  locks_.emplace(path, process.trace_id());
  return {};
}

void Volume::unlock(std::string_view path) {
  auto lock = locks_.find(path);
  if (lock != locks_.end()) {
    locks_.erase(lock);
  }
}

void Volume::process_ended(Incarnation& process, const std::function<void()>& in_flight) {
  no_faults_ = true;
  in_flight();
  no_faults_ = false;
  std::erase_if(locks_, [&process](const auto& lock) { return lock.second == process.trace_id(); });
}

// ---- The image ------------------------------------------------------------------------------------------------------

void Volume::power_lost() {
  tree_.power_loss(
      draws_,
      [this](const std::string& path) {
        return std::any_of(settings_.scattered_prefixes.begin(), settings_.scattered_prefixes.end(),
                           [&path](const std::string& prefix) { return path.starts_with(prefix); });
      },
      settings_.unsynced_bit_flip_ppm);
}

void Volume::wipe() { tree_.erase(""); }

void Volume::restore(std::string_view path, const FileTree::Image& image) {
  NARAD_CHECK(machine_.process() == nullptr, "an image is restored under a stopped process");
  tree_.put(path, image);
}

bool Volume::flip_bit(std::string_view path, uint64_t offset, int bit) {
  const NodePtr file = tree_.find_file(path);
  if (file == nullptr || offset >= file->content.size()) {
    return false;
  }
  file->content[offset] ^= static_cast<char>(1 << (bit & 7));
  if (file->durable.has_value() && offset < file->durable->size()) {
    (*file->durable)[offset] ^= static_cast<char>(1 << (bit & 7));
  }
  return true;
}

}  // namespace io::sim

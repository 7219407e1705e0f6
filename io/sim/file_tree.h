// Files and directories of a simulated disk, in memory: what a process sees (the page cache) and what would be left
// after a power loss. No time, no faults, no draws but those of power_loss: those are volume.h's.
//
// Each file keeps its present bytes and an undo record of every write and truncation that no sync has made durable;
// each directory keeps its present and its durable entries; changes of entries that are not durable yet stand in one
// list, in order.
//
// Paths: names joined by '/', relative to the root, which is ""; repeated and outer '/' are ignored; no "." or "..".
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/random.h"
#include "io/result.h"

namespace io::sim {

struct OpenFile;  // a process's handle (process_disk.cpp)

struct Node {
  using Entries = std::map<std::string, std::shared_ptr<Node>, std::less<>>;

  // How to take back one write or truncation.
  struct Undo {
    uint64_t sequence;
    uint64_t offset;    // of what changed; for a truncation the new size
    uint64_t length;    // bytes written; 0 for a truncation
    uint64_t old_size;  // of the file before
    bool is_truncation;
    std::string old_bytes;  // what stood there: at `offset`, as far as the file reached
  };

  bool is_directory = false;
  uint32_t links = 0;  // names in the present tree

  // A file.
  std::string content;
  std::deque<Undo> unsynced;
  uint64_t next_sequence = 0;
  // Set by a failed sync, whose pages count as clean without being on the disk: the durable bytes then stand here.
  std::optional<std::string> durable;
  bool opaque = false;  // RocksDB's: its bytes stay out of the trace (they carry ids that differ between runs)
  std::vector<OpenFile*> in_flight;  // handles with an operation under way

  // A directory.
  Entries entries;
  Entries durable_entries;
};

using NodePtr = std::shared_ptr<Node>;

class FileTree {
 public:
  FileTree();
  ~FileTree();

  // ---- Looking ------------------------------------------------------------------------------------------------------
  NodePtr find(std::string_view path) const;  // file or directory; null when absent
  NodePtr find_file(std::string_view path) const;
  bool exists(std::string_view path) const { return find(path) != nullptr; }
  std::optional<std::string> content(std::string_view path) const;
  // What would be left of the file after a power loss that keeps nothing unsynced; nullopt when its name would be lost.
  std::optional<std::string> durable_content(std::string_view path) const;
  // Every file of the present tree, by path.
  std::vector<std::string> files() const;
  uint64_t used_bytes() const { return used_; }

  // ---- What processes do (not durable) ------------------------------------------------------------------------------
  Result<NodePtr> create_file(std::string_view path);  // exists, not_found (no such directory)
  Status make_directory(std::string_view path);        // exists; the parent must be there
  Status rename(std::string_view from, std::string_view to);
  Status remove(std::string_view path);  // a file or an empty directory
  Status link(std::string_view from, std::string_view to);
  void write(Node& file, uint64_t offset, std::string_view data);
  void truncate(Node& file, uint64_t size);

  // ---- Durability ---------------------------------------------------------------------------------------------------
  // Makes the changes numbered below `mark` durable (Node::next_sequence when the sync was issued).
  void sync(Node& file, uint64_t mark);
  // A sync that failed: those changes are in the page cache and never reach the disk.
  void fail_sync(Node& file, uint64_t mark);
  void sync_directory(Node& directory);
  // `scattered(path)` chooses the rule of volume.h for each file; draws are taken from `draws`, by path.
  void power_loss(RandomStream& draws, const std::function<bool(const std::string&)>& scattered, uint32_t bit_flip_ppm);

  // ---- Plans and checks: durable at once ----------------------------------------------------------------------------
  struct Image {
    std::vector<std::string> directories;      // relative paths, parents first
    std::map<std::string, std::string> files;  // relative path -> bytes
  };
  Image copy(std::string_view path) const;
  // Replaces what stands at `path` by the image; makes parents.
  void put(std::string_view path, const Image& image);
  void put_file(std::string_view path, std::string content);
  void erase(std::string_view path);  // with everything below

 private:
  struct Edit {
    NodePtr directory;
    std::string name;
    NodePtr node;  // null: the name goes
  };
  using Change = std::vector<Edit>;

  // The directory that holds (or would hold) the last name of `path`, and that name; null when there is no such
  // directory.
  NodePtr parent_of(std::string_view path, std::string_view& name) const;
  NodePtr make_directories(std::string_view path);
  void apply(const Change& change);  // to the present tree, and remembers it as not durable
  static void make_durable(const Edit& edit);
  void set_entry(Node& directory, const std::string& name, const NodePtr& node);
  void lose_unsynced(Node& file, RandomStream draws, bool scattered, uint32_t bit_flip_ppm);
  void recount();
  void drop_pending(const Node& directory, std::string_view name);

  NodePtr root_;
  std::deque<Change> pending_;
  uint64_t used_ = 0;
};

// The bytes of `file` without any change that is not durable.
std::string durable_bytes(const Node& file);

}  // namespace io::sim

#include "io/sim/file_tree.h"

#include <algorithm>

#include "io/check.h"

namespace io::sim {

namespace {

constexpr size_t kSectorBytes = 512;
// Beyond these the oldest changes count as written back, as a kernel does after a while: it bounds memory.
constexpr size_t kUnsyncedMax = 1 << 16;
constexpr size_t kPendingMax = 1 << 14;

// Takes the first name off `path`; empty when none is left.
std::string_view next_name(std::string_view& path) {
  const size_t begin = path.find_first_not_of('/');
  if (begin == std::string_view::npos) {
    path = {};
    return {};
  }
  path.remove_prefix(begin);
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view name = path.substr(0, end);
  path.remove_prefix(end);
  return name;
}

Error error_at(ErrorKind kind, std::string_view path, std::string_view what) {
  return fail(kind, std::string(path) + ": " + std::string(what));
}

std::string joined(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

void overwrite(std::string& content, uint64_t offset, std::string_view data) {
  if (offset == content.size()) {
    content.append(data);
    return;
  }
  if (content.size() < offset + data.size()) {
    content.resize(offset + data.size());
  }
  content.replace(offset, data.size(), data);
}

// Takes `undo` back in `content`; what it had written is returned.
std::string take_back(std::string& content, const Node::Undo& undo) {
  std::string written;
  if (!undo.is_truncation) {
    written = content.substr(undo.offset, undo.length);
    content.replace(undo.offset, undo.old_bytes.size(), undo.old_bytes);
    content.resize(undo.old_size);
  } else if (undo.offset < undo.old_size) {
    content.resize(undo.offset);
    content += undo.old_bytes;
  } else {
    content.resize(undo.old_size);
  }
  return written;
}

// Calls `visit(path, node)` for every node below, directories before what they hold.
template <typename Visit>
void walk(const NodePtr& node, const std::string& path, const Visit& visit) {
  for (const auto& [name, child] : node->entries) {
    const std::string child_path = joined(path, name);
    visit(child_path, child);
    if (child->is_directory) {
      walk(child, child_path, visit);
    }
  }
}

}  // namespace

std::string durable_bytes(const Node& file) {
  if (file.durable.has_value()) {
    return *file.durable;
  }
  std::string bytes = file.content;
  for (auto undo = file.unsynced.rbegin(); undo != file.unsynced.rend(); ++undo) {
    take_back(bytes, *undo);
  }
  return bytes;
}

FileTree::FileTree() : root_(std::make_shared<Node>()) {
  root_->is_directory = true;
  root_->links = 1;
}

FileTree::~FileTree() = default;

// ---- Looking --------------------------------------------------------------------------------------------------------

NodePtr FileTree::find(std::string_view path) const {
  NodePtr node = root_;
  for (std::string_view name = next_name(path); !name.empty(); name = next_name(path)) {
    auto entry = node->entries.find(name);
    if (entry == node->entries.end()) {
      return nullptr;
    }
    node = entry->second;
  }
  return node;
}

NodePtr FileTree::find_file(std::string_view path) const {
  NodePtr node = find(path);
  return node != nullptr && !node->is_directory ? node : nullptr;
}

NodePtr FileTree::parent_of(std::string_view path, std::string_view& name) const {
  NodePtr node = root_;
  name = next_name(path);
  for (std::string_view next = next_name(path); !next.empty(); next = next_name(path)) {
    auto entry = node->entries.find(name);
    if (entry == node->entries.end() || !entry->second->is_directory) {
      return nullptr;
    }
    node = entry->second;
    name = next;
  }
  return node;
}

std::optional<std::string> FileTree::content(std::string_view path) const {
  const NodePtr file = find_file(path);
  return file != nullptr ? std::optional(file->content) : std::nullopt;
}

std::optional<std::string> FileTree::durable_content(std::string_view path) const {
  NodePtr node = root_;
  for (std::string_view name = next_name(path); !name.empty(); name = next_name(path)) {
    auto entry = node->durable_entries.find(name);
    if (entry == node->durable_entries.end()) {
      return std::nullopt;
    }
    node = entry->second;
  }
  return node->is_directory ? std::nullopt : std::optional(durable_bytes(*node));
}

std::vector<std::string> FileTree::files() const {
  std::vector<std::string> paths;
  walk(root_, "", [&paths](const std::string& path, const NodePtr& node) {
    if (!node->is_directory) {
      paths.push_back(path);
    }
  });
  return paths;
}

// ---- What processes do ----------------------------------------------------------------------------------------------

void FileTree::set_entry(Node& directory, const std::string& name, const NodePtr& node) {
  auto old = directory.entries.find(name);
  if (old != directory.entries.end()) {
    if (--old->second->links == 0) {
      used_ -= old->second->content.size();
    }
    directory.entries.erase(old);
  }
  if (node != nullptr) {
    if (node->links++ == 0) {
      used_ += node->content.size();
    }
    directory.entries.emplace(name, node);
  }
}

void FileTree::make_durable(const Edit& edit) {
  if (edit.node != nullptr) {
    edit.directory->durable_entries[edit.name] = edit.node;
  } else {
    edit.directory->durable_entries.erase(edit.name);
  }
}

void FileTree::apply(const Change& change) {
  for (const Edit& edit : change) {
    set_entry(*edit.directory, edit.name, edit.node);
  }
  pending_.push_back(change);
  if (pending_.size() > kPendingMax) {
    for (const Edit& edit : pending_.front()) {
      make_durable(edit);
    }
    pending_.pop_front();
  }
}

Result<NodePtr> FileTree::create_file(std::string_view path) {
  std::string_view name;
  const NodePtr directory = parent_of(path, name);
  if (directory == nullptr || name.empty()) {
    return error_at(ErrorKind::not_found, path, "no such directory");
  }
  if (directory->entries.find(name) != directory->entries.end()) {
    return error_at(ErrorKind::exists, path, "already there");
  }
  auto file = std::make_shared<Node>();
  apply({{directory, std::string(name), file}});
  return NodePtr(file);
}

Status FileTree::make_directory(std::string_view path) {
  std::string_view name;
  const NodePtr directory = parent_of(path, name);
  if (directory == nullptr || name.empty()) {
    return error_at(ErrorKind::not_found, path, "no such directory");
  }
  if (directory->entries.find(name) != directory->entries.end()) {
    return error_at(ErrorKind::exists, path, "already there");
  }
  auto made = std::make_shared<Node>();
  made->is_directory = true;
  apply({{directory, std::string(name), made}});
  return {};
}

Status FileTree::rename(std::string_view from, std::string_view to) {
  std::string_view from_name;
  std::string_view to_name;
  const NodePtr from_directory = parent_of(from, from_name);
  const NodePtr to_directory = parent_of(to, to_name);
  const NodePtr node = find(from);
  if (from_directory == nullptr || node == nullptr || from_name.empty()) {
    return error_at(ErrorKind::not_found, from, "no such file");
  }
  if (to_directory == nullptr || to_name.empty()) {
    return error_at(ErrorKind::not_found, to, "no such directory");
  }
  const NodePtr replaced = find(to);
  if (replaced == node) {
    return {};
  }
  if (replaced != nullptr && replaced->is_directory != node->is_directory) {
    return error_at(ErrorKind::exists, to, "a file and a directory do not replace each other");
  }
  if (replaced != nullptr && !replaced->entries.empty()) {
    return error_at(ErrorKind::exists, to, "the directory is not empty");
  }
  apply({{to_directory, std::string(to_name), node}, {from_directory, std::string(from_name), nullptr}});
  return {};
}

Status FileTree::remove(std::string_view path) {
  std::string_view name;
  const NodePtr directory = parent_of(path, name);
  const NodePtr node = find(path);
  if (directory == nullptr || node == nullptr || name.empty()) {
    return error_at(ErrorKind::not_found, path, "no such file");
  }
  if (!node->entries.empty()) {
    return error_at(ErrorKind::exists, path, "the directory is not empty");
  }
  apply({{directory, std::string(name), nullptr}});
  return {};
}

Status FileTree::link(std::string_view from, std::string_view to) {
  std::string_view name;
  const NodePtr node = find_file(from);
  const NodePtr directory = parent_of(to, name);
  if (node == nullptr) {
    return error_at(ErrorKind::not_found, from, "no such file");
  }
  if (directory == nullptr || name.empty()) {
    return error_at(ErrorKind::not_found, to, "no such directory");
  }
  if (directory->entries.find(name) != directory->entries.end()) {
    return error_at(ErrorKind::exists, to, "already there");
  }
  apply({{directory, std::string(name), node}});
  return {};
}

void FileTree::write(Node& file, uint64_t offset, std::string_view data) {
  const uint64_t old_size = file.content.size();
  Node::Undo undo{file.next_sequence++, offset, data.size(), old_size, false, {}};
  if (offset < old_size) {
    undo.old_bytes = file.content.substr(offset, data.size());
  }
  file.unsynced.push_back(std::move(undo));
  overwrite(file.content, offset, data);
  if (file.links > 0) {
    used_ += file.content.size() - old_size;
  }
  if (file.unsynced.size() > kUnsyncedMax) {
    sync(file, file.unsynced.front().sequence + 1);
  }
}

void FileTree::truncate(Node& file, uint64_t size) {
  const uint64_t old_size = file.content.size();
  Node::Undo undo{file.next_sequence++, size, 0, old_size, true, {}};
  if (size < old_size) {
    undo.old_bytes = file.content.substr(size);
  }
  file.unsynced.push_back(std::move(undo));
  file.content.resize(size);
  if (file.links > 0) {
    used_ += size;
    used_ -= old_size;
  }
}

// ---- Durability -----------------------------------------------------------------------------------------------------

void FileTree::sync(Node& file, uint64_t mark) {
  while (!file.unsynced.empty() && file.unsynced.front().sequence < mark) {
    const Node::Undo& undo = file.unsynced.front();
    if (file.durable.has_value()) {
      if (undo.is_truncation) {
        file.durable->resize(undo.offset);
      } else {
        // The pages go out as they stand, later changes included.
        overwrite(*file.durable, undo.offset,
                  std::string_view(file.content).substr(std::min(undo.offset, file.content.size()), undo.length));
      }
    }
    file.unsynced.pop_front();
  }
}

void FileTree::fail_sync(Node& file, uint64_t mark) {
  if (!file.durable.has_value()) {
    file.durable = durable_bytes(file);
  }
  while (!file.unsynced.empty() && file.unsynced.front().sequence < mark) {
    file.unsynced.pop_front();
  }
}

// A change that touches two directories takes what came before it in the other along, so that names never contradict.
void FileTree::sync_directory(Node& directory) {
  std::vector<const Node*> touched{&directory};
  std::vector<bool> durable(pending_.size(), false);
  for (size_t i = pending_.size(); i > 0; --i) {
    const Change& change = pending_[i - 1];
    durable[i - 1] = std::any_of(change.begin(), change.end(), [&](const Edit& edit) {
      return std::find(touched.begin(), touched.end(), edit.directory.get()) != touched.end();
    });
    if (durable[i - 1]) {
      for (const Edit& edit : change) {
        touched.push_back(edit.directory.get());
      }
    }
  }
  std::deque<Change> left;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (!durable[i]) {
      left.push_back(std::move(pending_[i]));
      continue;
    }
    for (const Edit& edit : pending_[i]) {
      make_durable(edit);
    }
  }
  pending_ = std::move(left);
}

void FileTree::power_loss(RandomStream& draws, const std::function<bool(const std::string&)>& scattered,
                          uint32_t bit_flip_ppm) {
  const uint64_t kept = draws.below(pending_.size() + 1);
  for (uint64_t i = 0; i < kept; ++i) {
    for (const Edit& edit : pending_[i]) {
      make_durable(edit);
    }
  }
  pending_.clear();
  const uint64_t key = draws.next();
  auto survive = [&](auto&& self, const NodePtr& directory, const std::string& path) -> void {
    directory->entries = directory->durable_entries;
    for (const auto& [name, node] : directory->entries) {
      const std::string child_path = joined(path, name);
      if (node->is_directory) {
        self(self, node, child_path);
      } else {
        lose_unsynced(*node, RandomStream(mix(key, stable_hash(child_path))), scattered(child_path), bit_flip_ppm);
      }
    }
  };
  survive(survive, root_, "");
  recount();
}

void FileTree::lose_unsynced(Node& file, RandomStream draws, bool scattered, uint32_t bit_flip_ppm) {
  if (file.unsynced.empty() && !file.durable.has_value()) {
    return;
  }
  std::vector<std::string> written(file.unsynced.size());
  for (size_t i = file.unsynced.size(); i > 0; --i) {
    written[i - 1] = take_back(file.content, file.unsynced[i - 1]);
  }
  if (file.durable.has_value()) {
    file.content = std::move(*file.durable);
    file.durable.reset();
  }
  const uint64_t whole = draws.below(file.unsynced.size() + 1);
  for (size_t i = 0; i < file.unsynced.size(); ++i) {
    const Node::Undo& change = file.unsynced[i];
    if (change.is_truncation) {
      if (scattered ? draws.below(2) == 0 : i < whole) {
        file.content.resize(change.offset);
      }
    } else if (!scattered) {
      const bool torn = i == whole && draws.below(2) == 0;
      const uint64_t length = i < whole ? change.length : torn ? draws.below(change.length + 1) : 0;
      if (length > 0) {
        overwrite(file.content, change.offset, std::string_view(written[i]).substr(0, length));
      }
    } else {
      // Sector by sector, aligned as on the device.
      for (uint64_t at = 0; at < change.length;) {
        const uint64_t length = std::min(change.length - at, kSectorBytes - (change.offset + at) % kSectorBytes);
        if (draws.below(2) == 0) {
          if (draws.chance_ppm(bit_flip_ppm)) {
            written[i][at + draws.below(length)] ^= static_cast<char>(1 << draws.below(8));
          }
          overwrite(file.content, change.offset + at, std::string_view(written[i]).substr(at, length));
        }
        at += length;
      }
    }
  }
  file.unsynced.clear();
}

void FileTree::recount() {
  walk(root_, "", [](const std::string&, const NodePtr& node) { node->links = 0; });
  used_ = 0;
  walk(root_, "", [this](const std::string&, const NodePtr& node) {
    if (node->links++ == 0) {
      used_ += node->content.size();
    }
  });
}

// ---- Plans and checks -----------------------------------------------------------------------------------------------

FileTree::Image FileTree::copy(std::string_view path) const {
  Image image;
  const NodePtr top = find(path);
  if (top == nullptr) {
    return image;
  }
  NARAD_CHECK(top->is_directory, "an image is of a directory");
  walk(top, "", [&image](const std::string& relative, const NodePtr& node) {
    if (node->is_directory) {
      image.directories.push_back(relative);
    } else {
      image.files[relative] = node->content;
    }
  });
  return image;
}

NodePtr FileTree::make_directories(std::string_view path) {
  NodePtr node = root_;
  for (std::string_view name = next_name(path); !name.empty(); name = next_name(path)) {
    auto entry = node->entries.find(name);
    if (entry == node->entries.end()) {
      auto made = std::make_shared<Node>();
      made->is_directory = true;
      set_entry(*node, std::string(name), made);
      node->durable_entries[std::string(name)] = made;
      node = made;
    } else {
      NARAD_CHECK(entry->second->is_directory, "a file stands where a directory is to be");
      node = entry->second;
    }
  }
  return node;
}

void FileTree::put_file(std::string_view path, std::string content) {
  const size_t slash = path.rfind('/');
  const NodePtr directory = make_directories(slash == std::string_view::npos ? "" : path.substr(0, slash));
  const std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  auto file = std::make_shared<Node>();
  file->content = std::move(content);
  drop_pending(*directory, name);
  set_entry(*directory, name, file);
  directory->durable_entries[name] = file;
}

void FileTree::put(std::string_view path, const Image& image) {
  erase(path);
  make_directories(path);
  for (const std::string& directory : image.directories) {
    make_directories(joined(std::string(path), directory));
  }
  for (const auto& [relative, content] : image.files) {
    put_file(joined(std::string(path), relative), content);
  }
}

void FileTree::erase(std::string_view path) {
  std::string_view name;
  const NodePtr directory = parent_of(path, name);
  if (directory == nullptr) {
    return;
  }
  if (name.empty()) {
    root_->entries.clear();
    root_->durable_entries.clear();
    pending_.clear();
  } else {
    directory->entries.erase(std::string(name));
    directory->durable_entries.erase(std::string(name));
    drop_pending(*directory, name);
  }
  recount();
}

void FileTree::drop_pending(const Node& directory, std::string_view name) {
  std::erase_if(pending_, [&](const Change& change) {
    return std::any_of(change.begin(), change.end(),
                       [&](const Edit& edit) { return edit.directory.get() == &directory && edit.name == name; });
  });
}

}  // namespace io::sim

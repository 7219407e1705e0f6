// A bounded cache of topic records on the loop. Always as new as the last published batch: publishing drops what the batch
// changed. The least recently used record goes when it is full.
#pragma once

#include <memory>
#include <string_view>

#include "engine/metastore/name_table.h"
#include "engine/metastore/topic.h"
#include "io/check.h"

namespace engine::metastore {

class RecordCache {
 public:
  explicit RecordCache(size_t capacity) : capacity_(capacity) { NARAD_CHECK(capacity > 0, "a cache without room"); }

  // Null when it is not here, which says nothing about whether there is such a topic.
  std::shared_ptr<const Topic> find(std::string_view name) {
    Node* found = records_.find(name);
    if (found == nullptr) {
      return nullptr;
    }
    if (found != newest_) {
      unlink(*found);
      link_newest(*found);
    }
    return found->value.topic;
  }

  void insert(std::shared_ptr<const Topic> topic) {
    drop(topic->name);
    if (records_.size() == capacity_) {
      drop(oldest_->value.topic->name);
    }
    Node& node = records_.add(topic->name);
    node.value.topic = std::move(topic);
    link_newest(node);
  }

  void drop(std::string_view name) {
    if (Node* found = records_.find(name); found != nullptr) {
      unlink(*found);
      // The name may be that of the record itself, which is to outlive the search for it.
      const std::shared_ptr<const Topic> last = std::move(found->value.topic);
      NARAD_CHECK(records_.erase(name), "a record that was just found");
    }
  }

  void clear() {
    records_.clear();
    newest_ = nullptr;
    oldest_ = nullptr;
  }

  size_t size() const { return records_.size(); }

 private:
  struct Record;
  using Node = NameTable<Record>::Node;
  struct Record {
    std::shared_ptr<const Topic> topic;
    Node* newer = nullptr;
    Node* older = nullptr;
  };

  void unlink(Node& node) {
    (node.value.newer == nullptr ? newest_ : node.value.newer->value.older) = node.value.older;
    (node.value.older == nullptr ? oldest_ : node.value.older->value.newer) = node.value.newer;
  }

  void link_newest(Node& node) {
    node.value.newer = nullptr;
    node.value.older = newest_;
    (newest_ == nullptr ? oldest_ : newest_->value.newer) = &node;
    newest_ = &node;
  }

  const size_t capacity_;
  NameTable<Record> records_;
  Node* newest_ = nullptr;
  Node* oldest_ = nullptr;
};

}  // namespace engine::metastore

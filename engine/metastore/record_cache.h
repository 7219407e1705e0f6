// A bounded cache of topic records on the loop. Always as new as the last published batch: publishing drops what the batch
// changed. The least recently used record goes when it is full.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/metastore/topic.h"
#include "io/check.h"

namespace engine::metastore {

class RecordCache {
 public:
  explicit RecordCache(size_t capacity) : capacity_(capacity) { NARAD_CHECK(capacity > 0, "a cache without room"); }

  // Null when it is not here, which says nothing about whether there is such a topic.
  std::shared_ptr<const Topic> find(std::string_view name) {
    auto found = places_.find(name);
    if (found == places_.end()) {
      return nullptr;
    }
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return *found->second;
  }

  void insert(std::shared_ptr<const Topic> topic) {
    drop(topic->name);
    if (places_.size() == capacity_) {
      places_.erase(by_use_.back()->name);
      by_use_.pop_back();
    }
    by_use_.push_front(topic);
    places_.emplace(topic->name, by_use_.begin());
  }

  void drop(std::string_view name) {
    auto found = places_.find(name);
    if (found != places_.end()) {
      by_use_.erase(found->second);
      places_.erase(found);
    }
  }

  void clear() {
    places_.clear();
    by_use_.clear();
  }

  size_t size() const { return places_.size(); }

 private:
  using ByUse = std::list<std::shared_ptr<const Topic>>;
  const size_t capacity_;
  ByUse by_use_;  // newest first
  std::map<std::string, ByUse::iterator, std::less<>> places_;
};

}  // namespace engine::metastore

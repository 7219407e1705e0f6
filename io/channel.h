// A bounded queue between fibers of one node. Full: send waits, try_send refuses. Closed: what is queued can still be
// received, nothing more can be sent.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "io/check.h"
#include "io/fiber.h"

namespace io {

template <typename T>
class Channel {
 public:
  // `capacity` items at most, > 0.
  explicit Channel(size_t capacity) : capacity_(capacity) { NARAD_CHECK(capacity > 0, "a channel without room"); }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  bool closed() const { return closed_; }

  // False when closed, or when the deadline passed with no room; the item is then not queued.
  bool send(T item, Instant deadline = kNever) {
    while (!closed_ && items_.size() >= capacity_) {
      if (!room_.wait(deadline)) {
        return false;
      }
    }
    return try_send(std::move(item));
  }

  // False when full or closed. Never waits; may be called from outside a fiber.
  bool try_send(T item) {
    if (closed_ || items_.size() >= capacity_) {
      return false;
    }
    items_.push_back(std::move(item));
    arrived_.notify_all();
    return true;
  }

  // The oldest item; nullopt when closed and drained, or when the deadline passed with nothing queued.
  std::optional<T> receive(Instant deadline = kNever) {
    while (items_.empty()) {
      if (closed_ || !arrived_.wait(deadline)) {
        if (items_.empty()) {
          return std::nullopt;
        }
      }
    }
    return try_receive();
  }

  std::optional<T> try_receive() {
    if (items_.empty()) {
      return std::nullopt;
    }
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    room_.notify_all();
    return item;
  }

  void close() {
    closed_ = true;
    arrived_.notify_all();
    room_.notify_all();
  }

 private:
  size_t capacity_;
  bool closed_ = false;
  std::deque<T> items_;
  Condition arrived_;
  Condition room_;
};

}  // namespace io

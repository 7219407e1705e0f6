#include "sim/topic_model.h"

#include <algorithm>

#include "io/check.h"

namespace sim {

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::done: return "done";
    case Verdict::already_exists: return "already exists";
    case Verdict::not_found: return "not found";
    case Verdict::changed: return "changed since it was read";
  }
  return "";
}

Topic model_topic(const engine::metastore::Topic& record) {
  return Topic{record.name,
               record.id,
               record.partitions,
               record.retention_ms,
               record.visibility_timeout_ms,
               record.max_in_flight_per_partition,
               record.max_acked_ahead_per_partition,
               record.created_at,
               record.parent,
               record.fanout_delay_ms,
               record.children};
}

std::string fold_case(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return folded;
}

Verdict TopicModel::judge(const Change& change) const {
  const Topic* present = now(change.topic.name);
  if (change.kind == ChangeKind::create) {
    const bool clashes = change.is_checked && !clash_at(change.topic.name, ~Index{0}).empty();
    return present != nullptr || clashes ? Verdict::already_exists : Verdict::done;
  }
  if (present == nullptr) {
    return Verdict::not_found;
  }
  const bool is_other = change.expected_id && *change.expected_id != present->id;
  const bool shrinks = change.kind == ChangeKind::update && change.is_checked && change.topic.partitions < present->partitions;
  return is_other || shrinks ? Verdict::changed : Verdict::done;
}

Verdict TopicModel::apply(Index index, const Change& change) {
  NARAD_CHECK(changes_.empty() || changes_.back() < index, "the model is told entries in order");
  if (const Verdict verdict = judge(change); verdict != Verdict::done) {
    return verdict;
  }
  const std::string& name = change.topic.name;
  if (change.kind == ChangeKind::remove) {
    put(index, name, std::nullopt);
    return Verdict::done;
  }
  Topic next = change.topic;
  if (change.kind == ChangeKind::create) {
    created_.emplace(change.topic.id, index);
  } else {
    const Topic& present = *now(name);
    next.id = present.id;
    next.parent = present.parent;
    next.fanout_delay_ms = present.fanout_delay_ms;
    next.children = present.children;
    if (change.is_checked) {
      next.visibility_timeout_ms = present.visibility_timeout_ms;
      next.created_at = present.created_at;
    }
  }
  put(index, name, std::move(next));
  if (const auto call = call_of_tag(change.topic.retention_ms)) {
    effects_.emplace(*call, index);
  }
  return Verdict::done;
}

void TopicModel::follow(Index index, const std::string& name, std::optional<Topic> topic) {
  NARAD_CHECK(changes_.empty() || changes_.back() <= index, "the model is told entries in order");
  const Topic* present = now(name);
  if (topic ? present != nullptr && *present == *topic : present == nullptr) {
    return;
  }
  if (topic && present == nullptr) {
    created_.emplace(topic->id, index);
  }
  put(index, name, std::move(topic));
}

void TopicModel::note_link(Index index, const std::string& parent, const std::string& child, bool is_attach) {
  links_[(is_attach ? "+" : "-") + parent + "/" + child].push_back(index);
}

void TopicModel::note_schemas(Index index, const std::string& name, Schemas schemas) { schemas_[name].emplace_back(index, schemas); }

std::vector<Index> TopicModel::links(const std::string& parent, const std::string& child, bool is_attach) const {
  const auto found = links_.find((is_attach ? "+" : "-") + parent + "/" + child);
  return found == links_.end() ? std::vector<Index>() : found->second;
}

Schemas TopicModel::schemas_at(const std::string& name, Index index) const {
  Schemas schemas;
  if (const auto found = schemas_.find(name); found != schemas_.end()) {
    for (const auto& [since, value] : found->second) {
      schemas = since <= index ? value : schemas;
    }
  }
  return schemas;
}

std::vector<Index> TopicModel::schema_moments(const std::string& name, Index low, Index high) const {
  std::vector<Index> result{low};
  if (const auto found = schemas_.find(name); found != schemas_.end()) {
    for (const auto& [since, value] : found->second) {
      if (since > low && since <= high) {
        result.push_back(since);
      }
    }
  }
  return result;
}

void TopicModel::put(Index index, const std::string& name, std::optional<Topic> topic) {
  auto [place, is_new] = names_.try_emplace(name);
  if (is_new) {
    folded_[fold_case(name)].push_back(name);
  }
  place->second.push_back({index, std::move(topic)});
  changes_.push_back(index);
}

const TopicModel::Version* TopicModel::version_at(const std::string& name, Index index) const {
  const auto found = names_.find(name);
  if (found == names_.end()) {
    return nullptr;
  }
  const auto& versions = found->second;
  const auto after = std::upper_bound(versions.begin(), versions.end(), index,
                                      [](Index i, const Version& version) { return i < version.index; });
  return after == versions.begin() ? nullptr : &*(after - 1);
}

const Topic* TopicModel::at(const std::string& name, Index index) const {
  const Version* version = version_at(name, index);
  return version != nullptr && version->topic ? &*version->topic : nullptr;
}

std::string TopicModel::clash_at(const std::string& name, Index index) const {
  const auto found = folded_.find(fold_case(name));
  if (found != folded_.end()) {
    for (const std::string& candidate : found->second) {
      if (at(candidate, index) != nullptr) {
        return candidate;
      }
    }
  }
  return "";
}

std::vector<Index> TopicModel::moments(const std::string& name, Index low, Index high) const {
  std::vector<Index> result{low};
  if (const auto found = names_.find(name); found != names_.end()) {
    const auto& versions = found->second;
    auto next = std::upper_bound(versions.begin(), versions.end(), low,
                                 [](Index i, const Version& version) { return i < version.index; });
    for (; next != versions.end() && next->index <= high; ++next) {
      result.push_back(next->index);
    }
  }
  return result;
}

std::vector<Index> TopicModel::moments(Index low, Index high) const {
  std::vector<Index> result{low};
  auto next = std::upper_bound(changes_.begin(), changes_.end(), low);
  for (; next != changes_.end() && *next <= high; ++next) {
    result.push_back(*next);
  }
  return result;
}

std::vector<const Topic*> TopicModel::list(Index index, std::string_view after, size_t limit) const {
  std::vector<const Topic*> result;
  for (auto next = names_.upper_bound(std::string(after)); next != names_.end() && result.size() < limit; ++next) {
    if (const Topic* topic = at(next->first, index)) {
      result.push_back(topic);
    }
  }
  return result;
}

size_t TopicModel::count_now() const {
  return static_cast<size_t>(std::count_if(names_.begin(), names_.end(),
                                           [](const auto& entry) { return entry.second.back().topic.has_value(); }));
}

std::optional<Index> TopicModel::created_at(const std::string& id) const {
  const auto found = created_.find(id);
  return found == created_.end() ? std::nullopt : std::optional<Index>(found->second);
}

std::optional<Index> TopicModel::effect_of(uint64_t call) const {
  const auto found = effects_.find(call);
  return found == effects_.end() ? std::nullopt : std::optional<Index>(found->second);
}

std::vector<Index> TopicModel::deletions(const std::string& name, Index low, Index high) const {
  std::vector<Index> result;
  if (const auto found = names_.find(name); found != names_.end()) {
    for (const Version& version : found->second) {
      if (version.index > low && version.index <= high && !version.topic) {
        result.push_back(version.index);
      }
    }
  }
  return result;
}

}  // namespace sim

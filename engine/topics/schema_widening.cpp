// Which schema may follow another one.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/metastore/json_value.h"
#include "engine/topics/decimal.h"
#include "engine/topics/json_source.h"
#include "engine/topics/schema_keywords.h"
#include "engine/topics/schema_rules.h"

namespace engine::topics {

namespace {

using json::Value;
using Kind = Value::Kind;

// One text for equal values.
std::string canonical(const Value& value) {
  const std::string text = json::to_text(value);
  return metastore::canonical_json(text).value_or(text);
}

// The value without its annotations, at every place where a schema stands.
Value without_annotations(const Value& schema) {
  Value bare = schema;
  for (auto item = bare.object.begin(); item != bare.object.end();) {
    item = is_annotation(item->first) ? bare.object.erase(item) : std::next(item);
  }
  for (auto& [word, value] : bare.object) {
    const Keyword* keyword = find_keyword(word);
    if (keyword == nullptr) {
      continue;
    }
    const bool is_map = keyword->holds == Holds::schema_map || keyword->holds == Holds::schema_or_names_map;
    if (value.is(Kind::array)) {
      for (Value& item : value.array) {
        item = without_annotations(item);
      }
    } else if (is_map) {
      for (auto& [name, item] : value.object) {
        item = without_annotations(item);
      }
    } else {
      value = without_annotations(value);
    }
  }
  return bare;
}

bool is_true(const Value* value) { return value != nullptr && value->is(Kind::boolean) && value->boolean; }
bool is_false(const Value* value) { return value != nullptr && value->is(Kind::boolean) && !value->boolean; }

// ---- Keywords without schemas: whether the new value accepts all that the old one does. Null: the keyword is not there. --------

std::set<std::string> type_names(const Value& value) {
  std::set<std::string> names;
  if (value.is(Kind::string)) {
    names.insert(value.text);
  }
  for (const Value& item : value.array) {
    names.insert(item.text);
  }
  return names;
}

bool type_widens(const Value* before, const Value* after) {
  if (before == nullptr || after == nullptr) {
    return after == nullptr;
  }
  const std::set<std::string> now = type_names(*after);
  const std::set<std::string> then = type_names(*before);
  return std::all_of(then.begin(), then.end(), [&](const std::string& name) {
    return now.contains(name) || (name == "integer" && now.contains("number"));
  });
}

// The values that enum and const leave; nullopt: all.
std::optional<std::set<std::string>> listed(const Value& schema) {
  std::optional<std::set<std::string>> values;
  if (const Value* list = schema.find("enum")) {
    values.emplace();
    for (const Value& item : list->array) {
      values->insert(canonical(item));
    }
  }
  if (const Value* only = schema.find("const")) {
    const std::string value = canonical(*only);
    values = !values || values->contains(value) ? std::set<std::string>{value} : std::set<std::string>();
  }
  return values;
}

bool list_widens(const Value& before, const Value& after) {
  const auto now = listed(after);
  const auto then = listed(before);
  return !now || (then && std::includes(now->begin(), now->end(), then->begin(), then->end()));
}

enum class Direction { down, up };

// A bound that lets more through the further it moves in `direction`. A flag (draft 04's exclusive bounds) may become false.
bool bound_widens(const Value* before, const Value* after, Direction direction) {
  if (after == nullptr || is_false(after)) {
    return true;
  }
  if (before == nullptr) {
    return false;
  }
  if (is_true(before) || is_true(after)) {
    return is_true(before);
  }
  const std::optional<Decimal> then = decimal_of(*before);
  const std::optional<Decimal> now = decimal_of(*after);
  if (!then || !now) {
    return false;
  }
  const std::strong_ordering order = compare(*now, *then);
  return direction == Direction::down ? order <= 0 : order >= 0;
}

bool count_widens(const Value* before, const Value* after, Direction direction) {
  const bool is_zero = after != nullptr && decimal_of(*after) == Decimal{};
  return (direction == Direction::down && is_zero) || bound_widens(before, after, direction);
}

bool multiple_widens(const Value* before, const Value* after) {
  if (after == nullptr) {
    return true;
  }
  if (before == nullptr) {
    return false;
  }
  const std::optional<Decimal> then = decimal_of(*before);
  const std::optional<Decimal> now = decimal_of(*after);
  return then && now && (*then == *now || is_multiple(*then, *now));
}

bool required_widens(const Value* before, const Value* after) {
  if (after == nullptr) {
    return true;
  }
  std::set<std::string> then;
  if (before != nullptr) {
    for (const Value& name : before->array) {
      then.insert(name.text);
    }
  }
  return std::all_of(after->array.begin(), after->array.end(), [&](const Value& name) { return then.contains(name.text); });
}

bool stays_or_goes(const Value* before, const Value* after) {
  return after == nullptr || (before != nullptr && canonical(*before) == canonical(*after));
}

// ---- The comparison --------------------------------------------------------------------------------------------------------

class Comparison {
 public:
  Comparison(const Value& old_root, const Value& new_root)
      : old_(old_root), new_(new_root), has_lone_references_(dialect_of(new_root) >= Dialect::d07) {}

  // Why the new document does not accept all that the old one does; "": it does.
  std::string why_not() {
    if (old_.is_too_large() || new_.is_too_large()) {
      return "the schemas are too costly to compare";
    }
    if (!stays(old_.at(0).value->find("$schema"), new_.at(0).value->find("$schema"))) {
      return "#: $schema must stay";
    }
    return widens(0, 0) && steps_ <= kSchemaStepsMax ? "" : steps_ > kSchemaStepsMax ? "the schemas are too costly to compare" : why_;
  }

 private:
  using Pair = std::pair<size_t, size_t>;  // old, new

  static bool stays(const Value* before, const Value* after) {
    const auto dialect = [](const Value* uri) {
      return uri == nullptr ? Dialect::d2020_12 : find_dialect(uri->text).value_or(Dialect::d2020_12);
    };
    return dialect(before) == dialect(after);
  }

  bool fail(size_t number, std::string_view word) {
    if (why_.empty()) {
      why_ = new_.at(number).pointer + ": " + std::string(word) + " must not accept less than before";
    }
    return false;
  }

  // Whether it holds is taken for granted while it is being found out: a recursive schema is compared once.
  bool widens(size_t before, size_t after) {
    const Pair pair{before, after};
    const auto [known, is_new] = known_.emplace(pair, true);
    if (!is_new || ++steps_ > kSchemaStepsMax) {
      return known->second;
    }
    const size_t since = granted_.size();
    granted_.push_back(pair);
    if (judge(before, after)) {
      return true;
    }
    // What was found true meanwhile may rest on what was granted here.
    for (; granted_.size() > since; granted_.pop_back()) {
      known_.erase(granted_.back());
    }
    known_[pair] = false;
    return false;
  }

  bool judge(size_t before, size_t after) {
    const Value& then = *old_.at(before).value;
    const Value& now = *new_.at(after).value;
    if (is_true(&now) || is_false(&then)) {
      return true;
    }
    if (is_false(&now)) {
      return fail(after, "false");
    }
    // What is a reference and nothing else stands for what it leads to.
    if (is_bare_reference(old_, before)) {
      return widens(*old_.at(before).reference, after);
    }
    if (is_bare_reference(new_, after)) {
      return widens(before, *new_.at(after).reference);
    }
    if (plain_words(then, now, after) && members(before, after) && items(before, after) && branches(before, after) &&
        others(before, after)) {
      return true;
    }
    return follows_from_a_part(before, after);
  }

  // What must hold beside other words holds for all that the whole accepts.
  bool follows_from_a_part(size_t before, size_t after) {
    std::vector<size_t> parts = branches_of(old_, before, "allOf");
    if (old_.at(before).reference) {
      parts.push_back(*old_.at(before).reference);
    }
    const std::string why = why_;
    const bool follows = std::any_of(parts.begin(), parts.end(), [&](size_t part) { return may_widen(part, after); });
    why_ = follows ? "" : why;
    return follows;
  }

  bool is_bare_reference(const SchemaGraph& graph, size_t number) const {
    const SchemaGraph::Schema& schema = graph.at(number);
    const auto& words = schema.value->object;
    return schema.reference && (has_lone_references_ || std::all_of(words.begin(), words.end(), [](const auto& item) {
             return item.first == "$ref" || item.first == "$schema" || item.first == "$defs" || item.first == "definitions" ||
                    is_annotation(item.first);
           }));
  }

  bool plain_words(const Value& then, const Value& now, size_t after) {
    const auto both = [&](const char* word, auto widens_word) {
      return widens_word(then.find(word), now.find(word)) || fail(after, word);
    };
    const auto rises = [](const Value* b, const Value* a) { return bound_widens(b, a, Direction::up); };
    const auto falls = [](const Value* b, const Value* a) { return bound_widens(b, a, Direction::down); };
    const auto counts_up = [](const Value* b, const Value* a) { return count_widens(b, a, Direction::up); };
    const auto counts_down = [](const Value* b, const Value* a) { return count_widens(b, a, Direction::down); };
    return both("type", type_widens) && (list_widens(then, now) || fail(after, "enum or const")) && both("minimum", falls) &&
           both("exclusiveMinimum", falls) && both("maximum", rises) && both("exclusiveMaximum", rises) &&
           both("multipleOf", multiple_widens) && both("minLength", counts_down) && both("minItems", counts_down) &&
           both("minProperties", counts_down) && both("maxLength", counts_up) && both("maxItems", counts_up) &&
           both("maxProperties", counts_up) && both("pattern", stays_or_goes) && both("format", stays_or_goes) &&
           both("uniqueItems", [](const Value* b, const Value* a) { return a == nullptr || is_false(a) || is_true(b); }) &&
           both("required", required_widens);
  }

  static std::optional<size_t> child(const SchemaGraph& graph, size_t number, std::string_view word, std::string_view name = "") {
    for (const SchemaGraph::Child& each : graph.at(number).children) {
      if (each.keyword->name == word && each.name == name) {
        return each.schema;
      }
    }
    return std::nullopt;
  }

  bool members(size_t before, size_t after) {
    for (const SchemaGraph::Child& each : old_.at(before).children) {
      if (each.keyword->name == "properties") {
        const auto now = child(new_, after, "properties", each.name);
        if (!now || !widens(each.schema, *now)) {
          return fail(after, "properties/" + each.name);
        }
      }
    }
    return opens(before, after, "additionalProperties");
  }

  // A schema for whatever is not named: absent accepts everything.
  bool opens(size_t before, size_t after, std::string_view word) {
    const auto then = child(old_, before, word);
    const auto now = child(new_, after, word);
    if (!now || accepts_all(*now)) {
      return true;
    }
    return (then && widens(*then, *now)) || fail(after, word);
  }

  bool accepts_all(size_t number) const {
    const Value& schema = *new_.at(number).value;
    return is_true(&schema) || (schema.is(Kind::object) && std::all_of(schema.object.begin(), schema.object.end(),
                                                                       [](const auto& item) { return is_annotation(item.first); }));
  }

  bool items(size_t before, size_t after) {
    const Value* then = old_.at(before).value->find("items");
    const Value* now = new_.at(after).value->find("items");
    const bool is_list = (then != nullptr && then->is(Kind::array)) || (now != nullptr && now->is(Kind::array));
    if (!is_list || now == nullptr) {
      return opens(before, after, "items");
    }
    // A list of schemas, by position: none may come or go.
    if (then == nullptr || !then->is(Kind::array) || !now->is(Kind::array) || then->array.size() != now->array.size()) {
      return fail(after, "items");
    }
    for (size_t i = 0; i < then->array.size(); ++i) {
      const std::string place = std::to_string(i);
      if (!widens(*child(old_, before, "items", place), *child(new_, after, "items", place))) {
        return fail(after, "items");
      }
    }
    return true;
  }

  static std::vector<size_t> branches_of(const SchemaGraph& graph, size_t number, std::string_view word) {
    std::vector<size_t> found;
    for (const SchemaGraph::Child& each : graph.at(number).children) {
      if (each.keyword->name == word) {
        found.push_back(each.schema);
      }
    }
    return found;
  }

  // A try that may fail leaves no reason behind.
  bool may_widen(size_t before, size_t after) {
    const std::string why = why_;
    const bool holds = widens(before, after);
    why_ = why;
    return holds;
  }

  bool branches(size_t before, size_t after) {
    const std::vector<size_t> now_any = branches_of(new_, after, "anyOf");
    const std::vector<size_t> then_any = branches_of(old_, before, "anyOf");
    if (!now_any.empty()) {
      const bool covers = !then_any.empty() && std::all_of(then_any.begin(), then_any.end(), [&](size_t then) {
        return std::any_of(now_any.begin(), now_any.end(), [&](size_t now) { return may_widen(then, now); });
      });
      const bool takes_all = std::any_of(now_any.begin(), now_any.end(), [&](size_t now) { return may_widen(before, now); });
      if (!covers && !takes_all) {
        return fail(after, "anyOf");
      }
    }
    // A reference beside other words is one more branch that must hold.
    std::vector<size_t> now_all = branches_of(new_, after, "allOf");
    std::vector<size_t> then_all = branches_of(old_, before, "allOf");
    if (new_.at(after).reference) {
      now_all.push_back(*new_.at(after).reference);
    }
    if (old_.at(before).reference) {
      then_all.push_back(*old_.at(before).reference);
    }
    then_all.push_back(before);
    return std::all_of(now_all.begin(), now_all.end(), [&](size_t now) {
      return std::any_of(then_all.begin(), then_all.end(), [&](size_t then) { return may_widen(then, now); }) || fail(after, "allOf");
    });
  }

  // ---- Words that may only stay or go --------------------------------------------------------------------------------------

  static bool has_own_rule(std::string_view word) {
    static constexpr std::string_view kRuled[] = {
        "type",      "enum",     "const",     "minimum",       "maximum",    "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
        "minLength", "minItems", "maxLength", "minProperties", "maxItems",   "maxProperties",    "pattern",          "format",
        "required",  "items",    "anyOf",     "uniqueItems",   "properties", "allOf",            "$ref",             "$schema",
        "$defs",     "$id",      "id",        "definitions",   "$anchor",    "additionalProperties"};
    return std::find(std::begin(kRuled), std::end(kRuled), word) != std::end(kRuled) || is_annotation(word);
  }

  bool others(size_t before, size_t after) {
    const Value& then = *old_.at(before).value;
    const Value& now = *new_.at(after).value;
    for (const auto& [word, value] : now.object) {
      if (!has_own_rule(word) && !(then.find(word) != nullptr && is_same_word(word, before, after))) {
        return fail(after, word);
      }
    }
    return may_go(then, now, after);
  }

  // A word that is gone must leave nothing behind that now judges what it used to keep from it.
  bool may_go(const Value& then, const Value& now, size_t after) {
    const auto is_gone = [&](const char* word) { return then.find(word) != nullptr && now.find(word) == nullptr; };
    const auto is_open = [&](const char* word) { return now.find(word) == nullptr || is_true(now.find(word)); };
    if (is_gone("patternProperties") && !(is_open("additionalProperties") && is_open("unevaluatedProperties"))) {
      return fail(after, "patternProperties");
    }
    if (is_gone("prefixItems") && !(is_open("items") && is_open("unevaluatedItems"))) {
      return fail(after, "prefixItems");
    }
    if (is_gone("minContains") && now.find("contains") != nullptr) {
      return fail(after, "minContains");
    }
    return true;
  }

  bool is_same_word(const std::string& word, size_t before, size_t after) {
    if (canonical(*old_.at(before).value->find(word)) != canonical(*new_.at(after).value->find(word))) {
      return false;
    }
    // Equal texts; what their references lead to must be equal too.
    for (const SchemaGraph::Child& each : old_.at(before).children) {
      if (each.keyword->name == word) {
        const auto now = child(new_, after, word, each.name);
        if (!now || !is_same(each.schema, *now)) {
          return false;
        }
      }
    }
    return true;
  }

  // Equal texts already: compares what the references within lead to.
  bool is_same(size_t before, size_t after) {
    if (!same_.insert(Pair{before, after}).second || ++steps_ > kSchemaStepsMax) {
      return true;
    }
    const SchemaGraph::Schema& then = old_.at(before);
    const SchemaGraph::Schema& now = new_.at(after);
    if (then.children.size() != now.children.size() || then.reference.has_value() != now.reference.has_value()) {
      return false;
    }
    if (then.reference && (canonical(without_annotations(*old_.at(*then.reference).value)) !=
                               canonical(without_annotations(*new_.at(*now.reference).value)) ||
                           !is_same(*then.reference, *now.reference))) {
      return false;
    }
    for (size_t i = 0; i < then.children.size(); ++i) {
      if (!is_same(then.children[i].schema, now.children[i].schema)) {
        return false;
      }
    }
    return true;
  }

  const SchemaGraph old_;
  const SchemaGraph new_;
  const bool has_lone_references_;  // up to draft 07 nothing beside a $ref counts; both are of one dialect
  std::map<Pair, bool> known_;
  std::vector<Pair> granted_;  // those that are true so far, in the order of asking
  std::set<Pair> same_;
  size_t steps_ = 0;
  std::string why_;
};

}  // namespace

SchemaComparison compare_schemas(std::string_view old_schema, std::string_view new_schema) {
  const io::Result<Value> before = json::parse(old_schema, kSchemaDepthMax);
  const io::Result<Value> after = json::parse(new_schema, kSchemaDepthMax);
  if (!before.ok() || !after.ok()) {
    return {metastore::is_same_json(old_schema, new_schema) ? SchemaChange::none : SchemaChange::narrows, "a schema cannot be read"};
  }
  if (canonical(without_annotations(*before)) == canonical(without_annotations(*after))) {
    return {};
  }
  std::string why = Comparison(*before, *after).why_not();
  return {why.empty() ? SchemaChange::widens : SchemaChange::narrows, std::move(why)};
}

}  // namespace engine::topics

// Which schemas may be registered.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/topics/decimal.h"
#include "engine/topics/json_source.h"
#include "engine/topics/schema_keywords.h"
#include "engine/topics/schema_rules.h"

namespace engine::topics {

namespace {

using json::Value;
using Kind = Value::Kind;

bool is_schema(const Value& value) { return value.is(Kind::object) || value.is(Kind::boolean); }
bool are_strings(const Value& value) {
  return value.is(Kind::array) && std::all_of(value.array.begin(), value.array.end(), [](const Value& item) { return item.is(Kind::string); });
}

bool is_type_name(const Value& value) {
  static constexpr std::string_view kNames[] = {"null", "boolean", "object", "array", "number", "string", "integer"};
  return value.is(Kind::string) && std::find(std::begin(kNames), std::end(kNames), value.text) != std::end(kNames);
}

bool is_type(const Value& value) {
  if (!value.is(Kind::array)) {
    return is_type_name(value);
  }
  std::set<std::string> names;
  return !value.array.empty() && std::all_of(value.array.begin(), value.array.end(), [&](const Value& item) {
    return is_type_name(item) && names.insert(item.text).second;
  });
}

bool is_count(const Value& value) {
  const std::optional<Decimal> number = decimal_of(value);
  return number && !number->is_negative && number->exponent >= 0;
}

bool is_positive(const Value& value) {
  const std::optional<Decimal> number = decimal_of(value);
  return number && !number->is_negative && !number->digits.empty();
}

// Values of the keywords that hold no schemas.
struct Plain {
  std::string_view name;
  bool (*fits)(const Value&);
  std::string_view must_be;
};

constexpr Plain kPlain[] = {
    {"type", is_type, "a type name, or a list of different ones"},
    {"enum", [](const Value& value) { return value.is(Kind::array); }, "an array"},
    {"minimum", [](const Value& value) { return decimal_of(value).has_value(); }, "a number"},
    {"maximum", [](const Value& value) { return decimal_of(value).has_value(); }, "a number"},
    {"multipleOf", is_positive, "a number above 0"},
    {"minLength", is_count, "a whole number from 0 on"},
    {"maxLength", is_count, "a whole number from 0 on"},
    {"minItems", is_count, "a whole number from 0 on"},
    {"maxItems", is_count, "a whole number from 0 on"},
    {"minProperties", is_count, "a whole number from 0 on"},
    {"maxProperties", is_count, "a whole number from 0 on"},
    {"minContains", is_count, "a whole number from 0 on"},
    {"maxContains", is_count, "a whole number from 0 on"},
    {"pattern", [](const Value& value) { return value.is(Kind::string); }, "a string"},
    {"format", [](const Value& value) { return value.is(Kind::string); }, "a string"},
    {"uniqueItems", [](const Value& value) { return value.is(Kind::boolean); }, "true or false"},
    {"required", are_strings, "an array of strings"},
};

// Looks at every schema of a document; keeps the first thing that is wrong.
class Walker {
 public:
  Walker(const Value& root, const SchemaGraph& graph) : dialect_(dialect_of(root)), graph_(graph) {}

  std::string check() {
    for (size_t number = 0; number < graph_.size() && error_.empty(); ++number) {
      const SchemaGraph::Schema& schema = graph_.at(number);
      if (!is_schema(*schema.value)) {
        wrong(schema.pointer, "a schema must be an object or a boolean, not " + std::string(json::name_of(schema.value->kind)));
      }
      for (const auto& [word, value] : schema.value->object) {
        check_keyword(schema, word, value);
      }
    }
    return error_;
  }

 private:
  void wrong(const std::string& place, const std::string& what) {
    if (error_.empty()) {
      error_ = place + ": " + what;
    }
  }

  void check_keyword(const SchemaGraph::Schema& schema, const std::string& word, const Value& value) {
    const std::string& place = schema.pointer;
    const bool is_top = place == "#";
    if (const Keyword* keyword = find_keyword(word)) {
      check_shape(*keyword, value, place);
    }
    for (const Plain& plain : kPlain) {
      if (plain.name == word && !plain.fits(value)) {
        wrong(place, word + " must be " + std::string(plain.must_be));
      }
    }
    if (word == "exclusiveMinimum" || word == "exclusiveMaximum") {
      const bool is_flag = dialect_ == Dialect::d04;
      if (is_flag ? !value.is(Kind::boolean) : !decimal_of(value)) {
        wrong(place, word + (is_flag ? " must be true or false" : " must be a number"));
      }
    } else if (word == "dependentRequired") {
      const bool fits = value.is(Kind::object) && std::all_of(value.object.begin(), value.object.end(),
                                                              [](const auto& item) { return are_strings(item.second); });
      if (!fits) {
        wrong(place, "dependentRequired must be an object of arrays of strings");
      }
    } else if (word == "$schema") {
      if (!value.is(Kind::string) || !find_dialect(value.text)) {
        wrong(place, "$schema must name draft 2020-12, 2019-09, 07, 06 or 04");
      }
    } else if (word == "$ref") {
      if (!schema.reference) {
        wrong(place, "$ref must be a pointer (\"#/...\") to a schema in this document");
      }
    } else if (word == "$dynamicRef" || word == "$recursiveRef") {
      wrong(place, word + " is not supported; use $ref with a pointer into the schema");
    } else if ((word == "$id" || (word == "id" && dialect_ == Dialect::d04)) && !is_top && !(value.is(Kind::string) && value.text.starts_with('#'))) {
      wrong(place, word + " may stand at the top alone");
    }
  }

  void check_shape(const Keyword& keyword, const Value& value, const std::string& place) {
    bool fits = true;
    switch (keyword.holds) {
      case Holds::value: break;
      case Holds::schema: fits = is_schema(value); break;
      case Holds::schemas: fits = value.is(Kind::array) && !value.array.empty(); break;
      case Holds::schema_map: fits = value.is(Kind::object); break;
      case Holds::schema_or_schemas: fits = is_schema(value) || value.is(Kind::array); break;
      case Holds::schema_or_names_map:
        fits = value.is(Kind::object) && std::all_of(value.object.begin(), value.object.end(), [](const auto& item) {
                 return is_schema(item.second) || are_strings(item.second);
               });
        break;
    }
    if (!fits) {
      wrong(place, std::string(keyword.name) + " has a value that it cannot have");
    }
  }

  const Dialect dialect_;
  const SchemaGraph& graph_;
  std::string error_;
};

// ---- Cost ------------------------------------------------------------------------------------------------------------------

// How a value, and its parts, run through a schema. A "crowd" is what judges one value: how many times each subschema does.
class Cost {
 public:
  using Crowd = std::map<size_t, size_t>;  // by number of the schema

  explicit Cost(const SchemaGraph& graph) : graph_(graph), reaches_(graph.size()) {}

  std::string check() {
    // Every crowd once: parts of parts come back to crowds that were seen, or grow without bound and are refused.
    std::set<Crowd> seen;
    std::vector<Crowd> waiting{closure({{0, 1}})};
    while (!waiting.empty() && error_.empty()) {
      const Crowd crowd = std::move(waiting.back());
      waiting.pop_back();
      if (seen.insert(crowd).second) {
        for (Crowd& part : parts(crowd)) {
          waiting.push_back(closure(part));
        }
      }
    }
    return error_.empty() ? check_negations() : error_;
  }

 private:
  void step() {
    if (++steps_ > kSchemaStepsMax && error_.empty()) {
      error_ = "it is too costly to judge";
    }
  }

  // The schemas that judge the same value as `schema` does, each as often as it stands there.
  std::vector<size_t> beside(size_t schema) const {
    std::vector<size_t> found;
    if (graph_.at(schema).reference) {
      found.push_back(*graph_.at(schema).reference);
    }
    for (const SchemaGraph::Child& child : graph_.at(schema).children) {
      if (child.keyword->judges == Judges::same) {
        found.push_back(child.schema);
      }
    }
    return found;
  }

  // Everything that judges a value which `schema` judges, itself included.
  const Crowd& reach(size_t schema) {
    if (reaches_[schema]) {
      return *reaches_[schema];
    }
    if (!open_.insert(schema).second) {
      error_ = error_.empty() ? "a $ref leads back to itself for the same value" : error_;
      static const Crowd kNone;
      return kNone;
    }
    Crowd crowd{{schema, 1}};
    for (const size_t next : beside(schema)) {
      for (const auto& [number, count] : reach(next)) {
        step();
        add(crowd, number, count);
      }
    }
    open_.erase(schema);
    return reaches_[schema].emplace(std::move(crowd));
  }

  void add(Crowd& crowd, size_t number, size_t count) {
    size_t& sum = crowd[number];
    sum = std::min(sum + count, kSchemaPathsMax + 1);
    if (sum > kSchemaPathsMax && error_.empty()) {
      error_ = "a value reaches one of its schemas by more than " + std::to_string(kSchemaPathsMax) + " paths";
    }
  }

  Crowd closure(const Crowd& begin) {
    Crowd crowd;
    for (const auto& [schema, count] : begin) {
      const Crowd reached = reach(schema);
      for (const auto& [number, times] : reached) {
        step();
        add(crowd, number, std::min(times * count, kSchemaPathsMax + 1));
      }
    }
    return crowd;
  }

  // The crowds of each kind of part that a value may have: each named property and one of another name, each item of a prefix and
  // one behind it, and a property's name. A pattern counts as fitting every name.
  std::vector<Crowd> parts(const Crowd& crowd) {
    std::map<std::string, Crowd> named;
    std::map<size_t, Crowd> placed;
    collect_named(crowd, named, placed);
    Crowd other_name, other_item, name_itself;
    for (const auto& [schema, count] : crowd) {
      for (const SchemaGraph::Child& child : graph_.at(schema).children) {
        step();
        if (child.keyword->judges != Judges::part || has_name(child) || has_place(child)) {
          continue;
        }
        if (child.keyword->name == "propertyNames") {
          add(name_itself, child.schema, count);
          continue;
        }
        add(is_of_items(child) ? other_item : other_name, child.schema, count);
        add_to_named(schema, child, count, named, placed);
      }
    }
    std::vector<Crowd> found;
    for (auto& [name, part] : named) {
      found.push_back(std::move(part));
    }
    for (auto& [place, part] : placed) {
      found.push_back(std::move(part));
    }
    for (Crowd* part : {&other_name, &other_item, &name_itself}) {
      if (!part->empty()) {
        found.push_back(std::move(*part));
      }
    }
    return found;
  }

  static bool has_name(const SchemaGraph::Child& child) { return child.keyword->name == "properties"; }
  static bool has_place(const SchemaGraph::Child& child) {
    return child.keyword->name == "prefixItems" || (child.keyword->name == "items" && !child.name.empty());
  }
  static bool is_of_items(const SchemaGraph::Child& child) {
    return child.keyword->name == "items" || child.keyword->name == "contains" || child.keyword->name.ends_with("Items");
  }

  void collect_named(const Crowd& crowd, std::map<std::string, Crowd>& named, std::map<size_t, Crowd>& placed) {
    for (const auto& [schema, count] : crowd) {
      size_t place = 0;  // children of an array stand in its order
      for (const SchemaGraph::Child& child : graph_.at(schema).children) {
        step();
        if (has_name(child)) {
          add(named[child.name], child.schema, count);
        } else if (has_place(child)) {
          add(placed[place++], child.schema, count);
        }
      }
    }
  }

  // What judges parts that no schema names judges named ones too, where its own schema does not name them.
  void add_to_named(size_t schema, const SchemaGraph::Child& child, size_t count, std::map<std::string, Crowd>& named,
                    std::map<size_t, Crowd>& placed) {
    const Value& value = *graph_.at(schema).value;
    if (is_of_items(child)) {
      const auto& siblings = graph_.at(schema).children;
      const auto own = static_cast<size_t>(std::count_if(siblings.begin(), siblings.end(), has_place));
      for (auto place = placed.lower_bound(child.keyword->name == "contains" ? 0 : own); place != placed.end(); ++place) {
        step();
        add(place->second, child.schema, count);
      }
      return;
    }
    const Value* own = child.keyword->name == "patternProperties" ? nullptr : value.find("properties");
    for (auto& [name, part] : named) {
      step();
      if (own == nullptr || own->find(name) == nullptr) {
        add(part, child.schema, count);
      }
    }
  }

  // No schema leads back to itself through not, if or oneOf, whatever parts lie in between.
  std::string check_negations() {
    std::vector<std::vector<size_t>> edges(graph_.size());
    std::vector<std::pair<size_t, size_t>> negations;
    for (size_t from = 0; from < graph_.size(); ++from) {
      if (graph_.at(from).reference) {
        edges[from].push_back(*graph_.at(from).reference);
      }
      for (const SchemaGraph::Child& child : graph_.at(from).children) {
        if (child.keyword->judges != Judges::nothing) {
          edges[from].push_back(child.schema);
        }
        if (child.keyword->negates) {
          negations.emplace_back(from, child.schema);
        }
      }
    }
    for (const auto& [from, to] : negations) {
      if (leads(edges, to, from)) {
        return "a $ref leads back through not, if or oneOf";
      }
      if (!error_.empty()) {
        return error_;
      }
    }
    return "";
  }

  bool leads(const std::vector<std::vector<size_t>>& edges, size_t from, size_t to) {
    std::vector<bool> seen(edges.size());
    std::vector<size_t> waiting{from};
    while (!waiting.empty()) {
      const size_t at = waiting.back();
      waiting.pop_back();
      step();
      if (at == to) {
        return true;
      }
      for (const size_t next : edges[at]) {
        if (!seen[next]) {
          seen[next] = true;
          waiting.push_back(next);
        }
      }
    }
    return false;
  }

  const SchemaGraph& graph_;
  std::vector<std::optional<Crowd>> reaches_;
  std::set<size_t> open_;
  size_t steps_ = 0;
  std::string error_;
};

}  // namespace

Checked<std::string> check_schema(std::string_view text) {
  const std::string compact = json::compacted(text);
  if (compact.size() > kSchemaBytesMax) {
    return invalid_argument("schema: it takes more than " + std::to_string(kSchemaBytesMax) + " bytes");
  }
  const io::Result<Value> root = json::parse(compact, kSchemaDepthMax);
  if (!root.ok()) {
    return invalid_argument("schema: " + root.error().message);
  }
  const bool is_true = root->is(Kind::boolean) && root->boolean;
  if (!root->is(Kind::object) && !is_true) {
    return invalid_argument("schema must be a JSON object or true");
  }
  const SchemaGraph graph(*root);
  std::string wrong = graph.is_too_large() ? "it is too costly to judge" : Walker(*root, graph).check();
  if (wrong.empty()) {
    wrong = Cost(graph).check();
  }
  if (!wrong.empty()) {
    return invalid_argument("schema: " + wrong);
  }
  return compact;
}

}  // namespace engine::topics

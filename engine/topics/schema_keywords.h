// What schema keywords hold, and where a $ref leads: shared by the checks of schema_rules.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/topics/json.h"

namespace engine::topics {

// What stands under a keyword. `value`: no schema.
enum class Holds { value, schema, schemas, schema_map, schema_or_schemas, schema_or_names_map };

// Whether what a keyword holds judges the very value that its schema judges, a part of it, or nothing by itself (definitions).
enum class Judges { same, part, nothing };

struct Keyword {
  std::string_view name;
  Holds holds = Holds::value;
  Judges judges = Judges::nothing;
  bool negates = false;  // not, if, oneOf: whether it passes says nothing about whether the whole passes
};

// Those that hold schemas; null for every other word.
const Keyword* find_keyword(std::string_view name);

// title, description, ...: say nothing about values.
bool is_annotation(std::string_view name);

// The dialect of $schema; nullopt: none that is known.
enum class Dialect { d2020_12, d2019_09, d07, d06, d04 };
std::optional<Dialect> find_dialect(std::string_view uri);
// That a document names, or the default.
Dialect dialect_of(const json::Value& root);

// Every schema of a document by number, the document itself first, and how they stand in each other. What stands where a schema
// should be counts too, whatever it is: the checks refuse it.
class SchemaGraph {
 public:
  struct Child {
    const Keyword* keyword = nullptr;
    std::string name;  // the member under which it stands in a map, its position in an array, else ""
    size_t schema = 0;
  };
  struct Schema {
    const json::Value* value = nullptr;
    std::string pointer;                // "#/properties/id"
    std::vector<Child> children;        // in the order of the keywords
    std::optional<size_t> reference;    // where its $ref leads; nullopt: none, or nowhere in this document
  };

  // Keeps references into `root`, which outlives it.
  explicit SchemaGraph(const json::Value& root);

  size_t size() const { return schemas_.size(); }
  // Pointers of more than kPointerBytesMax bytes together: the rest of the document is left out, and nothing may rest on this graph.
  static constexpr size_t kPointerBytesMax = 4u << 20;
  bool is_too_large() const { return pointer_bytes_ > kPointerBytesMax; }
  const Schema& at(size_t number) const { return schemas_[number]; }

 private:
  size_t add(const json::Value& value, const std::string& pointer);
  void add_children(size_t number);

  std::vector<Schema> schemas_;
  size_t pointer_bytes_ = 0;
  std::map<std::string, size_t> numbers_;  // by pointer
};

}  // namespace engine::topics

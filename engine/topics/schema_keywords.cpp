#include "engine/topics/schema_keywords.h"

#include <algorithm>
#include <charconv>

namespace engine::topics {

namespace {

using json::Value;

constexpr Keyword kKeywords[] = {
    {"not", Holds::schema, Judges::same, true},
    {"if", Holds::schema, Judges::same, true},
    {"then", Holds::schema, Judges::same},
    {"else", Holds::schema, Judges::same},
    {"allOf", Holds::schemas, Judges::same},
    {"anyOf", Holds::schemas, Judges::same},
    {"oneOf", Holds::schemas, Judges::same, true},
    {"dependentSchemas", Holds::schema_map, Judges::same},
    {"dependencies", Holds::schema_or_names_map, Judges::same},
    {"properties", Holds::schema_map, Judges::part},
    {"patternProperties", Holds::schema_map, Judges::part},
    {"additionalProperties", Holds::schema, Judges::part},
    {"unevaluatedProperties", Holds::schema, Judges::part},
    {"propertyNames", Holds::schema, Judges::part},
    {"items", Holds::schema_or_schemas, Judges::part},
    {"prefixItems", Holds::schemas, Judges::part},
    {"additionalItems", Holds::schema, Judges::part},
    {"unevaluatedItems", Holds::schema, Judges::part},
    {"contains", Holds::schema, Judges::part},
    {"contentSchema", Holds::schema, Judges::nothing},
    {"$defs", Holds::schema_map, Judges::nothing},
    {"definitions", Holds::schema_map, Judges::nothing},
};

constexpr std::string_view kAnnotations[] = {"title",   "description", "examples", "$comment",
                                             "default", "deprecated",  "readOnly", "writeOnly"};

// "a~1b" is "a/b", "a~0b" is "a~b", "%25" is "%".
std::optional<std::string> decode_step(std::string_view step) {
  std::string out;
  for (size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '%') {
      unsigned code = 0;
      const char* begin = step.data() + i + 1;
      if (i + 2 >= step.size() || std::from_chars(begin, begin + 2, code, 16).ptr != begin + 2) {
        return std::nullopt;
      }
      out += static_cast<char>(code);
      i += 2;
    } else if (step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1')) {
      out += step[++i] == '0' ? '~' : '/';
    } else {
      out += step[i];
    }
  }
  return out;
}

const Value* take_step(const Value& from, const std::string& step) {
  if (from.is(Value::Kind::object)) {
    return from.find(step);
  }
  size_t index = 0;
  const auto [stop, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  const bool is_index = error == std::errc() && stop == step.data() + step.size();
  return from.is(Value::Kind::array) && is_index && index < from.array.size() ? &from.array[index] : nullptr;
}

std::string encode_step(std::string_view step) {
  std::string out;
  for (const char c : step) {
    out += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  }
  return out;
}

struct Place {
  const Value* value = nullptr;
  std::string pointer;  // each step spelled in one way
};

// What a local reference ("#", "#/$defs/name") leads to; nullopt: nowhere in this document.
std::optional<Place> resolve(const Value& root, std::string_view reference) {
  if (!reference.starts_with('#')) {
    return std::nullopt;
  }
  reference.remove_prefix(1);
  Place place{&root, "#"};
  while (!reference.empty()) {
    const size_t end = std::min(reference.find('/', 1), reference.size());
    const std::optional<std::string> step = reference.front() == '/' ? decode_step(reference.substr(1, end - 1)) : std::nullopt;
    place.value = step ? take_step(*place.value, *step) : nullptr;
    if (place.value == nullptr) {
      return std::nullopt;
    }
    place.pointer += "/" + encode_step(*step);
    reference.remove_prefix(end);
  }
  return place;
}

}  // namespace

const Keyword* find_keyword(std::string_view name) {
  const auto found = std::find_if(std::begin(kKeywords), std::end(kKeywords), [&](const Keyword& one) { return one.name == name; });
  return found == std::end(kKeywords) ? nullptr : found;
}

bool is_annotation(std::string_view name) {
  return std::find(std::begin(kAnnotations), std::end(kAnnotations), name) != std::end(kAnnotations);
}

std::optional<Dialect> find_dialect(std::string_view uri) {
  static constexpr struct {
    std::string_view uri;
    Dialect dialect;
  } kDialects[] = {
      {"https://json-schema.org/draft/2020-12/schema", Dialect::d2020_12},
      {"https://json-schema.org/draft/2019-09/schema", Dialect::d2019_09},
      {"http://json-schema.org/draft-07/schema", Dialect::d07},
      {"http://json-schema.org/draft-06/schema", Dialect::d06},
      {"http://json-schema.org/draft-04/schema", Dialect::d04},
  };
  uri.remove_suffix(uri.ends_with('#') ? 1 : 0);
  for (const auto& each : kDialects) {
    if (each.uri == uri) {
      return each.dialect;
    }
  }
  return std::nullopt;
}

Dialect dialect_of(const Value& root) {
  const Value* uri = root.find("$schema");
  return (uri == nullptr ? std::nullopt : find_dialect(uri->text)).value_or(Dialect::d2020_12);
}

// ---- The graph -------------------------------------------------------------------------------------------------------------

SchemaGraph::SchemaGraph(const Value& root) {
  add(root, "#");
  for (size_t number = 0; number < schemas_.size() && !is_too_large(); ++number) {
    add_children(number);
    const Value* reference = schemas_[number].value->find("$ref");
    const std::optional<Place> place = reference == nullptr ? std::nullopt : resolve(root, reference->text);
    if (place) {
      const size_t target = add(*place->value, place->pointer);
      schemas_[number].reference = target;
    }
  }
}

size_t SchemaGraph::add(const Value& value, const std::string& pointer) {
  pointer_bytes_ += pointer.size();
  if (is_too_large()) {
    return 0;
  }
  const auto [place, is_new] = numbers_.emplace(pointer, schemas_.size());
  if (is_new) {
    schemas_.push_back(Schema{&value, pointer, {}, std::nullopt});
  }
  return place->second;
}

void SchemaGraph::add_children(size_t number) {
  const Value& schema = *schemas_[number].value;
  std::vector<Child> children;
  const auto take = [&](const Keyword& keyword, const std::string& name, const Value& inner) {
    const std::string pointer = schemas_[number].pointer + "/" + std::string(keyword.name) + (name.empty() ? "" : "/" + encode_step(name));
    children.push_back(Child{&keyword, name, add(inner, pointer)});
  };
  for (const auto& [word, value] : schema.object) {
    const Keyword* keyword = find_keyword(word);
    if (keyword == nullptr) {
      continue;
    }
    if (value.is(Value::Kind::array)) {
      for (size_t i = 0; i < value.array.size(); ++i) {
        take(*keyword, std::to_string(i), value.array[i]);
      }
    } else if (keyword->holds == Holds::schema_map || keyword->holds == Holds::schema_or_names_map) {
      for (const auto& [name, item] : value.object) {
        if (keyword->holds == Holds::schema_map || !item.is(Value::Kind::array)) {
          take(*keyword, name, item);
        }
      }
    } else {
      take(*keyword, "", value);
    }
  }
  schemas_[number].children = std::move(children);
}

}  // namespace engine::topics

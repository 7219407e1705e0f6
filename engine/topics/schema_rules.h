// The rules of topic schemas: which may be registered, and which may follow another one. Pure.
//
// A schema is registered when it is an object or `true` of at most kSchemaBytesMax bytes and kSchemaDepthMax levels, of one of the
// dialects 2020-12 (without $schema), 2019-09, 07, 06 and 04; its keywords have values of their kind; a $ref leads to a place in the
// same document; and checking a value against it ends and stays cheap: no subschema leads back to itself for the same value, none
// through not, if or oneOf, and no value reaches one subschema by more than kSchemaPathsMax paths.
//
// A schema follows another one without a new version when it equals it as a JSON value or differs in annotations alone. Else it must
// accept all that the other one accepts, as far as a comparison keyword by keyword shows:
//
//   type                                    may add types, become number from integer, or go
//   enum, const                             may add values, or go
//   minimum ... exclusiveMaximum            may loosen, or go
//   multipleOf                              may become a divisor, or go
//   minLength, minItems, minProperties      may fall, or go; may come as 0
//   maxLength, maxItems, maxProperties      may rise, or go
//   pattern, format                         may go
//   uniqueItems                             may become false, or go
//   required                                may lose names
//   properties                              may gain members, each of the others widens; none may go
//   additionalProperties                    may open up
//   items                                   may widen, or go
//   anyOf                                   every old branch is covered by a new one
//   allOf                                   every new branch follows from an old one, or from the whole old schema
//   $ref                                    compared as what it leads to
//   $schema                                 stays
//   every other                             may go, where nothing else then refuses more
// Source: narad/http-api.md "Schema rules".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/topics/rules.h"

namespace engine::topics {

inline constexpr size_t kSchemaBytesMax = 256u << 10;
inline constexpr size_t kSchemaDepthMax = 64;
inline constexpr size_t kSchemaPathsMax = 64;
// How much looking is done before a schema counts as too costly to judge; a schema by hand stays far below.
inline constexpr size_t kSchemaStepsMax = 200'000;

// The compacted text to be stored, or 400 "invalid argument: schema: <what>". `text` is a JSON text.
Checked<std::string> check_schema(std::string_view text);

enum class SchemaChange {
  none,     // equal, or but for annotations: no new version
  widens,   // a new version
  narrows,  // refused
};

struct SchemaComparison {
  SchemaChange change = SchemaChange::none;
  std::string why;  // of a refusal: where, and which keyword
};

// Both have passed check_schema.
SchemaComparison compare_schemas(std::string_view old_schema, std::string_view new_schema);

}  // namespace engine::topics

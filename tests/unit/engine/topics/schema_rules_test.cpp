// Which schemas may be registered, and which may follow another one: a row a rule.

#include "engine/topics/schema_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "engine/topics/reply.h"

namespace {

using namespace engine;
using namespace engine::topics;

std::string refusal_of(const std::string& schema) {
  const Checked<std::string> checked = check_schema(schema);
  const Reply* reply = std::get_if<Reply>(&checked);
  return reply == nullptr ? "" : reply->body;
}

TEST(SchemaRegistration, KeepsTheTextWithoutItsWhiteSpace) {
  EXPECT_EQ(std::get<std::string>(check_schema(" { \"b\" : [ 1.50 , \"x y\\\" \" ] ,\n\t\"a\":{ } } ")), R"({"b":[1.50,"x y\" "],"a":{}})");
  EXPECT_EQ(std::get<std::string>(check_schema("true")), "true");
}

TEST(SchemaRegistration, AcceptsEveryDialectAndItsKeywords) {
  for (const char* schema : {
           "{}", R"({"$schema":"https://json-schema.org/draft/2020-12/schema","exclusiveMinimum":1})",
           R"({"$schema":"https://json-schema.org/draft/2019-09/schema"})", R"({"$schema":"http://json-schema.org/draft-07/schema#"})",
           R"({"$schema":"http://json-schema.org/draft-06/schema"})",
           R"({"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true,"id":"http://x"})",
           R"({"type":["string","null"],"enum":[],"const":null,"minLength":0,"maxItems":2.0,"multipleOf":0.1,"required":[]})",
           R"({"properties":{"$ref":{"type":"string"},"title":true},"items":[{},true],"dependencies":{"a":["b"],"c":{}}})",
           R"({"if":{"minimum":1},"then":false,"else":{"not":{}},"prefixItems":[{}],"contains":{},"x-other":{"type":"cow"}})",
           R"({"$defs":{"a/b":{"type":"string"},"~":{}},"$ref":"#/$defs/a~1b"})",
           R"({"properties":{"next":{"$ref":"#"}}})", R"({"items":{"$ref":"#"},"additionalProperties":{"$ref":"#"}})",
           R"({"dependentRequired":{"a":["b"]},"$id":"https://example.com/a","examples":[1],"default":{"type":7}})",
           R"({"definitions":{"n":{"anyOf":[{"type":"null"},{"properties":{"l":{"$ref":"#/definitions/n"},"r":{"$ref":"#/definitions/n"}}}]}},
               "$ref":"#/definitions/n"})"}) {
    EXPECT_EQ(refusal_of(schema), "") << schema;
  }
}

TEST(SchemaRegistration, RefusalsNameThePlaceAndTheRule) {
  const struct {
    std::string schema, text;
  } kRows[] = {
      {"false", "schema must be a JSON object or true"},
      {"[]", "schema must be a JSON object or true"},
      {R"({"$schema":"http://json-schema.org/draft-03/schema"})", "$schema must name draft"},
      {R"({"$schema":7})", "$schema must name draft"},
      {R"({"$ref":"other.json"})", "$ref must be a pointer"},
      {R"({"$ref":"#/$defs/missing"})", "$ref must be a pointer"},
      {R"({"$ref":"#anchor"})", "$ref must be a pointer"},
      {R"({"$ref":"#/x","x":7})", "a schema must be an object or a boolean, not a number"},
      {R"({"$ref":"#/x","x":{"type":"cow"}})", "#/x: type must be"},
      {R"({"$dynamicRef":"#"})", "$dynamicRef is not supported"},
      {R"({"type":"cow"})", "#: type must be"},
      {R"({"type":[]})", "type must be"},
      {R"({"type":["string","string"]})", "type must be"},
      {R"({"properties":{"a":{"type":7}}})", "#/properties/a: type must be"},
      {R"({"properties":[]})", "properties has a value that it cannot have"},
      {R"({"properties":{"a":7}})", "#/properties/a: a schema must be an object or a boolean, not a number"},
      {R"({"items":"x"})", "items has a value that it cannot have"},
      {R"({"allOf":[]})", "allOf has a value that it cannot have"},
      {R"({"not":[]})", "not has a value that it cannot have"},
      {R"({"minimum":"1"})", "minimum must be a number"},
      {R"({"minimum":1e1001})", "invalid JSON"},
      {R"({"minimum":1e-1001})", "minimum must be a number"},
      {R"({"exclusiveMaximum":true})", "exclusiveMaximum must be a number"},
      {R"({"$schema":"http://json-schema.org/draft-04/schema","exclusiveMaximum":3})", "exclusiveMaximum must be true or false"},
      {R"({"minLength":-1})", "minLength must be a whole number from 0 on"},
      {R"({"maxItems":1.5})", "maxItems must be a whole number from 0 on"},
      {R"({"multipleOf":0})", "multipleOf must be a number above 0"},
      {R"({"uniqueItems":1})", "uniqueItems must be true or false"},
      {R"({"required":"a"})", "required must be an array of strings"},
      {R"({"pattern":7})", "pattern must be a string"},
      {R"({"enum":{}})", "enum must be an array"},
      {R"({"dependentRequired":{"a":[7]}})", "dependentRequired must be an object of arrays of strings"},
      {R"({"items":{"$id":"https://x"}})", "$id may stand at the top alone"},
      // A value that would be judged for ever, or by a schema that judges by its own opposite.
      {R"({"$ref":"#"})", "a $ref leads back to itself for the same value"},
      {R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}})", "a $ref leads back to itself"},
      {R"({"properties":{"a":{"not":{"$ref":"#"}}}})", "a $ref leads back through not, if or oneOf"},
      {R"({"items":{"if":{"$ref":"#"}}})", "a $ref leads back through not, if or oneOf"},
      {R"({"items":{"oneOf":[{"$ref":"#"}]}})", "a $ref leads back through not, if or oneOf"},
      // The same value by two paths, again and again on the way down.
      {R"({"allOf":[{"properties":{"a":{"$ref":"#"}}},{"additionalProperties":{"$ref":"#"}}]})", "by more than 64 paths"},
      {R"({"items":{"$ref":"#"},"contains":{"$ref":"#"}})", "by more than 64 paths"},
  };
  for (const auto& row : kRows) {
    const std::string refusal = refusal_of(row.schema);
    EXPECT_TRUE(refusal.starts_with("{\"error\":\"invalid argument: schema")) << row.schema << " -> " << refusal;
    EXPECT_NE(refusal.find(row.text), std::string::npos) << row.schema << " -> " << refusal;
  }
}

std::string branches(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += (i > 0 ? "," : "") + std::string(R"({"$ref":"#/$defs/leaf"})");
  }
  return R"({"$defs":{"leaf":{"type":"string"}},"allOf":[)" + all + "]}";
}

TEST(SchemaRegistration, BoundsOnBytesLevelsAndPaths) {
  EXPECT_EQ(refusal_of("{\"title\":\"" + std::string((256 << 10) - 12, 't') + "\"}"), "");
  EXPECT_NE(refusal_of("{\"title\":\"" + std::string((256 << 10) - 11, 't') + "\"}").find("more than 262144 bytes"), std::string::npos);
  const auto deep = [](int levels) {
    std::string text = "{}";
    for (int i = 1; i < levels; ++i) {
      text = "{\"not\":" + text + "}";
    }
    return text;
  };
  EXPECT_EQ(refusal_of(deep(64)), "");
  EXPECT_NE(refusal_of(deep(65)).find("nested too deeply"), std::string::npos);
  EXPECT_EQ(refusal_of(branches(64)), "");
  EXPECT_NE(refusal_of(branches(65)).find("more than 64 paths"), std::string::npos);
}

TEST(SchemaRegistration, ACostlySchemaIsRefusedSoon) {
  // Doubling at each of many levels, and many names: what is looked at stays bounded.
  std::string defs;
  for (int i = 0; i < 300; ++i) {
    const std::string next = "\"#/$defs/d" + std::to_string(i + 1) + "\"";
    defs += "\"d" + std::to_string(i) + "\":{\"properties\":{\"a\":{\"$ref\":" + next + "},\"b\":{\"$ref\":" + next +
            "}},\"patternProperties\":{\"x\":{\"$ref\":" + next + "}}},";
  }
  EXPECT_NE(refusal_of("{\"$defs\":{" + defs + "\"d300\":{}},\"$ref\":\"#/$defs/d0\"}"), "");
  std::string names;
  for (int i = 0; i < 20'000; ++i) {
    names += (i > 0 ? ",\"n" : "\"n") + std::to_string(i) + "\":{}";
  }
  EXPECT_EQ(refusal_of("{\"properties\":{" + names + "}}"), "") << "many properties alone are no cost";
}

// ---- Following ---------------------------------------------------------------------------------------------------------------

struct Change {
  std::string rule, before, after;
  SchemaChange change;
};

constexpr auto kNone = SchemaChange::none;
constexpr auto kWidens = SchemaChange::widens;
constexpr auto kNarrows = SchemaChange::narrows;

TEST(SchemaWidening, EachRowOfTheTable) {
  const Change kRows[] = {
      {"equal", R"({"minimum":1,"type":"number"})", R"({"type":"number","minimum":1.0})", kNone},
      {"annotations", R"({"properties":{"a":{"title":"x"}}})",
       R"({"description":"d","examples":[1],"$comment":"c","default":1,"deprecated":true,"readOnly":true,"writeOnly":true,"properties":{"a":{}}})",
       kNone},
      {"annotations", R"({"properties":{"title":{}}})", R"({"properties":{}})", kNarrows},
      {"type", R"({"type":"string"})", R"({"type":["string","null"]})", kWidens},
      {"type", R"({"type":"integer"})", R"({"type":"number"})", kWidens},
      {"type", R"({"type":"number"})", R"({"type":"integer"})", kNarrows},
      {"type", R"({"type":["string","null"]})", R"({"type":"string"})", kNarrows},
      {"type", R"({"type":"string"})", "{}", kWidens},
      {"type", "{}", R"({"type":"string"})", kNarrows},
      {"true", "true", "{}", kWidens},
      {"true", "true", R"({"type":"string"})", kNarrows},
      {"true", R"({"type":"string"})", "true", kWidens},
      {"enum", R"({"enum":[1,"a"]})", R"({"enum":["b","a",1.0]})", kWidens},
      {"enum", R"({"enum":[1,"a"]})", R"({"enum":["a"]})", kNarrows},
      {"enum", R"({"enum":[1]})", "{}", kWidens},
      {"enum", "{}", R"({"enum":[1]})", kNarrows},
      {"const", R"({"const":1})", R"({"enum":[1,2]})", kWidens},
      {"const", R"({"const":1})", R"({"const":2})", kNarrows},
      {"const", R"({"const":1})", "{}", kWidens},
      {"minimum", R"({"minimum":1})", R"({"minimum":0.999})", kWidens},
      {"minimum", R"({"minimum":1})", R"({"minimum":1.001})", kNarrows},
      {"minimum", R"({"minimum":-5})", R"({"minimum":-50})", kWidens},
      {"minimum", R"({"minimum":1})", "{}", kWidens},
      {"minimum", "{}", R"({"minimum":1})", kNarrows},
      {"maximum", R"({"maximum":1e2})", R"({"maximum":101})", kWidens},
      {"maximum", R"({"maximum":100})", R"({"maximum":99})", kNarrows},
      {"exclusiveMinimum", R"({"exclusiveMinimum":1})", R"({"exclusiveMinimum":0})", kWidens},
      {"exclusiveMinimum", R"({"minimum":1})", R"({"exclusiveMinimum":0})", kNarrows},
      {"exclusiveMaximum", R"({"exclusiveMaximum":1})", R"({"exclusiveMaximum":0})", kNarrows},
      {"exclusiveMaximum", R"({"$schema":"http://json-schema.org/draft-04/schema","maximum":1,"exclusiveMaximum":true})",
       R"({"$schema":"http://json-schema.org/draft-04/schema","maximum":1,"exclusiveMaximum":false})", kWidens},
      {"exclusiveMaximum", R"({"$schema":"http://json-schema.org/draft-04/schema","maximum":1})",
       R"({"$schema":"http://json-schema.org/draft-04/schema","maximum":1,"exclusiveMaximum":true})", kNarrows},
      {"multipleOf", R"({"multipleOf":6})", R"({"multipleOf":2})", kWidens},
      {"multipleOf", R"({"multipleOf":0.6})", R"({"multipleOf":0.2})", kWidens},
      {"multipleOf", R"({"multipleOf":6})", R"({"multipleOf":4})", kNarrows},
      {"multipleOf", R"({"multipleOf":6})", R"({"multipleOf":12})", kNarrows},
      {"multipleOf", R"({"multipleOf":6})", "{}", kWidens},
      {"multipleOf", "{}", R"({"multipleOf":1})", kNarrows},
      {"minLength", R"({"minLength":2})", R"({"minLength":1})", kWidens},
      {"minLength", R"({"minLength":2})", R"({"minLength":3})", kNarrows},
      {"minLength", "{}", R"({"minLength":0})", kWidens},
      {"minItems", "{}", R"({"minItems":1})", kNarrows},
      {"minProperties", R"({"minProperties":2})", "{}", kWidens},
      {"maxLength", R"({"maxLength":2})", R"({"maxLength":3})", kWidens},
      {"maxItems", R"({"maxItems":2})", R"({"maxItems":1})", kNarrows},
      {"maxProperties", "{}", R"({"maxProperties":9})", kNarrows},
      {"maxProperties", R"({"maxProperties":9})", "{}", kWidens},
      {"pattern", R"({"pattern":"a"})", "{}", kWidens},
      {"pattern", R"({"pattern":"a"})", R"({"pattern":"a|b"})", kNarrows},
      {"pattern", "{}", R"({"pattern":"a"})", kNarrows},
      {"format", R"({"format":"date"})", "{}", kWidens},
      {"format", R"({"format":"date"})", R"({"format":"time"})", kNarrows},
      {"uniqueItems", R"({"uniqueItems":true})", R"({"uniqueItems":false})", kWidens},
      {"uniqueItems", R"({"uniqueItems":false})", R"({"uniqueItems":true})", kNarrows},
      {"uniqueItems", "{}", R"({"uniqueItems":true})", kNarrows},
      {"required", R"({"required":["a","b"]})", R"({"required":["b"]})", kWidens},
      {"required", R"({"required":["a"]})", R"({"required":["a","b"]})", kNarrows},
      {"required", "{}", R"({"required":["a"]})", kNarrows},
      {"properties", R"({"properties":{"a":{"type":"integer"}}})", R"({"properties":{"a":{"type":"number"},"b":{"type":"string"}}})", kWidens},
      {"properties", R"({"properties":{"a":{},"b":{}}})", R"({"properties":{"a":{}}})", kNarrows},
      {"properties", R"({"properties":{"a":{}}})", "{}", kNarrows},
      {"properties", R"({"properties":{"a":{}}})", R"({"properties":{"a":{"type":"string"}}})", kNarrows},
      {"properties", R"({"properties":{"a":{}}})", R"({"properties":{"a":{},"b":{}},"required":["b"]})", kNarrows},
      {"additionalProperties", R"({"additionalProperties":false})", R"({"additionalProperties":{"type":"string"}})", kWidens},
      {"additionalProperties", R"({"additionalProperties":{"type":"string"}})", "{}", kWidens},
      {"additionalProperties", "{}", R"({"additionalProperties":true})", kWidens},
      {"additionalProperties", "{}", R"({"additionalProperties":false})", kNarrows},
      {"additionalProperties", R"({"additionalProperties":{"type":"number"}})", R"({"additionalProperties":{"type":"integer"}})", kNarrows},
      {"items", R"({"items":{"type":"integer"}})", R"({"items":{"type":"number"}})", kWidens},
      {"items", R"({"items":{"type":"integer"}})", "{}", kWidens},
      {"items", "{}", R"({"items":{"type":"integer"}})", kNarrows},
      {"items", R"({"items":[{"type":"integer"}]})", R"({"items":[{"type":"number"}]})", kWidens},
      {"items", R"({"items":[{},{}]})", R"({"items":[{}]})", kNarrows},
      {"anyOf", R"({"anyOf":[{"type":"string"},{"type":"integer"}]})", R"({"anyOf":[{"type":"number"},{"type":"string"},{"type":"null"}]})",
       kWidens},
      {"anyOf", R"({"anyOf":[{"type":"string"},{"type":"integer"}]})", R"({"anyOf":[{"type":"string"}]})", kNarrows},
      {"anyOf", R"({"type":"string"})", R"({"anyOf":[{"type":"string"},{"type":"null"}]})", kWidens},
      {"anyOf", "{}", R"({"anyOf":[{"type":"string"},{"type":"null"}]})", kNarrows},
      {"anyOf", R"({"anyOf":[{"type":"string"}]})", "{}", kWidens},
      {"allOf", R"({"allOf":[{"minimum":1},{"maximum":5}]})", R"({"allOf":[{"maximum":6}]})", kWidens},
      {"allOf", R"({"allOf":[{"minimum":1}]})", R"({"allOf":[{"minimum":1},{"maximum":5}]})", kNarrows},
      {"allOf", R"({"minimum":1})", R"({"allOf":[{"minimum":0}]})", kWidens},
      {"$ref", R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}})", R"({"$ref":"#/$defs/b","$defs":{"b":{"type":"number"}}})", kWidens},
      {"$ref", R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"number"}}})", R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}})", kNarrows},
      {"$ref", R"({"type":"integer"})", R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"number"}}})", kWidens},
      {"$ref", R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"number"}},"minimum":1})", R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"number"}}})",
       kWidens},
      {"$ref", R"({"minimum":1})", R"({"minimum":1,"$ref":"#/$defs/a","$defs":{"a":{"type":"number"}}})", kNarrows},
      {"$ref", R"({"$schema":"http://json-schema.org/draft-07/schema","$ref":"#/definitions/a","minimum":5,"definitions":{"a":{}}})",
       R"({"$schema":"http://json-schema.org/draft-07/schema","minimum":5})", kNarrows},
      {"$ref, recursive", R"({"properties":{"n":{"$ref":"#"},"v":{"type":"integer"}}})", R"({"properties":{"n":{"$ref":"#"},"v":{"type":"number"}}})",
       kWidens},
      {"$ref, recursive", R"({"properties":{"n":{"$ref":"#"},"v":{"type":"number"}}})", R"({"properties":{"n":{"$ref":"#"},"v":{"type":"integer"}}})",
       kNarrows},
      {"$schema", "{}", R"({"$schema":"http://json-schema.org/draft-07/schema","minimum":1})", kNarrows},
      {"$schema", R"({"minimum":1})", R"({"$schema":"https://json-schema.org/draft/2020-12/schema"})", kWidens},
      {"oneOf", R"({"oneOf":[{"type":"string"}]})", "{}", kWidens},
      {"oneOf", R"({"oneOf":[{"type":"string"}],"minimum":1})", R"({"oneOf":[{"type":"string"}]})", kWidens},
      {"oneOf", R"({"oneOf":[{"type":"string"}]})", R"({"oneOf":[{"type":"string"},{"type":"null"}]})", kNarrows},
      {"oneOf", R"({"oneOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"number"}}})",
       R"({"oneOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"integer"}}})", kNarrows},
      {"not", "{}", R"({"not":{"type":"string"}})", kNarrows},
      {"not", R"({"not":{"type":"string"}})", "{}", kWidens},
      {"if", R"({"if":{"minimum":1},"then":{"maximum":5}})", "{}", kWidens},
      {"if", R"({"if":{"minimum":1},"then":{"maximum":5}})", R"({"if":{"minimum":1},"then":{"maximum":6}})", kNarrows},
      {"contains", R"({"contains":{}})", "{}", kWidens},
      {"contains", "{}", R"({"contains":{}})", kNarrows},
      {"contains", R"({"contains":{},"minContains":0})", R"({"contains":{}})", kNarrows},
      {"propertyNames", "{}", R"({"propertyNames":{"minLength":1}})", kNarrows},
      {"dependentRequired", R"({"dependentRequired":{"a":["b"]}})", "{}", kWidens},
      {"dependentSchemas", "{}", R"({"dependentSchemas":{"a":{}}})", kNarrows},
      {"patternProperties", R"({"patternProperties":{"a":{"type":"string"}}})", "{}", kWidens},
      {"patternProperties", R"({"patternProperties":{"a":{}},"additionalProperties":false})", R"({"additionalProperties":false})", kNarrows},
      {"patternProperties", R"({"patternProperties":{"a":{}}})", R"({"patternProperties":{"b":{}}})", kNarrows},
      {"an unknown word", "{}", R"({"x-unit":"m"})", kNarrows},
      {"an unknown word", R"({"x-unit":"m"})", "{}", kWidens},
  };
  for (const Change& row : kRows) {
    EXPECT_EQ(refusal_of(row.before), "") << row.before;
    EXPECT_EQ(refusal_of(row.after), "") << row.after;
    const SchemaComparison comparison = compare_schemas(row.before, row.after);
    EXPECT_EQ(static_cast<int>(comparison.change), static_cast<int>(row.change))
        << row.rule << ": " << row.before << " -> " << row.after << ": " << comparison.why;
    EXPECT_EQ(comparison.why.empty(), row.change != SchemaChange::narrows);
  }
}

TEST(SchemaWidening, ARefusalNamesPlaceAndKeyword) {
  EXPECT_EQ(compare_schemas(R"({"properties":{"a":{"items":{"type":"number"}}}})", R"({"properties":{"a":{"items":{"type":"integer"}}}})").why,
            "#/properties/a/items: type must not accept less than before");
}

TEST(SchemaWidening, SchemasThatAreTooCostlyToCompareAreRefused) {
  std::string branches;
  for (int i = 0; i < 700; ++i) {
    branches += (i > 0 ? "," : "") + std::string("{\"const\":") + std::to_string(i) + "}";
  }
  const std::string before = "{\"anyOf\":[" + branches + "]}";
  const std::string after = "{\"anyOf\":[{\"const\":\"x\"}," + branches + "]}";
  EXPECT_EQ(compare_schemas(before, after).why, "the schemas are too costly to compare");
}

}  // namespace

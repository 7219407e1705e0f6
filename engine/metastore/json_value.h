// JSON texts compared as values: key order, white space, and how numbers and characters are spelled do not matter; no digit is lost.
//
// Pure, and the same on every machine: no floating point, no limits of a number type. Of a key given twice the last counts. A
// number is its normalised decimal, so 1, 1.0 and 10e-1 are one value, 0 and -0 too, and 0.1 is not 0.10000000000000000001.
// Source: spec, "Raft entry types", type 27; narad/entry-types.md section 6.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace engine::metastore {

// Containers nested deeper are no JSON to us: such texts are equal only byte by byte.
inline constexpr int kJsonDepthMax = 256;

// The one text of a value: equal texts, equal values. Never longer than six times `text`. nullopt: no JSON text.
std::optional<std::string> canonical_json(std::string_view text);

// Equal bytes, or JSON texts of equal values.
bool is_same_json(std::string_view one, std::string_view other);

}  // namespace engine::metastore

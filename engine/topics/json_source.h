// JSON texts as they were written: what is stored must keep the order of its members, the spelling of its numbers and the escapes of
// its strings, which a parsed value (json.h) has lost.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/topics/json.h"

namespace engine::json {

// The text without the white space between its parts. `text` is a whole JSON text.
std::string compacted(std::string_view text);

// The text of the value that an object gives `name`, as written; of a name given twice, the last. nullopt: it is not there. `object`
// is a whole JSON text of an object.
std::optional<std::string_view> member_text(std::string_view object, std::string_view name);

// A value's text without white space, members in the order of their names. Equal texts: equal values, but for the spelling of
// numbers (metastore/json_value.h has one text for those).
std::string to_text(const Value& value);

}  // namespace engine::json

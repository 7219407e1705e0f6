#include "engine/topics/json_source.h"

#include <gtest/gtest.h>

namespace {

using namespace engine;

TEST(JsonSource, CompactedKeepsOrderNumbersAndStrings) {
  EXPECT_EQ(json::compacted(" { \"b\" :\t1.50e+1 ,\r\n\"a\": \" x \\\" y \" , \"c\":[ true ,null ] } "),
            R"({"b":1.50e+1,"a":" x \" y ","c":[true,null]})");
  EXPECT_EQ(json::compacted("\"\\\\\" "), "\"\\\\\"");
}

TEST(JsonSource, AMembersTextIsAsWritten) {
  EXPECT_EQ(json::member_text(R"({"a":{"b":[1,"}"]},"b" : 7 })", "a"), R"({"b":[1,"}"]})");
  EXPECT_EQ(json::member_text(R"({"a":{"b":[1,"}"]},"b" : 7 })", "b"), "7");
  EXPECT_EQ(json::member_text(R"({"a":{"b":1}})", "b"), std::nullopt) << "members of members are not its own";
  EXPECT_EQ(json::member_text(R"({"a":1,"a": 2.0})", "a"), "2.0") << "of a name given twice the last counts";
  EXPECT_EQ(json::member_text(R"({"\u0061":"x"})", "a"), "\"x\"");
  EXPECT_EQ(json::member_text("{}", "a"), std::nullopt);
}

TEST(JsonSource, TextOfAValueIsInTheOrderOfNames) {
  EXPECT_EQ(json::to_text(*json::parse(R"({"b":[1,1.50,"x\n",null,true],"a":{}})")), R"({"a":{},"b":[1,1.50,"x\n",null,true]})");
}

}  // namespace

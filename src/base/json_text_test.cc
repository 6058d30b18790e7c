#include "base/json_text.h"

#include <boost/json.hpp>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace headrace {
namespace {

namespace json = boost::json;

std::string text(double number) { return json_text(json::value(number)); }

TEST(JsonText, WritesADoubleInItsShortestForm) {
  EXPECT_EQ(text(0.393), "0.393");
  EXPECT_EQ(text(-8.155643939971924e-1), "-0.8155643939971924");
  EXPECT_EQ(text(260.5), "260.5");
  EXPECT_EQ(text(1e-7), "1e-07");
  EXPECT_EQ(text(1e300), "1e+300");
}

TEST(JsonText, AWholeDoubleKeepsItsPoint) {
  EXPECT_EQ(text(0), "0.0");
  EXPECT_EQ(text(-0.0), "-0.0");
  EXPECT_EQ(text(1234567), "1234567.0");
}

TEST(JsonText, ANumberThatIsNotFiniteIsNull) {
  EXPECT_EQ(text(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(text(std::nan("")), "null");
}

TEST(JsonText, WritesIntegersOfAllSizes) {
  EXPECT_EQ(json_text(json::value(std::numeric_limits<std::int64_t>::min())),
            "-9223372036854775808");
  EXPECT_EQ(json_text(json::value(std::numeric_limits<std::uint64_t>::max())),
            "18446744073709551615");
}

TEST(JsonText, EscapesWhatJsonWants) {
  EXPECT_EQ(json_quoted("\"\\/\b\f\n\r\t\x01\x1f\x7f"),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
  EXPECT_EQ(json_quoted(std::string_view("a\0b", 3)), "\"a\\u0000b\"");
  EXPECT_EQ(json_quoted("世界 🙂"), "\"世界 🙂\"");
}

TEST(JsonText, BytesThatAreNoUtf8BecomeTheReplacementCharacter) {
  EXPECT_EQ(json_quoted("a\xff\"b"), "\"a\uFFFD\\\"b\"");
  EXPECT_EQ(json_text(json::object{{"\xfe", "\xe4\xb8"}}), "{\"\uFFFD\":\"\uFFFD\"}");
}

TEST(JsonText, WritesNestedValuesCompactly) {
  const json::value value = {
      {"a", {1, 2.5, nullptr, true, false}}, {"b", json::object()}, {"c", json::array()}};
  EXPECT_EQ(json_text(value), R"({"a":[1,2.5,null,true,false],"b":{},"c":[]})");
  EXPECT_EQ(json_text(json::object()), "{}");
  EXPECT_EQ(json_text(json::array{json::array()}), "[[]]");
}

TEST(JsonText, ReadsBackTheSame) {
  const json::value value = {{"x", 0.1}, {"y", -3}, {"z", "\u0001\n\"\\"}};
  EXPECT_EQ(json::parse(json_text(value)), value);
}

}  // namespace
}  // namespace headrace

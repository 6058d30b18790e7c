#include "base/utf8.h"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace headrace {
namespace {

struct Valid {
  std::string_view bytes;
  char32_t code_point;
};

// The borders of each length, and of the hole of the surrogates.
constexpr std::array kValid = {
    Valid{"a", 'a'},
    Valid{"\x7F", 0x7F},
    Valid{"\xC2\x80", 0x80},
    Valid{"\xDF\xBF", 0x7FF},
    Valid{"\xE0\xA0\x80", 0x800},
    Valid{"\xE2\x82\xAC", 0x20AC},
    Valid{"\xED\x9F\xBF", 0xD7FF},
    Valid{"\xEE\x80\x80", 0xE000},
    Valid{"\xEF\xBF\xBF", 0xFFFF},
    Valid{"\xF0\x90\x80\x80", 0x10000},
    Valid{"\xF0\x9F\x98\x80", 0x1F600},
    Valid{"\xF4\x8F\xBF\xBF", 0x10FFFF},
};

struct Invalid {
  std::string_view bytes;
  std::string_view replaced;  // each maximal invalid part as U+FFFD
};

#define BAD "\xEF\xBF\xBD"
constexpr std::array kInvalid = {
    Invalid{"\x80", BAD},                                 // a continuation alone
    Invalid{"\xBF\x80", BAD BAD},                         //
    Invalid{"\xC0\x80", BAD BAD},                         // overlong NUL
    Invalid{"\xC1\xBF", BAD BAD},                         // overlong
    Invalid{"\xE0\x80\x80", BAD BAD BAD},                 // overlong
    Invalid{"\xE0\x9F\xBF", BAD BAD BAD},                 // overlong
    Invalid{"\xF0\x8F\xBF\xBF", BAD BAD BAD BAD},         // overlong
    Invalid{"\xED\xA0\x80", BAD BAD BAD},                 // U+D800
    Invalid{"\xED\xBF\xBF", BAD BAD BAD},                 // U+DFFF
    Invalid{"\xF4\x90\x80\x80", BAD BAD BAD BAD},         // above U+10FFFF
    Invalid{"\xF5\x80\x80\x80", BAD BAD BAD BAD},         //
    Invalid{"\xFE", BAD},                                 // never a byte of UTF-8
    Invalid{"\xFF", BAD},                                 //
    Invalid{"\xC3", BAD},                                 // cut off
    Invalid{"\xE2\x82", BAD},                             // cut off: one part
    Invalid{"\xF0\x9F\x98", BAD},                         //
    Invalid{"\xE2\x82\x41", BAD "A"},                     // broken by a letter
    Invalid{"\xF0\x9F\x41", BAD "A"},                     //
    Invalid{"\xC3\xC3\xA9", BAD "\xC3\xA9"},              // broken by a good character
    Invalid{"\xE2\x82\xE2\x82\xAC", BAD "\xE2\x82\xAC"},  //
};

TEST(Utf8, ValidCharactersAreDecodedAndWrittenBack) {
  for (const Valid& c : kValid) {
    const Utf8Char decoded = decode_utf8(c.bytes);
    EXPECT_TRUE(decoded.valid);
    EXPECT_EQ(decoded.code_point, c.code_point);
    EXPECT_EQ(decoded.length, static_cast<int>(c.bytes.size()));
    std::string written;
    append_utf8(written, c.code_point);
    EXPECT_EQ(written, c.bytes);
    EXPECT_EQ(find_invalid_utf8(c.bytes), std::string_view::npos);
    EXPECT_EQ(replace_invalid_utf8(c.bytes), c.bytes);
  }
}

TEST(Utf8, EveryCodePointComesBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) {
      continue;
    }
    std::string text;
    append_utf8(text, c);
    const Utf8Char decoded = decode_utf8(text);
    ASSERT_TRUE(decoded.valid && decoded.code_point == c &&
                decoded.length == static_cast<int>(text.size()))
        << static_cast<std::uint32_t>(c);
  }
}

TEST(Utf8, InvalidBytesAreOneCharacterEach) {
  for (const Invalid& c : kInvalid) {
    const Utf8Char decoded = decode_utf8(c.bytes);
    EXPECT_FALSE(decoded.valid);
    EXPECT_EQ(decoded.code_point, char32_t{0xFFFD});
    EXPECT_EQ(decoded.length, 1);
    EXPECT_EQ(find_invalid_utf8(c.bytes), 0U);
    EXPECT_EQ(find_invalid_utf8("ab" + std::string(c.bytes)), 2U);
    EXPECT_EQ(replace_invalid_utf8(c.bytes), c.replaced);
  }
}

TEST(Utf8, ANulByteIsACharacter) {
  const std::string_view text("\0a", 2);
  EXPECT_TRUE(decode_utf8(text).valid);
  EXPECT_EQ(find_invalid_utf8(text), std::string_view::npos);
}

TEST(Utf8, OnlyWhatMayBecomeACharacterIsAnIncompleteSuffix) {
  EXPECT_EQ(incomplete_utf8_suffix(""), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("abc"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("a\xC3"), 1U);
  EXPECT_EQ(incomplete_utf8_suffix("a\xC3\xA9"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2\x82"), 2U);
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x9F\x98"), 3U);
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x9F\x98\x80"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("\xE0\x80"), 0U);  // overlong: will never be one
  EXPECT_EQ(incomplete_utf8_suffix("\xED\xA0"), 0U);  // a surrogate
  EXPECT_EQ(incomplete_utf8_suffix("\xF4\x90"), 0U);  // above U+10FFFF
  EXPECT_EQ(incomplete_utf8_suffix("\x80"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("\xFF"), 0U);
}

}  // namespace
}  // namespace headrace

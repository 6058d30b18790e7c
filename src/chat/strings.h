// Python's string operations on ropes: what is kept keeps its provenance, what replaces a character
// has that character's. Offsets are bytes, counts are characters, as named.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "chat/text.h"
#include "chat/unicode.h"

namespace headrace::jinja {

enum class Sides { kBoth, kLeft, kRight };

// Without the characters of `chars` (white space where none are given) at the ends.
Text strip(const Text& text, const Text* chars, Sides sides);

Text map_case(Budget& budget, const Text& text, CaseMap map);
Text capitalize(Budget& budget, const Text& text);
Text title_case(Budget& budget, const Text& text);  // str.title
Text swap_case(Budget& budget, const Text& text);
std::string folded(std::string_view text);  // str.lower, for comparing

// str.islower, str.isupper: some cased character, and none of another case.
bool has_case(std::string_view text, CharClass wanted);

Text replace(
    Budget& budget, const Text& text, const Text& from, const Text& to, std::int64_t limit);
Text join(Budget& budget, const Text& separator, const std::vector<Text>& parts);
Text pad(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Sides text_at);

// At most `limit` cuts (negative: no limit). Without a separator at runs of white space.
std::vector<Text> split(const Text& text, const Text* separator, std::int64_t limit);
std::vector<Text> split_from_right(const Text& text, const Text* separator, std::int64_t limit);
std::vector<Text> split_lines(const Text& text, bool keep_ends);

}  // namespace headrace::jinja

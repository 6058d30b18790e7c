#include "chat/unicode.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "chat/unicode_tables.h"

namespace headrace::jinja {
namespace {

bool in_ranges(std::span<const CodeRange> ranges, char32_t c) {
  const auto it = std::upper_bound(
      ranges.begin(), ranges.end(), c, [](char32_t v, const CodeRange& r) { return v < r.first; });
  return it != ranges.begin() && c <= std::prev(it)->last;
}

struct CaseTables {
  std::span<const CaseRun> runs;
  std::span<const CaseSpecial> special;
};

CaseTables tables_of(CaseMap map) {
  switch (map) {
    case CaseMap::kUpper:
      return {{kToUpper, kToUpperSize}, {kToUpperSpecial, kToUpperSpecialSize}};
    case CaseMap::kLower:
      return {{kToLower, kToLowerSize}, {kToLowerSpecial, kToLowerSpecialSize}};
    case CaseMap::kTitle:
      break;
  }
  return {{kToTitle, kToTitleSize}, {kToTitleSpecial, kToTitleSpecialSize}};
}

// Runs of stride 2 may interleave, so the two runs before the insertion point are looked at.
char32_t map_single(std::span<const CaseRun> runs, char32_t c) {
  auto it = std::upper_bound(
      runs.begin(), runs.end(), c, [](char32_t v, const CaseRun& r) { return v < r.first; });
  for (int back = 0; back < 2 && it != runs.begin(); ++back) {
    --it;
    if (c <= it->last && (c - it->first) % static_cast<char32_t>(it->stride) == 0) {
      return static_cast<char32_t>(static_cast<std::int32_t>(c) + it->delta);
    }
  }
  return c;
}

}  // namespace

bool is(CharClass wanted, char32_t c) {
  switch (wanted) {
    case CharClass::kAlpha:
      return in_ranges({kAlpha, kAlphaSize}, c);
    case CharClass::kDecimal:
      return in_ranges({kDecimal, kDecimalSize}, c);
    case CharClass::kDigit:
      return in_ranges({kDigit, kDigitSize}, c);
    case CharClass::kNumeric:
      return in_ranges({kNumeric, kNumericSize}, c);
    case CharClass::kSpace:
      return in_ranges({kSpace, kSpaceSize}, c);
    case CharClass::kPrintable:
      return in_ranges({kPrintable, kPrintableSize}, c);
    case CharClass::kUpper:
      return in_ranges({kUpper, kUpperSize}, c);
    case CharClass::kLower:
      return in_ranges({kLower, kLowerSize}, c);
    case CharClass::kTitle:
      return in_ranges({kTitle, kTitleSize}, c);
  }
  return false;
}

bool is_alnum(char32_t c) { return is(CharClass::kAlpha, c) || is(CharClass::kNumeric, c); }

bool is_cased(char32_t c) {
  return is(CharClass::kUpper, c) || is(CharClass::kLower, c) || is(CharClass::kTitle, c);
}

void append_mapped(std::string& out, CaseMap map, char32_t c) {
  const CaseTables tables = tables_of(map);
  const auto it = std::lower_bound(
      tables.special.begin(), tables.special.end(), c, [](const CaseSpecial& s, char32_t v) {
        return s.from < v;
      });
  if (it != tables.special.end() && it->from == c) {
    out += it->to;
  } else {
    append_utf8(out, map_single(tables.runs, c));
  }
}

Char char_at(std::string_view text, std::size_t at) {
  const Utf8Char c = decode_utf8(text.substr(at));
  return {c.code_point, at, at + static_cast<std::size_t>(c.length)};
}

Char char_before(std::string_view text, std::size_t end) {
  for (std::size_t back = 1; back <= 4 && back <= end; ++back) {
    const Utf8Char c = decode_utf8(text.substr(end - back, back));
    if (c.valid && static_cast<std::size_t>(c.length) == back) {
      return {c.code_point, end - back, end};
    }
  }
  return {0xFFFD, end - 1, end};
}

std::size_t count_chars(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < text.size(); at = char_at(text, at).end) {
    ++n;
  }
  return n;
}

std::size_t offset_of_char(std::string_view text, std::size_t n) {
  std::size_t at = 0;
  for (; n > 0 && at < text.size(); --n) {
    at = char_at(text, at).end;
  }
  return at;
}

std::vector<std::size_t> char_offsets(std::string_view text) {
  std::vector<std::size_t> offsets;
  offsets.reserve(text.size() + 1);
  for (std::size_t at = 0; at < text.size(); at = char_at(text, at).end) {
    offsets.push_back(at);
  }
  offsets.push_back(text.size());
  return offsets;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (!is(CharClass::kSpace, c.code)) {
      break;
    }
    at = c.end;
  }
  return at;
}

std::size_t trimmed_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const Char c = char_before(text, end);
    if (!is(CharClass::kSpace, c.code)) {
      break;
    }
    end = c.begin;
  }
  return end;
}

}  // namespace headrace::jinja

#include "tokenizer/internal/nfc.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utf8proc.h>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"

namespace headrace {
namespace {

struct CodePointRange {
  char32_t first;
  char32_t last;
};

// Characters whose combining class or composition came after Unicode 10: to the reference they are
// letters like any other, at which reordering and composition stop. Sorted.
constexpr std::array<CodePointRange, 37> kOpaque = {{
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF},
}};

bool is_opaque(char32_t c) {
  const auto* range = std::lower_bound(
      kOpaque.begin(), kOpaque.end(), c, [](const CodePointRange& r, char32_t value) {
        return r.last < value;
      });
  return range != kOpaque.end() && range->first <= c;
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Canonical order: marks between two starters sorted by class, equals in place. utf8proc's own sort
// is quadratic.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
  auto begin = text.begin();
  while (begin != text.end()) {
    begin = std::find_if(begin, text.end(), is_mark);
    const auto end = std::find_if_not(begin, text.end(), is_mark);
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    begin = end;
  }
}

void append_nfc(std::string& out, std::vector<utf8proc_int32_t>& decomposed) {
  if (decomposed.empty()) {
    return;
  }
  order_marks(decomposed);
  const auto option = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const utf8proc_ssize_t length = utf8proc_normalize_utf32(
      decomposed.data(), static_cast<utf8proc_ssize_t>(decomposed.size()), option);
  HR_CHECK(length >= 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
    append_utf8(out, static_cast<char32_t>(decomposed[i]));
  }
  decomposed.clear();
}

void decompose(char32_t c, std::vector<utf8proc_int32_t>& out) {
  std::array<utf8proc_int32_t, 8> parts;  // canonical decompositions have at most four
  const auto option = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(), option, nullptr);
  HR_CHECK(n >= 0 && n <= static_cast<utf8proc_ssize_t>(parts.size()));
  out.insert(out.end(), parts.begin(), parts.begin() + n);
}

}  // namespace

std::string nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> decomposed;
  for (std::size_t i = 0; i < text.size();) {
    // ASCII followed by ASCII neither changes nor composes.
    const bool plain = static_cast<unsigned char>(text[i]) < 0x80 &&
                       (i + 1 == text.size() || static_cast<unsigned char>(text[i + 1]) < 0x80);
    const Utf8Char c = decode_utf8(text.substr(i));
    if (plain || is_opaque(c.code_point)) {
      append_nfc(out, decomposed);
      append_utf8(out, c.code_point);
    } else {
      decompose(c.code_point, decomposed);
    }
    i += static_cast<std::size_t>(c.length);
  }
  append_nfc(out, decomposed);
  return out;
}

}  // namespace headrace

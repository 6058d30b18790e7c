#include "base/utf8.h"

namespace headrace {
namespace {

struct Lead {
  int length;                // 0: not a lead byte
  unsigned char low = 0x80;  // bounds of the second byte
  unsigned char high = 0xBF;
};

Lead classify(unsigned char c) {
  if (c < 0x80) {
    return {1};
  }
  if (c >= 0xC2 && c <= 0xDF) {
    return {2};
  }
  if (c == 0xE0) {
    return {3, 0xA0, 0xBF};
  }
  if (c == 0xED) {
    return {3, 0x80, 0x9F};
  }
  if (c >= 0xE1 && c <= 0xEF) {
    return {3};
  }
  if (c == 0xF0) {
    return {4, 0x90, 0xBF};
  }
  if (c >= 0xF1 && c <= 0xF3) {
    return {4};
  }
  if (c == 0xF4) {
    return {4, 0x80, 0x8F};
  }
  return {0};
}

// How many bytes from text[0] belong to one well-formed or cut-off character.
int well_formed_prefix(std::string_view text, const Lead& lead) {
  int n = 1;
  while (n < lead.length && n < static_cast<int>(text.size())) {
    const auto c = static_cast<unsigned char>(text[static_cast<std::size_t>(n)]);
    const unsigned char low = n == 1 ? lead.low : 0x80;
    const unsigned char high = n == 1 ? lead.high : 0xBF;
    if (c < low || c > high) {
      break;
    }
    ++n;
  }
  return n;
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const Lead lead = classify(first);
  if (lead.length == 0 || well_formed_prefix(text, lead) < lead.length) {
    return {};
  }
  if (lead.length == 1) {
    return {first, 1, true};
  }
  char32_t code_point = first & (0x7FU >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    code_point =
        (code_point << 6) | (static_cast<unsigned char>(text[static_cast<std::size_t>(i)]) & 0x3FU);
  }
  return {code_point, lead.length, true};
}

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const Utf8Char c = decode_utf8(text.substr(i));
    if (!c.valid) {
      return i;
    }
    i += static_cast<std::size_t>(c.length);
  }
  return std::string_view::npos;
}

std::size_t incomplete_utf8_suffix(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    const Lead lead = classify(static_cast<unsigned char>(tail[0]));
    if (lead.length > static_cast<int>(back) &&
        well_formed_prefix(tail, lead) == static_cast<int>(back)) {
      return back;
    }
  }
  return 0;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (c.valid) {
      out.append(text.substr(0, static_cast<std::size_t>(c.length)));
      text.remove_prefix(static_cast<std::size_t>(c.length));
      continue;
    }
    append_utf8(out, 0xFFFD);
    const Lead lead = classify(static_cast<unsigned char>(text[0]));
    text.remove_prefix(lead.length == 0 ? 1
                                        : static_cast<std::size_t>(well_formed_prefix(text, lead)));
  }
  return out;
}

}  // namespace headrace

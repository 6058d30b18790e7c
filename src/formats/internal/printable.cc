#include "formats/internal/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace headrace {

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 80;
  std::string out;
  while (!text.empty()) {
    if (out.size() >= kMaxBytes) {
      return out + "...";
    }
    const Utf8Char next = decode_utf8(text);
    const bool is_control = next.code_point < 0x20 ||
                            (next.code_point >= 0x7F && next.code_point < 0xA0) ||
                            next.code_point == 0x2028 || next.code_point == 0x2029;
    const std::string_view bytes = text.substr(0, static_cast<std::size_t>(next.length));
    if (next.valid && !is_control) {
      out += bytes;
    } else {
      for (const char c : bytes) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(bytes.size());
  }
  return out;
}

}  // namespace headrace

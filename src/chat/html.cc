#include "chat/html.h"

#include <array>
#include <utility>

#include "base/utf8.h"
#include "chat/literals.h"
#include "chat/unicode.h"

namespace headrace::jinja {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEntities = {{
    {"&amp;", "&"},
    {"&lt;", "<"},
    {"&gt;", ">"},
    {"&#39;", "'"},
    {"&#34;", "\""},
    {"&quot;", "\""},
}};

std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return {};
  }
}

void append_part(TextBuilder& out, const Text& text, std::size_t begin, std::size_t end) {
  if (begin < end) {
    out.add(text.sub(begin, end));
  }
}

// The text without what lies between each `open` and the next `close`; an open end stays.
Text without_spans(Budget& budget,
                   const Text& text,
                   std::string_view open,
                   std::string_view close) {
  TextBuilder out(budget);
  const std::string_view view = text.view();
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = view.find(open, at);
    const std::size_t end =
        begin == std::string_view::npos ? begin : view.find(close, begin + open.size());
    if (end == std::string_view::npos) {
      break;
    }
    append_part(out, text, at, begin);
    at = end + close.size();
  }
  append_part(out, text, at, text.size());
  return out.take();
}

Text collapse_space(Budget& budget, const Text& text) {
  TextBuilder out(budget);
  const std::string_view view = text.view();
  for (std::size_t at = skip_space(view, 0); at < view.size();) {
    std::size_t end = at;
    while (end < view.size() && skip_space(view, end) == end) {
      end = char_at(view, end).end;
    }
    if (out.size() > 0) {
      out.add(" ", text.trusted_at(at - 1));
    }
    append_part(out, text, at, end);
    at = skip_space(view, end);
  }
  return out.take();
}

Text unescape(Budget& budget, const Text& text) {
  TextBuilder out(budget);
  const std::string_view view = text.view();
  std::size_t at = 0;
  while (at < view.size()) {
    const std::size_t amp = view.find('&', at);
    append_part(out, text, at, amp == std::string_view::npos ? view.size() : amp);
    if (amp == std::string_view::npos) {
      break;
    }
    at = amp + 1;
    std::string_view plain = "&";
    for (const auto& [entity, character] : kEntities) {
      if (!view.substr(amp).starts_with(entity)) {
        continue;
      }
      plain = character;
      at = amp + entity.size();
      break;
    }
    out.add(plain, text.trusted_at(amp));
  }
  return out.take();
}

}  // namespace

Text escape_html(Budget& budget, const Text& text) {
  if (text.markup()) {
    return text;
  }
  TextBuilder out(budget);
  const std::string_view view = text.view();
  std::size_t at = 0;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const std::string_view entity = entity_of(view[i]);
    if (entity.empty()) {
      continue;
    }
    append_part(out, text, at, i);
    out.add(entity, text.trusted_at(i));
    at = i + 1;
  }
  append_part(out, text, at, view.size());
  return out.take().with_markup(true);
}

Text strip_tags(Budget& budget, const Text& text) {
  const Text plain = without_spans(budget, without_spans(budget, text, "<!--", "-->"), "<", ">");
  return unescape(budget, collapse_space(budget, plain));
}

}  // namespace headrace::jinja

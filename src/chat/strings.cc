#include "chat/strings.h"

#include <algorithm>

#include "base/utf8.h"

namespace headrace::jinja {
namespace {

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

bool in_set(std::string_view set, std::string_view character) {
  for (std::size_t at = 0; at < set.size();) {
    const Char c = char_at(set, at);
    if (set.substr(at, c.end - at) == character) {
      return true;
    }
    at = c.end;
  }
  return false;
}

// Sigma at the end of a word has a lower case of its own.
bool final_sigma(std::string_view text, const Char& c) {
  const bool after = c.begin > 0 && is_cased(char_before(text, c.begin).code);
  const bool before = c.end < text.size() && is_cased(char_at(text, c.end).code);
  return after && !before;
}

void append_cased(std::string& out, std::string_view text, const Char& c, CaseMap map) {
  if (map == CaseMap::kLower && c.code == kSigma && final_sigma(text, c)) {
    append_utf8(out, kFinalSigma);
  } else if (c.code == 0xFFFD) {
    out.append(text.substr(c.begin, c.end - c.begin));
  } else {
    append_mapped(out, map, c.code);
  }
}

// Maps each character by what `choose` says of it and of its place.
template <typename Choose>
Text map_chars(Budget& budget, const Text& text, Choose choose) {
  TextBuilder out(budget);
  const std::string_view view = text.view();
  std::size_t base = 0;
  std::string mapped;
  text.for_each_run([&](std::string_view run, bool trusted) {
    mapped.clear();
    const std::size_t end = base + run.size();
    while (base < end) {
      const Char c = char_at(view, base);
      append_cased(mapped, view, c, choose(c));
      base = c.end;
    }
    out.add(mapped, trusted);
  });
  return out.take().with_markup(text.markup());
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::vector<Text> split_at_space(const Text& text, std::int64_t limit) {
  std::vector<Text> out;
  const std::string_view view = text.view();
  std::size_t at = skip_space(view, 0);
  while (at < view.size()) {
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) == limit) {
      out.push_back(text.sub(at, view.size()));
      break;
    }
    std::size_t end = at;
    while (end < view.size()) {
      const Char c = char_at(view, end);
      if (is(CharClass::kSpace, c.code)) {
        break;
      }
      end = c.end;
    }
    out.push_back(text.sub(at, end));
    at = skip_space(view, end);
  }
  return out;
}

std::vector<Text> split_at_space_from_right(const Text& text, std::int64_t limit) {
  std::vector<Text> out;
  const std::string_view view = text.view();
  std::size_t end = trimmed_end(view);
  while (end > 0) {
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) == limit) {
      out.push_back(text.sub(0, end));
      break;
    }
    std::size_t begin = end;
    while (begin > 0) {
      const Char c = char_before(view, begin);
      if (is(CharClass::kSpace, c.code)) {
        break;
      }
      begin = c.begin;
    }
    out.push_back(text.sub(begin, end));
    end = trimmed_end(view.substr(0, begin));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

void check_separator(const Text& separator) {
  if (separator.empty()) {
    fail("empty separator");
  }
}

}  // namespace

Text strip(const Text& text, const Text* chars, Sides sides) {
  const std::string_view view = text.view();
  const auto drop = [&](const Char& c) {
    if (chars == nullptr) {
      return is(CharClass::kSpace, c.code);
    }
    return in_set(chars->view(), view.substr(c.begin, c.end - c.begin));
  };
  std::size_t begin = 0;
  std::size_t end = view.size();
  if (sides != Sides::kRight) {
    while (begin < end) {
      const Char c = char_at(view, begin);
      if (!drop(c)) {
        break;
      }
      begin = c.end;
    }
  }
  if (sides != Sides::kLeft) {
    while (end > begin) {
      const Char c = char_before(view, end);
      if (!drop(c)) {
        break;
      }
      end = c.begin;
    }
  }
  return text.sub(begin, end);
}

Text map_case(Budget& budget, const Text& text, CaseMap map) {
  return map_chars(budget, text, [map](const Char&) { return map; });
}

Text capitalize(Budget& budget, const Text& text) {
  return map_chars(
      budget, text, [](const Char& c) { return c.begin == 0 ? CaseMap::kTitle : CaseMap::kLower; });
}

Text title_case(Budget& budget, const Text& text) {
  bool in_word = false;
  return map_chars(budget, text, [&in_word](const Char& c) {
    const CaseMap map = in_word ? CaseMap::kLower : CaseMap::kTitle;
    in_word = is_cased(c.code);
    return map;
  });
}

Text swap_case(Budget& budget, const Text& text) {
  return map_chars(budget, text, [](const Char& c) {
    return is(CharClass::kUpper, c.code) ? CaseMap::kLower : CaseMap::kUpper;
  });
}

std::string folded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    append_cased(out, text, c, CaseMap::kLower);
    at = c.end;
  }
  return out;
}

bool has_case(std::string_view text, CharClass wanted) {
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (is(wanted, c.code)) {
      found = true;
    } else if (is_cased(c.code)) {
      return false;
    }
    at = c.end;
  }
  return found;
}

Text replace(
    Budget& budget, const Text& text, const Text& from, const Text& to, std::int64_t limit) {
  TextBuilder out(budget);
  const std::string_view view = text.view();
  std::size_t at = 0;
  std::int64_t done = 0;
  const auto more = [&] { return limit < 0 || done < limit; };
  if (from.empty()) {
    while (more()) {
      out.add(to);
      ++done;
      if (at >= view.size()) {
        break;
      }
      const std::size_t end = char_at(view, at).end;
      out.add(text.sub(at, end));
      at = end;
    }
  } else {
    for (std::size_t hit = view.find(from.view()); hit != std::string_view::npos && more();
         hit = view.find(from.view(), at)) {
      out.add(text.sub(at, hit));
      out.add(to);
      at = hit + from.size();
      ++done;
    }
  }
  if (done == 0) {
    return text;
  }
  out.add(text.sub(at, view.size()));
  return out.take().with_markup(text.markup());
}

Text join(Budget& budget, const Text& separator, const std::vector<Text>& parts) {
  TextBuilder out(budget);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      out.add(separator);
    }
    out.add(parts[i]);
  }
  return out.take().with_markup(separator.markup());
}

Text pad(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Sides text_at) {
  const auto length = static_cast<std::int64_t>(count_chars(text.view()));
  if (width <= length) {
    return text;
  }
  const std::int64_t room = width - length;
  budget.charge_steps(static_cast<std::size_t>(room));
  // Centred as CPython does: the odd one goes left only where both the room and the width are odd.
  const std::int64_t left = text_at == Sides::kLeft    ? 0
                            : text_at == Sides::kRight ? room
                                                       : room / 2 + (room & width & 1);
  TextBuilder out(budget);
  for (std::int64_t i = 0; i < left; ++i) {
    out.add(fill);
  }
  out.add(text);
  for (std::int64_t i = left; i < room; ++i) {
    out.add(fill);
  }
  return out.take().with_markup(text.markup());
}

std::vector<Text> split(const Text& text, const Text* separator, std::int64_t limit) {
  if (separator == nullptr) {
    return split_at_space(text, limit);
  }
  check_separator(*separator);
  std::vector<Text> out;
  const std::string_view view = text.view();
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t hit = view.find(separator->view(), at);
    if (hit == std::string_view::npos) {
      break;
    }
    out.push_back(text.sub(at, hit));
    at = hit + separator->size();
  }
  out.push_back(text.sub(at, view.size()));
  return out;
}

std::vector<Text> split_from_right(const Text& text, const Text* separator, std::int64_t limit) {
  if (separator == nullptr) {
    return split_at_space_from_right(text, limit);
  }
  check_separator(*separator);
  std::vector<Text> out;
  std::string_view view = text.view();
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t hit = view.rfind(separator->view());
    if (hit == std::string_view::npos) {
      break;
    }
    out.push_back(text.sub(hit + separator->size(), view.size()));
    view = view.substr(0, hit);
  }
  out.push_back(text.sub(0, view.size()));
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  std::vector<Text> out;
  const std::string_view view = text.view();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < view.size();) {
    const Char c = char_at(view, at);
    at = c.end;
    if (!is_line_end(c.code)) {
      continue;
    }
    if (c.code == '\r' && at < view.size() && view[at] == '\n') {
      ++at;
    }
    out.push_back(text.sub(begin, keep_ends ? at : c.begin));
    begin = at;
  }
  if (begin < view.size()) {
    out.push_back(text.sub(begin, view.size()));
  }
  return out;
}

}  // namespace headrace::jinja

// Filters that lay text out: indent, truncate, wordwrap, wordcount.
#include <algorithm>
#include <array>

#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/strings.h"

namespace headrace::jinja {
namespace {

Text require_text(const Value& input, std::string_view filter) {
  require_defined(input);
  const Text* text = input.as_text();
  if (text == nullptr) {
    fail("{} takes a string, not {}", filter, type_name(input));
  }
  return *text;
}

Value indent(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "indent", {"width", "first", "blank"});
  const Text text = require_text(input, "indent");
  Text indention;
  if (const Value* width = reader.get(0); width != nullptr && width->as_text() != nullptr) {
    indention = *width->as_text();
  } else {
    indention = pad(in.budget(),
                    Text(),
                    static_cast<std::int64_t>(reader.integer(0, 4)),
                    Text::literal(" "),
                    Sides::kLeft);
  }
  const bool blank = reader.flag(2, false);
  std::vector<Text> lines = split_lines(text.append(Text("\n", true), in.budget()), false);
  TextBuilder out(in.budget());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out.add("\n", true);
    }
    const bool indented = i == 0 ? reader.flag(1, false) : blank || !lines[i].empty();
    if (indented) {
      out.add(indention);
    }
    out.add(lines[i]);
  }
  return Value::text(out.take().with_markup(text.markup()));
}

Value truncate(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(args, "truncate", {"length", "killwords", "end", "leeway"});
  const Text text = require_text(input, "truncate");
  const Text end = reader.text(2) != nullptr ? *reader.text(2) : Text::literal("...");
  const Int length = reader.integer(0, 255);
  const bool has_leeway = reader.get(3) != nullptr && !reader.get(3)->is_none();
  const Int leeway = has_leeway ? reader.integer(3, 5) : 5;
  const auto end_length = static_cast<Int>(count_chars(end.view()));
  if (length < end_length || leeway < 0) {
    fail("truncate: the length is shorter than the end, or the leeway negative");
  }
  if (static_cast<Int>(count_chars(text.view())) <= length + leeway) {
    return Value::text(text);
  }
  Text kept =
      text.sub(0, offset_of_char(text.view(), static_cast<std::size_t>(length - end_length)));
  if (!reader.flag(1, false)) {
    const std::size_t space = kept.view().rfind(' ');
    if (space != std::string_view::npos) {
      kept = kept.sub(0, space);
    }
  }
  return Value::text(kept.append(end, in.budget()));
}

Value wordcount(Interpreter& in, const Value& input, CallArgs& args) {
  take_no_arguments(args, "wordcount");
  const Text text = in.str(input);
  const std::string_view view = text.view();
  Int count = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < view.size();) {
    const Char c = char_at(view, at);
    const bool word = c.code == '_' || is_alnum(c.code);
    if (word && !in_word) {
      ++count;
    }
    in_word = word;
    at = c.end;
  }
  return Value::integer(count);
}

// The pieces lines may be broken between: words, runs of white space, and words cut behind their
// hyphens.
class Wrapper {
 public:
  Wrapper(std::size_t width, bool break_long, bool break_hyphens)
      : width_(width), break_long_(break_long), break_hyphens_(break_hyphens) {}

  std::vector<Text> wrap(const Text& line) const {
    std::vector<Text> chunks = pieces(line);
    std::reverse(chunks.begin(), chunks.end());
    std::vector<Text> lines;
    while (!chunks.empty()) {
      if (!lines.empty() && blank(chunks.back())) {
        chunks.pop_back();
      }
      const Text whole = next_line(line, chunks);
      if (!whole.empty()) {
        lines.push_back(whole);
      }
    }
    return lines;
  }

 private:
  static bool blank(const Text& text) { return trimmed_end(text.view()) == 0; }
  static std::size_t size(const Text& text) { return count_chars(text.view()); }

  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  // Where a word may be cut: behind a hyphen with letters on both sides.
  static std::size_t hyphen_end(std::string_view word, std::size_t at) {
    for (std::size_t i = at + 1; i + 1 < word.size(); ++i) {
      if (word[i] != '-') {
        continue;
      }
      const bool left = i >= at + 2 && is(CharClass::kAlpha, char_before(word, i).code) &&
                        is(CharClass::kAlpha, char_before(word, char_before(word, i).begin).code);
      const bool right = is(CharClass::kAlpha, char_at(word, i + 1).code) &&
                         char_at(word, i + 1).end < word.size() &&
                         is(CharClass::kAlpha, char_at(word, char_at(word, i + 1).end).code);
      if (left && right) {
        return i + 1;
      }
    }
    return word.size();
  }

  std::vector<Text> pieces(const Text& line) const {
    std::vector<Text> out;
    const std::string_view view = line.view();
    for (std::size_t at = 0; at < view.size();) {
      std::size_t end = at;
      while (end < view.size() && is_space(view[end]) == is_space(view[at])) {
        ++end;
      }
      if (break_hyphens_ && !is_space(view[at])) {
        end = hyphen_end(view.substr(0, end), at);
      }
      out.push_back(line.sub(at, end));
      at = end;
    }
    return out;
  }

  // Takes from `chunks` what fits on one line; the pieces lie one behind the other in `line`.
  Text next_line(const Text& line, std::vector<Text>& chunks) const {
    std::vector<Text> taken;
    std::size_t length = 0;
    while (!chunks.empty() && length + size(chunks.back()) <= width_) {
      length += size(chunks.back());
      taken.push_back(chunks.back());
      chunks.pop_back();
    }
    if (!chunks.empty() && size(chunks.back()) > width_) {
      break_word(taken, length, chunks);
    }
    if (!taken.empty() && blank(taken.back())) {
      taken.pop_back();
    }
    if (taken.empty()) {
      return {};
    }
    const auto offset = [&line](const char* p) {
      return static_cast<std::size_t>(p - line.view().data());
    };
    const std::string_view last = taken.back().view();
    return line.sub(offset(taken.front().view().data()), offset(last.data()) + last.size());
  }

  void break_word(std::vector<Text>& taken, std::size_t length, std::vector<Text>& chunks) const {
    const std::size_t room = width_ < 1 ? 1 : width_ - length;
    if (break_long_) {
      const Text word = chunks.back();
      std::size_t cut = offset_of_char(word.view(), room);
      if (break_hyphens_ && size(word) > room) {
        const std::size_t hyphen = word.view().substr(0, cut).rfind('-');
        const bool letters =
            hyphen != std::string_view::npos && hyphen > 0 &&
            word.view().substr(0, hyphen).find_first_not_of('-') != std::string_view::npos;
        if (letters) {
          cut = hyphen + 1;
        }
      }
      if (cut > 0) {
        taken.push_back(word.sub(0, cut));
      }
      chunks.back() = word.sub(cut, word.size());
      if (chunks.back().empty()) {
        chunks.pop_back();
      }
    } else if (taken.empty()) {
      taken.push_back(chunks.back());
      chunks.pop_back();
    }
  }

  std::size_t width_;
  bool break_long_;
  bool break_hyphens_;
};

Value wordwrap(Interpreter& in, const Value& input, CallArgs& args) {
  const ArgReader reader(
      args, "wordwrap", {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const Text text = require_text(input, "wordwrap");
  const Int width = reader.integer(0, 79);
  if (width <= 0) {
    fail("wordwrap: the width must be above 0");
  }
  const Wrapper wrapper(
      static_cast<std::size_t>(width), reader.flag(1, true), reader.flag(3, true));
  const Text newline = reader.text(2) != nullptr ? *reader.text(2) : Text::literal("\n");
  std::vector<Text> lines;
  for (const Text& line : split_lines(text, false)) {
    in.budget().charge_steps(line.size());
    lines.push_back(join(in.budget(), newline, wrapper.wrap(line)));
  }
  return Value::text(join(in.budget(), newline, lines));
}

constexpr std::array kFilters = {
    FilterEntry{"indent", indent},
    FilterEntry{"truncate", truncate},
    FilterEntry{"wordcount", wordcount},
    FilterEntry{"wordwrap", wordwrap},
};

}  // namespace

std::span<const FilterEntry> wrap_filters() { return kFilters; }

}  // namespace headrace::jinja

// Methods of str that change case, strip, pad and ask what the characters are.
#include <array>

#include "chat/methods.h"
#include "chat/operators.h"
#include "chat/strings.h"

namespace headrace::jinja {
namespace {

const Text& self_text(const Value& self) { return *self.as_text(); }

void no_arguments(CallArgs& args) { ArgReader(args, "method", {}); }

template <CaseMap kMap>
Value cased(Interpreter& in, const Value& self, CallArgs& args) {
  no_arguments(args);
  return Value::text(map_case(in.budget(), self_text(self), kMap));
}

using TextFunction = Text (*)(Budget&, const Text&);

template <TextFunction kFunction>
Value changed(Interpreter& in, const Value& self, CallArgs& args) {
  no_arguments(args);
  return Value::text(kFunction(in.budget(), self_text(self)));
}

// Full case folding is lower case but for the sharp s and the final sigma, which is all that
// templates meet.
Text casefold(Budget& budget, const Text& text) {
  const Text lower = map_case(budget, text, CaseMap::kLower);
  const Text plain = replace(budget, lower, Text::literal("ß"), Text("ss", false), -1);
  return replace(budget, plain, Text::literal("ς"), Text("σ", false), -1);
}

template <Sides kSides>
Value stripped(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "strip", {"chars"});
  return Value::text(strip(self_text(self), reader.text(0), kSides));
}

template <Sides kTextAt>
Value padded(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "center", {"width", "fillchar"}, 1);
  const Text fill = reader.text(1) != nullptr ? *reader.text(1) : Text::literal(" ");
  if (count_chars(fill.view()) != 1) {
    fail("The fill character must be exactly one character long");
  }
  const Int width = std::min<Int>(reader.integer(0, 0), Int{1} << 40);
  return Value::text(
      pad(in.budget(), self_text(self), static_cast<std::int64_t>(width), fill, kTextAt));
}

Value zfill(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "zfill", {"width"}, 1);
  const Text& text = self_text(self);
  const Int width = std::min<Int>(reader.integer(0, 0), Int{1} << 40);
  const bool sign = text.view().starts_with('+') || text.view().starts_with('-');
  const Text digits = sign ? text.sub(1, text.size()) : text;
  const Text filled = pad(in.budget(),
                          digits,
                          static_cast<std::int64_t>(width) - (sign ? 1 : 0),
                          Text("0", true),
                          Sides::kRight);
  return Value::text(
      sign ? Text(text.view().substr(0, 1), text.trusted_at(0)).append(filled, in.budget())
           : filled);
}

Value expandtabs(Interpreter& in, const Value& self, CallArgs& args) {
  const ArgReader reader(args, "expandtabs", {"tabsize"});
  const Int size = reader.integer(0, 8);
  if (size > 10'000) {
    fail_budget("expandtabs: the tabs are too wide");
  }
  const Text& text = self_text(self);
  const std::string_view view = text.view();
  TextBuilder out(in.budget());
  Int column = 0;
  for (std::size_t at = 0; at < view.size();) {
    const Char c = char_at(view, at);
    if (c.code == '\t') {
      const Int spaces = size > 0 ? size - column % size : 0;
      out.add(std::string(static_cast<std::size_t>(spaces), ' '), text.trusted_at(at));
      column += spaces;
    } else {
      out.add(text.sub(at, c.end));
      column = c.code == '\n' || c.code == '\r' ? 0 : column + 1;
    }
    at = c.end;
  }
  return Value::text(out.take());
}

using CharPredicate = bool (*)(char32_t);

// True for a text that has characters, all of the kind.
template <CharPredicate kPredicate>
Value all_of(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  no_arguments(args);
  const std::string_view view = self_text(self).view();
  for (std::size_t at = 0; at < view.size();) {
    const Char c = char_at(view, at);
    if (!kPredicate(c.code)) {
      return Value::boolean(false);
    }
    at = c.end;
  }
  return Value::boolean(!view.empty());
}

template <CharClass kClass>
bool of_class(char32_t c) {
  return is(kClass, c);
}

template <CharClass kClass>
Value has_only_case(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  no_arguments(args);
  return Value::boolean(has_case(self_text(self).view(), kClass));
}

Value isascii(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  no_arguments(args);
  return Value::boolean(self_text(self).ascii());
}

Value isprintable(Interpreter& in, const Value& self, CallArgs& args) {
  if (self_text(self).empty()) {
    return Value::boolean(true);
  }
  return all_of<of_class<CharClass::kPrintable>>(in, self, args);
}

Value isidentifier(Interpreter& /*in*/, const Value& self, CallArgs& args) {
  no_arguments(args);
  const std::string_view view = self_text(self).view();
  for (std::size_t at = 0; at < view.size();) {
    const Char c = char_at(view, at);
    const bool letter = c.code == '_' || is(CharClass::kAlpha, c.code);
    if (!letter && (at == 0 || !is(CharClass::kDecimal, c.code))) {
      return Value::boolean(false);
    }
    at = c.end;
  }
  return Value::boolean(!view.empty());
}

Value istitle(Interpreter& in, const Value& self, CallArgs& args) {
  no_arguments(args);
  const Text& text = self_text(self);
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text.view(), at);
    any = any || is_cased(c.code);
    at = c.end;
  }
  return Value::boolean(any && title_case(in.budget(), text) == text);
}

constexpr std::array kMethods = {
    MethodEntry{"upper", cased<CaseMap::kUpper>},
    MethodEntry{"lower", cased<CaseMap::kLower>},
    MethodEntry{"capitalize", changed<capitalize>},
    MethodEntry{"title", changed<title_case>},
    MethodEntry{"swapcase", changed<swap_case>},
    MethodEntry{"casefold", changed<casefold>},
    MethodEntry{"strip", stripped<Sides::kBoth>},
    MethodEntry{"lstrip", stripped<Sides::kLeft>},
    MethodEntry{"rstrip", stripped<Sides::kRight>},
    MethodEntry{"center", padded<Sides::kBoth>},
    MethodEntry{"ljust", padded<Sides::kLeft>},
    MethodEntry{"rjust", padded<Sides::kRight>},
    MethodEntry{"zfill", zfill},
    MethodEntry{"expandtabs", expandtabs},
    MethodEntry{"isalpha", all_of<of_class<CharClass::kAlpha>>},
    MethodEntry{"isalnum", all_of<is_alnum>},
    MethodEntry{"isdecimal", all_of<of_class<CharClass::kDecimal>>},
    MethodEntry{"isdigit", all_of<of_class<CharClass::kDigit>>},
    MethodEntry{"isnumeric", all_of<of_class<CharClass::kNumeric>>},
    MethodEntry{"isspace", all_of<of_class<CharClass::kSpace>>},
    MethodEntry{"isprintable", isprintable},
    MethodEntry{"isascii", isascii},
    MethodEntry{"isidentifier", isidentifier},
    MethodEntry{"islower", has_only_case<CharClass::kLower>},
    MethodEntry{"isupper", has_only_case<CharClass::kUpper>},
    MethodEntry{"istitle", istitle},
};

}  // namespace

std::span<const MethodEntry> string_methods() { return kMethods; }

}  // namespace headrace::jinja

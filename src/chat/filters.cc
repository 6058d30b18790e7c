#include "chat/filters.h"

#include <unordered_map>

#include "chat/literals.h"

namespace headrace::jinja {
namespace {

using Table = std::unordered_map<std::string_view, const FilterEntry*>;

Table make_table() {
  Table table;
  for (const auto entries :
       {text_filters(), wrap_filters(), value_filters(), sequence_filters(), select_filters()}) {
    for (const FilterEntry& entry : entries) {
      table.emplace(entry.name, &entry);
    }
  }
  return table;
}

}  // namespace

const FilterEntry* find_filter(std::string_view name) {
  static const Table table = make_table();
  const auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

Value dotted_item(Interpreter& in, const Value& item, const Value& path) {
  const Text* text = path.as_text();
  if (text == nullptr) {
    return path.is_none() ? item : in.item(item, path);
  }
  Value current = item;
  const std::string_view view = text->view();
  for (std::size_t at = 0; at <= view.size();) {
    const std::size_t dot = std::min(view.find('.', at), view.size());
    const std::string_view part = view.substr(at, dot - at);
    const bool digits =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    const auto index = digits ? parse_int(part, 10) : std::nullopt;
    current = in.item(current, index ? Value::integer(*index) : Value::text(text->sub(at, dot)));
    at = dot + 1;
  }
  return current;
}

}  // namespace headrace::jinja

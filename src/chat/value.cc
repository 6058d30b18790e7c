#include "chat/value.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace headrace::jinja {
namespace {

constexpr int kMaxDepth = 400;
constexpr std::size_t kMaxWeight = 5'000'000;  // some hundred megabytes

void check_bounds(int depth, std::size_t weight) {
  if (depth > kMaxDepth) {
    fail_budget("values nest deeper than {} levels", kMaxDepth);
  }
  if (weight > kMaxWeight) {
    fail_budget("a value holds more than {} parts", kMaxWeight);
  }
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equals);
}

bool equal_sequences(const Sequence& a, const Sequence& b) {
  if (&a == &b) {
    return true;
  }
  if (a.is_tuple() && b.is_tuple()) {
    return equal_items(a.items, b.items);
  }
  const bool set_like = a.kind == SequenceKind::kKeys || a.kind == SequenceKind::kItems;
  if (a.kind != b.kind || a.kind == SequenceKind::kGenerator || a.kind == SequenceKind::kValues) {
    return false;
  }
  if (!set_like) {
    return equal_items(a.items, b.items);
  }
  return a.items.size() == b.items.size() &&
         std::all_of(a.items.begin(), a.items.end(), [&b](const Value& item) {
           return std::any_of(b.items.begin(), b.items.end(), [&](const Value& other) {
             return equals(item, other);
           });
         });
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (&a == &b) {
    return true;
  }
  if (a.size() != b.size()) {
    return false;
  }
  return std::all_of(a.entries().begin(), a.entries().end(), [&b](const auto& entry) {
    const Value* other = b.find(entry.first);
    return other != nullptr && equals(entry.second, *other);
  });
}

std::optional<double> as_number(const Value& value) {
  if (const auto* d = value.get<double>()) {
    return *d;
  }
  if (const auto i = value.as_int()) {
    return static_cast<double>(*i);
  }
  return std::nullopt;
}

std::size_t mix(std::size_t seed, std::size_t next) {
  return seed ^ (next + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}

std::size_t hash_int(Int i) { return std::hash<std::int64_t>()(static_cast<std::int64_t>(i)); }

std::size_t hash_double(double d) {
  if (std::floor(d) == d && std::abs(d) < 1e18) {
    return hash_int(static_cast<Int>(d));
  }
  return std::hash<double>()(d);
}

}  // namespace

// Each builds in place: a moved variant makes some compilers warn of parts that are not there.
Value Value::undefined(std::string why) {
  Value value;
  value.data_.emplace<Undefined>(Undefined{std::make_shared<const std::string>(std::move(why))});
  return value;
}

Value Value::none() {
  Value value;
  value.data_.emplace<None>();
  return value;
}

Value Value::boolean(bool b) {
  Value value;
  value.data_.emplace<bool>(b);
  return value;
}

Value Value::integer(Int i) {
  Value value;
  value.data_.emplace<Int>(i);
  return value;
}

Value Value::real(double d) {
  Value value;
  value.data_.emplace<double>(d);
  return value;
}

Value Value::text(Text t) {
  Value value;
  value.data_.emplace<Text>(std::move(t));
  return value;
}

Value Value::sequence(SequencePtr s) {
  Value value;
  value.data_.emplace<SequencePtr>(std::move(s));
  return value;
}

Value Value::dict(DictPtr d) {
  Value value;
  value.data_.emplace<DictPtr>(std::move(d));
  return value;
}

Value Value::object(ObjectPtr o) {
  Value value;
  value.data_.emplace<ObjectPtr>(std::move(o));
  return value;
}

const Sequence* Value::as_sequence() const {
  const auto* p = get<SequencePtr>();
  return p == nullptr ? nullptr : p->get();
}

const Dict* Value::as_dict() const {
  const auto* p = get<DictPtr>();
  return p == nullptr ? nullptr : p->get();
}

Object* Value::as_object() const {
  const auto* p = get<ObjectPtr>();
  return p == nullptr ? nullptr : p->get();
}

std::optional<Int> Value::as_int() const {
  if (const auto* i = get<Int>()) {
    return *i;
  }
  if (const auto* b = get<bool>()) {
    return *b ? 1 : 0;
  }
  return std::nullopt;
}

Sequence::Sequence(SequenceKind kind_in, std::vector<Value> items_in)
    : kind(kind_in), items(std::move(items_in)) {
  for (const Value& item : items) {
    depth = std::max(depth, 1 + depth_of(item));
    weight += weight_of(item);
  }
  check_bounds(depth, weight);
}

void check_size(std::size_t num_items, std::size_t times) {
  if (num_items > 0 && times > kMaxWeight / num_items) {
    fail_budget("a value holds more than {} parts", kMaxWeight);
  }
}

Value make_sequence(SequenceKind kind, std::vector<Value> items) {
  return Value::sequence(std::make_shared<Sequence>(kind, std::move(items)));
}

std::optional<std::size_t> Dict::position(const Value& key, std::size_t hash) const {
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (equals(entries_[it->second].first, key)) {
      return it->second;
    }
  }
  return std::nullopt;
}

void Dict::set(const Value& key, Value value) {
  const std::size_t hash = hash_value(key);
  depth_ = std::max({depth_, 1 + depth_of(value), 1 + depth_of(key)});
  weight_ += weight_of(value) + 1;
  check_bounds(depth_, weight_);
  if (const auto at = position(key, hash)) {
    entries_[*at].second = std::move(value);
    return;
  }
  index_.emplace(hash, entries_.size());
  entries_.emplace_back(key, std::move(value));
}

const Value* Dict::find(const Value& key) const {
  const auto at = position(key, hash_value(key));
  return at ? &entries_[*at].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  const auto [first, last] = index_.equal_range(std::hash<std::string_view>()(key));
  for (auto it = first; it != last; ++it) {
    const Text* text = entries_[it->second].first.as_text();
    if (text != nullptr && text->view() == key) {
      return &entries_[it->second].second;
    }
  }
  return nullptr;
}

std::string Object::describe() const { return fmt::format("<{}>", type_name()); }

std::optional<Value> Object::attribute(Interpreter& /*in*/, std::string_view /*name*/) {
  return std::nullopt;
}

Value Object::call(Interpreter& /*in*/, CallArgs& /*args*/) {
  fail("'{}' object is not callable", type_name());
}

std::optional<std::size_t> Object::length(Interpreter& /*in*/) { return std::nullopt; }

int depth_of(const Value& value) {
  if (const Sequence* s = value.as_sequence()) {
    return s->depth;
  }
  if (const Dict* d = value.as_dict()) {
    return d->depth();
  }
  if (const Object* o = value.as_object()) {
    return o->depth();
  }
  return 0;
}

std::size_t weight_of(const Value& value) {
  if (const Sequence* s = value.as_sequence()) {
    return s->weight;
  }
  if (const Dict* d = value.as_dict()) {
    return d->weight();
  }
  return 1;
}

std::string_view type_name(const Value& value) {
  struct Namer {
    std::string_view operator()(const Undefined&) const { return "Undefined"; }
    std::string_view operator()(const None&) const { return "NoneType"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(Int) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const Text&) const { return "str"; }
    std::string_view operator()(const SequencePtr& s) const {
      switch (s->kind) {
        case SequenceKind::kList:
          return "list";
        case SequenceKind::kTuple:
          return "tuple";
        case SequenceKind::kRange:
          return "range";
        case SequenceKind::kKeys:
          return "dict_keys";
        case SequenceKind::kValues:
          return "dict_values";
        case SequenceKind::kItems:
          return "dict_items";
        case SequenceKind::kGenerator:
          return "generator";
        case SequenceKind::kGroup:
          return "_GroupTuple";
      }
      return "list";
    }
    std::string_view operator()(const DictPtr&) const { return "dict"; }
    std::string_view operator()(const ObjectPtr& o) const { return o->type_name(); }
  };
  return std::visit(Namer(), value.data());
}

std::string object_name(const Value& value) {
  return value.is_none() ? "None" : fmt::format("{} object", type_name(value));
}

bool truthy(const Value& value) {
  struct Truth {
    bool operator()(const Undefined&) const { return false; }
    bool operator()(const None&) const { return false; }
    bool operator()(bool b) const { return b; }
    bool operator()(Int i) const { return i != 0; }
    bool operator()(double d) const { return d != 0.0; }
    bool operator()(const Text& t) const { return !t.empty(); }
    bool operator()(const SequencePtr& s) const {
      return s->kind == SequenceKind::kGenerator || !s->items.empty();
    }
    bool operator()(const DictPtr& d) const { return d->size() > 0; }
    bool operator()(const ObjectPtr&) const { return true; }
  };
  return std::visit(Truth(), value.data());
}

bool equals(const Value& a, const Value& b) {
  if (const auto x = a.as_int(), y = b.as_int(); x && y) {
    return *x == *y;
  }
  if (const auto x = as_number(a), y = as_number(b); x && y) {
    return *x == *y;
  }
  if (a.data().index() != b.data().index()) {
    return false;
  }
  if (a.is_undefined() || a.is_none()) {
    return true;
  }
  if (const Text* x = a.as_text()) {
    return *x == *b.as_text();
  }
  if (const Sequence* x = a.as_sequence()) {
    return equal_sequences(*x, *b.as_sequence());
  }
  if (const Dict* x = a.as_dict()) {
    return equal_dicts(*x, *b.as_dict());
  }
  return a.as_object() == b.as_object();
}

bool identical(const Value& a, const Value& b) {
  if (a.data().index() != b.data().index()) {
    return false;
  }
  if (const Sequence* x = a.as_sequence()) {
    return x == b.as_sequence();
  }
  if (const Dict* x = a.as_dict()) {
    return x == b.as_dict();
  }
  return equals(a, b);
}

std::size_t hash_value(const Value& value) {
  if (const auto i = value.as_int()) {
    return hash_int(*i);
  }
  if (const auto* d = value.get<double>()) {
    return hash_double(*d);
  }
  if (const Text* t = value.as_text()) {
    return std::hash<std::string_view>()(t->view());
  }
  if (value.is_none()) {
    return 1;
  }
  if (value.is_undefined()) {
    return 2;
  }
  if (const Object* o = value.as_object()) {
    return std::hash<const Object*>()(o);
  }
  const Sequence* s = value.as_sequence();
  if (s == nullptr || s->kind == SequenceKind::kList || s->kind == SequenceKind::kKeys ||
      s->kind == SequenceKind::kItems) {
    fail("unhashable type: '{}'", type_name(value));
  }
  if (!s->is_tuple() && s->kind != SequenceKind::kRange) {
    return std::hash<const Sequence*>()(s);
  }
  std::size_t hash = s->items.size();
  for (const Value& item : s->items) {
    hash = mix(hash, hash_value(item));
  }
  return hash;
}

}  // namespace headrace::jinja
